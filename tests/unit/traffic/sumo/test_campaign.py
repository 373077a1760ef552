from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.sumo import campaign
from ideal_dispatch.traffic.sumo.campaign import (
    DAY,
    broken_by_day,
    capacity,
    hour_breaks,
    simulate,
)
from ideal_dispatch.traffic.sumo.day import HourCount, simulate_day
from tests.unit.traffic.small import CALENDAR
from tests.unit.traffic.sumo.days import needs_sumo, plan

SHOWER = tuple((20.0, 5.0 if row == 8 else 0.0, 70.0, 10.0, 1012.0) for row in range(25))
"""From 7 to 8 h."""


@needs_sumo
def test_a_day_is_of_its_version_and_its_roads(
    grid: RoadNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = campaign.engine_of(grid)
    assert campaign.engine_of(grid) == made
    # drawn otherwise, a road has another length in SUMO though our network is the same
    bent = replace(grid, lon=grid.lon + np.linspace(0, 1e-3, grid.num_nodes))
    assert campaign.engine_of(bent)["roads"] != made["roads"]
    monkeypatch.setattr(campaign, "VERSION", 99)
    assert campaign.engine_of(grid) != made


@pytest.mark.slow
@needs_sumo
def test_days_are_packed_in_order_and_made_once(grid: RoadNetwork, tmp_path: Path) -> None:
    plans = [
        plan(
            date=date(2025, 3, day), hours=((7, 9),), time_zone=CALENDAR.time_zone, seed=day,
            weather=SHOWER,
        )
        for day in (5, 4)
    ]  # fmt: skip
    seen: list[tuple[date, float]] = []

    def run() -> tuple[list[float], bytes]:
        seen.clear()
        made = simulate(
            grid, CALENDAR, plans, tmp_path / "days", workers=1,
            report=lambda one, cpu_s: seen.append((one.date, cpu_s)),
        )  # fmt: skip
        assert [CALENDAR.local(s.start).day for s in made.stretches] == [4, 5]
        assert all((s.codes > 0).any() for s in made.stretches)
        assert any((np.asarray(s.truth) != s.codes).any() for s in made.stretches)
        known = [made.context(made.stretches[0].start + timedelta(hours=h)) for h in (0, 1)]
        assert [context.weather.rainfall_mm.value for context in known] == [0.0, 5.0]
        world = ReplayedTraffic(made)
        assert world.quote(0, grid.num_nodes - 1, made.stretches[1].start).duration_s > 0
        made.save(tmp_path / "city.traffic")
        return [cpu_s for _, cpu_s in seen], (tmp_path / "city.traffic").read_bytes()

    first, whole = run()
    manifest, _ = DAY.read(tmp_path / "days" / "2025-03-04.day")
    assert manifest["cpu_s"] > 0
    assert all(cpu_s > 0 for cpu_s in first)
    damaged = tmp_path / "days" / "2025-03-04.day"
    damaged.write_bytes(damaged.read_bytes()[:100])
    second, again = run()
    assert sorted(cpu_s > 0 for cpu_s in second) == [False, True]
    assert again == whole
    # a day of another engine is made again
    manifest, arrays = DAY.read(damaged)
    DAY.write(damaged, {**manifest, "engine": {"sumo": "0"}}, arrays)
    third, anew = run()
    assert sorted(cpu_s > 0 for cpu_s in third) == [False, True]
    assert anew == whole


def test_no_plan_and_two_of_a_date_are_refused(grid: RoadNetwork, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="plan"):
        simulate(grid, CALENDAR, [], tmp_path)
    with pytest.raises(InputError, match="date"):
        simulate(grid, CALENDAR, [plan(), plan()], tmp_path)


# --- how much a city can carry ---------------------------------------------------------


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
    monkeypatch.setattr(campaign, "_FACTORS", (0.5, 18.0, 40.0))
    assert capacity(village, tmp_path) == 0.5
    for factor, flows in ((0.5, True), (18.0, False)):
        evening = plan(hours=((17, 18),), demand_factor=factor)
        day = simulate_day(village, evening, workdir=tmp_path)
        assert flows == (not any(map(hour_breaks, day.hours)))
    monkeypatch.setattr(campaign, "_FACTORS", (18.0, 40.0))
    assert capacity(village, tmp_path) == 0.5  # kept from before
    monkeypatch.setattr(campaign, "VERSION", 99)
    assert capacity(village, tmp_path) == 18.0  # streets that always jam get the least


HOUR = HourCount(plan().moment(7 * 3600), 1000, 900, 800, 100.0, 0, 0, 0.6)


@pytest.mark.parametrize(
    ("change", "unfinished", "broken"),
    [
        ({}, 0.03, 0),
        ({}, 0.05, 1),
        ({"relative_speed": 0.45}, 0.0, 0),
        ({"relative_speed": 0.44}, 0.0, 1),
        ({"relative_speed": 0.80}, 0.0, 0),
        ({"relative_speed": 0.81}, 0.0, 1),
        ({"relative_speed": float("nan")}, 0.0, 1),
        ({"teleported": 9}, 0.0, 0),
        ({"teleported": 10}, 0.0, 1),
        ({"waiting": 100}, 0.0, 0),
        ({"waiting": 101}, 0.0, 1),
        ({"waiting": 101, "teleported": 10}, 0.0, 2),
    ],
)
def test_an_empty_weekday_and_a_gridlock_are_not_plausible(
    change: dict[str, float], unfinished: float, broken: int
) -> None:
    hour = replace(HOUR, **change)  # type: ignore[arg-type]
    assert len(broken_by_day(plan().date, "weekday", [hour], unfinished)) == broken
    quick = replace(HOUR, relative_speed=0.9)
    assert broken_by_day(plan().date, "sunday", [quick], 0.0) == []
