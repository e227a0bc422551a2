# make demo: all set-up, then the main job on the embedded synthetic scene.
# make test: all set-up, then all tests (ctest and pytest) but those of `make test-slow`.
# make fuzz: damaged inputs for an hour, in all that reads files.
# make docs: the pages and the API as a site in build/site.

PYTHON ?= python3
VENV ?= .venv
DEVICE ?= cuda
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SOURCES := $(shell find engine csrc python -type f -not -name '*.pyc' 2>/dev/null) \
           CMakeLists.txt pyproject.toml constraints.txt README.md

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow coverage durations ctest pytest fuzz torture docs lint tidy format stubs bench regression gpu clean

help:
	@echo "make demo     search, train, export and map a synthetic scene: two minutes after installing"
	@echo "make test     the tests of the engine (ctest) and of the package (pytest)"
	@echo "make test-slow  the rest of the tests, before a release: killed runs, clusters, examples, C source"
	@echo "make coverage  all tests, and the lines of the package that they run; CI does so each night"
	@echo "make durations  CPU time of each file of tests, into tests/durations.tsv"
	@echo "make fuzz     damaged inputs in all that reads files; SECONDS=3600, failures in build/"
	@echo "make docs     the pages and the API as a site in build/site, links checked"
	@echo "make lint     ruff, mypy, clang-format"
	@echo "make tidy     clang-tidy over the C++ sources; a warning is an error"
	@echo "make format   rewrite the sources in the house's format"
	@echo "make stubs    write python/hytas/_engine.pyi from the built module"
	@echo "make bench    speed of engine, exported models and scores, as in docs/measured.md"
	@echo "make regression  engine and scores against another commit, BASE=HEAD~1; fails if 1.25 times slower"
	@echo "make gpu      tests and benchmarks on a GPU, one table in runs/; DEVICE=cpu rehearses it,"
	@echo "              VENV= takes the packages of PYTHON and needs no network, TABLE=FILE, DATA=SCENE"
	@echo "make torture  kill hytas at 100 random moments and break its disk; KILLS=, FAULTS=, SEED="
	@echo "make clean    remove builds; $(VENV) and runs stay"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hytas needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip

# torch first and pinned: a range would bring the largest CUDA build that fits it.
$(VENV)/installed: $(BIN)/python $(SOURCES)
	@echo "installing hytas into $(VENV) (the first time this fetches torch and takes minutes)"
	$(PIP) install --constraint constraints.txt torch
	$(PIP) install --constraint constraints.txt .
	@touch $@

install: $(VENV)/installed

$(VENV)/testing: $(VENV)/installed
	$(PIP) install --constraint constraints.txt '.[test]'
	$(PIP) install 'cmake>=3.25' 'ninja>=1.11'
	@touch $@

demo: install
	$(BIN)/hytas-search --budget 100K-params --effort quick --out runs/demo

ctest: $(VENV)/testing
	PATH="$(abspath $(BIN)):$$PATH" cmake --preset dev
	PATH="$(abspath $(BIN)):$$PATH" cmake --build --preset dev --parallel 4
	PATH="$(abspath $(BIN)):$$PATH" ctest --preset dev

# A process a core with one thread each; a process without work takes tests of the others.
PYTEST = PATH="$(abspath $(BIN)):$$PATH" OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal
pytest: $(VENV)/testing
	$(PYTEST) -m "not slow"

test: ctest pytest

# What is slow by nature: whole runs killed, clusters, examples, published tables, C source.
test-slow: $(VENV)/testing
	$(PYTEST) -m slow

# All tests, with every network traced anew, and the lines of the package that they run.
coverage: $(VENV)/testing
	HYTAS_TRACE_ANEW=1 $(PYTEST) --cov=hytas --cov-report=term:skip-covered

# How much CPU time each file of tests takes; for a commit that makes tests slower or faster.
durations: $(VENV)/testing
	PYTHONPATH=tests $(PYTEST) -m "not slow" -p cpu_times --cpu-times tests/durations.tsv

# An hour over all targets; a failing input is kept in build/fuzz-failures.
SECONDS ?= 3600
SEED ?= $(shell date +%s)
fuzz: $(VENV)/testing
	OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz/run_fuzz.py --seconds $(SECONDS) --seed $(SEED)

$(VENV)/documenting: $(VENV)/installed
	$(PIP) install --constraint constraints.txt '.[docs]'
	@touch $@

# Strict: a broken link, an unknown reference or a faulty docstring is an error. Nothing is fetched.
docs: $(VENV)/documenting
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "build/site/index.html is there; its search needs: python3 -m http.server -d build/site"

$(VENV)/linting: $(VENV)/testing
	$(PIP) install --constraint constraints.txt '.[dev]'
	@touch $@

lint: $(VENV)/linting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	git ls-files '*.hpp' '*.cpp' | grep -v third_party | xargs $(BIN)/clang-format --dry-run --Werror

# The whole C++ that ships: the engine, its binding, and the program on board.
TIDY := build/tidy
tidy: $(VENV)/linting
	$(PIP) install 'pybind11>=3'
	PATH="$(abspath $(BIN)):$$PATH" cmake -S . -B $(TIDY)/hytas -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
	    -DHYTAS_BUILD_PYTHON=ON -DHYTAS_BUILD_TESTS=OFF \
	    -Dpybind11_DIR="$$($(BIN)/pybind11-config --cmakedir)"
	PATH="$(abspath $(BIN)):$$PATH" cmake -S deploy/onboard -B $(TIDY)/onboard \
	    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
	$(BIN)/clang-tidy --quiet -p $(TIDY)/hytas engine/src/*.cpp csrc/*.cpp
	$(BIN)/clang-tidy --quiet -p $(TIDY)/onboard deploy/onboard/*.cpp

format: $(VENV)/linting
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	git ls-files '*.hpp' '*.cpp' | grep -v third_party | xargs $(BIN)/clang-format -i

stubs: $(VENV)/linting
	$(BIN)/pybind11-stubgen hytas._engine --output-dir build/stubs
	cp build/stubs/hytas/_engine.pyi python/hytas/_engine.pyi

bench: $(VENV)/testing
	for name in engine inference proxies; do $(BIN)/python benchmarks/$$name.py || exit 1; done

# Compares the speed of the engine and of the scores with that of another commit.
BASE ?= HEAD~1
regression: $(VENV)/testing
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python benchmarks/regression.py $(BASE)

# With VENV= nothing is fetched: hytas is built with the packages that $(PYTHON) has, for it alone.
HERE := build/here
GPU_PYTHON = $(if $(strip $(VENV)),$(BIN)/python,PYTHONPATH="$(abspath $(HERE))$${PYTHONPATH:+:$$PYTHONPATH}" $(PYTHON))

$(HERE)/built: $(SOURCES)
	$(PYTHON) -c 'import pytest, scikit_build_core, pybind11, torch'
	$(PYTHON) -m pip --disable-pip-version-check install --quiet --no-index --no-deps --no-build-isolation \
	    --upgrade --target $(HERE) .
	@touch $@

gpu: $(if $(strip $(VENV)),$(VENV)/testing,$(HERE)/built)
	$(GPU_PYTHON) benchmarks/gpu.py --device $(DEVICE) $(if $(DATA),--data $(DATA)) $(if $(TABLE),--out $(TABLE))

KILLS ?= 100
FAULTS ?= 20


torture: $(VENV)/testing
	$(BIN)/python tests/torture/torture.py --kills $(KILLS) --faults $(FAULTS) --seed $(SEED)

clean:
	rm -rf build dist
