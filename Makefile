# Every target makes the virtual environment it needs in .venv, from nothing but Python.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.stamp

# What the packages that come as source only are built with (pinned like all the rest).
BUILD  := hatchling editables setuptools setuptools-scm

# $(call install,python) installs what requirements.lock has, by hash, and svmp as it is here.
define install
$(1) -m pip install -q -c constraints.txt $(BUILD) && \
$(1) -m pip install -q --require-hashes --use-pep517 --no-build-isolation -r requirements.lock && \
$(1) -m pip install -q --no-deps --use-pep517 --no-build-isolation -e .
endef

# The arguments of every pytest run; more with `make test ARGS="-k gamma"`.
# BLAS gets one thread: two workers with two BLAS threads each would only be in each other's way.
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MPLBACKEND=Agg \
          $(BIN)/python -m pytest -n 2 --dist worksteal --durations=25
ARGS   ?=

# The figures of the site, one for each script of the gallery.
FIGURES := $(patsubst docs/gallery/%.py,build/figures/%.png,$(wildcard docs/gallery/[0-9]*.py))

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-all test-pythons test-lowest laws bench bench-recommend docs gallery lint format clean dot chromium

help: ## show this list
	@sed -n 's/^\([a-z][a-z -]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
	    while IFS='|' read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

venv: $(STAMP) ## make .venv with everything pinned in requirements.lock

$(STAMP): pyproject.toml constraints.txt requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	    { echo "svmp needs Python 3.11 or newer: $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || \
	      echo not there); name another with make PYTHON=..." >&2; exit 1; }
	@echo "Setting up $(VENV) (about a minute the first time) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(call install,$(BIN)/python)
	@# pip writes the bytecode of what it installs, but not that of an editable package
	@$(BIN)/python -m compileall -q svmp
	@touch $@

demo: $(STAMP) ## the paper's study on a million ratings, in a minute or two: opens as demo/index.html
	@$(BIN)/svmp study all --quick --out demo $(ARGS)

test: lint dot chromium ## formatting, lint, types and all but the slow tests
	$(PYTEST) -m 'not slow' $(ARGS)

test-all: lint dot chromium ## the same with the slow tests
	$(PYTEST) $(ARGS)

laws: $(STAMP) ## try laws on drawn networks: make laws ARGS="--seconds 600 --seed 3"
	@OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m tests.laws.trials $(ARGS)

# Each has an environment of its own in build/pythons. A name that is there but does not start, as a
# version manager's may be, counts as absent.
test-pythons: ## all but the slow tests on each of python3.11 to python3.14 that is there
	@absent=; failed=; for version in 3.11 3.12 3.13 3.14; do \
	    python=python$$version; venv=build/pythons/$$version; \
	    $$python -c '' 2>/dev/null || { absent="$$absent $$python"; continue; }; \
	    echo "== $$($$python --version)"; \
	    $$python -m venv $$venv && \
	    $(call install,$$venv/bin/python) && \
	    $(subst $(BIN),$$venv/bin,$(PYTEST)) -m 'not slow' $(ARGS) || failed="$$failed $$python"; \
	done; \
	[ -z "$$absent" ] || echo "Not there:$$absent"; \
	[ -z "$$failed" ] || { echo "Failed:$$failed"; exit 1; }

# Without the tests of the site, of the wheel and of the layers, and those that need Schemathesis.
test-lowest: ## all but the slow tests with the lowest versions that pyproject.toml allows
	@$(PYTHON) -m venv build/lowest
	@build/lowest/bin/python -m pip install -q -c constraints.txt $(BUILD)
	@build/lowest/bin/python -m pip install -q -c constraints-lowest.txt --use-pep517 --no-build-isolation \
	    -e '.[study,serve,dask]' bayespy httpx hypothesis pandas pytest pytest-xdist scikit-learn
	$(subst $(BIN),build/lowest/bin,$(PYTEST)) -m 'not slow' --ignore tests/docs --ignore tests/release \
	    --ignore tests/test_layers.py --ignore tests/test_architecture.py \
	    --ignore tests/recommend/service/test_fuzz.py $(ARGS)

bench: $(STAMP) ## run the benchmarks (hours; some with ARGS="against_c growth", small with ARGS=--quick)
	@$(BIN)/python benchmarks/run.py $(ARGS)

bench-recommend: $(STAMP) ## recommenders beside others (hours; a part with ARGS="speed", small with ARGS=--quick)
	@$(BIN)/python benchmarks/recommend.py $(ARGS)

docs: $(STAMP) $(FIGURES) ## build the site with all figures: opens as build/site/html/index.html
	@$(BIN)/python docs/site/build.py build/site --figures build/figures

# A figure of the site, and beside it what its script prints, is made again when the script, or what all
# scripts share, is newer.
build/figures/%.png: docs/gallery/%.py docs/gallery/_style.py | $(STAMP)
	@MPLBACKEND=Agg $(BIN)/python $< $@ > $(@:.png=.txt)

gallery: $(STAMP) ## run every script of docs/gallery
	@set -e; for script in docs/gallery/*.py; do \
	    [ -f "$$script" ] || { echo "docs/gallery has no scripts: nothing to run"; break; }; \
	    case "$${script##*/}" in _*) continue;; esac; \
	    echo "== $$script"; MPLBACKEND=Agg $(BIN)/python "$$script"; \
	done

lint: $(STAMP) ## check formatting, lint, types and layers, changing nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

format: $(STAMP) ## format the code and apply the safe lint fixes
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

clean: ## remove .venv, caches and build output
	rm -rf $(VENV) benchmarks/.envs benchmarks/.quick .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Programs that some tests need: installed where this user can do it, else those tests are skipped.
# $(call program,the names it may have,its Debian package,the tests that need it)
define program
	@for name in $(1); do command -v $$name >/dev/null 2>&1 && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && \
	    { apt-get update && DEBIAN_FRONTEND=noninteractive \
	      apt-get install -y --no-install-recommends $(2); } >/dev/null 2>&1; then \
	    echo "Installed $(2) for $(3)"; \
	else echo "No $(2) here: $(3) are skipped"; fi
endef

dot:
	$(call program,dot,graphviz,the tests of drawing to SVG)

chromium:
	$(call program,chromium chromium-browser google-chrome,chromium,the tests of pages in a browser)
