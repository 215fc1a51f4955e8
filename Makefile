# Every target makes .venv on its own; python3 (>= 3.11), pip and make are all that is needed.
PYTHON ?= python3
VENV   ?= .venv
TESTS  ?= tests
TYPED  ?= tests/distances/test_atoms.py tests/functionals/test_engine.py tests/functionals/test_entropy.py tests/kernels/test_ridges.py tests/problems/test_laws.py tests/problems/test_targets.py tests/states/test_grid.py tests/states/test_starts.py
EXTRAS ?= test
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: run test test-slow test-types lint bench experiments reliability clean

run: $(VENV)/.run
	$(BIN)/wideflow run single-neuron

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=20 -m "not slow" $(TESTS)

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=20 -m slow $(TESTS)

# types and shapes of signatures, checked by jaxtyping and beartype as the tests run
test-types: $(VENV)/.test
	WIDEFLOW_TYPECHECK=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" $(TYPED)

# kills, disk faults, damage, hostile files and changed functions by the thousand: docs/reliability.md
reliability: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m reliability $(ATTACKS)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

experiments: $(VENV)/.run
	$(BIN)/wideflow reproduce --all

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .venv-neural-tangents out

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[$(EXTRAS)]'
	@touch $@

$(VENV)/.lint: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[test,lint]'
	@touch $@

$(VENV)/.bench: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[test,bench]'
	@touch $@
