# Every job of this repository, one target each. `make help` lists them.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# The stamps say what is installed for which pyproject.toml and constraints.txt; newer files undo them.
RUN_STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev

CODE := mempalace watcher service hooks tests

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help venv run test lint types layers unit format soak bench clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

venv: $(DEV_STAMP) ## Make .venv with everything that development needs

run: $(RUN_STAMP) ## Install what is needed and take the tour: a palace, filled and searched
	$(BIN)/python docs/tour/run.py

test: lint types layers unit ## Everything a change must pass: lint, types, layers, tests

lint: $(DEV_STAMP) ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(DEV_STAMP) ## mypy --strict
	$(BIN)/mypy --strict $(CODE)

layers: $(DEV_STAMP) ## import-linter: who may import whom
	$(BIN)/lint-imports --no-logo

unit: $(DEV_STAMP) ## pytest without the soak tests
	$(BIN)/python -m pytest

format: $(DEV_STAMP) ## Rewrite the code as ruff wants it
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

soak: $(DEV_STAMP) ## pytest, only the long tests
	$(BIN)/python -m pytest -m soak --timeout 3600

bench: $(DEV_STAMP) ## Measure: ratios against a baseline of the same run
	$(BIN)/python -m tests.bench

clean: ## Remove .venv and the tools' caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "MemPalace needs Python 3.11 or newer; name one: make PYTHON=python3.12 …" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUN_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing into $(VENV) (half a minute the first time) …"
	$(PIP) -c constraints.txt -e .
	@touch $@

$(DEV_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -c constraints.txt -e '.[dev]'
	@touch $(RUN_STAMP) $@
