"""Files that version 0.2.0 (commit cf911bb) wrote are read.

A network, trips and responses lie in tests/data; the recording, the model with its response times
and the city that ship with the package were written by it, too.
"""

import numpy as np

from ideal_dispatch import Responses, RoadNetwork, Trips
from ideal_dispatch.cities import harbour_city, harbour_traffic
from tests.conftest import ROOT

FILES = ROOT / "tests" / "data" / "files_0_2"


def test_a_network() -> None:
    network = RoadNetwork.load(FILES / "town.network")
    assert network.checksum == "7fe002e6857c0cf6d16e0e90ba09a3c9"
    assert network.node_ids.tolist() == ["11", "12", "13a"]
    assert network.name == ("Quai", "Quai", "Rue", "")
    assert network.forbidden_turns == ((0, 1),)
    assert len(network.polyline(0)) == 3
    assert network.provenance == {"report": {"read": {"ways": 2}}}
    kmh = 3.6 * network.length_m / network.free_flow_times_s
    np.testing.assert_allclose(kmh, [50, 50, 50, 30])  # unknown limits keep 50 km/h


def test_prepared_trips() -> None:
    trips = Trips.load(FILES / "town.trips")
    trips.check(RoadNetwork.load(FILES / "town.network"))
    assert trips.observed_s.tolist() == [42.0, 61.5]
    assert trips.contexts.shape == (2, 27)
    assert trips.time_zone == "Asia/Hong_Kong"


def test_responses() -> None:
    responses = Responses.load(FILES / "town.responses")
    assert responses.station.tolist() == ["West", "East"]
    assert responses.response_s.tolist() == [270.0, 208.0]
    assert len(responses.races()) == 1
    assert responses.calendar.country == "HK"


def test_the_city_its_recording_and_its_model() -> None:
    city = harbour_city()
    assert city.model is not None
    assert city.responses is not None
    assert len(harbour_traffic(city).days) == 18
