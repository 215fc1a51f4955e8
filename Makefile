# Every target makes .venv on its own; python3 (>= 3.11), pip and make are all that is needed.
PYTHON ?= python3
VENV   ?= .venv
TESTS  ?= tests
EXTRAS ?= test
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: run test lint bench experiments clean

run: $(VENV)/.run
	$(BIN)/wideflow run single-neuron

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=40 $(TESTS)

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
