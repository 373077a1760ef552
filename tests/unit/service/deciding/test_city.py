"""What the service shows of its city, the engine around it, and the weather there."""

import gzip
import json
import logging
import time
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from ideal_dispatch.context import Weather, WeatherValue
from ideal_dispatch.context.weather import OutdatedWeatherError
from ideal_dispatch.errors import InputError, TrafficServiceError
from ideal_dispatch.service import closures
from ideal_dispatch.service.clock import SECOND, micros, moment
from ideal_dispatch.service.closures import ClosureLayer
from ideal_dispatch.service.deciding.assets import Closed, load_assets
from ideal_dispatch.service.deciding.engine import Engine
from ideal_dispatch.service.deciding.weather import KnownWeather, WeatherPoll, oldest_s
from ideal_dispatch.service.errors import ClosesTooMuchError
from ideal_dispatch.service.record.rows import ClosureRow, canonical
from tests.service_town import DEPOTS
from tests.unit.service.deciding.conftest import NOW, SmallCity


@pytest.fixture(scope="module")
def view(city: SmallCity) -> Engine:
    return Engine.load(city.settings())


def test_facts_and_roads(view: Engine, city: SmallCity) -> None:
    assert tuple(view.depots) == DEPOTS
    roads = json.loads(gzip.decompress(view.road_map()))
    edges = [edge for one in roads["features"] for edge in one["properties"]["edges"]]
    assert sorted(edges) == list(range(city.network.num_edges))


def test_a_drawing_closes_edges(city: SmallCity) -> None:
    layer, network = ClosureLayer(city.network), city.network
    lon, lat = (
        [network.lon.min() - 1, network.lon.max() + 1],
        [network.lat.min(), network.lat.max()],
    )
    around = [[lon[0], lat[0] - 1], [lon[1], lat[0] - 1], [lon[1], lat[1] + 1], [lon[0], lat[1]]]
    assert len(layer.draw("polygon", around, whole_city=True)) == network.num_edges
    with pytest.raises(ClosesTooMuchError):
        layer.draw("polygon", around, whole_city=False)
    assert 40 in layer.draw("line", network.polyline(40).tolist(), whole_city=False)
    assert layer.draw("edges", [3, 5], whole_city=False) == (3, 5)
    with pytest.raises(InputError):
        layer.draw("edges", [network.num_edges], whole_city=False)


def test_a_closure_has_a_bounded_number_of_edges(
    city: SmallCity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closures, "MOST_CLOSED", 1)
    with pytest.raises(InputError, match="2 edges"):
        ClosureLayer(city.network).draw("edges", [3, 5], whole_city=False)


def test_a_closure_of_another_network_is_laid_again_where_it_was_drawn(city: SmallCity) -> None:
    def closed(**drawn: Any) -> tuple[int, ...]:
        shape = {"network": "another", "edges": [1], "line": None, "polygon": None, **drawn}
        return layer.edges(ClosureRow("x", canonical(shape), NOW, None, None))

    layer = ClosureLayer(city.network)
    assert 40 in closed(line=city.network.polyline(40).tolist())
    assert closed() == (), "its edges are of the other network"
    assert closed(line=[[0.0, 0.0], [0.1, 0.1]]) == ()


def test_cover_falls_with_units_and_with_open_roads(view: Engine, city: SmallCity) -> None:
    assert view.cover((), (), NOW) is None
    whole = view.cover(city.fleet, (), NOW)
    one = view.cover(city.fleet[:1], (), NOW)
    road = view.cover((city.unit(node=65),), (), NOW)
    closed = view.cover(city.fleet, (Closed("x", "", tuple(range(0, 200, 2))),), NOW)
    for worse in (one, road, closed):
        assert whole is not None
        assert worse is not None
        assert worse["median_s"] is None or (whole["median_s"] or 0.0) < worse["median_s"]
    everything = Closed("x", "", tuple(range(city.network.num_edges)))
    blocked = view.cover(city.fleet, (everything,), NOW)
    assert blocked == {"median_s": None, "p90_s": None}
    assert view.cover((city.unit(depot="D7"),), (), NOW) is None


def test_invented_calls_can_be_asked(view: Engine, city: SmallCity) -> None:
    adviser = city.adviser()
    named = 0
    for number in range(20):
        call = view.invented_call(number, NOW)
        assert micros(call["received_at"]) == NOW
        where = call["location"]
        city.network.snap(where["lon"], where["lat"], adviser.assets.settings.city.snap_limit_m)
        named += call["primary"] is not None and call["primary"]["depot"] in DEPOTS
    assert named > 10


def test_the_open_network_is_made_once_for_the_same_closures(view: Engine) -> None:
    assets = view.assets
    assert assets.roads(()) is assets.network
    made = assets.roads((Closed("a", "", (3,)), Closed("b", "", (3, 5))))
    assert made.closed == (3, 5)
    assert assets.roads((Closed("c", "", (5, 3)),)) is made


# --- the engine ---------------------------------------------------------------------


def test_an_engine_becomes_ready(city: SmallCity) -> None:
    engine = Engine.load(city.settings())
    assert not engine.ready
    engine.start()
    until = time.monotonic() + 60.0
    while not engine.ready and time.monotonic() < until:
        time.sleep(0.01)
    assert engine.ready
    engine.assets.traffic.close()


def test_a_rehearsal_that_fails_stops_nothing(
    city: SmallCity, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def look(self, *_: Any) -> Any:
            raise ZeroDivisionError

    engine = Engine(replace(load_assets(city.settings()), traffic=Broken()))  # type: ignore[arg-type]
    with caplog.at_level(logging.ERROR):
        engine.warm_up()
    assert "rehearsal" in caplog.text
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
    assert (oldest_s(known.weather, moment(NOW)), known.doubts) == (300.0, ())
    for error in (
        TrafficServiceError("away"),
        RuntimeError("?"),
        OutdatedWeatherError("old", Weather()),
    ):
        provider.next = error
        poll.refresh(NOW)
        assert poll.known(NOW).weather == known.weather
        assert [code for code, _ in poll.known(NOW).doubts] == ["weather_unavailable"]
    later = poll.known(NOW + 400 * SECOND)
    assert not later.weather.temperature_c.known
    assert later.weather.rainfall_mm.value == 2.0
    assert "weather_stale" in [code for code, _ in later.doubts]


def test_without_a_source_the_weather_is_not_known() -> None:
    poll = WeatherPoll(None, 114.0, 22.0, 600.0)
    poll.refresh(NOW)
    assert (poll.problem, poll.known(NOW)) == ("", KnownWeather())
