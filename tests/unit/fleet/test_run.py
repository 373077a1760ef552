"""A fleet's experiment: same bytes for any number of workers, and on after an interruption."""

import csv
import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ideal_dispatch as ideal
from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch.price import UNCALIBRATED
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.experiment.engine import digest
from ideal_dispatch.fleet.calibration import HARMS, Calibration
from ideal_dispatch.fleet.calls import draw_calls
from ideal_dispatch.fleet.city import Priority
from ideal_dispatch.fleet.experiment import FleetExperiment
from ideal_dispatch.fleet.inputs.city_files import HARBOUR_FLEET, city_from
from ideal_dispatch.fleet.log import CALLS, calls_file
from ideal_dispatch.fleet.results import RunSummary
from ideal_dispatch.fleet.run import read_runs, run_fleet
from ideal_dispatch.toml_tables import read_toml
from tests.unit.experiment.test_engine import contents
from tests.unit.fleet.small_runs import experiment, small_city

KEYS = [
    "policy", "recall", "utilisation", "second_share", "deaths_per_1000", "paired_se",
    "mean_first_s", "p90_first_s", "late_share", "others_mean_s", "second_unit_minutes",
]  # fmt: skip
YEARS = 12


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_fleet(experiment(), tmp_path_factory.mktemp("fleet") / "whole")


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_fleet(experiment(years=YEARS), tmp_path_factory.mktemp("fleet") / "long")


# --- what is written ------------------------------------------------------------------


def test_the_summary_has_these_keys_and_policies(whole: Path) -> None:
    rows = json.loads((whole / "summary.json").read_text())
    assert all(list(row) == KEYS for row in rows)
    ways = ("none", "first arrival", "worth")
    others = ("always", "random half", "fixed C", "priced C")
    assert [(row["policy"], row["recall"]) for row in rows] == [
        (policy, recall) for policy in ("never", *others) for recall in ways
    ]
    assert rows[0] | {"recall": "worth"} == rows[2]
    assert rows[0]["second_share"] == rows[0]["paired_se"] == rows[0]["second_unit_minutes"] == 0.0


def test_rows_are_what_the_logs_of_their_years_say(whole: Path) -> None:
    """Of one year alone, counted anew from its log."""
    run_fleet(experiment(years=1), whole.parent / "one")
    rows, notes = read_runs(whole.parent / "one")
    assert notes == ["everything is invented"]
    city = small_city()
    for name, row in (("never_none", rows[0]), ("always_first_arrival", rows[2])):
        with gzip.open(whole / "log" / f"{name}.csv.gz", "rt") as file:
            log = [one for one in csv.DictReader(file) if float(one["at_s"]) >= 86_400.0]
        taken = np.array([float(one["first_arrival_s"]) - float(one["at_s"]) for one in log])
        arrest = np.array([one["arrest"] == "1" for one in log])
        sent = np.array([bool(one["second"]) for one in log])
        risk = np.interp(taken[arrest], np.arange(len(city.risk)), city.risk)
        assert row["mean_first_s"] == pytest.approx(taken.mean(), abs=1e-3)
        assert row["p90_first_s"] == pytest.approx(np.quantile(taken, 0.9), abs=20.0)
        assert row["late_share"] == pytest.approx((taken > 480.0).mean())
        assert row["others_mean_s"] == pytest.approx(taken[~arrest].mean(), abs=1e-3)
        assert row["deaths_per_1000"] == pytest.approx(1000.0 * risk.mean(), abs=1e-3)
        assert row["second_share"] == pytest.approx(sent[arrest].mean())
        assert not sent[~arrest].any()


def test_the_standard_error_is_of_the_paired_difference_over_many_years(long: Path) -> None:
    (deaths, _, others), row = differences(long)
    assert len(deaths) == row["years"] == YEARS
    assert row["paired_se"] == pytest.approx(np.std(deaths, ddof=1) / YEARS**0.5)
    assert row["others_se_s"] == pytest.approx(np.std(others, ddof=1) / YEARS**0.5)


def test_few_years_have_the_larger_of_two_standard_errors(whole: Path) -> None:
    """Over years, or of the arrests within them; none of the others' wait."""
    (deaths, within, _), row = differences(whole)
    assert len(deaths) == row["years"] == 3
    pooled = np.hypot.reduce(within[:, 0] * within[:, 1]) / within[:, 0].sum()
    assert row["paired_se"] == pytest.approx(max(np.std(deaths, ddof=1) / 3**0.5, 1000.0 * pooled))
    assert row["others_se_s"] is None


def differences(folder: Path) -> tuple[tuple[Any, Any, Any], dict[str, Any]]:
    """Always less never, year by year: deaths, arrests with their own error, others' means."""
    deaths, within, others = [], [], []
    for path in sorted((folder / "years").iterdir()):
        never, always = json.loads(path.read_text())[:2]
        arrests = never["groups"]["arrests"]["calls"]
        deaths.append(1000.0 * (always["deaths"] - never["deaths"]) / arrests)
        within.append((arrests, always["alone_se"]))
        means = (one["groups"]["others"] for one in (always, never))
        own, base = (one["total_s"] / one["calls"] for one in means)
        others.append(own - base)
    return (deaths, np.array(within), others), read_runs(folder)[0][1]


def test_years_that_are_alike_by_chance_are_not_sure() -> None:
    tally, never = RunSummary(), RunSummary()
    group = {"calls": 100, "total_s": 1.0, "first_bin": 0, "bins": [100]}
    groups = dict.fromkeys(("arrests", "others", "high"), group)
    for year in range(2):
        for one, deaths in ((tally, 79.0), (never, 80.0)):
            told = dict.fromkeys(("entitled", "seconds", "held_s", "stood", "stood_s", "queued"), 0)
            one.add(0, year, told | {"deaths": deaths, "busy": 0.5, "alone_se": 0.003,
                                     "groups": groups})  # fmt: skip
    row = tally.row(never)
    assert row["deaths_difference"] == pytest.approx(-10.0)
    assert row["paired_se"] == pytest.approx(3.0 / 2**0.5)


def test_a_group_without_calls_has_no_mean() -> None:
    city = small_city(
        priorities=(Priority("urgent", 1.0),), redispatch=np.zeros((1, 1), bool), entitled=1.0
    )
    result = ideal.simulate_fleet(city, "always", years=1, days=2)
    assert [row["others_mean_s"] for row in result.rows] == [None, None]
    assert result.rows[1]["groups"]["others"] == {
        "calls": 0, "mean_s": None, "p90_s": None, "late_share": None
    }  # fmt: skip


def test_every_combination_is_a_case_with_a_log_of_its_own(tmp_path: Path) -> None:
    told = experiment(
        cities={"A": {}, "B": {}}, units=(4, 5), entitled=(0.2, 0.4), utilisation=(0.2,), years=1,
        days=2, policies={"all": {"kind": "always"}}, recall=("worth",),
    )  # fmt: skip
    run_fleet(told, tmp_path)
    rows, _ = read_runs(tmp_path)
    found = [
        tuple(row[name] for name in ("city", "units", "load", "entitled")) for row in rows[::2]
    ]
    assert found == [(city, units, 0.2, share) for city in "AB" for units in (4, 5)
                     for share in (0.2, 0.4)]  # fmt: skip
    logs = {path.parent.name for path in (tmp_path / "log").rglob("*.csv.gz")}
    assert len(logs) == 8
    assert "a_units_4_load_0.2_entitled_0.2" in logs
    smaller, larger = rows[0], rows[4]
    assert larger["utilisation"] < smaller["utilisation"]  # the same calls, one more unit
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert len(set(manifest["calls_per_day"].values())) == 1


def test_the_prices_of_a_run_are_those_of_its_file(whole: Path, tmp_path: Path) -> None:
    def priced(name: str, city: str, factor: float) -> Path:
        factors: Any = dict.fromkeys(HARMS, (factor, *UNCALIBRATED[1:]))
        Calibration(city, ("West", "East"), 60.0, 0, factors, ()).save(tmp_path / f"{name}.json")
        told = experiment(price=f"{name}.json", folder=tmp_path)
        return run_fleet(told, tmp_path / name)

    same, dear = priced("same", "Smallville", 1.0), priced("dear", "Smallville", 1e9)
    rows = [{(row["policy"], row["recall"]): row for row in read_runs(folder)[0]}
            for folder in (whole, same, dear)]  # fmt: skip
    assert rows[0] == rows[1]
    changed = {key[0] for key, row in rows[2].items() if row != rows[0][key]}
    assert changed == {"priced C", *(name for name, recall in rows[0] if recall == "worth")}
    assert rows[2]["priced C", "none"]["second_share"] == 0.0
    told = json.loads((dear / "manifest.json").read_text())
    assert told["price"] == digest((tmp_path / "dear.json").read_bytes())
    (tmp_path / "dear.json").write_bytes((tmp_path / "same.json").read_bytes())
    with pytest.raises(InputError, match=r"holds another fleet simulation \(not the same price\)"):
        run_fleet(experiment(price="dear.json", folder=tmp_path), dear)
    with pytest.raises(InputError, match=r"price far.json: it is of Far, not of Smallville; make"):
        priced("far", "Far", 1.0)


# --- the same bytes -------------------------------------------------------------------


def test_two_workers_write_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    assert contents(run_fleet(experiment(), tmp_path / "two", workers=2)) == contents(whole)


def test_an_interrupted_run_goes_on_to_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def interrupt(step: str, share: float) -> None:
        if step == "simulating" and share >= 0.5:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        run_fleet(experiment(), folder, watch=interrupt)
    assert not (folder / "summary.json").exists()
    assert contents(run_fleet(experiment(), folder)) == contents(whole)


def test_the_calls_of_a_log_can_be_the_list_of_another_experiment(tmp_path: Path) -> None:
    city = ideal.harbour_fleet()
    calls = draw_calls(city, 3, days=2)
    (tmp_path / CALLS).write_bytes(calls_file(city, calls))
    table = read_toml(HARBOUR_FLEET)["city"] | {"list": str(tmp_path / CALLS)}
    told = {name: table[name] for name in table if name not in ("calls_per_day", "by_hour")}
    listed = city_from(told, "city", HARBOUR_FLEET.parent)
    assert listed.listed is not None
    at_s, cell, priority, midnight = listed.listed
    assert midnight == "2026-01-01"
    assert np.abs(at_s - calls.at_s).max() < 1.0  # a list has whole seconds
    places = listed.cells[cell], city.cells[calls.cell]  # cells without a call have no number
    assert np.array_equal(listed.travel.lon[places[0]], city.travel.lon[places[1]])
    assert np.array_equal(priority, calls.priority)
    rows = ideal.simulate_fleet(listed, "never", 1).rows
    assert sum(rows[0]["groups"][one.name]["calls"] for one in city.priorities) == len(at_s)


def test_a_run_goes_on_from_another_working_directory(
    grid: RoadNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files may have moved: what they say decides."""

    def told(beside: str, per_day: int = 40) -> FleetExperiment:
        city = {
            "name": "Town", "network": f"{beside}/town.network", "depots": f"{beside}/places.csv",
            "hospitals": f"{beside}/places.csv", "calls_per_day": per_day, "cells": 9,
            "priorities": [{"name": "all", "share": 1.0}],
        }  # fmt: skip
        return FleetExperiment.of({"years": 1, "days": 1, "policies": {}, "city": city})

    here, run = tmp_path / "here", tmp_path / "run"
    here.mkdir()
    grid.save(here / "town.network")
    (here / "places.csv").write_text("name,lon,lat\nWest,114.0,22.0\n")
    monkeypatch.chdir(here)
    run_fleet(told("."), run)
    before = contents(run)
    monkeypatch.chdir(tmp_path)
    run_fleet(told("here"), run)
    here.rename(tmp_path / "moved")
    run_fleet(told("moved"), run)
    assert contents(run) == before
    with pytest.raises(InputError, match=r"holds another fleet simulation \(not the same cities\)"):
        run_fleet(told("moved", 41), run)


def test_a_run_without_logs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no fleet simulation there"):
        read_runs(tmp_path)
    run_fleet(experiment(years=1, log=False), tmp_path / "run")
    assert not (tmp_path / "run" / "log").exists()


def test_a_damaged_year_is_named(tmp_path: Path) -> None:
    run_fleet(experiment(years=1), tmp_path)
    (damaged,) = (tmp_path / "years").iterdir()
    damaged.write_text("[{")
    with pytest.raises(FileFormatError, match="year_0000.json"):
        run_fleet(experiment(years=1), tmp_path)


# --- from Python ----------------------------------------------------------------------


def test_simulate_fleet_gives_the_rows_of_a_run(whole: Path) -> None:
    rows, _ = read_runs(whole)
    result = ideal.simulate_fleet(small_city(), "always", 3, 1, "worth", days=4)
    for row, written in zip(result.rows, (rows[0], rows[3]), strict=True):
        assert row == written | {"load": None, "policy": row["policy"]}
    assert [(row["year"], row["policy"]) for row in result.years] == [
        (year, policy) for year in range(3) for policy in ("never", "always")
    ]
    assert list(result.to_frame()["policy"]) == ["never", "always"]
