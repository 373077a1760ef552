# Everything a newcomer needs: `make demo`, `make test`. Both set themselves up.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: setup demo pictures test test-pythons shape coverage test-all check docs quick-start bench load living exclusive race-evidence dispatch-evidence city city-traffic city-model samples experiment-traffic hong-kong-traffic format clean

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt tools/cpu_torch.py
	@test -x $(BIN)/python || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing the pinned packages (a minute or two the first time)"
	@$(BIN)/python tools/cpu_torch.py
	@$(PIP) --editable '.[cluster,dev,docs,geo,records,service,sumo,train]'
	@$(BIN)/python -m compileall -q src  # also where the environment forbids bytecode: it starts sooner
	@$(BIN)/python -m ideal_dispatch.gap.warm_up & \
		$(BIN)/python -c "import ideal_dispatch as ideal; ideal.simulate_fleet(ideal.harbour_fleet(), years=1, days=1)" \
		&& wait $$!  # compiled once
	@touch $@

$(VENV)/.bench: $(VENV)/.installed
	@$(PIP) --editable '.[bench]'
	@touch $@

demo: setup
	@$(BIN)/ideal demo

test: setup
	$(BIN)/python -m pytest -n auto --dist loadfile

# the unit tests on every Python from 3.11 to 3.13 on PATH, each in an environment below out/pythons
test-pythons: setup
	@for python in python3.11 python3.12 python3.13; do \
	  $$python -c "" 2>/dev/null || { echo "$$python: not found"; continue; }; \
	  $$python -m venv out/pythons/$$python && out/pythons/$$python/bin/python tools/cpu_torch.py && \
	  out/pythons/$$python/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[cluster,dev,geo,records,service,sumo,train]' && \
	  out/pythons/$$python/bin/python -m pytest -q -n auto --dist loadfile tests/unit || exit 1; done

# lines beside their budgets, imports, complexity; BESIDE=../before shows another checkout beside this one
shape: setup
	@$(BIN)/python tools/shape.py $(BESIDE) .

coverage: setup
	$(BIN)/python -m pytest -n auto --dist loadfile --cov --cov-report=term

test-all: setup
	$(BIN)/python -m pytest -n auto --dist loadfile --cov --cov-report=term -m ''

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# WRITE=1 puts the tables on docs/benchmarks.md
bench: $(VENV)/.bench
	@OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(if $(WRITE),$(BIN)/python -m workshop.bench_page,$(BIN)/ideal bench) $(ONLY)

# the service as deployed, while its parts fail: a table of what callers got; about eight minutes;
# WRITE=1 puts it on docs/benchmarks.md
load: setup
	@$(BIN)/python -m benchmarks.load $(if $(WRITE),--write)

# a played city through nginx, two workers and PostgreSQL while they die: what was lost; twenty minutes
living: setup
	@$(BIN)/python -m benchmarks.living_city --minutes $(or $(MINUTES),20)

# no unit held twice, nothing acknowledged missing: two workers under kills, on both databases
exclusive: setup
	@$(BIN)/python -m benchmarks.exclusive
	@$(BIN)/python -m benchmarks.exclusive --postgresql

docs: setup
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict  # not quiet: unseen warnings would not count

# what the commands of docs/quick_start.md print
quick-start: setup
	@$(BIN)/python -m workshop.quick_start

# real races of London and Lancaster County: docs/evidence/london.md and lancaster.md; resumable, an hour of computing
SHARED := ../shared/data
race-evidence: setup
	mkdir -p out/races
	$(BIN)/ideal network build $(SHARED)/london/london_osm_edges.csv.gz --nodes $(SHARED)/london/london_osm_nodes.csv.gz --directed -o out/races/london.network --force
	$(BIN)/ideal records responses $(SHARED)/london/lfb_incidents_2023_01_to_08.csv.gz --format london --stations $(SHARED)/london/lfb_stations.csv -o out/races/london.responses --force
	$(BIN)/ideal records responses $(SHARED)/lancaster/rvfd_calls_2010_2016.csv.gz --format lancaster -o out/races/lancaster.responses --force
	@OMP_NUM_THREADS=1 $(BIN)/python -m workshop.evidence.races --london out/races/london.responses --network out/races/london.network --lancaster out/races/lancaster.responses

# replays under all policies, resumable: about an hour of computing for each experiment
EXPERIMENTS ?= port_almery
dispatch-evidence: setup
	@for name in $(EXPERIMENTS); do OMP_NUM_THREADS=1 $(BIN)/ideal replay experiments/$$name.toml -o out/replays/$$name || exit 1; done

# every picture of README and docs; ONLY="desk report" makes some of them; needs Chromium, and an hour for all
pictures: setup
	mkdir -p out
	@$(BIN)/python -m workshop.pictures $(ONLY)

# networks and SUMO evenings of the other experiments, from the data beside the project: hours, resumable
HONG_KONG := ../shared/data/hong_kong
IN_HONG_KONG := --time-zone Asia/Hong_Kong --country HK
EVENINGS := --hours 17-19 --whole-days 0 --first 2026-01-01
experiment-traffic: setup
	mkdir -p out/experiments
	$(BIN)/ideal network build $(HONG_KONG)/irn_nw_hk_island_edges.csv --nodes $(HONG_KONG)/irn_nw_hk_island_nodes.csv -o out/experiments/nw_hk_island.network --force
	$(BIN)/ideal network build $(HONG_KONG)/irn_sha_tin_edges.csv --nodes $(HONG_KONG)/irn_sha_tin_nodes.csv -o out/experiments/sha_tin.network --force
	$(BIN)/ideal network build ../shared/data/manhattan/manhattan_osm_20190115.osm.zip --bbox=-74.02,40.70,-73.96,40.76 -o out/experiments/manhattan.network --force
	nice $(BIN)/ideal traffic simulate --engine sumo --days 12 --seed 6 --first 2026-01-01 --whole-days 0 --work out/experiments/port_almery_fresh_days -o out/experiments/port_almery_fresh.traffic --force
	nice $(BIN)/ideal traffic simulate --engine sumo $(EVENINGS) $(IN_HONG_KONG) --network out/experiments/nw_hk_island.network --days 16 --seed 11 --demand 0.68 --work out/experiments/nw_hk_island_days -o out/experiments/nw_hk_island.traffic --force
	nice $(BIN)/ideal traffic simulate --engine sumo $(EVENINGS) $(IN_HONG_KONG) --network out/experiments/nw_hk_island.network --days 11 --seed 21 --demand 0.68 --work out/experiments/nw_hk_island_fresh_days -o out/experiments/nw_hk_island_fresh.traffic --force
	nice $(BIN)/ideal traffic simulate --engine sumo $(EVENINGS) $(IN_HONG_KONG) --network out/experiments/sha_tin.network --days 11 --seed 12 --demand 0.5 --work out/experiments/sha_tin_days -o out/experiments/sha_tin.traffic --force
	nice $(BIN)/ideal traffic simulate --engine sumo $(EVENINGS) --network out/experiments/manhattan.network --days 16 --seed 13 --demand 0.5 --time-zone America/New_York --country US --work out/experiments/manhattan_days -o out/experiments/manhattan.traffic --force

# the directed streets of the paper's box on Hong Kong Island, and volatile evenings on them, then fresh ones:
# twenty minutes, resumable. Demand is what these streets carry, measured vehicle by vehicle.
VOLATILE := --hours 17-18 --whole-days 0 --first 2026-01-01 --demand 1 --regime volatile
hong-kong-traffic: setup
	mkdir -p out/experiments
	$(BIN)/ideal network build $(HONG_KONG)/hk_island_osm_20230713.osm.gz --bbox=114.116190,22.265669,114.184312,22.290994 -o out/experiments/hong_kong_island.network --force
	nice $(BIN)/ideal traffic simulate --engine sumo $(VOLATILE) $(IN_HONG_KONG) --network out/experiments/hong_kong_island.network --days 18 --seed 31 --work out/experiments/hong_kong_island_days -o out/experiments/hong_kong_island.traffic --force
	nice $(BIN)/ideal traffic simulate --engine sumo $(VOLATILE) $(IN_HONG_KONG) --network out/experiments/hong_kong_island.network --days 14 --seed 41 --work out/experiments/hong_kong_island_fresh_days -o out/experiments/hong_kong_island_fresh.traffic --force

# the embedded city's network and districts: seconds, the same bytes every time
city: setup
	@$(BIN)/python -m workshop.city

# SUMO days of the embedded city: hours of computing, in the background, resumable
city-traffic: setup
	@$(PIP) --editable '.[sumo]'
	nice $(BIN)/ideal traffic simulate --engine sumo --days 18 --seed 5 --first 2025-01-01 --work out/city_days -o src/ideal_dispatch/cities/data/harbour.traffic --force

# the model that ships with the embedded city, from its training days, and its response times,
# from a made-up unit log of these days: two minutes
city-model: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m workshop.city.model experiments/port_almery.toml out/shipped
	OMP_NUM_THREADS=1 $(BIN)/python -m workshop.city.response_times

samples: setup
	$(BIN)/python -m workshop.samples

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	find src tests benchmarks workshop -name __pycache__ -prune -exec rm -rf {} +
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage out
