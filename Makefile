# The only commands anyone needs; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# What a broker needs; what the tests need beside it (Spark alone is half a gigabyte).
RUNS := $(VENV)/.installed
STAMP := $(VENV)/.developing

.DEFAULT_GOAL := help
.PHONY: help install run test deep lint types format fuzz bench demo-weather demo-logging docs clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk 'BEGIN {FS = ":.*## "} {printf "  make %-13s %s\n", $$1, $$2}'

install: $(STAMP) ## make the virtual environment and install everything into it

$(RUNS): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade 'pip>=25.1'
	$(PIP) --editable '.[fast]'
	@touch $(RUNS)

$(STAMP): $(RUNS)
	$(PIP) --group dev
	@touch $(STAMP)

run: $(RUNS) ## start a broker with its embedded defaults on 127.0.0.1:1969
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

demo-weather: $(STAMP) ## storms over Nebraska, and who is told of them (case-study-out/weather.svg)
	@$(BIN)/python -m case_studies.weather

demo-logging: $(STAMP) ## a log that turns itself up under attack (case-study-out/logging.svg)
	@$(BIN)/python -m case_studies.dynamic_logging

docs: $(STAMP) ## check the pages and build them into site/
	$(BIN)/python -m pytest -q -n auto --dist loadgroup tests/test_docs.py tests/test_pages.py tests/test_sentences.py
	@$(BIN)/python -c 'import material' 2>/dev/null || $(PIP) --group docs || true
	@if $(BIN)/python -c 'import material' 2>/dev/null; then NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet && echo "built: site/index.html"; \
	else echo "the pages are fine; without mkdocs-material they were not built"; fi

clean: ## remove the environment, caches and the demo data
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist kbn-data site case-study-out
