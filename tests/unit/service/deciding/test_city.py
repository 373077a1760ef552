"""What the service shows of its city, the engine around it, and the weather there."""

import gzip
import json
import logging
import time
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.context import Weather, WeatherValue
from ideal_dispatch.context.weather import OutdatedWeatherError
from ideal_dispatch.errors import InputError, TrafficServiceError
from ideal_dispatch.service.clock import SECOND, micros, moment
from ideal_dispatch.service.deciding.assets import load_assets
from ideal_dispatch.service.deciding.city import CityView
from ideal_dispatch.service.deciding.engine import Engine
from ideal_dispatch.service.deciding.roads import Roads
from ideal_dispatch.service.deciding.weather import WeatherPoll
from ideal_dispatch.service.messages import Closed
from tests.unit.service.deciding.conftest import DEPOTS, NOW, SmallCity


@pytest.fixture(scope="module")
def view(city: SmallCity) -> CityView:
    settings = city.settings()
    return CityView(load_assets(settings), settings)


def test_facts_and_roads(view: CityView, city: SmallCity) -> None:
    assert tuple(view.facts.depots) == DEPOTS
    assert view.facts.name == "Gridtown"
    roads = view.road_map()
    assert gzip.decompress(roads.packed) == roads.plain
    edges = [e for one in json.loads(roads.plain)["features"] for e in one["properties"]["edges"]]
    assert sorted(edges) == list(range(view.edges)) == list(range(city.network.num_edges))
    assert view.model_card()


def test_a_drawing_closes_edges(view: CityView, city: SmallCity) -> None:
    west, south, east, north = view.facts.bounds
    around = [
        [west - 1, south - 1],
        [east + 1, south - 1],
        [east + 1, north + 1],
        [west, north + 1],
    ]
    assert len(view.closed_edges("polygon", around)) == view.edges
    line = city.network.polyline(40).tolist()
    assert 40 in view.closed_edges("line", line)
    assert view.closed_edges("edges", [3, 5]) == [3, 5]
    with pytest.raises(InputError):
        view.closed_edges("edges", [view.edges])


def test_cover_falls_with_units_and_with_open_roads(view: CityView, city: SmallCity) -> None:
    assert view.cover((), (), NOW) is None
    whole = view.cover(city.fleet, (), NOW)
    one = view.cover(city.fleet[:1], (), NOW)
    road = view.cover((city.unit(node=65),), (), NOW)
    closed = view.cover(city.fleet, (Closed("x", "", tuple(range(0, 200, 2))),), NOW)
    for worse in (one, road, closed):
        assert whole is not None
        assert worse is not None
        assert worse.median_s is None or (whole.median_s or 0.0) < worse.median_s
    blocked = view.cover(city.fleet, (Closed("x", "", tuple(range(view.edges))),), NOW)
    assert blocked is not None
    assert (blocked.median_s, blocked.p90_s) == (None, None)


def test_invented_calls_can_be_asked(view: CityView, city: SmallCity) -> None:
    adviser = city.adviser()
    named = 0
    for number in range(20):
        call = view.invented_call(number, NOW)
        assert micros(call["received_at"]) == NOW
        where = call["location"]
        city.network.snap(where["lon"], where["lat"], adviser.settings.city.snap_limit_m)
        named += call["primary"] is not None and call["primary"]["depot"] in DEPOTS
    assert named > 10


def test_the_open_network_is_made_once_for_the_same_closures(grid: RoadNetwork) -> None:
    roads = Roads(grid)
    assert roads.open(()) is grid
    made = roads.open((Closed("a", "", (3,)), Closed("b", "", (3, 5))))
    assert made.closed == (3, 5)
    assert roads.open((Closed("c", "", (5, 3)),)) is made
    assert roads.open(()).closed == ()


# --- the engine ---------------------------------------------------------------------


def test_an_engine_becomes_ready_and_prepares_its_traffic(city: SmallCity) -> None:
    engine = Engine.load(city.settings())
    assert (engine.ready, engine.traffic_status) == (False, "starting")
    engine.start()
    until = time.monotonic() + 60.0
    while not (engine.ready and engine.traffic_status == "ready") and time.monotonic() < until:
        time.sleep(0.01)
    assert (engine.ready, engine.traffic_status) == (True, "ready")
    engine.close()


def test_a_problem_of_the_traffic_is_logged_once_and_a_rehearsal_that_fails_stops_nothing(
    city: SmallCity, caplog: pytest.LogCaptureFixture
) -> None:
    settings = city.settings()
    assets = load_assets(settings)

    class Broken:
        status = "ready"

        def prepare(self) -> None:
            raise TrafficServiceError("away")

        def look(self, *_: Any) -> Any:
            raise ZeroDivisionError

    engine = Engine(settings, replace(assets, traffic=Broken()))  # type: ignore[arg-type]
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            engine.prepare()
        assert caplog.text.count("away") == 1
        engine.warm_up()
    assert engine.ready


# --- the weather --------------------------------------------------------------------


class Provider:
    """Says what it is given, or fails with it."""

    def __init__(self) -> None:
        self.next: Weather | Exception = Weather()

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        if isinstance(self.next, Exception):
            raise self.next
        return self.next


def seen(ago_s: float, **values: float) -> Weather:
    at = moment(NOW - round(ago_s * SECOND))
    return Weather(**{name: WeatherValue(value, "s", "", at) for name, value in values.items()})


def test_what_was_known_stays_known_until_it_is_stale() -> None:
    provider = Provider()
    poll = WeatherPoll(provider, 114.0, 22.0, 600.0)
    assert poll.problem
    provider.next = seen(300.0, temperature_c=30.0, rainfall_mm=1.0)
    poll.refresh(NOW)
    assert poll.problem == ""
    provider.next = seen(0.0, rainfall_mm=2.0)
    poll.refresh(NOW)
    known = poll.known(NOW)
    assert (known.weather.temperature_c.value, known.weather.rainfall_mm.value) == (30.0, 2.0)
    assert (known.age_s, known.stale) == (300.0, False)
    for error in (
        TrafficServiceError("away"),
        RuntimeError("?"),
        OutdatedWeatherError("old", Weather()),
    ):
        provider.next = error
        poll.refresh(NOW)
        assert poll.known(NOW).weather == known.weather
        assert poll.known(NOW).problem
    later = poll.known(NOW + 400 * SECOND)
    assert not later.weather.temperature_c.known
    assert (later.weather.rainfall_mm.value, later.stale) == (2.0, True)


def test_without_a_source_the_weather_is_not_known() -> None:
    poll = WeatherPoll(None, 114.0, 22.0, 600.0)
    poll.refresh(NOW)
    assert (poll.problem, poll.known(NOW).age_s) == ("", None)
