# The only commands anyone needs; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install run test deep lint types format fuzz bench clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk 'BEGIN {FS = ":.*## "} {printf "  make %-10s %s\n", $$1, $$2}'

install: $(STAMP) ## make the virtual environment and install into it

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $(STAMP)

run: $(STAMP) ## start a broker with its embedded defaults on 127.0.0.1:1969
	@$(BIN)/kbn serve

test: $(STAMP) ## run the tests (short Hypothesis profile)
	$(BIN)/python -m pytest -n auto --dist loadgroup

deep: $(STAMP) ## run the tests with the long profile (hours)
	KBN_PROFILE=deep $(BIN)/python -m pytest -n auto --dist loadgroup

lint: $(STAMP) ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## check types, strictly
	$(BIN)/mypy

format: $(STAMP) ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fuzz: $(STAMP) ## fuzz the wire and the text parser, bounded
	$(BIN)/python -m fuzz.senp_packets --count 200000
	$(BIN)/python -m fuzz.senp_traffic --count 100000
	$(BIN)/python -m fuzz.text_filters --count 20000

bench: $(STAMP) ## run every benchmark, a JSON line per figure
	@for name in $$(ls benchmarks/*.py | sed 's/.*\///; s/\.py$$//' | grep -vE '^_|^loads$$'); do \
	  $(BIN)/python -m benchmarks.$$name --json || exit 1; done

clean: ## remove the environment, caches and the demo data
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist kbn-data
