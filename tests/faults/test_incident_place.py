"""Incidents where no ambulance can drive, or where one already is."""

from collections.abc import Iterator

import pytest

from ideal_dispatch import RoadNetwork
from tests.service_town import Local, Town, application, codes, counts, local, words
from tests.unit.dispatch.worlds import random_model

FORECAST = {"kind": "forecast", "file": ""}


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    with local(application(town.settings("place.toml"))) as opened:
        opened.report()
        yield opened


@pytest.mark.parametrize(
    ("lon", "lat"), [(0.0, 0.0), (114.005, 22.0 - 0.02), (-114.0, 22.0), (180.0, -90.0)]
)
def test_incident_off_the_map_or_in_the_sea(
    client: Local, town: Town, lon: float, lat: float
) -> None:
    made = client.advice(town.call(location={"lon": lon, "lat": lat}))
    assert made["decision"] == "no_advice"
    assert codes(made)[0] == "off_map"
    assert (made["location"]["lon"], made["location"]["node"]) == (lon, None)


def test_latitude_and_longitude_swapped_in_range(town: Town) -> None:
    """In a town whose swapped coordinates are on Earth, too."""
    old = town.network
    network = RoadNetwork.from_arrays(
        old.tail, old.head, old.length_m, old.lon - 100.0, old.lat, name=old.name
    )
    network.save(town.folder / "west.network")
    random_model(network).save(town.folder / "west-model")
    depots = [f"W{n},{network.lon[n]},{network.lat[n]}" for n in (0, 11)]
    (town.folder / "west.csv").write_text("\n".join(["name,lon,lat", *depots]))
    city, model = {"network": "west.network", "depots": "west.csv"}, {"folder": "west-model"}
    settings = town.settings("west.toml", city=city, model=model, traffic=FORECAST)
    with local(application(settings)) as client:
        client.report(*counts(W0=9, W11=9))
        right = client.advice(town.call("right", location={"lon": 14.005, "lat": 22.004}))
        assert right["decision"] != "no_advice"
        made = client.advice(town.call("swapped", location={"lon": 22.004, "lat": 14.005}))
        assert made["decision"] == "no_advice"
        assert "swapped" in words(made, "off_map")


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
    city, model = {"network": "cut.network"}, {"folder": "cut-model"}
    settings = town.settings("cut.toml", city=city, model=model, traffic=FORECAST)
    with local(application(settings)) as client:
        client.report()
        for primary in (None, {"depot": "D0"}):
            made = client.advice(town.call("cut", node, primary=primary))
            assert made["decision"] == "no_advice"
            assert codes(made)[0] in ("unreachable", "not_decided")


def test_incident_at_the_depot(client: Local, town: Town) -> None:
    made = client.advice(town.call("at", 0, primary={"depot": "D0"}, threshold_s=600.0))
    assert made["decision"] == "primary_only"
    assert made["primary"]["route"]["edges"] == []
    assert len(made["primary"]["route"]["geojson"]["coordinates"]) == 2  # GeoJSON wants two
    assert made["primary"]["arrival"]["drive_s"] == 0.0
    assert made["primary"]["arrival"]["turnout_s"] > 0.0
    assert client.advice(town.call("at-2", 0))["primary"]["depot"] == "D0"
