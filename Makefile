# Needs python3 (3.10 or newer) with venv, and make. Everything is installed into .venv; a second call installs nothing.
#   make demo        install, then compare ERM and NDCL on the embedded data and write demo/index.html
#   make test-fast   install, then run the tests that are not marked slow, for use while you edit
#   make test        install, then lint, types and all tests: what continuous integration runs
#   make test-gpu    install, then run the tests that need a CUDA GPU
#   make tables      install, then write the tables on the pages from the runs in results/
# CPU-only PyTorch (2 GB instead of 7): make install-cpu, then the same targets. JOBS=8 runs tests in 8 processes.

PYTHON ?= python3
JOBS   ?= 2
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest

.PHONY: demo test test-fast test-gpu tables lint types install install-cpu clean

demo: $(STAMP)
	$(BIN)/longshift demo --out demo

test: lint types
	$(PYTEST) -n $(JOBS) --dist worksteal

test-fast: $(STAMP)
	$(PYTEST) -n $(JOBS) --dist worksteal -m "not slow"

# One process: tests that share a GPU would disturb each other's memory and graphs.
test-gpu: $(STAMP)
	$(PYTEST) -m gpu

tables: $(STAMP)
	$(BIN)/python -m results.docs_tables

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

install: $(STAMP)

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev,ray,tracking,export]'
	$(BIN)/python -c "import torchvision" || (echo "torch and torchvision are not of the same kind; see docs/troubleshooting.md, 'operator torchvision::nms'" && false)
	touch $@

install-cpu:
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet torch torchvision --index-url https://download.pytorch.org/whl/cpu
	$(MAKE) install

clean:
	rm -rf $(VENV) demo
