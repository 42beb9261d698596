# Needs python3 (3.10 or newer) with venv, and make. Everything lands in .venv; a second call installs nothing.
#   make demo    install, then compare ERM and NDCL on the embedded data and write demo/index.html
#   make test    install, then lint, types and the whole test suite
# CPU-only PyTorch (7 GB become 2): make install-cpu, then the same targets.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test lint types install install-cpu clean

demo: $(STAMP)
	$(BIN)/longshift demo --out demo

test: lint types
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

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
