# Everything a newcomer needs: `make demo`, `make test`. Both set themselves up.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: setup demo test test-all check bench evidence dispatch-evidence city-traffic format clean

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	@test -x $(BIN)/python || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing the pinned packages (a minute or two the first time)"
	@$(PIP) --editable '.[cluster,dev,geo,records,service,sumo,train]'
	@$(BIN)/python -m ideal_dispatch.gap.warm_up
	@touch $@

$(VENV)/.bench: $(VENV)/.installed
	@$(PIP) --editable '.[bench]'
	@touch $@

demo: setup
	@$(BIN)/ideal demo

test: setup
	$(BIN)/python -m pytest --cov --cov-report=term

test-all: setup
	$(BIN)/python -m pytest --cov --cov-report=term -m ''

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.bench
	@OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks $(ONLY)

evidence: setup
	@OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.evidence ../shared/data/manhattan --write docs/evidence.md

# replays of the embedded city under all policies: a quarter of an hour on two cores, resumable
dispatch-evidence: setup
	@OMP_NUM_THREADS=1 $(BIN)/ideal replay experiments/port_almery.toml -o out/port_almery
	@$(BIN)/python -m benchmarks.dispatch_evidence out/port_almery --write docs/evidence.md

# SUMO days of the embedded city: hours of computing, in the background, resumable
city-traffic: setup
	@$(PIP) --editable '.[sumo]'
	nice $(BIN)/ideal traffic simulate --engine sumo --days 18 --seed 5 --first 2025-01-01 --work out/city_days -o src/ideal_dispatch/cities/data/harbour.traffic

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage out
