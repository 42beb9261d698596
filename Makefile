# Needs python3 (3.10 or newer) with venv, and make. Everything is installed into .venv; a second call installs nothing.
#   make demo        install, then compare four methods on embedded features of PACS and write demo/index.html
#   make test-fast   install, then run the tests that are not marked slow, for use while you edit
#   make test        install, then lint, types and all tests: what continuous integration runs
#   make test-gpu    install, then run the tests that need a CUDA GPU
#   make fuzz        install, then run the tests with random examples on new ones
#   make tables      install, then write the tables on the pages from the runs in results/
#   make docs        install, then run the tutorials and build the documentation site strictly into site/
#   make dist        install, then build the wheel and the source archive into dist/ and check them
#   make pictures    install, then make the pictures in docs/pictures again (needs Chromium)
#   make serve       install, then show the site at http://127.0.0.1:8000 while you write
# Without an NVIDIA driver, CPU-only PyTorch is installed (2 GB instead of 7) if its index answers; make install-cpu
# installs it in any case. JOBS=8 runs tests in 8 processes; PYTHON=python3.13 VENV=.venv-other uses another Python.

# Compiled tests and modules are kept: without them, each process that a test starts compiles the package again.
export PYTHONDONTWRITEBYTECODE :=

PYTHON ?= python3
JOBS   ?= 2
VENV   ?= .venv
BIN    := $(VENV)/bin
CPU_INDEX ?= https://download.pytorch.org/whl/cpu
# Installed again only if the dependencies or the commands in pyproject.toml change.
STAMP  := $(VENV)/.installed-$(shell sed -n '/^dependencies = /,/^\[tool/p' pyproject.toml | cksum | cut -d ' ' -f 1)
# The variable silences a notice about the theme's successor, which is not about these pages.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs
TYPES  := $(VENV)/types.log
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest

.PHONY: demo test test-fast test-gpu fuzz tables docs serve pictures dist lint types schemas install install-cpu versions clean

demo: $(STAMP)
	$(BIN)/longshift demo --out demo

# mypy runs while the tests do (it uses one core for a minute on a new clone); its report comes after theirs. One process
# more than JOBS: some tests wait for clusters and killed commands, and the others compute meanwhile.
test: lint schemas
	$(BIN)/mypy > $(TYPES) 2>&1 & types=$$!; \
	$(PYTEST) -n $$(($(JOBS) + 1)) --dist worksteal; failed=$$?; \
	wait $$types || failed=1; cat $(TYPES); exit $$failed

test-fast: $(STAMP)
	$(PYTEST) -n $(JOBS) --dist worksteal -m "not slow"

# One process: tests that share a GPU would disturb each other's memory and graphs.
test-gpu: $(STAMP)
	$(PYTEST) -m gpu

# `make test` has the same examples each time.
fuzz: $(STAMP)
	$(PYTEST) -n $(JOBS) --dist worksteal -m hypothesis --hypothesis-profile explore

tables: $(STAMP)
	$(BIN)/python -m results.docs_tables

docs: $(STAMP)
	rm -rf build/notebooks
	$(MKDOCS) build --strict --quiet

pictures: $(STAMP)
	$(BIN)/python -m docs_build.pictures

serve: $(STAMP)
	$(MKDOCS) serve

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# Files that only a code host reads: workflows, issue forms, the citation.
schemas: $(STAMP)
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/method.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*

install: $(STAMP)

$(STAMP):
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python tools/install_torch.py $(CPU_INDEX)
	$(BIN)/python -m pip install --quiet --editable '.[dev,docs,ray,tracking,export]'
	$(BIN)/python -c "import torchvision" || (echo "torch and torchvision are not of the same kind; see docs/guides/troubleshooting.md, 'operator torchvision::nms'" && false)
	rm -f $(VENV)/.installed*
	touch $@

# The versions with which continuous integration passed last: pip install --constraint tools/newest-versions.txt ...
versions: $(STAMP)
	$(BIN)/python -m pip freeze --quiet --exclude-editable > tools/newest-versions.txt

install-cpu:
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet torch torchvision --index-url $(CPU_INDEX)
	$(MAKE) install

clean:
	rm -rf $(VENV) .venv-other demo demo-digits site build
