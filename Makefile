# Two commands do everything on a fresh machine: `make recipe` and `make test`.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: help setup recipe test test-fast lint clean

help:
	@echo "make recipe     set up, run the default recipe (egs/synth, offline), say where the report is"
	@echo "make test       set up, check style and types, run all tests"
	@echo "make test-fast  the tests that take seconds"
	@echo "make lint       style and types only"
	@echo "make setup      only make .venv"
	@echo "make clean      remove .venv and all that recipes and tools made in the checkout"

setup:
	@utils/setup.sh

recipe: setup
	@cd egs/synth && ./run.sh

test: lint
	@utils/setup.sh test
	@. ./path.sh && pytest -n 2 --dist loadfile --no-loadscope-reorder

test-fast:
	@utils/setup.sh test
	@. ./path.sh && pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slow"

lint:
	@utils/setup.sh test
	@. ./path.sh && utils/lint.sh

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf egs/*/data egs/*/exp egs/*/corpus
