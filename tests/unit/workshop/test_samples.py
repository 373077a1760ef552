"""The samples: that they are what the workshop writes, and that their truth is recovered."""

import csv
import hashlib
from datetime import UTC
from pathlib import Path

import numpy as np
import pytest

import workshop.samples
from ideal_dispatch import AgencySettings, Responses, RoadNetwork, prepare_records
from ideal_dispatch.cities import HARBOUR_RECORDS, harbour_city
from ideal_dispatch.dispatch import Assignment
from ideal_dispatch.records.prepare import Prepared
from ideal_dispatch.records.report import FILES, write_trips
from ideal_dispatch.records.responses import REMARKS, TOO_SHORT
from ideal_dispatch.records.trips import KIND, STAMPS, SUBTRACTION, TARGETS
from ideal_dispatch.replay.drive import World, drive
from tests.conftest import ROOT
from tests.unit.dispatch.worlds import moment, world
from workshop.samples import (
    LOG_DEFECTS,
    RECORD_DEFECTS,
    SECONDS_PER_FLOOR,
    seconds_that_hour,
)

DATA = ROOT / "examples" / "data"
NOT_DRIVING_S = 55 + 50 + 60  # call taking, turnout of the first depot, bedside
Truth = dict[int, dict[str, str]]


def _truth(name: str) -> Truth:
    with (DATA / f"{name}_truth.csv").open() as file:
        return {int(row["row"]): row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def network() -> RoadNetwork:
    return RoadNetwork.load(DATA / "city.network")


@pytest.fixture(scope="module")
def prepared(network: RoadNetwork) -> Prepared:
    settings = AgencySettings.load(DATA / "agency.toml")
    return prepare_records(DATA / "records.csv", network, DATA / "depots.csv", settings)


@pytest.fixture(scope="module")
def log() -> Responses:
    return Responses.read(
        DATA / "unit_log.csv", mapping=DATA / "unit_log.toml", stations=DATA / "depots.csv"
    )


@pytest.mark.slow
def test_the_workshop_writes_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workshop.samples, "EXAMPLES", tmp_path)
    monkeypatch.setattr(workshop.samples, "HARBOUR_RECORDS", tmp_path)
    workshop.samples.main()
    for file in tmp_path.iterdir():
        written, shipped = (path.read_bytes() for path in (file, DATA / file.name))
        assert hashlib.sha256(written).digest() == hashlib.sha256(shipped).digest(), file.name


def test_the_demo_has_its_files() -> None:
    for name in ("records.csv", "depots.csv", "agency.toml", "weather.csv.gz"):
        assert (DATA / name).samefile(HARBOUR_RECORDS / name)
    assert RoadNetwork.load(DATA / "city.network").checksum == harbour_city().network.checksum


def test_every_record_gets_the_verdict_it_deserves(prepared: Prepared) -> None:
    verdicts = {row: ("quarantined", reason) for row, reason in prepared.raw.broken}
    for kind in ("quarantined", "excluded"):
        for at, reasons in getattr(prepared, kind).items():
            verdicts[int(prepared.table.row[at])] = kind, "; ".join(reasons)
    verdicts |= dict.fromkeys(np.asarray(prepared.trips.row).tolist(), ("trip", ""))
    truth = _truth("records")
    assert verdicts.keys() == truth.keys()
    # short drives by subtraction, where the turnout was quicker than is usual
    quick = [row for row, (_, why) in verdicts.items() if "faster than" in why]
    unplanned = {row for row in quick if truth[row]["verdict"] == "trip"}
    assert len(unplanned) <= 3
    for row, told in truth.items():
        if row in unplanned:
            continue
        verdict, reasons = verdicts[row]
        assert verdict == told["verdict"], (row, told, reasons)
        assert told["reason"] in reasons
    assert {told["defect"] for told in truth.values()} == {"", "repeated", *RECORD_DEFECTS}


def test_ends_and_travel_times_are_recovered(prepared: Prepared) -> None:
    truth, trips = _truth("records"), prepared.trips
    true = [truth[row] for row in np.asarray(trips.row).tolist()]
    assert trips.origin.tolist() == [int(one["origin"]) for one in true]
    assert trips.destination.tolist() == [int(one["destination"]) for one in true]
    error = trips.observed_s - np.array([float(one["travel_s"]) for one in true])
    stamped = np.asarray(trips.target) == TARGETS.index(STAMPS)
    assert np.all(error[stamped] == 0)
    assert (np.asarray(trips.target) == TARGETS.index(SUBTRACTION))[~stamped].all()
    assert abs(error[~stamped].mean()) < 7  # a median is below the mean of turnouts
    assert error[~stamped].std() < 40


def test_floors_and_preparation_are_recovered(prepared: Prepared) -> None:
    assert prepared.slope.method == "paired"
    assert prepared.slope.lower < SECONDS_PER_FLOOR < prepared.slope.upper
    assert prepared.slope.upper - prepared.slope.lower < 0.6
    for index, name in enumerate(("Kelp Point", "Gannet Bay")):
        found = prepared.preparation[name]
        assert found.method == "paired"
        assert found.seconds == pytest.approx(NOT_DRIVING_S + 15 * index, abs=10)


def test_the_papers_regression_recovers_it_too(network: RoadNetwork) -> None:
    settings = AgencySettings.of(
        {
            "agency": {"time_zone": "Asia/Hong_Kong", "country": "HK"},
            "input": {"date_order": "dmy"},
            "floors": {"estimate": "paper"},
            "preparation": {"seconds": {"A1": NOT_DRIVING_S, "A2": NOT_DRIVING_S + 15}},
            "target": {"rule": "subtraction"},
            "exclusions": {"preset": "paper"},
        }
    )
    paper = prepare_records(DATA / "records.csv", network, DATA / "depots.csv", settings)
    assert paper.slope.method == "paper"
    assert paper.slope.lower < SECONDS_PER_FLOOR < paper.slope.upper
    assert set(np.asarray(paper.trips.target).tolist()) == {TARGETS.index(SUBTRACTION)}


@pytest.mark.slow
def test_nothing_personal_is_written(
    network: RoadNetwork, prepared: Prepared, tmp_path: Path
) -> None:
    settings = AgencySettings.load(DATA / "agency.toml")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        _, facts = write_trips(prepared, network, settings, tmp_path / name)
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == sorted(FILES)
    written = {name: (tmp_path / "a" / name).read_bytes() for name in FILES}
    assert written == {name: (tmp_path / "b" / name).read_bytes() for name in FILES}
    manifest, arrays = KIND.read(tmp_path / "a" / "trips.trips")
    whole = b"".join(written.values()).decode("utf-8", "replace") + str(manifest) + str(arrays)
    with (DATA / "records.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for column in ("patient_name", "age", "address"):
                assert row[column]
                assert row[column] not in whole
            assert row["call_id"] not in whole, "call numbers are not needed either"
            assert len(row["lon"]) < 8 or row["lon"] not in whole, "coordinates are rounded"
    assert facts["columns_not_read"] == 3


# --- the unit log ---------------------------------------------------------------------


def test_every_row_of_the_log_is_what_it_should_be(log: Responses) -> None:
    truth, kept = _truth("unit_log"), set(log.row.tolist())
    left_out = {row for row, told in truth.items() if told["verdict"] == "left out"}
    assert kept == truth.keys() - left_out
    assert sum(log.provenance["left_out"].values()) == len(left_out) == 3 * 3
    assert {told["defect"] for told in truth.values()} == {"", *LOG_DEFECTS}


def test_times_and_starts_of_the_log_are_recovered(log: Responses, network: RoadNetwork) -> None:
    told = _truth("unit_log")
    truth = [told[row] for row in log.row.tolist()]
    clean = np.array([not one["defect"] for one in truth])
    recalled = np.array([one["recalled"] == "True" for one in truth])
    turnout_s, drive_s = (np.array([float(one[c]) for one in truth]) for c in
                          ("turnout_s", "drive_s"))  # fmt: skip
    assert np.array_equal(log.recalled[clean], recalled[clean])
    assert 0.05 < recalled.mean() < 0.25
    arrived = clean & ~recalled
    assert np.array_equal(log.response_s[arrived], (turnout_s + drive_s)[arrived])
    known = clean & ~np.isnan(log.turnout_s)
    assert np.array_equal(log.turnout_s[known], turnout_s[known])
    on_road = np.array([one["on_road"] == "True" for one in truth])
    assert not (log.from_road & ~on_road).any()
    assert log.from_road.sum() > 0.5 * on_road.sum() > 20
    trips, rows = log.trips(network)
    ends = np.array([[int(truth[row][c]) for c in ("origin", "destination")] for row in rows])
    stated = log.from_road[rows]
    assert np.array_equal(trips.origin[stated], ends[stated, 0])
    assert (trips.destination != ends[:, 1]).sum() <= 1  # between two nodes, after rounding
    short = np.flatnonzero(log.remark == REMARKS.index(TOO_SHORT))
    assert short.size > 0
    assert all(on_road[i] and not log.from_road[i] for i in short)
    assert len(log.races()) > 300


def test_the_order_of_arrival_is_in_the_file_and_not_read(log: Responses) -> None:
    with (DATA / "unit_log.csv").open() as file:
        names = {row["Patient"] for row in csv.DictReader(file) if row["Arrival Order"]}
    text = log.to_frame().to_string() + str(dict(log.provenance))
    assert names
    assert not any(name in text for name in names)


@pytest.mark.parametrize("name", ["london", "lancaster", "datasf", "nemsis"])
def test_samples_of_ready_made_formats(name: str) -> None:
    own = {"agency": {"time_zone": "Asia/Hong_Kong", "country": "HK"}}
    ending = "xml" if name == "nemsis" else "csv"
    found = Responses.read(
        DATA / f"{name}.{ending}", name, own if name == "nemsis" else None, DATA / "depots.csv"
    )
    assert len(set(found.incident)) == 20
    assert len(found.races()) == 7
    assert not found.provenance["left_out"]


# --- how units drive ------------------------------------------------------------------


def test_units_drive_at_their_time_of_day(grid: RoadNetwork) -> None:
    recorded = world(grid)
    recorded_at = moment(grid, 7)
    a_year_later = recorded_at.replace(year=recorded_at.year + 1).astimezone(UTC)
    path = recorded.quote(0, 65, recorded_at).path
    truth = drive(recorded, grid, Assignment(0, path), 65, recorded_at, World.EXPERIENCED)
    assert seconds_that_hour(recorded, 0, 65, a_year_later) == truth.total_s
