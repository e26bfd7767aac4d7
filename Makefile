# Two commands do everything on a fresh machine: `make recipe` and `make test`.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
# In CI the sixty slowest tests are printed.
PYTEST = . ./path.sh && pytest -n 2 --dist loadfile --no-loadscope-reorder $${CI:+--durations=60}
# Values that a user gives are never expanded by make: each is exported as it was typed, and only the shell reads it.
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
$(foreach name,$(GIVEN),$(eval override export $(name) := $$(value $(name))))
# Of make protect and make evidence: IN and OUT are folders, or files without OUT; docs/protect.md has all options. CMD: of cmd.sh.
# A stream has only those of the first line.
NAMES := IN OUT SYSTEM KEY_FILE $(if $(filter -/-,$(value IN)/$(value OUT)),, \
	PER CHANNELS LEVEL TIME ENDS SPEAKERS NJ RENAME CMD TURNS PEOPLE PROTECT KEEP REDACT REDACT_BY TEXTS)
UNKNOWN := $(sort $(filter-out $(NAMES) PYTHON,$(GIVEN)))
check = $(if $(UNKNOWN),$(error make $@: nothing is called $(UNKNOWN:%=%=); known: $(NAMES:%=%=))) \
	$(if $(value IN),,$(error make $@: IN is missing; write make $@ IN=folder OUT=folder)) \
	$(if $(value OUT),,$(if $(filter evidence,$@),$(error make $@: OUT is missing; write make $@ IN=folder OUT=folder))) \
	$(foreach name,RENAME TEXTS,$(if $(filter-out x xtrue xfalse,x$(value $(name))),$(error make $@: $(name) is true or false)))
OPTIONS = --per="$${PER:-file}" $${SPEAKERS:+--speakers="$$SPEAKERS"} $${KEY_FILE:+--key-file="$$KEY_FILE"} $${NJ:+--nj="$$NJ"} \
	$${TURNS:+--turns="$$TURNS"}
PEOPLE_OF = $${PEOPLE:+--people="$$PEOPLE"} $${PROTECT:+--protect="$$PROTECT"} $${KEEP:+--keep="$$KEEP"} \
	$${REDACT:+--redact="$$REDACT"} $${REDACT_BY:+--redact-by="$$REDACT_BY"} $(if $(filter true,$(value TEXTS)),--texts)
unexport CDPATH
.PHONY: help setup recipe protect evidence test test-fast test-slurm test-browser lint release-check container clean

help:
	@echo "make recipe        set up, run the default recipe (egs/synth, offline), say where the report is"
	@echo "make protect IN=folder OUT=folder [PER=file|folder|speaker]   protect all speech in a folder"
	@echo "make protect IN=talk.wav    protect one file: talk.protected.wav"
	@echo "make evidence IN=folder OUT=folder [PER=file|folder|speaker]   what attackers find in what was protected"
	@echo "make -s protect IN=- OUT=-   protect speech on a pipe while it is spoken (docs/protect.md)"
	@echo "make test          set up, check style and types, run all tests that can run here"
	@echo "make test-slurm    install Slurm (apt-get, as root), run the tests that need it"
	@echo "make test-browser  install Chromium (apt-get, as root), open the report's pages in it"
	@echo "make test-fast     the tests that take seconds"
	@echo "make lint          style and types only"
	@echo "make setup         only make .venv"
	@echo "make release-check  make the wheel of the commit in dist/, and check it"
	@echo "make container      build the container with podman, from that wheel"
	@echo "make clean         remove .venv and all that recipes and tools made in the checkout"

setup:
	@utils/setup.sh

recipe:
	@: $(if $(filter-out PYTHON,$(GIVEN)),$(error make recipe: takes no options; cd egs/synth && ./run.sh --help tells them))
	@utils/setup.sh
	@cd egs/synth && ./run.sh

protect: # standard output is the stream's, so setting up speaks on the other one; a stream cannot use models/place
	@: $(check)
	@utils/setup.sh >&2
	@. ./path.sh && if [[ $$IN/$${OUT-} == -/- ]]; then \
		exec steps/protect_stream.py --system="$${SYSTEM:-models/bn}" $${KEY_FILE:+--key-file="$$KEY_FILE"}; fi && \
		if [[ $${CMD-} ]]; then cmd_backend=$$CMD && . ./cmd.sh && \
		launcher="$$cpu_cmd --config egs/TEMPLATE/conf/slurm.conf $${job_options[protect_folder]-}"; fi && \
		steps/protect_folder.py --system="$${SYSTEM:-models/place}" $(OPTIONS) --channels="$${CHANNELS:-mix}" \
		--level="$${LEVEL:-one}" $${launcher:+--launcher="$$launcher"} $${TIME:+--time="$$TIME"} $${ENDS:+--ends="$$ENDS"} $(PEOPLE_OF) $(if $(filter true,$(value RENAME)),--rename) -- "$$IN" $${OUT:+"$$OUT"}

evidence:
	@: $(check)
	@utils/setup.sh
	@. ./path.sh && local/measure_evidence.py --system="$${SYSTEM:-models/place}" $(OPTIONS) -- "$$IN" $${OUT:+"$$OUT"}

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

release-check:
	@utils/setup.sh test
	@utils/release_check.sh

container: release-check
	podman build --tag pseudovox .

clean:
	rm -rf .venv build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf egs/*/data egs/*/exp egs/*/corpus
	find . -name __pycache__ -prune -exec rm -rf {} +
