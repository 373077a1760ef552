"""Incidents where no ambulance can drive, or where one already is."""

from collections.abc import Iterator

import pytest

from ideal_dispatch import RoadNetwork
from tests.faults.service_faults import advised, codes, post, words
from tests.service_town import Local, Town, application, local
from tests.unit.dispatch.worlds import random_model


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    with local(application(town.settings("place.toml"))) as opened:
        yield opened


@pytest.mark.parametrize(
    ("lon", "lat"), [(0.0, 0.0), (114.005, 22.0 - 0.02), (-114.0, 22.0), (180.0, -90.0)]
)
def test_incident_off_the_map_or_in_the_sea(
    client: Local, town: Town, lon: float, lat: float
) -> None:
    made = advised(client, town.call(location={"lon": lon, "lat": lat}))
    assert made.decision == "no_advice"
    assert codes(made)[0] == "off_map"
    assert "beyond the limit of 300 m" in words(made, "off_map")
    assert (made.location.lon, made.location.node) == (lon, None)


def test_latitude_and_longitude_swapped_out_of_range(client: Local, town: Town) -> None:
    answer = post(client, town.call(location={"lon": 22.004, "lat": 114.005}))
    assert answer.status_code == 422
    assert "are they swapped?" in answer.json()["error"]["message"]


@pytest.fixture
def western(town: Town) -> Iterator[Local]:
    """A town whose swapped coordinates are on Earth too."""
    old = town.network
    network = RoadNetwork.from_arrays(
        old.tail, old.head, old.length_m, old.lon - 100.0, old.lat, name=old.name
    )
    network.save(town.folder / "west.network")
    random_model(network).save(town.folder / "west-model")
    depots = [f"W{n},{network.lon[n]},{network.lat[n]}" for n in (0, 11)]
    (town.folder / "west.csv").write_text("\n".join(["name,lon,lat", *depots]))
    settings = town.settings(
        "west.toml",
        city={"network": "west.network", "depots": "west.csv"},
        model={"folder": "west-model", "gain": ""},
        traffic={"kind": "forecast", "file": ""},
    )
    with local(application(settings)) as opened:
        yield opened


def test_latitude_and_longitude_swapped_in_range(western: Local, town: Town) -> None:
    right = advised(western, town.call("r", location={"lon": 14.005, "lat": 22.004}, depots=None))
    assert right.decision != "no_advice"
    made = advised(western, town.call("s", location={"lon": 22.004, "lat": 14.005}, depots=None))
    assert made.decision == "no_advice"
    assert "latitude and longitude are swapped" in words(made, "off_map")


def test_incident_unreachable(town: Town) -> None:
    """The incident's junction can be left, and not be reached."""
    old = town.network
    node = 65
    keep = old.head != node
    network = RoadNetwork.from_arrays(
        old.tail[keep], old.head[keep], old.length_m[keep], old.lon, old.lat
    )
    network.save(town.folder / "cut.network")
    random_model(network).save(town.folder / "cut-model")
    settings = town.settings(
        "cut.toml",
        city={"network": "cut.network"},
        model={"folder": "cut-model", "gain": ""},
        traffic={"kind": "forecast", "file": ""},
    )
    with local(application(settings)) as client:
        for primary in (None, {"depot": "D0"}):
            made = advised(client, town.call("cut", node, primary=primary))
            assert made.decision == "no_advice"
            assert codes(made)[0] in ("unreachable", "not_decided")
            assert "rout" in made.headline or "way" in made.headline


def test_incident_at_the_depot(client: Local, town: Town) -> None:
    made = advised(client, town.call("at", 0, primary={"depot": "D0"}, threshold_s=600.0))
    assert made.decision == "primary_only"
    assert made.primary is not None
    assert made.primary.route.edges == []
    assert len(made.primary.route.geojson.coordinates) == 2  # GeoJSON wants two
    assert made.nominal.primary_s == 0.0
    chosen = advised(client, town.call("at-2", 0))
    assert chosen.primary is not None
    assert chosen.primary.depot == "D0"
