"""Runs of a fleet: what is read, derived and compared."""

import json
import re
from pathlib import Path

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.fleet_runs import FleetRuns, crossing
from ideal_dispatch.fleet.experiment import FleetExperiment
from ideal_dispatch.fleet.run import read_runs, run_fleet
from tests.unit.evaluation.fleet_rows import row, rows


def test_numbers_that_follow_from_a_row() -> None:
    (setting,) = FleetRuns.of(rows()).settings
    always = setting.find("always", "none")
    assert always is not None
    assert always.calls_a_year == 36_500.0
    assert always.more_survivors == 10.0
    assert always.unit_hours == pytest.approx(0.03 * 36_500 * 15 / 60)
    assert setting.others_later_s(always) == 6.0
    assert setting.never.more_survivors == 0.0
    assert [(run.policy, run.recall) for run in setting.chosen()] == [
        ("always", "none"), ("always", "first arrival"),
        ("priced C", "none"), ("priced C", "first arrival"),
    ]  # fmt: skip


def test_a_short_year_counts_as_a_part_of_one() -> None:
    (setting,) = FleetRuns.of(rows(), days=73).settings
    assert setting.never.calls_a_year == 5 * 36_500.0


def test_what_can_be_compared() -> None:
    runs = FleetRuns.of([*rows(0.7), *rows(0.3), *rows(0.3, units=11), *rows(0.5, entitled=0.3)])
    loads = [[one.load for one in group] for group in runs.by_load()]
    assert loads == [[0.3, 0.7], [0.3], [0.5]], "fewest entitled first, least busy first"
    assert [[one.units for one in group] for group in runs.by_fleet()] == [[10, 11]]
    assert [(one.units, other.units) for one, other in runs.one_more()] == [(10, 11)] * 2
    assert (runs.main.load, runs.main.entitled) == (0.3, 0.03)


def test_one_more_unit_for_other_calls_is_no_comparison() -> None:
    busier = rows(0.3, units=11, years=1)  # twice the calls a year
    assert FleetRuns.of([*rows(0.3), *busier]).one_more() == []


def test_where_a_line_rises_above_a_limit() -> None:
    assert crossing([0.3, 0.5, 0.7], [-4.0, -2.0, 2.0]) == pytest.approx(0.6)
    assert crossing([0.3, 0.5], [1.0, 2.0]) == 0.3
    assert crossing([0.3, 0.5], [-1.0, 0.0]) is None
    assert crossing([0.3, 0.5], [0.0, 10.0], 5.0) == pytest.approx(0.4)


def test_a_bad_row_is_one_line() -> None:
    with pytest.raises(InputError, match=r"^run 1\.units 'ten': a whole number is needed$"):
        FleetRuns.of([row("never"), row("always", units="ten")])
    with pytest.raises(InputError, match=r"^no runs; let the simulation finish a year$"):
        FleetRuns.of([])
    with pytest.raises(
        InputError, match=r"^Town, 10 units, load 0.5, 3 % entitled: no run of 'never' to compare"
    ):
        FleetRuns.of([row("always")])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run, of ten days."""
    place = tmp_path_factory.mktemp("fleet") / "run"
    experiment = FleetExperiment(
        utilisation=(0.4,), years=2, days=10, recall=("none", "first arrival"), log=False
    )
    return run_fleet(experiment, place)


def test_what_a_simulation_wrote_is_read(folder: Path) -> None:
    (setting,) = FleetRuns.read(folder).settings
    told, _ = read_runs(folder)
    assert len(setting.runs) == len(told) == 9
    assert setting.city == "Port Almery"
    assert setting.never.days == 10
    always = setting.find("always", "first arrival")
    assert always is not None
    assert always.unit_hours > 0.0
    assert {"high", "medium", "low"} < set(always.groups)


def test_a_damaged_file_is_named(folder: Path, tmp_path: Path) -> None:
    for name in ("manifest.json", "runs.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    damaged = json.loads((tmp_path / "runs.json").read_text())
    damaged[0]["utilisation"] = "high"
    (tmp_path / "runs.json").write_text(json.dumps(damaged))
    told = re.escape(f"{tmp_path / 'runs.json'}: run 0.utilisation 'high': a number is needed")
    with pytest.raises(InputError, match=told):
        FleetRuns.read(tmp_path)
