# Every command a reader needs. `make` alone lists them.
# Only Python 3.11-3.13, make and a package index are assumed.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

# --- environment -------------------------------------------------------------------------------------------------
env: $(VENV)/.package ## the environment alone: .venv with the hash-locked packages and dpforest itself

$(PY):
	@sh -c 'for p in "$$PYTHON" python3 python3.13 python3.12 python3.11 python; do \
	  [ -n "$$p" ] && "$$p" -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))" 2>/dev/null \
	  && { echo "making $(VENV) with $$("$$p" --version)"; exec "$$p" -m venv $(VENV); }; done; \
	  echo "no Python 3.11, 3.12 or 3.13 found; name one with: make env PYTHON=/path/to/python3" >&2; exit 1'

$(VENV)/.lock: requirements.txt | $(PY)
	@echo "installing the locked packages: a minute or two the first time"
	$(PY) -m pip install -qq --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

$(VENV)/.package: pyproject.toml $(VENV)/.lock
	$(PY) -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

lock: ## make requirements.txt again from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --no-header --no-emit-index-url --quiet --output-file requirements.txt

.PHONY: help env lock
