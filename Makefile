# Every command a reader needs. `make` alone lists them.
# Only Python 3.11-3.13, make and a package index are assumed.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PORT ?= 8000
LOCKED = --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url --quiet
# Whatever a page of the book is made from.
PAGES = book notebooks/rendered dpforest _config.yml _toc.yml
NOTEBOOKS = $(filter-out %.failed.ipynb %.part.ipynb,$(wildcard notebooks/*.ipynb))

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

# --- the two commands ------------------------------------------------------------------------------------------------
book: env ## render the notebooks at full size and build the book into _build/html
	@mkdir -p notebooks/rendered
	@$(PY) notebooks/render.py
	@if [ -e _build/.finished ] && \
	    [ -z "$$(find $(PAGES) -newer _build/.finished -not -path '*__pycache__*' -print -quit)" ]; then \
	  echo "the book is up to date"; \
	else \
	  rm -rf _build/html _build/.finished && mkdir -p _build && touch _build/.started && \
	  $(BIN)/jupyter-book build . -W -n --keep-going --all && mv _build/.started _build/.finished; \
	fi
	@echo "the book is at file://$(CURDIR)/_build/html/index.html"

test: env ## run the tests, and compare every notebook's stored outputs with a new run
	$(PY) -m pytest --nbval --nbval-sanitize-with tests/nbval-sanitize.cfg tests $(NOTEBOOKS)

# --- environment -----------------------------------------------------------------------------------------------------
env: $(VENV)/.package ## the environment alone: .venv with the hash-locked packages and dpforest itself

$(PY):
	@for p in "$$PYTHON" python3 python3.13 python3.12 python3.11 python; do \
	  if [ -n "$$p" ] && "$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then \
	    echo "making $(VENV) with $$("$$p" --version)"; exec "$$p" -m venv $(VENV); \
	  fi; \
	done; \
	echo "no Python 3.11, 3.12 or 3.13 was found; name one: make env PYTHON=/path/to/python3" >&2; exit 1

$(VENV)/.lock: requirements.txt | $(PY)
	@echo "installing the locked packages: a minute or two the first time"
	$(PY) -m pip install -qq --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

$(VENV)/.package: pyproject.toml $(VENV)/.lock
	$(PY) -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(PY) -m dpforest.counting
	@touch $@

spark: env ## add Spark to the environment (half a gigabyte; it runs on Java 17)
	$(PY) -m pip install -qq --disable-pip-version-check --require-hashes -r requirements-spark.txt

lock: ## make requirements.txt again from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --extra release --extra parquet --extra dask --extra book --extra dev $(LOCKED) \
	  --output-file requirements.txt
	echo 'pyspark>=4,<5' | uv pip compile - $(LOCKED) --output-file requirements-spark.txt

# --- the rest --------------------------------------------------------------------------------------------------------
serve: ## show the built book at http://localhost:8000 (another port: PORT=8080)
	@test -e _build/html/index.html || { echo "no book yet: run make book" >&2; exit 1; }
	$(PY) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

bench: env ## measure speed and memory against scikit-learn and one np.bincount pass
	$(PY) -m dpforest.bench

scale: env ## fit 100 trees to 10^8 rows within 4 GB, and note it in notebooks/record (4 GB of disk)
	ulimit -d 3900000 && $(PY) -m dpforest.scale --rows 100000000 --json notebooks/record/scale.json

lint: env ## check style, layout and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: env ## lay out the code as `make lint` wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

store: env ## run the notebooks in place, at their small size, and keep the outputs
	$(PY) notebooks/render.py --store

record: env ## promote finished renderings on real data to notebooks/record
	$(PY) notebooks/render.py --record

audit: env ## audit everything: the page and the table of the audit report; fails if anything is unexpected
	@mkdir -p notebooks/rendered
	@test -e notebooks/rendered/report.json || rm -f notebooks/rendered/report.ipynb
	@$(PY) notebooks/render.py report
	@$(PY) -m dpforest.cli audit --show notebooks/rendered/report.json; code=$$?; \
	echo "as JSON: notebooks/rendered/report.json"; \
	echo "as a page, after make book: file://$(CURDIR)/_build/html/notebooks/rendered/report.html"; exit $$code

audit-peers: env ## audit learners of other libraries, in an environment of their own (PEERS=--quick for a twentieth)
	@test -x $(VENV)/peers/bin/python || $(PY) -m venv $(VENV)/peers
	@$(VENV)/peers/bin/python -m pip install -qq --disable-pip-version-check --require-hashes \
	  -r tests/peers/requirements.txt
	$(VENV)/peers/bin/python tests/peers/audit_peers.py $(PEERS)

claims: env ## write book/claims.md, the table of verdicts, from a scan of book, library, tests and notebooks
	$(PY) -m tests.claims

mutate: env ## mutation test of the modules that decide privacy (an hour or more; MODULES="scores budgets" for some)
	@test -x $(VENV)/mutate/bin/cosmic-ray || { $(PY) -m venv $(VENV)/mutate && \
	  $(VENV)/mutate/bin/python -m pip install -qq --disable-pip-version-check cosmic-ray==8.7.0; }
	$(PY) tests/mutate.py $(MODULES)

clean: ## remove what was built, but not the environment
	rm -rf _build notebooks/rendered dist mutants
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

.PHONY: help book test env spark lock serve bench scale lint format store record audit audit-peers claims mutate clean
