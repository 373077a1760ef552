from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.errors import InputError, TrafficError, TrafficServiceError, UnreachableError
from ideal_dispatch.traffic.google_routes import GoogleParams, GoogleRoutes
from ideal_dispatch.traffic.routers import RefusedError
from tests.contracts.traffic_source import TrafficSourceContract
from tests.stand_in import Answer, Asked, serve
from tests.unit.traffic.google_stand_in import (
    KEY,
    NOW,
    PLAIN,
    QUICK,
    GoogleTown,
    connected,
    error,
    town,
)


class TestContract(TrafficSourceContract):
    @pytest.fixture
    def at(self) -> datetime:
        return NOW

    @pytest.fixture(params=["static_ratio", "stopover", "own_query"])
    def source(self, grid: RoadNetwork, request: Any) -> Iterator[GoogleRoutes]:
        with connected(town(grid), GoogleParams(request.param)) as (source, _):
            yield source


def test_the_quote_is_googles_route_and_times(grid: RoadNetwork) -> None:
    place = town(grid)
    with connected(place) as (source, server):
        quote = source.quote(3, 116, NOW)
    expected = grid.shortest_path(place.times_s, 3, 116)
    assert quote.path == expected
    seconds = expected.time_s(place.times_s)
    assert quote.duration_s == pytest.approx(seconds, abs=0.001)
    assert quote.optimistic_s == pytest.approx(1.05 * seconds, abs=0.001)
    assert quote.pessimistic_s == pytest.approx(1.3 * seconds, abs=0.001)
    assert quote.optimistic_s > quote.duration_s  # nothing assumes an order
    assert np.isnan(quote.data_age_s)
    assert quote.fell_back == ""
    assert len(server.asked) == 3
    assert all(b"departureTime" not in asked.body for asked in server.asked)


def test_a_real_city_is_matched_back_to_the_very_path() -> None:
    city = harbour_city().network
    place = town(city)
    rng = np.random.default_rng(1)
    with connected(place, PLAIN) as (source, _):
        for origin, destination in rng.integers(city.num_nodes, size=(25, 2)).tolist():
            path = city.shortest_path(place.times_s, origin, destination)
            assert source.quote(origin, destination, NOW).path == path


@pytest.mark.parametrize(
    ("way", "requests"),
    [("static_ratio", 1), ("stopover", 2), ("own_query", 2)],
)
def test_three_ways_to_the_time_of_the_next_segment(
    grid: RoadNetwork, way: Any, requests: int
) -> None:
    place = town(grid)
    with connected(place, GoogleParams(way, ranges=False)) as (source, server):
        quote = source.quote(3, 116, NOW)
    first = quote.path.edges[0]
    if way == "static_ratio":
        step = quote.path.edges[:3]
        free = grid.free_flow_times_s
        ratio = quote.path.time_s(place.times_s) / quote.path.time_s(free)
        within = grid.length_m[first] / grid.length_m[step].sum()
        expected = free[step].sum() * within * ratio
        assert quote.next_segment_s == pytest.approx(expected, rel=0.01)  # whole metres
    else:
        assert quote.next_segment_s == pytest.approx(place.times_s[first], abs=0.001)
    assert len(server.asked) == requests
    assert (b"intermediates" in server.asked[-1].body) == (way == "stopover")


def test_later_is_asked_for_and_the_past_is_refused(grid: RoadNetwork) -> None:
    with connected(town(grid), PLAIN) as (source, server):
        source.quote(3, 116, NOW + timedelta(hours=1))
        assert b'"departureTime": "2026-03-02T09:00:00Z"' in server.asked[0].body
        source.quote(3, 116, NOW - timedelta(seconds=100))  # as good as now
        with pytest.raises(InputError, match="past"):
            source.quote(3, 116, NOW - timedelta(hours=1))
        assert len(server.asked) == 2


# --- misbehaviour --------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_islands() -> RoadNetwork:
    lon, lat = np.array([114.0, 114.001, 114.01, 114.011]), np.full(4, 22.0)
    return RoadNetwork.from_arrays([0, 1, 2, 3], [1, 0, 3, 2], [103.0] * 4, lon, lat)


def test_no_route_is_unreachable(two_islands: RoadNetwork) -> None:
    with (
        connected(town(two_islands)) as (source, _),
        pytest.raises(UnreachableError, match="Google Routes finds no way from node 0 to node 2"),
    ):
        source.quote(0, 2, NOW)


def test_fallbacks_are_surfaced(grid: RoadNetwork) -> None:
    def spoil(said: dict[str, Any], request: dict[str, Any]) -> None:
        said["fallbackInfo"] = {
            "routingMode": "FALLBACK_TRAFFIC_UNAWARE",
            "reason": "SERVER_ERROR" if request["trafficModel"] == "PESSIMISTIC" else "LATENCY",
        }

    with connected(town(grid, spoil=spoil)) as (source, _):
        assert source.quote(3, 116, NOW).fell_back == (
            "Google fell back to FALLBACK_TRAFFIC_UNAWARE (LATENCY); "
            "Google fell back to FALLBACK_TRAFFIC_UNAWARE (SERVER_ERROR)"
        )


def _without(*names: str, step: int = 0) -> Callable[[Any, Any], None]:
    def spoil(said: Any, _: Any) -> None:
        steps = said["routes"][0]["legs"][0]["steps"]
        if "steps" in names:
            del said["routes"][0]["legs"][0]["steps"]
        elif "staticDuration of leg" in names:
            del said["routes"][0]["legs"][0]["staticDuration"]
        else:
            for name in names:
                del steps[step][name]

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        _without("staticDuration"),
        _without("distanceMeters", "staticDuration"),
        _without("steps"),
        _without("staticDuration of leg"),
    ],
)
def test_missing_step_values_leave_the_mean_pace(
    grid: RoadNetwork, spoil: Callable[[Any, Any], None]
) -> None:
    with connected(town(grid, spoil=spoil), PLAIN) as (source, _):
        quote = source.quote(3, 116, NOW)
    share = grid.length_m[quote.path.edges[0]] / quote.path.length_m(grid)
    assert quote.next_segment_s == pytest.approx(share * quote.duration_s)
    assert "mean pace" in quote.fell_back


def test_a_missing_value_farther_on_does_no_harm(grid: RoadNetwork) -> None:
    place = town(grid)
    with connected(place, PLAIN) as (source, _):
        expected = source.quote(3, 116, NOW)
    place.spoil = _without("staticDuration", step=1)
    with connected(place, PLAIN) as (source, _):
        quote = source.quote(3, 116, NOW)
    assert quote.next_segment_s == pytest.approx(expected.next_segment_s, rel=0.01)
    assert quote.fell_back == ""


def _set(**values: Any) -> Callable[[Any, Any], None]:
    return lambda said, _: said["routes"][0].update(values)


@pytest.mark.parametrize(
    "spoil",
    [
        _set(duration=712),
        _set(duration="-3s"),
        _set(duration="NaNs"),
        _set(duration="1e9s"),
        _set(duration=None),
        _set(legs=[]),
        _set(legs=[3]),
        _set(polyline={}),
        _set(polyline=3),
        _set(polyline={"encodedPolyline": "_p~iF~ps|"}),
        _set(polyline={"encodedPolyline": "no line"}),
        lambda said, _: said.update(routes="x"),
        lambda said, _: said["routes"].__setitem__(0, 3),
    ],
)
def test_an_answer_that_cannot_be_used(
    grid: RoadNetwork, spoil: Callable[[Any, Any], None]
) -> None:
    with (
        connected(town(grid, spoil=spoil), PLAIN) as (source, _),
        pytest.raises(TrafficServiceError, match="^Google Routes: cannot read the answer"),
    ):
        source.quote(3, 116, NOW)


def test_a_list_instead_of_an_object(grid: RoadNetwork) -> None:
    with (
        connected(town(grid, first=[Answer("[]")]), PLAIN) as (source, _),
        pytest.raises(TrafficServiceError, match="^Google Routes: cannot read the answer"),
    ):
        source.quote(3, 116, NOW)


def test_a_service_without_an_answer_is_an_error_of_traffic(grid: RoadNetwork) -> None:
    busy = [error(500, "INTERNAL", "Internal error encountered.")] * 4
    with connected(town(grid, first=busy), PLAIN) as (source, server):
        with pytest.raises(TrafficServiceError, match="^Google Routes: .*INTERNAL"):
            source.quote(3, 116, NOW)
        assert len(server.asked) == 4


def test_a_wrong_key_is_refused_at_once_and_is_in_no_message(grid: RoadNetwork) -> None:
    secret = "AIza-secret-1234"
    refused = error(403, "PERMISSION_DENIED", f"key {secret} is not known")
    with connected(town(grid, first=[refused]), key=secret) as (source, server):
        with pytest.raises(RefusedError, match="PERMISSION_DENIED") as caught:
            source.quote(3, 116, NOW)
        said = [repr(source), str(source.describe()), str(caught.value), str(vars(caught.value))]
    assert [asked.headers["x-goog-api-key"] for asked in server.asked] == [secret]
    assert secret not in "".join(said)


@pytest.mark.parametrize("line", ["_p~iF~ps|U_ulLnnqC", ""])
def test_a_route_elsewhere(grid: RoadNetwork, line: str) -> None:
    spoil = _set(polyline={"encodedPolyline": line})
    with (
        connected(town(grid, spoil=spoil), PLAIN) as (source, _),
        pytest.raises(TrafficError, match="from node 3 to node 116"),
    ):
        source.quote(3, 116, NOW)


def test_a_route_over_roads_we_do_not_have(grid: RoadNetwork) -> None:
    from tests.polylines import encode_polyline

    ends = [[grid.lon[0], grid.lat[0]], [grid.lon[119], grid.lat[119]]]
    detour = [ends[0], [114.03, 22.0], [114.03, 22.009], ends[1]]
    spoil = _set(polyline={"encodedPolyline": encode_polyline(detour)})
    with (
        connected(town(grid, spoil=spoil), PLAIN) as (source, _),
        pytest.raises(TrafficError, match="fits this network badly"),
    ):
        source.quote(0, 119, NOW)


def test_a_further_request_that_fails_leaves_a_note(grid: RoadNetwork) -> None:
    def spoil(said: dict[str, Any], request: dict[str, Any]) -> None:
        if request["trafficModel"] == "OPTIMISTIC" or "intermediates" in request:
            said["routes"] = []

    with connected(town(grid, spoil=spoil), GoogleParams("stopover")) as (source, _):
        quote = source.quote(3, 116, NOW)
    assert np.isnan(quote.optimistic_s)
    assert quote.pessimistic_s > 0
    assert quote.next_segment_s > 0
    assert "no stopover time of the next segment, static_ratio used (Google Rou" in quote.fell_back
    assert "no optimistic time (Google Routes finds no way" in quote.fell_back


@pytest.mark.parametrize("status", [400, 403])
def test_a_refused_further_request_leaves_the_quote(grid: RoadNetwork, status: int) -> None:
    place = town(grid)

    def answer(asked: Asked) -> Answer:
        if b"OPTIMISTIC" in asked.body:
            return error(status, "NO", "not today")
        return place.answer(asked)

    with serve(answer) as server:
        source = GoogleRoutes.connect(
            grid, KEY, np.random.default_rng(0), url=server.url, patience=QUICK, now=lambda: NOW
        )
        quote = source.quote(3, 116, NOW)
        source.close()
    assert np.isnan(quote.optimistic_s)
    assert quote.pessimistic_s > quote.duration_s > 0
    assert str(status) in quote.fell_back


@pytest.mark.parametrize("key", ["", "  ", "ключ", "a\nb"])
def test_a_key_that_cannot_be_one(grid: RoadNetwork, key: str) -> None:
    with pytest.raises(InputError, match="key"):
        GoogleRoutes.connect(grid, key, np.random.default_rng(0))


def test_a_network_without_places() -> None:
    nowhere = RoadNetwork.from_arrays([0, 1], [1, 0], [10.0, 10.0])
    with (
        connected(GoogleTown(nowhere, np.ones(2))) as (source, _),
        pytest.raises(InputError, match="coordinates"),
    ):
        source.quote(0, 1, NOW)
