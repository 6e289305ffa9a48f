# Every command a reader needs. `make` alone lists them.
# Only Python 3.11-3.14, make and a package index are assumed.
SHELL := /bin/sh
# Compiled modules are kept, also where the environment says otherwise: hundreds of processes import them.
export PYTHONDONTWRITEBYTECODE :=
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PORT ?= 8000
SOME ?= 3
SINCE ?= HEAD
LOCKED = --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url --quiet
# What the book is made from: pages, of which Sphinx reads those that changed, the tests that some of them show, and what
# makes it start afresh.
# All pages are written again in either case, for one page shows titles and numbers of another.
PAGES = book notebooks/rendered tests
FRAME = dpforest _config.yml _toc.yml book/references.bib book/_static requirements.txt
# What the book needs of the newest packages; of Jupyter Book no more than the extension that knows its settings.
NEWEST = sphinx myst-nb sphinx-book-theme sphinx-proof sphinx-external-toc sphinx-design sphinx-togglebutton \
  brython sphinx-copybutton sphinx-comments sphinx-multitoc-numbering sphinxcontrib-bibtex pytest hatchling
newer = [ -n "$$(find $(1) -type f -newer _build/.finished -not -path '*__pycache__*' -print -quit)" ]
# How many processes there are, which test goes to which, and what runs first, conftest.py says.
PYTEST = $(PY) -m pytest -n auto --durations 20
LINT = $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

# --- the two commands ------------------------------------------------------------------------------------------------
book: env ## bring the pages up to date and build the book into _build/html
	@mkdir -p notebooks/rendered
	@$(PY) notebooks/render.py
	@if [ ! -e _build/.finished ] || $(call newer,$(FRAME)); then rm -rf _build; \
	elif $(call newer,$(PAGES)); then rm -rf _build/html; fi
	@if [ -e _build/html ]; then echo "the book is up to date"; else \
	  mkdir -p _build && rm -f _build/.finished && touch _build/.started && \
	  $(BIN)/jupyter-book build . -W -n --keep-going && mv _build/.started _build/.finished; \
	fi
	@echo "the book is at file://$(CURDIR)/_build/html/index.html"

book-sphinx: env ## build the book with the newest Sphinx and theme, for the day when Jupyter Book 1 has ended
	@test -x $(VENV)/sphinx/bin/sphinx-build || { $(PY) -m venv $(VENV)/sphinx && \
	  $(VENV)/sphinx/bin/python -m pip install -qq --disable-pip-version-check $(NEWEST) '.[dask]' && \
	  $(VENV)/sphinx/bin/python -m pip install -qq --disable-pip-version-check --no-deps 'jupyter-book<2'; }
	$(BIN)/jupyter-book config sphinx .
	PYTHONPATH=book/_extensions $(VENV)/sphinx/bin/sphinx-build -W -n --keep-going . _build/sphinx

test: env ## run the tests, and compare notebooks' stored outputs with a new run; slow ones where they reach a change
	$(PYTEST) --nbval --unless-passed

test-all: env ## run every test and every notebook, and note what passed, for `make test`
	$(PYTEST) --nbval --note-passed

slow: env ## run all tests, and note which are slow: `make check` leaves them out, `make test` where they passed as they are
	@mkdir -p _build
	$(PYTEST) --nbval --junitxml _build/times.xml
	$(PY) -m tests.slow _build/times.xml

check: env ## check style and types, and run the quick tests that what has changed reaches (SINCE=REV: since a commit)
	@mkdir -p _build
	@{ $(LINT); } >_build/lint.log 2>&1 & linting=$$!; \
	files=$$($(PY) -m tools.reached --since $(SINCE)) && $(PYTEST) -m "not slow" $$files; tested=$$?; \
	wait $$linting; linted=$$?; cat _build/lint.log; exit $$((tested + linted))

# --- environment -----------------------------------------------------------------------------------------------------
env: $(VENV)/.package ## the environment alone: .venv with the hash-locked packages and dpforest itself

$(PY):
	@for p in "$$PYTHON" python3 python3.14 python3.13 python3.12 python3.11 python; do \
	  if [ -n "$$p" ] && "$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; then \
	    echo "making $(VENV) with $$("$$p" --version)"; exec "$$p" -m venv $(VENV); \
	  fi; \
	done; \
	echo "no Python from 3.11 to 3.14 was found; name one: make env PYTHON=/path/to/python3" >&2; exit 1

# What is imported is compiled when it is; compiled as a whole, it would be a fifth of the environment.
$(VENV)/.lock: requirements.txt | $(PY)
	@echo "installing the locked packages: a minute or two the first time"
	$(PY) -m pip install -qq --disable-pip-version-check --no-compile --require-hashes -r requirements.txt
	@touch $@

$(VENV)/.package: pyproject.toml hatch_build.py dpforest/_version.py $(VENV)/.lock
	$(PY) -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(PY) -m dpforest.counting
	@touch $@

opendp: env ## add OpenDP to the environment, a second opinion on the samplers (a quarter of a gigabyte)
	$(PY) -m pip install -qq --disable-pip-version-check --require-hashes -r requirements-opendp.txt

spark: env ## add Spark to the environment (half a gigabyte; it runs on Java 17)
	$(PY) -m pip install -qq --disable-pip-version-check --require-hashes -r requirements-spark.txt

lock: ## make requirements.txt again from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --extra parquet --extra dask --extra book --extra dev $(LOCKED) \
	  --output-file requirements.txt
	sed -i '1i # CPython 3.11 to 3.14, any platform: every package has wheels. Made by make lock.' requirements.txt
	echo 'pyspark>=4,<5' | uv pip compile - $(LOCKED) --output-file requirements-spark.txt
	echo 'opendp>=0.16,<0.17' | uv pip compile - --constraint requirements.txt $(LOCKED) \
	  --output-file requirements-opendp.txt

# --- the rest --------------------------------------------------------------------------------------------------------
serve: ## show the built book at http://localhost:8000 (another port: PORT=8080)
	@test -e _build/html/index.html || { echo "no book yet: run make book" >&2; exit 1; }
	$(PY) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

pdf: book ## print the book as one PDF, _build/dpforest.pdf (needs Chromium and a font with Chinese; some minutes)
	$(PY) book/pdf.py

bench: env ## measure speed and memory against scikit-learn and one np.bincount pass; passes over files against bare scans
	$(PY) -m benchmarks.speed
	$(PY) -m benchmarks.passes

scale: env ## fit 100 trees, and private boosting, to 10^8 rows within 4 GB, and note it in notebooks/record (4 GB of disk)
	ulimit -d 3900000 && $(PY) -m benchmarks.scale --rows 100000000 --json notebooks/record/scale.json
	ulimit -d 3900000 && $(PY) -m benchmarks.passes --rows 100000000 --json notebooks/record/passes.json

times: ## measure these commands on a fresh clone, as a table (TIMES="--all --without --ci" for all there is; hours)
	@python3 tools/loop_times.py $(TIMES)

lint: env ## check style, layout and types
	$(LINT)

format: env ## lay out the code as `make lint` wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

store: env ## run the notebooks in place, at their small size, and keep the outputs
	$(PY) notebooks/render.py --store

render: env ## run every notebook at full size, whatever is recorded (interrupted, it goes on)
	$(PY) notebooks/render.py --run

record: env ## bring the renderings of record up to date: run what has changed, keep what was run
	$(PY) notebooks/render.py
	$(PY) notebooks/render.py --record

rekey: env ## keep the renderings of record of pages that a change of code left as they were (SOME=2: run so many at full size)
	$(PY) notebooks/render.py --rekey --some $(or $(filter-out 3,$(SOME)),2)

recheck: env ## run a few cheap notebooks again, others each day, and compare with the record (SOME=3)
	$(PY) notebooks/render.py --check --some $(SOME)

audit: env ## audit everything: the page and the table of the audit report; fails if anything is unexpected
	@mkdir -p notebooks/rendered
	@$(PY) notebooks/render.py --run report
	@$(PY) -m dpforest.cli audit --show notebooks/rendered/report.json; code=$$?; \
	echo "as JSON: notebooks/rendered/report.json"; \
	echo "as a page, after make book: file://$(CURDIR)/_build/html/notebooks/rendered/report.html"; exit $$code

audit-peers: peers ## audit learners of other libraries, in an environment of their own (PEERS=--quick for a twentieth)
	$(VENV)/peers/bin/python tests/peers/audit_peers.py $(PEERS)

audit-noisy-max: opendp ## count what OpenDP's noisy max answers, in the version that is locked (PEERS=--quick for a twentieth)
	$(PY) tests/peers/noisy_max.py $(PEERS)

compare-peers: peers ## fit those learners on the data sets of the comparison (PEERS=--quick for one set)
	$(VENV)/peers/bin/python tests/peers/compare_peers.py $(PEERS)

peers: env
	@test -x $(VENV)/peers/bin/python || $(PY) -m venv $(VENV)/peers
	@$(VENV)/peers/bin/python -m pip install -qq --disable-pip-version-check --require-hashes \
	  -r tests/peers/requirements.txt

test-elsewhere: env ## run all tests and notebooks as other processors would compute, one after the other
	@for path in threads old avx2; do \
	  echo "--- code path: $$path"; \
	  $(PY) -m tests.digests --under $$path $(PYTEST) --nbval || exit 1; \
	done

claims: env ## write book/claims.md, the table of verdicts, from a scan of book, library, tests and notebooks
	$(PY) -m tools.claims

pictures: env ## write the book's pictures that no notebook draws, and the figures with knobs
	$(PY) -m tools.pictures

mathjax: ## make the book's part of MathJax again, from book/mathjax (needs Node and npm; some minutes the first time)
	cd book/mathjax && npm install --no-audit --no-fund --no-package-lock && npm run build

formal: env ## have Coq check the theorems of tests/formal, toss a million coins (Debian: apt-get install coq; COQCHK=1: its proofs again)
	$(PY) -m tests.coq $(if $(COQCHK),--chk)
	$(PY) -m tests.bits

dist: env ## make the source distribution and the wheel in dist/ (TAG=v1.0.0: if tag, version and CHANGELOG.md agree)
	@test -z "$$TAG" || $(PY) -m tools.changelog "$$TAG"
	@rm -rf dist
	$(PY) -m hatchling build -d dist

lists: env ## write what is made from dpforest/registry.py: imports, the README's table, the API page's list
	$(PY) -m tools.lists

paper: env ## lay out a new paper: make paper KEY=lumberjack CLASS=Lumberjack
	@$(PY) -m tools.new_paper "$(KEY)" "$(CLASS)" && $(PY) -m tools.lists

paper-out: env ## take such a paper out again, if nobody has worked on it: make paper-out KEY=lumberjack
	@$(PY) -m tools.new_paper --out "$(KEY)" && $(PY) -m tools.lists

mutate: env ## mutation test of the modules that decide privacy (an hour or more; MODULES="scores budgets" for some)
	@test -x $(VENV)/mutate/bin/cosmic-ray || { $(PY) -m venv $(VENV)/mutate && \
	  $(VENV)/mutate/bin/python -m pip install -qq --disable-pip-version-check cosmic-ray==8.7.0; }
	$(PY) tools/mutate.py $(MODULES)

clean: ## remove what was built, but not the environment
	rm -rf _build notebooks/rendered dist mutants
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

.PHONY: help book book-sphinx test check env opendp spark lock serve pdf bench scale times lint format store render record recheck audit \
  audit-peers audit-noisy-max compare-peers peers rekey slow test-all test-elsewhere claims pictures mathjax formal dist lists paper paper-out mutate clean
