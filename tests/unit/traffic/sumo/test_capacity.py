"""How much a city can carry."""

from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.traffic.sumo import capacity as trials
from ideal_dispatch.traffic.sumo import demand
from ideal_dispatch.traffic.sumo.plausibility import hour_breaks
from ideal_dispatch.traffic.sumo.simulation import simulate_day
from tests.unit.traffic.sumo.days import needs_sumo, plan


@pytest.fixture(scope="module")
def village() -> RoadNetwork:
    """Three by three junctions, 150 m apart: a jam there is quickly simulated."""
    pairs = [(v, v + 1) for v in range(9) if v % 3 < 2] + [(v, v + 3) for v in range(6)]
    tail, head = np.array(pairs + [(b, a) for a, b in pairs]).T
    place = np.arange(9)
    return RoadNetwork.from_arrays(
        tail, head, np.full(tail.size, 150.0), 0.00135 * (place % 3), 0.00135 * (place // 3),
        road_class=["residential"] * tail.size,
    )  # fmt: skip


@needs_sumo
def test_demand_grows_until_the_streets_jam(
    village: RoadNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "_FACTORS", (0.5, 18.0, 40.0))
    assert trials.capacity(village, tmp_path) == 0.5
    # an independent run of the same hour says the same of both demands
    evening = plan(hours=((17, 18),))
    for factor, flows in ((0.5, True), (18.0, False)):
        day = simulate_day(
            village, plan(hours=evening.hours, demand_factor=factor), workdir=tmp_path
        )
        assert flows == (not any(map(hour_breaks, day.hours)))
    with monkeypatch.context() as known:
        known.setattr(trials, "simulate_day", None)  # it is known now
        assert trials.capacity(village, tmp_path) == 0.5
    # with other tables of demand it is asked again
    monkeypatch.setattr(demand, "PEAK_TRIPS_PER_LANE_KM", 18.0 * demand.PEAK_TRIPS_PER_LANE_KM)
    monkeypatch.setattr(trials, "_FACTORS", (0.25, 1.0))
    assert trials.capacity(village, tmp_path) == 0.25


@needs_sumo
def test_streets_that_always_jam_get_the_least(
    village: RoadNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "_FACTORS", (18.0, 40.0))
    assert trials.capacity(village, tmp_path) == 18.0
