# `make` alone lists what there is. Everything happens in .venv; nothing outside the tree is touched.

PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
BUILD  ?= build
CORE    = $(VENV)/.core
DEMO    = $(VENV)/.demo
READY   = $(VENV)/.ready
OLDEST  ?= .venv-oldest
PIP_INSTALL = -m pip install --quiet --disable-pip-version-check
PIP     = $(BIN)/python $(PIP_INSTALL) --no-compile --constraint constraints.txt
# What it takes to install from the tree without an environment for the build.
BACKEND = "$$(sed -n 's/^requires = \["\(.*\)"\]/\1/p' pyproject.toml)"
RTL_OF_DEMO = DARWINN_RTL_OPTIMIZATION=0
BUILD_CHIP = 'from darwinn_rtl import build; from darwinn_rtl.chip import player; \
    build.library(player.design())'
# pytest-xdist workers: one per core. `make test WORKERS=0` runs in one process (for a debugger).
WORKERS ?= auto

WORDS_OF_FUZZ = $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) \
    $(if $(COUNT),--count $(COUNT)) $(if $(JOBS),--jobs $(JOBS)) $(if $(TALLY),--tally $(TALLY)) \
    $(if $(FORMATS),--formats $(FORMATS))

WORDS_OF_MUTATIONS = $(if $(MUTANTS),--mutants $(MUTANTS)) $(if $(SEED),--seed $(SEED)) \
    $(if $(ONLY),--only $(ONLY)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(JOBS),--jobs $(JOBS)) \
    $(if $(OUT),--out $(OUT))
WORDS_OF_KERNELS = $(if $(KERNELS),--kernels $(KERNELS))

SIGNOFF = PYTHONPATH=formats:sim:testbench:tests/support:. $(BIN)/python -m tests.signoff

WORDS_OF_NIGHT = $(if $(HOURS),--hours $(HOURS)) $(if $(ONLY),--only $(ONLY)) \
    $(if $(SEED),--seed $(SEED)) $(if $(JOBS),--jobs $(JOBS)) $(if $(OUT),--out $(OUT))

# Files of every format read and written, the command, results on every path, pages and pictures;
# nothing whose kernels compile for minutes.
TESTS_OF_DEPENDENCIES = tests/formats tests/sim/isa tests/sim/kernel/test_compiled.py \
    tests/testbench/report tests/testbench/pages tests/testbench/kernels \
    tests/testbench/regression/test_run.py::test_tasks_are_handed_out_a_few_at_a_time \
    tests/testbench/regression/test_run.py::test_a_scheduler_that_goes_away_is_an_error_that_says_so \
    tests/testbench/cli/test_commands.py tests/testbench/cli/test_start.py

# Images of containers set it: each command would compile the sources that it imports again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-oldest dist release lock fuzz mutations nightly rtl rtl-nightly rtl-mutations rtl-campaign rtl-formal rtl-coverage rtl-signoff waves lint format docs docs-check site bench bench-record clean

help:  ## This list
	@echo "darwinn-testbench: run compiled Edge TPU models on a simulated chip and verify them."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  The tests on real models need DARWINN_CORPUS=FOLDER, those on models of strangers"
	@echo "  DARWINN_WILD=FOLDER and DARWINN_WILD2=FOLDER; without them they are skipped."

# The environment in three steps, made again whenever the dependencies change: what `inspect` and
# `run` need; what a user needs, for the demo; and the tools of development.
# A system Python can lack the venv module (Debian packages it apart), which is said here in one line
# rather than as a traceback. Python compiles what it imports by itself: pip would take three times
# as long to compile everything.
$(CORE): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || \
	    { echo "make: $(PYTHON) is missing: apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "make: Python 3.11 or later is needed: make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	    { echo "make: the venv module is missing: apt-get install python3-venv" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "make: installing the pinned dependencies into $(VENV)" >&2
	@$(PIP) $(BACKEND)
	@$(PIP) --no-build-isolation --editable .
	@touch $@

# What the demo calls is compiled while the rest is installed and the RTL is built: with few
# optimisations, since it simulates 1,499 cycles. If it cannot be built, the demo says why.
$(DEMO): $(CORE)
	@echo "make: compiling the model of the chip, and building the RTL: some minutes" >&2
	@$(BIN)/darwinn warm-up function hazards proof >/dev/null & kernels=$$!; \
	    $(PIP) --editable '.[full,rtl]' || { kill $$kernels; exit 1; }; \
	    $(RTL_OF_DEMO) $(BIN)/python -c $(BUILD_CHIP) 2>/dev/null; wait $$kernels
	@touch $@

# Kernels are compiled while the tools are downloaded.
$(READY): $(CORE)
	@$(BIN)/darwinn warm-up function time hazards proof & kernels=$$!; \
	    $(PIP) --editable '.[dev]' || { kill $$kernels; exit 1; }; wait $$kernels
	@touch $@

demo: $(DEMO)  ## Build the sample models and verify them on the simulated chip, and on the RTL
	@$(BIN)/darwinn sample $(BUILD)/sample
	@for model in dense convolution; do \
	    echo; $(BIN)/darwinn verify $(BUILD)/sample/$${model}_edgetpu.tflite --strict --runs 3 \
	        --reference $(BUILD)/sample/$$model.tflite || exit $$?; \
	done
	@echo; echo "The same in SystemVerilog:"
	@$(RTL_OF_DEMO) $(BIN)/darwinn verify $(BUILD)/sample/dense_edgetpu.tflite --engine rtl \
	    --reference $(BUILD)/sample/dense.tflite || test $$? -eq 3

test: $(READY)  ## Run every test
	@$(BIN)/python -m pytest -n $(WORKERS)

# docs/fuzzing.md has the variables: SECONDS=60 SEED=N COUNT=N JOBS=N TALLY=FILE FORMATS="darwinn iree".
fuzz: $(READY)  ## Put mutated files of every format through the command, for SECONDS=60
	@PYTHONPATH=tests/support OPENBLAS_NUM_THREADS=1 NUMPY_MADVISE_HUGEPAGE=0 \
	    $(BIN)/python -m tests.fuzz $(WORDS_OF_FUZZ)

# docs/own-tests.md has the variables: MUTANTS=100 SEED=N ONLY=WORD KERNELS=none SECONDS=S JOBS=N
# OUT=FOLDER.
mutations: $(READY)  ## Change the project's own Python in MUTANTS=100 places: do the tests notice?
	@PYTHONPATH=formats:sim:testbench:tests/support $(BIN)/python -m tests.mutation $(WORDS_OF_MUTATIONS) \
	    $(WORDS_OF_KERNELS)

# docs/own-tests.md has the variables: HOURS=8 ONLY="fuzz rtl" SEED=N JOBS=N OUT=FOLDER.
nightly: $(READY)  ## Everything that takes hours, each job with its share of HOURS=8; write a page about it
	@PYTHONPATH=formats:sim:testbench:tests/support:. $(BIN)/python -m tests.nightly $(WORDS_OF_NIGHT)

# Without a compiler the RTL tests are skipped, each with the line that says what to install.
test-oldest: $(OLDEST)/.ready  ## Run the tests that touch every dependency, with the oldest versions allowed
	@HYPOTHESIS_PROFILE=recording $(OLDEST)/bin/python -m pytest -n $(WORKERS) $(TESTS_OF_DEPENDENCIES)

$(OLDEST)/.ready: pyproject.toml
	@$(PYTHON) -m venv $(OLDEST)
	@$(OLDEST)/bin/python $(PIP_INSTALL) $(BACKEND) $$($(PYTHON) .ci/oldest.py)
	@$(OLDEST)/bin/python $(PIP_INSTALL) --no-build-isolation --no-deps --editable .
	@$(OLDEST)/bin/darwinn warm-up function time
	@touch $@

dist: $(READY)  ## Build the sdist, and the wheel from it, in dist/; try the wheel outside of the tree
	@.ci/dist $(BIN)/python

release: $(READY)  ## Write changelog, version and schemas of VERSION=x.y.z; commit and tag them
	@.ci/release $(BIN)/python "$(VERSION)"

lock: ## Write constraints.txt: the newest versions that pyproject.toml allows
	@rm -rf $(BUILD)/lock && $(PYTHON) -m venv $(BUILD)/lock
	@$(BUILD)/lock/bin/python $(PIP_INSTALL) $(BACKEND)
	@$(BUILD)/lock/bin/python $(PIP_INSTALL) --editable '.[dev]'
	@{ echo "# What is developed and tested with: written by \`make lock\`; reasons are in pyproject.toml."; \
	    $(BUILD)/lock/bin/python -m pip freeze --exclude-editable; } > constraints.txt

rtl: $(READY)  ## Run the tests of the SystemVerilog harness (needs g++, make, perl, python3-dev)
	@$(BIN)/python -m pytest -n $(WORKERS) tests/rtl

# SEED=N draws what the run draws that printed this seed.
rtl-nightly: $(READY)  ## Run thousands of random programs and instructions on the RTL, and print how many
	@$(if $(SEED),DARWINN_NIGHTLY_SEED=$(SEED)) \
	    $(BIN)/python -m pytest -n $(WORKERS) -m nightly tests/rtl

# ONLY=NAME tries one of them.
rtl-mutations: $(READY)  ## Inject each deliberate fault into the RTL and print the test that catches it
	@$(BIN)/python tests/support/mutations.py $(ONLY)

# docs/rtl-faults.md has the variables: MUTANTS=30 SEED=N ONLY=WORD SECONDS=S JOBS=N OUT=FOLDER RECORD=1
# ARGS="--near".
rtl-campaign: $(READY)  ## Change each source of the RTL in MUTANTS=30 places: do the tests notice?
	@PYTHONPATH=formats:sim:testbench:tests/support:. $(BIN)/python -m tests.rtl_mutation $(WORDS_OF_MUTATIONS) \
	    $(if $(RECORD),--record) $(ARGS)

# ONLY="fifo ring" NIGHTLY=1 JOBS=N OUT=FOLDER ARGS=--list.
rtl-formal: $(READY)  ## Prove properties of the RTL, for every input and history (python -m tests.formal)
	@PYTHONPATH=formats:sim:testbench:tests/support:. $(BIN)/python -m tests.formal $(ONLY) \
	    $(if $(NIGHTLY),--nightly) $(if $(JOBS),--jobs $(JOBS)) $(if $(OUT),--out $(OUT)) $(ARGS)

rtl-coverage: $(READY)  ## Run the RTL tests with line, toggle and functional coverage; write a report
	@$(BIN)/python -m tests.nightly.rtl_coverage $(BUILD)/rtl-coverage --jobs $(WORKERS)

rtl-signoff: $(READY)  ## Note down what RUN said (JUnit file, JSON of proofs, bins) on the sign-off page
	@$(SIGNOFF) --record $(RUN) && $(SIGNOFF) docs/rtl-signoff.md

waves: $(READY)  ## Write the waves of a sample's DMA program, from the RTL and from the model
	@$(BIN)/darwinn sample $(BUILD)/sample >/dev/null
	@$(BIN)/python -m darwinn_rtl.dma.waves --output $(BUILD)/waves \
	    $(BUILD)/sample/dense_edgetpu.tflite

lint: $(READY) docs-check  ## Style, types, imports, generated documents, news fragments, commit messages
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/mypy --strict
	@$(BIN)/towncrier build --draft --version next > /dev/null
	@$(BIN)/python .ci/commit_message.py --log

format: $(READY)  ## Rewrite the sources in the project's style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(READY)  ## Regenerate what comes from the tables: documents, records of instructions
	@$(BIN)/python -m darwinn_sim.isa.document > docs/isa.md
	@$(BIN)/python -m darwinn_sim.host.registers > docs/registers.md
	@$(BIN)/python -m darwinn_sim.kernel.records > sim/darwinn_sim/kernel/instructions.py
	@$(BIN)/python -m darwinn_sim.chips.document docs
	@$(BIN)/python -m darwinn_reference.documents docs
	@$(BIN)/python -m darwinn_rtl.axi_rules rtl/dma/axi_port_check.sv docs/rtl-bus.md
	@$(SIGNOFF) docs/rtl-signoff.md
	@$(BIN)/python -m darwinn_testbench.schemas --digests > docs/schemas.sha256
	@$(BIN)/python -m darwinn_testbench.schemas.tables docs

docs-check: $(READY)  ## Fail if a generated document differs from its table
	@$(BIN)/python -m darwinn_sim.isa.document | diff docs/isa.md -
	@$(BIN)/python -m darwinn_sim.host.registers | diff docs/registers.md -
	@$(BIN)/python -m darwinn_sim.kernel.records | diff sim/darwinn_sim/kernel/instructions.py -
	@$(BIN)/python -m darwinn_sim.chips.document --check docs
	@$(BIN)/python -m darwinn_reference.documents --check docs
	@$(BIN)/python -m darwinn_rtl.axi_rules --check rtl/dma/axi_port_check.sv docs/rtl-bus.md
	@$(SIGNOFF) --check docs/rtl-signoff.md
	@$(BIN)/python -m darwinn_testbench.schemas --digests | diff docs/schemas.sha256 -
	@$(BIN)/python -m darwinn_testbench.schemas.tables --check docs

site: $(READY)  ## Build the documentation as a site in build/site
	@$(BIN)/python -m website.build $(BUILD)

bench: $(READY)  ## Measure the simulator and the references, with bounds (needs DARWINN_CORPUS)
	@status=0; for each in record speed whole_models hazards usb pcie oracle many_inputs timing timeline rtl rtl_chip executorch iree bef; do \
	    $(BIN)/python -m benchmarks.$$each || status=1; done; exit $$status

bench-record: $(READY)  ## Measure what benchmarks/record keeps, append it as a line, and draw all lines
	@$(BIN)/python -m benchmarks.record --append
	@mkdir -p $(BUILD) && $(BIN)/python -m benchmarks.record --page $(BUILD)/speed.html

clean:  ## Remove the environment, caches and everything built
	@rm -rf $(VENV) $(OLDEST) $(BUILD) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
