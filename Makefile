# Every target does its own set-up: a virtual environment with the package, built once for all of them, and
# what the target needs.
PYTHON ?= python3
SHELL := /bin/bash
.SHELLFLAGS := -eo pipefail -c
# Small matrices: threads would only get in each other's way, above all beside parallel tests.
export OPENBLAS_NUM_THREADS ?= 1
# With bytecode, tests are collected in half the time, and those that start programs are faster.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
BIN := $(VENV)/bin
CORE := $(shell find src/pogp -name '*.pyx' -o -name '*.pxd')
BUILT := build/core
REQUIREMENTS := $(BIN)/python .ci/requirements.py
# Bytecode is written when a module is first imported; most modules never are.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

.PHONY: run test check pytest bench engines docs reproduce reproduce-quick peers peers-quick lint clean

run: $(VENV)/.core            ## the main job: stream the simulated arm through POG, end with a table and a figure
	$(BIN)/pogp run $(ARGS)

test: $(VENV)/.test           ## lint, types and all tests
	@$(MAKE) --no-print-directory --jobs=2 lint pytest

check: $(VENV)/.test          ## lint, types and the quick tests: a minute
	@$(MAKE) --no-print-directory --jobs=2 lint pytest MARKED='-m "not slow"'

# Types are checked while the tests run: it takes one processor as long as a tenth of them.
pytest: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal $(MARKED) $(ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.core          ## microseconds per sample, beside the naive step and the hardware's floor
	$(BIN)/python -m benchmarks $(ARGS)

engines: $(VENV)/.test        ## the programs for Spark (two kinds of local cluster) and Dask; installs Java where apt-get can
	@command -v java >/dev/null || ! command -v apt-get >/dev/null || \
		(apt-get update -qq && apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >/dev/null)
	$(BIN)/python examples/engines/one_table.py dask
	$(BIN)/python examples/engines/one_table.py spark "local[2,4]"
	$(BIN)/python examples/engines/one_table.py spark "local-cluster[2,1,1024]"
	$(BIN)/python examples/engines/fleet.py "local[2,4]"
	$(BIN)/python examples/engines/fleet.py "local-cluster[2,1,1024]"

docs: $(VENV)/.docs           ## the documentation site, in build/docs
	$(BIN)/python -m sphinx -W -q docs build/docs

reproduce: $(VENV)/.reproduce      ## the paper's tables and figures, all (ONLY=kin40 for a part), then the report
	$(BIN)/python -m experiments $(if $(ONLY),--only $(ONLY)) $(ARGS)

reproduce-quick: $(VENV)/.reproduce ## a small form of all of it, in build/reproduce-quick
	$(BIN)/python -m experiments --quick $(if $(ONLY),--only $(ONLY)) $(ARGS)

peers: $(VENV)/.peers              ## ours beside River, LightGBM, GPyTorch, …; then docs/comparison.md
	$(BIN)/python -m benchmarks.peers $(ARGS)

peers-quick: $(VENV)/.peers-light  ## a small form of it, without torch and Java: a few minutes
	$(BIN)/python -m benchmarks.peers --quick $(ARGS)

clean:
	rm -rf $(VENV) build dist src/*.egg-info
	find src/pogp \( -name '*.c' -o -name '*.so' \) -delete

$(VENV)/bin/python:
	@echo "Setting up $(VENV): packages and the compiled core, a minute or two ..."
	$(PYTHON) -m venv $(VENV)

# What of pyproject.toml the build depends on. A file that stays as it is makes nothing anew.
$(VENV)/build.json: pyproject.toml | $(VENV)/bin/python
	@$(REQUIREMENTS) --build >$@.new
	@cmp -s $@.new $@ || mv $@.new $@

# Without isolation NumPy and SciPy are installed once, not once more for the build. Matplotlib is installed
# while the core is compiled.
$(VENV)/.installed: $(VENV)/build.json setup.py
	$(REQUIREMENTS) --base | $(INSTALL) -r /dev/stdin
	$(REQUIREMENTS) plot | $(INSTALL) -r /dev/stdin & \
		$(INSTALL) --no-build-isolation --no-deps --editable . ; wait $$!
	@mkdir -p $(BUILT) && cd src && find pogp -name '*.so' -exec cp --parents -t ../$(BUILT) {} +
	@touch $@ $(VENV)/.core

# From then on only modules that have changed are compiled, or all of them for a new declaration.
$(VENV)/.core: $(VENV)/.installed $(CORE)
	@$(BIN)/python -W ignore setup.py --quiet build_ext --inplace \
		--build-lib $(BUILT) $$(find src/pogp -name '*.pxd' -newer $@ | sed 's/.*/--force/;q')
	@touch $@

$(VENV)/.%: pyproject.toml | $(VENV)/.core
	$(REQUIREMENTS) $* | $(INSTALL) -r /dev/stdin
	@touch $@
