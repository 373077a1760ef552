"""Real unit logs: what the readers make of them, against what is known of them."""

import csv
import gzip
import io
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import Responses, RoadNetwork
from ideal_dispatch.frames import pandas
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.network.readers import read_network
from ideal_dispatch.records.response_reading import to_degrees


@pytest.fixture(scope="module")
def london_folder(shared_data: Path) -> Path:
    folder = shared_data / "london"
    if not folder.is_dir():
        pytest.skip("real data is not here: ../shared/data/london")
    return folder


@pytest.fixture(scope="module")
def london(london_folder: Path) -> Responses:
    log = london_folder / "lfb_incidents_2023_01_to_08.csv.gz"
    return Responses.read(log, "london", stations=london_folder / "lfb_stations.csv")


@pytest.fixture(scope="module")
def lancaster(shared_data: Path) -> Responses:
    log = shared_data / "lancaster/rvfd_calls_2010_2016.csv.gz"
    if not log.is_file():
        pytest.skip("real data is not here: ../shared/data/lancaster")
    return Responses.read(log, "lancaster")


def test_london_calls_and_races(london: Responses) -> None:
    assert london.provenance["rows"] == london.provenance["calls"] == 10_114
    assert london.provenance["left_out"] == {"names no unit": 517}
    assert not np.isnan(london.from_lon).any()  # every station is in the table
    assert len(london.races()) == 1_978


def test_london_with_first_and_second_swapped(london: Responses, london_folder: Path) -> None:
    """The log names engines by their arrival; nothing that is read depends on it."""
    with gzip.open(london_folder / "lfb_incidents_2023_01_to_08.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    swapped = [{_other(name): value for name, value in row.items()} for row in rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(swapped)
    assert swapped[0]["SecondPumpArriving_AttendanceTime"]
    table = pandas().read_csv(io.StringIO(text.getvalue()), dtype=str, keep_default_na=False)
    again = Responses.read(table, "london", stations=london_folder / "lfb_stations.csv")
    assert again.to_frame().equals(london.to_frame())
    assert np.array_equal(again.races().rows, london.races().rows)


def _other(column: str) -> str:
    """The column of the other engine."""
    if column.startswith("First"):
        return column.replace("First", "Second")
    return column.replace("Second", "First")


def test_london_grid_and_degrees_agree(london_folder: Path) -> None:
    with open(london_folder / "lfb_stations.csv") as file:
        rows = list(csv.DictReader(file))
    east, north, lon, lat = (
        np.array([float(row[name]) for row in rows])
        for name in ("easting", "northing", "lon", "lat")
    )
    far_m = great_circle_m(*to_degrees(east, north, 27700), lon, lat)
    assert len(far_m) == 103
    assert far_m.max() < 5


@pytest.mark.slow
def test_london_on_its_roads(london: Responses, london_folder: Path) -> None:
    network: RoadNetwork = read_network(
        london_folder / "london_osm_edges.csv.gz",
        nodes=london_folder / "london_osm_nodes.csv.gz",
        directed=True,
    )
    assert network.num_edges == 88_259
    trips, rows = london.trips(network)
    assert len(trips) == 9_020
    on_roads = np.isin(london.races().rows, rows).all(axis=1).sum()
    assert on_roads == 1_327


def test_lancaster_turnout_and_races(lancaster: Responses) -> None:
    assert lancaster.provenance["rows"] == lancaster.provenance["calls"] == 12_390
    assert _turnout(lancaster, "ambulance") == [278, 581]
    assert _turnout(lancaster, "medic") == [58, 116]
    assert len(lancaster.races()) == 462


def test_lancaster_with_engines_among_the_ambulances(shared_data: Path) -> None:
    """Where any name that ends in 10 to 13 is an ambulance, the figures of others come out.

    E10 to E13 are engines of the city (E1 to E14 are all there), so our own count has none.
    """
    kinds = {r"M\d+": "medic", r"[A-Z]+\d?1[0-3]": "ambulance"}
    log = shared_data / "lancaster/rvfd_calls_2010_2016.csv.gz"
    found = Responses.read(log, "lancaster", {"units": {"kinds": kinds}})
    assert _turnout(found, "ambulance") == [275, 581]
    assert set(found.unit[found.kind == "ambulance"]) >= {"E10", "E11", "E12", "E13", "SW11"}
    pairs = 0
    for call in np.split(np.arange(len(found)), np.flatnonzero(np.diff(found.calls)) + 1):
        ours = call[found.arrived[call] & (found.kind[call] != "")]
        for a, b in combinations(ours.tolist(), 2):
            apart = abs(found.dispatched[a] - found.dispatched[b])
            departments = {str(found.unit[i]).rstrip("0123456789") for i in (a, b)}
            pairs += bool(apart <= np.timedelta64(5, "s")) and len(departments) == 2
    assert pairs == 482


def _turnout(responses: Responses, kind: str) -> list[float]:
    """Median and ninth decile in seconds."""
    seconds = responses.turnout_s[responses.kind == kind]
    return [float(s) for s in np.nanquantile(seconds, [0.5, 0.9])]
