"""Recovery: what is read of a unit log whose truth is known."""

from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.cities import City, harbour_city
from ideal_dispatch.network import Depot
from ideal_dispatch.records.response_log import LogSettings
from ideal_dispatch.records.response_reading import ReadLog, read_responses
from ideal_dispatch.records.responses import REMARKS
from ideal_dispatch.records.synthetic_responses import (
    DEFECTS,
    FILES,
    HEADER,
    LogParams,
    SyntheticLog,
    synthesise_log,
    write_log,
)

CALLS = 800


@pytest.fixture(scope="module")
def city() -> City:
    return harbour_city()


@pytest.fixture(scope="module")
def made(city: City) -> SyntheticLog:
    return synthesise_log(
        city.network, city.depots, city.time_zone, seed=3, params=LogParams(CALLS)
    )


@pytest.fixture(scope="module")
def folder(city: City, made: SyntheticLog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("log")
    write_log(
        where, made, city.network, city.depots, name=city.name, time_zone=city.time_zone,
        country=city.country,
    )  # fmt: skip
    return where


@pytest.fixture(scope="module")
def read(folder: Path) -> ReadLog:
    settings = LogSettings.given(mapping=folder / "log.toml")
    return read_responses(folder / "unit_log.csv", settings, folder / "stations.csv")


def test_every_row_is_what_it_should_be(made: SyntheticLog, read: ReadLog) -> None:
    left_out = dict(read.left_out)
    kept = set(read.responses.row.tolist())
    assert len(left_out) == 3 * 3
    for truth in made.truth:
        if truth.verdict == "left out":
            assert any(truth.reason in reason for reason in left_out[truth.row]), truth
        else:
            assert truth.row in kept, truth
    assert len(kept) + len(left_out) == len(made.rows)
    assert {truth.defect for truth in made.truth} == {"", *DEFECTS}


def test_times_and_starts_are_recovered(made: SyntheticLog, read: ReadLog, city: City) -> None:
    found = read.responses
    truth = [made.truth[row - 2] for row in found.row.tolist()]
    clean = np.array([not one.defect for one in truth])
    recalled = np.array([one.recalled for one in truth])
    assert np.array_equal(found.recalled[clean], recalled[clean])
    assert 0.05 < recalled.mean() < 0.25
    response_s = np.array([one.response_s for one in truth])
    arrived = clean & ~recalled
    assert np.array_equal(found.response_s[arrived], response_s[arrived])
    turnout_s = np.array([one.turnout_s for one in truth])
    known = clean & ~np.isnan(found.turnout_s)
    assert np.array_equal(found.turnout_s[known], turnout_s[known])
    # a start on the road is known where the log has it, unless it is beside the station
    logged = np.array([one.position_logged for one in truth])
    assert (found.from_road & ~logged).sum() == 0
    assert found.from_road.sum() > 0.8 * logged.sum() > 20
    trips, rows = found.trips(city.network)
    origin = np.array([truth[row].origin for row in rows.tolist()])
    stated = found.from_road[rows]
    assert np.array_equal(trips.origin[stated], origin[stated])
    destination = np.array([truth[row].destination for row in rows.tolist()])
    assert np.array_equal(trips.destination, destination)


def test_a_drive_that_cannot_be_says_so(made: SyntheticLog, read: ReadLog) -> None:
    """Of units that started on the road unlogged, some are told by their speed, and no other."""
    found = read.responses
    truth = [made.truth[row - 2] for row in found.row.tolist()]
    short = found.remark == REMARKS.index(REMARKS[3])
    assert short.any()
    assert all(truth[i].on_road and not truth[i].position_logged for i in np.flatnonzero(short))
    early = [one.defect == "left before it was sent" for one in truth]
    assert np.array_equal(found.remark == 1, early)


def test_races_are_there(read: ReadLog) -> None:
    races = read.responses.races()
    assert len(races) > 0.2 * CALLS
    assert (races.response_s[:, 0] < races.response_s[:, 1]).mean() == pytest.approx(0.5, abs=0.25)
    assert races.left_out["a unit never arrived (not observed, not lost)"] > 10


def test_same_seed_same_bytes(made: SyntheticLog, city: City, folder: Path, tmp_path: Path) -> None:
    again, other = (
        synthesise_log(
            city.network, city.depots, city.time_zone, seed=seed, params=LogParams(CALLS)
        )
        for seed in (3, 4)
    )
    assert again.rows == made.rows
    assert other.rows != made.rows
    write_log(
        tmp_path, again, city.network, city.depots, name=city.name, time_zone=city.time_zone,
        country=city.country,
    )  # fmt: skip
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_the_order_of_arrival_is_in_the_file_and_not_read(folder: Path, read: ReadLog) -> None:
    assert "Arrival Order" in HEADER
    assert (read.responses.provenance["settings"]["columns"]).keys().isdisjoint({"order"})
    names = {row.split(",")[-1] for row in (folder / "unit_log.csv").read_text().splitlines()[1:]}
    text = read.responses.to_frame().to_string() + str(dict(read.responses.provenance))
    assert names
    assert not any(name in text for name in names)


def test_any_network(grid: RoadNetwork) -> None:
    log = synthesise_log(
        grid, [Depot("a", 0), Depot("b", 119)], "Europe/London", seed=1, params=LogParams(20)
    )
    assert len(log.rows) >= 20
    alone = synthesise_log(grid, [Depot("a", 0)], "Europe/London", seed=1, params=LogParams(20))
    assert len(alone.rows) == 20
