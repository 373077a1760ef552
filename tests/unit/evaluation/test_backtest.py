"""The advice that past calls would have got."""

import csv
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.backtest import (
    Backtest,
    BacktestSettings,
    backtest,
    write_backtest,
)
from ideal_dispatch.records.responses import Responses
from tests.unit.evaluation.race_logs import STATIONS, town_log

DAY = np.timedelta64(1, "D")
FEBRUARY = BacktestSettings(date(2023, 2, 1))


@pytest.fixture(scope="module")
def log(grid: RoadNetwork) -> Responses:
    return town_log(grid)


@pytest.fixture(scope="module")
def found(grid: RoadNetwork, log: Responses) -> Backtest:
    return backtest(log, FEBRUARY, grid)


def test_every_call_of_the_month_gets_advice(found: Backtest, log: Responses) -> None:
    month = log.date.astype("M8[M]") == np.datetime64("2023-02")
    assert len(found) == np.unique(log.incident[month]).size
    assert (found.primary != found.second).all()
    assert set(found.primary) | set(found.second) <= set(STATIONS)
    assert (found.expected_s[:, 0] <= found.expected_s[:, 1]).all()
    assert found.days == 28


def test_the_advice_knows_the_nearest_station(
    found: Backtest, grid: RoadNetwork, log: Responses
) -> None:
    """Without chance, the truth sends the two stations that are nearest on empty roads."""
    times_s = grid.free_flow_times_s
    nodes, names = list(STATIONS.values()), list(STATIONS)
    right = 0
    for place, row in enumerate(found.first_row):
        scene = grid.snap(float(found.log.lon[row]), float(found.log.lat[row])).node
        free = [grid.shortest_path(times_s, [start], scene).time_s(times_s) for start in nodes]
        order = np.argsort(free, kind="stable")
        right += {found.primary[place], found.second[place]} == {names[i] for i in order[:2]}
    assert right > 0.7 * len(found)


def test_what_was_done_stands_beside_it(found: Backtest, log: Responses) -> None:
    for place in range(20):
        rows = np.flatnonzero(found.log.incident == found.of_call("incident")[place])
        assert found.sent[place] == rows.size
        assert found.stations[place].split(" + ") == found.log.station[rows].tolist()
        came = found.log.response_s[rows]
        assert found.arrived[place] == (~np.isnan(came)).sum()
        assert found.first_s[place] == np.nanmin(came)
        for side, name in enumerate((found.primary[place], found.second[place])):
            theirs = came[found.log.station[rows] == name]
            known = theirs[~np.isnan(theirs)]
            np.testing.assert_equal(found.took_s[place, side], known[0] if known.size else np.nan)


def test_the_threshold_comes_from_the_month_before(
    found: Backtest, grid: RoadNetwork, log: Responses
) -> None:
    assert 0.1 < found.advised.mean() < 0.45  # a quarter of January's calls
    given = backtest(log, replace(FEBRUARY, threshold_s=5.0), grid)
    assert given.threshold_s == 5.0
    np.testing.assert_array_equal(given.gain_s, found.gain_s)
    assert (given.advised == (given.gain_s >= 5.0)).all()
    later = log.date >= np.datetime64("2023-02-01")
    arrival = np.where(later & log.arrived, log.dispatched + np.timedelta64(500, "s"), log.on_scene)
    other = backtest(replace(log, on_scene=arrival), FEBRUARY, grid)
    assert other.threshold_s == found.threshold_s
    np.testing.assert_array_equal(other.gain_s, found.gain_s)


def test_all_is_written(found: Backtest, grid: RoadNetwork, tmp_path: Path) -> None:
    report = write_backtest(found, tmp_path, grid)
    assert (tmp_path / "backtest.html").is_file()
    with (tmp_path / "backtest.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found)
    assert sum(int(row["send_second"]) for row in rows) == found.advised.sum()
    assert all((row["advised_second"] != "") == (row["send_second"] == "1") for row in rows)
    assert set(report.figures) == {"hours", "map"}
    assert report.numbers[0][1] == f"{len(found):,}"
    done, thresholds, stations = (
        report.tables[name] for name in ("done", "thresholds", "stations")
    )
    assert done.rows[0][1] + done.rows[1][1] == done.rows[2][1] == len(found)  # type: ignore[operator]
    assert len(thresholds.bold) == 1
    assert sum(row[2] for row in stations.rows) == found.advised.sum()  # type: ignore[misc]


def test_what_cannot_be_advised_on_is_said(grid: RoadNetwork, log: Responses) -> None:
    with pytest.raises(InputError, match="--month 2024-01: the log has no call of ambulance"):
        backtest(log, BacktestSettings(date(2024, 1, 1)), grid)
    with pytest.raises(InputError, match="the log has no call of tram"):
        backtest(log, replace(FEBRUARY, kinds=("tram",)), grid)
    with pytest.raises(InputError, match="needs the places of at least two stations"):
        backtest(town_log(grid, places=False), FEBRUARY)
    with pytest.raises(InputError, match="times of roads need the network"):
        backtest(log, replace(FEBRUARY, train=True))


def test_a_share_needs_calls_before_the_month(grid: RoadNetwork, log: Responses) -> None:
    shifted = {
        name: np.where(log.date < np.datetime64("2023-02-01"), getattr(log, name) - 60 * DAY,
                       getattr(log, name))
        for name in ("received", "dispatched", "on_scene", "cleared")
    }  # fmt: skip
    with pytest.raises(InputError, match="no call of the 31 days before the month .*--threshold"):
        backtest(replace(log, **shifted), FEBRUARY, grid)
