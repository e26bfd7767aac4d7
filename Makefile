# Two commands do everything on a fresh machine: `make recipe` and `make test`.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
PYTEST = . ./path.sh && pytest -n 2 --dist loadfile --no-loadscope-reorder
# Of make protect and make evidence: IN and OUT are folders; docs/protect.md has all options. A stream has a system of its
# own, as models/bn2 needs whole recordings.
ifeq ($(IN),-)
SYSTEM := models/bn
else
SYSTEM := models/bn2
endif
PER := file
CHANNELS := mix
LEVEL := one
RENAME := false
$(if $(filter-out true false,$(RENAME)),$(error RENAME is true or false))
KEY_FILE :=
SPEAKERS :=
NJ :=
export IN OUT
unexport CDPATH
.PHONY: help setup recipe protect evidence test test-fast test-slurm test-browser lint clean

help:
	@echo "make recipe        set up, run the default recipe (egs/synth, offline), say where the report is"
	@echo "make protect IN=folder OUT=folder [PER=file|folder|speaker]   protect all speech in a folder"
	@echo "make evidence IN=folder OUT=folder [PER=file|folder|speaker]   what attackers find in what was protected"
	@echo "make -s protect IN=- OUT=-   protect speech on a pipe while it is spoken (docs/protect.md)"
	@echo "make test          set up, check style and types, run all tests that can run here"
	@echo "make test-slurm    install Slurm (apt-get, as root), run the tests that need it"
	@echo "make test-browser  install Chromium (apt-get, as root), open the report's pages in it"
	@echo "make test-fast     the tests that take seconds"
	@echo "make lint          style and types only"
	@echo "make setup         only make .venv"
	@echo "make clean         remove .venv and all that recipes and tools made in the checkout"

setup:
	@utils/setup.sh

recipe: setup
	@cd egs/synth && ./run.sh

protect: # standard output is the stream's, so setting up speaks on the other one
	@: "$${IN:?make protect IN=folder OUT=folder}" "$${OUT:?make protect IN=folder OUT=folder}"
	@utils/setup.sh >&2
	@. ./path.sh && if [ "$$IN $$OUT" = "- -" ]; then exec steps/protect_stream.py --system "$(SYSTEM)" \
		$(if $(KEY_FILE),--key-file "$(KEY_FILE)"); fi && steps/protect_folder.py --system "$(SYSTEM)" --per "$(PER)" --channels "$(CHANNELS)" --level "$(LEVEL)" \
		$(if $(SPEAKERS),--speakers "$(SPEAKERS)") $(if $(KEY_FILE),--key-file "$(KEY_FILE)") $(if $(NJ),--nj "$(NJ)") \
		$(if $(filter true,$(RENAME)),--rename) "$$IN" "$$OUT"

evidence:
	@: "$${IN:?make evidence IN=folder OUT=folder}" "$${OUT:?make evidence IN=folder OUT=folder}"
	@utils/setup.sh
	@. ./path.sh && local/measure_evidence.py --system "$(SYSTEM)" --per "$(PER)" $(if $(SPEAKERS),--speakers "$(SPEAKERS)") \
		$(if $(KEY_FILE),--key-file "$(KEY_FILE)") $(if $(NJ),--nj "$(NJ)") "$$IN" "$$OUT"

test: # tests/test_house.py checks style and types
	@utils/setup.sh test
	@$(PYTEST)

test-fast:
	@utils/setup.sh test
	@$(PYTEST) -m "not slow"

test-slurm test-browser: test-%:
	@utils/install_for_tests.sh $*
	@utils/setup.sh test
	@$(PYTEST) -m $*

lint:
	@utils/setup.sh test
	@. ./path.sh && utils/lint.sh

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf egs/*/data egs/*/exp egs/*/corpus
	find . -name __pycache__ -prune -exec rm -rf {} +
