from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.sumo import (
    campaign,
    demand,
    network_export,
    output,
    scenario_files,
    simulation,
)
from ideal_dispatch.traffic.sumo.campaign import DAY, simulate
from tests.unit.traffic.small import CALENDAR
from tests.unit.traffic.sumo.days import needs_sumo, plan

SHOWER = tuple((20.0, 5.0 if row == 8 else 0.0, 70.0, 10.0, 1012.0) for row in range(25))
"""From 7 to 8 h."""


@needs_sumo
def test_a_day_is_of_its_roads_its_tables_and_its_engine(
    grid: RoadNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = campaign.engine_of(grid)
    assert campaign.engine_of(grid) == made
    changes: list[tuple[object, str, object]] = [
        (network_export, "OPTIONS", (*network_export.OPTIONS, "--tls.discard-simple", "true")),
        (demand, "_REACH_S", 400.0),
        (output, "GREATEST_RATIO", 30.0),
        (campaign, "_CODE", 2),
        (demand, "LEVELS", {**demand.LEVELS, "sunday": (0.1,) * 24}),
        (scenario_files, "_SLOWER", 0.2),
        (simulation, "WARM_UP_S", 600),
    ]
    for module, name, value in changes:
        with monkeypatch.context() as changed:
            changed.setattr(module, name, value)
            assert campaign.engine_of(grid) != made, name
    # drawn otherwise, a road has another length in SUMO though our network is the same
    bent = replace(grid, lon=grid.lon + np.linspace(0, 1e-3, grid.num_nodes))
    assert campaign.engine_of(bent)["roads"] != made["roads"]


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
    with pytest.raises(InputError, match="no day to simulate"):
        simulate(grid, CALENDAR, [], tmp_path)
    with pytest.raises(InputError, match="two plans are of the same date"):
        simulate(grid, CALENDAR, [plan(), plan()], tmp_path)
