"""Recovery: what `prepare` makes of records whose truth is known."""

import csv
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import Depot, RoadNetwork
from ideal_dispatch.cities import City, harbour_city
from ideal_dispatch.context import Weather
from ideal_dispatch.errors import InputError
from ideal_dispatch.records.agency import AgencySettings
from ideal_dispatch.records.data_report import FILES, write_outputs
from ideal_dispatch.records.prepare import Prepared, prepare_records
from ideal_dispatch.records.synthetic.cells import DEFECTS
from ideal_dispatch.records.synthetic.records import (
    SECONDS_PER_FLOOR,
    RecordsParams,
    SyntheticRecords,
    synthesise,
)
from ideal_dispatch.records.synthetic.weather import SyntheticWeather
from ideal_dispatch.records.trips import KIND, STAMPS, SUBTRACTION, TARGETS

COUNT = 1500
NOT_DRIVING_S = 90 + 60  # preparation of the first depot, 20 s more for the next, and bedside


def _settings(folder: Path, **tables: object) -> AgencySettings:
    base = {
        "agency": {"time_zone": "Asia/Hong_Kong", "country": "HK", "name": "Port Almery"},
        "input": {"date_order": "dmy"},
        "weather": {"source": "recorded", "files": ["weather.csv"], "name": "synthetic"},
    }
    return AgencySettings.of(base | tables, folder / "agency.toml")


def _depots(city: City, path: Path) -> None:
    lon, lat = city.network.lon, city.network.lat
    rows = [f"{d.name},{lon[d.node]},{lat[d.node]}" for d in city.depots]
    path.write_text("\n".join(["name,lon,lat", *rows]))


@pytest.fixture(scope="module")
def city() -> City:
    return harbour_city()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("agency")


@pytest.fixture(scope="module")
def made(city: City, folder: Path) -> SyntheticRecords:
    weather = SyntheticWeather.of_year(2023, city.time_zone, 1)
    records = synthesise(
        city.network, city.depots, city.time_zone, seed=1,
        params=RecordsParams(count=COUNT), weather=weather,
        districts=list(city.node_districts),
    )  # fmt: skip
    records.save(folder / "records.csv")
    weather.save(folder / "weather.csv")
    _depots(city, folder / "depots.csv")
    return records


@pytest.fixture(scope="module")
def prepared(city: City, folder: Path, made: SyntheticRecords) -> Prepared:
    files = folder / "records.csv", city.network, folder / "depots.csv"
    return prepare_records(*files, _settings(folder))


def test_every_row_gets_the_verdict_it_deserves(made: SyntheticRecords, prepared: Prepared) -> None:
    verdicts = {row: ("quarantined", reason) for row, reason in prepared.broken}
    for kind in ("quarantined", "excluded"):
        for at, reasons in getattr(prepared, kind).items():
            verdicts[int(prepared.table.row[at])] = kind, "; ".join(reasons)
    verdicts |= dict.fromkeys(np.asarray(prepared.trips.row).tolist(), ("trip", ""))
    assert len(verdicts) == COUNT
    wrong = [
        (truth.row, truth.defect, truth.reason, verdicts[truth.row])
        for truth in made.truth
        if verdicts[truth.row][0] != truth.verdict or truth.reason not in verdicts[truth.row][1]
    ]
    assert wrong == []
    assert {truth.defect for truth in made.truth} == {"", "duplicate", *DEFECTS}


def test_ends_and_travel_times_are_recovered(made: SyntheticRecords, prepared: Prepared) -> None:
    truth = {t.row: t for t in made.truth}
    trips = prepared.trips
    true = [truth[row] for row in np.asarray(trips.row).tolist()]
    assert trips.origin.tolist() == [t.origin for t in true]
    assert trips.destination.tolist() == [t.destination for t in true]
    error = trips.observed_s - np.array([t.travel_s for t in true])
    stamped = np.asarray(trips.target) == TARGETS.index(STAMPS)
    assert np.all(error[stamped] == 0)
    assert (np.asarray(trips.target) == TARGETS.index(SUBTRACTION))[~stamped].all()
    assert abs(error[~stamped].mean()) < 3
    assert error[~stamped].std() < 25


def test_floors_and_preparation_are_recovered(city: City, prepared: Prepared) -> None:
    slope = prepared.slope
    assert slope.method == "paired"
    assert slope.lower < SECONDS_PER_FLOOR < slope.upper
    assert slope.upper - slope.lower < 0.4
    for index, depot in enumerate(city.depots):
        found = prepared.preparation[depot.name]
        assert found.method == "paired"
        assert found.seconds == pytest.approx(NOT_DRIVING_S + 20 * index, abs=4)


def test_the_papers_regression_recovers_it_too(
    city: City, folder: Path, made: SyntheticRecords
) -> None:
    files = folder / "records.csv", city.network, folder / "depots.csv"
    paper = prepare_records(
        *files,
        _settings(
            folder,
            floors={"estimate": "paper"},
            preparation={
                "seconds": {d.name: NOT_DRIVING_S + 20 * i for i, d in enumerate(city.depots)}
            },
            target={"rule": "subtraction"},
            exclusions={"preset": "paper"},
        ),
    )
    assert paper.slope.method == "paper"
    assert paper.slope.lower < SECONDS_PER_FLOOR < paper.slope.upper
    assert set(np.asarray(paper.trips.target).tolist()) == {TARGETS.index(SUBTRACTION)}


def test_weather_is_that_of_the_nearest_hour(prepared: Prepared) -> None:
    counts = prepared.weather_counts["rainfall_mm"]
    assert counts == {"synthetic": len(prepared.trips)}
    assert prepared.trips.provenance["weather"]["rainfall_mm"] == counts
    assert not np.isnan(prepared.trips.contexts).any()
    weather = SyntheticWeather.of_year(2023, "Asia/Hong_Kong", 1)
    at = prepared.table.at[prepared.kept[0]].astype("M8[s]").item()
    expected = weather.reading(at.replace(tzinfo=UTC), 0, 0)
    assert prepared.trips.contexts[0, 0] == expected.temperature_c.value


@pytest.mark.slow
def test_nothing_personal_is_written(
    city: City, folder: Path, made: SyntheticRecords, prepared: Prepared, tmp_path: Path
) -> None:
    facts = write_outputs(prepared, city.network, _settings(folder), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    written = b"".join((tmp_path / name).read_bytes() for name in FILES)
    manifest, arrays = KIND.read(tmp_path / "trips.trips")
    whole = written.decode("utf-8", "replace") + str(manifest) + str(arrays)
    with (folder / "records.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == COUNT
    for row in rows:
        for column in ("patient_name", "age", "address"):
            assert row[column]
            assert row[column] not in whole
        assert row["call_id"] not in whole, "call numbers are not needed either"
        assert not row["lon"] or row["lon"] not in whole, "coordinates are rounded"
    assert facts["columns_not_read"] == 3
    assert "all other columns were not kept" in facts["privacy"]


def test_outputs_are_the_same_bytes_every_time(
    city: City, folder: Path, prepared: Prepared, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_outputs(prepared, city.network, _settings(folder), tmp_path / name)
    for name in FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_same_seed_same_records(city: City) -> None:
    def rows(seed: int) -> object:
        params = RecordsParams(count=200)
        return synthesise(city.network, city.depots, city.time_zone, seed=seed, params=params).rows

    assert rows(5) == rows(5)
    assert rows(5) != rows(6)


def test_a_travel_time_of_ones_own(city: City) -> None:
    made = synthesise(
        city.network, city.depots, city.time_zone, seed=2,
        params=RecordsParams(count=150, defects_each=1),
        travel_time=lambda origin, destination, at, weather: 123.0,
        weather=SyntheticWeather.of_year(2023, city.time_zone, 2),
    )  # fmt: skip
    assert {truth.travel_s for truth in made.truth} == {123.0}


def test_too_few_records_for_all_defects() -> None:
    with pytest.raises(InputError, match="count 10: 5 rows of each of"):
        RecordsParams(count=10)


def test_a_town_too_small_for_records() -> None:
    small = RoadNetwork.from_arrays([0, 1], [1, 0], [100, 100], [7.0, 7.001], [43.0, 43.0])
    with pytest.raises(InputError, match="use a larger network"):
        synthesise(small, [Depot("A", 0)], "Europe/Paris", seed=1)


def test_weather_outside_its_year_is_unknown() -> None:
    weather = SyntheticWeather.of_year(2023, "Asia/Hong_Kong", 1)
    assert weather.reading(datetime(2020, 1, 1, tzinfo=UTC), 0, 0) == Weather()
