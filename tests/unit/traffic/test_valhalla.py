import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.errors import InputError, TrafficError, TrafficServiceError, UnreachableError
from ideal_dispatch.outside_service import Patience
from ideal_dispatch.traffic.routers import RefusedError
from ideal_dispatch.traffic.valhalla import MOST_EXCLUDED, Valhalla, ValhallaParams
from tests.contracts.traffic_source import TrafficSourceContract
from tests.stand_in import Server, serve
from tests.unit.traffic.valhalla_stand_in import ValhallaTown, error

NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)
QUICK = Patience(attempts=2, timeout_s=60.0, deadline_s=120.0, pause_s=0.0)


def town(network: RoadNetwork, **options: Any) -> ValhallaTown:
    noise = np.random.default_rng(4).uniform(0.8, 2.5, network.num_edges)
    return ValhallaTown(network, network.free_flow_times_s * noise, **options)


@contextmanager
def connected(
    place: ValhallaTown, params: ValhallaParams | None = None, **options: Any
) -> Iterator[tuple[Valhalla, Server]]:
    options = {"patience": QUICK, "now": lambda: NOW, **options}
    with serve(place.answer) as server:
        rng = np.random.default_rng(0)
        source = Valhalla(place.network, params, url=server.url, rng=rng, **options)
        yield source, server
        source.close()


class TestContract(TrafficSourceContract):
    @pytest.fixture
    def at(self) -> datetime:
        return NOW

    @pytest.fixture
    def source(self, grid: RoadNetwork) -> Iterator[Valhalla]:
        with connected(town(grid)) as (source, _):
            yield source


def test_the_quote_is_valhallas_route_and_times(grid: RoadNetwork) -> None:
    place = town(grid)
    with connected(place) as (source, server):
        quote = source.quote(3, 116, NOW)
    path = grid.shortest_path(place.times_s, 3, 116)
    assert quote.path == path
    assert quote.duration_s == pytest.approx(path.time_s(place.times_s), abs=0.001)
    first = path.edges[:4]
    expected = place.times_s[first].sum() * grid.length_m[first[0]] / grid.length_m[first].sum()
    assert quote.next_segment_s == pytest.approx(expected, rel=0.01)  # maneuvers in whole metres
    assert np.isnan([quote.optimistic_s, quote.pessimistic_s, quote.data_age_s]).all()
    assert quote.fell_back == ""
    request = json.loads(server.asked[0].body)
    assert (server.asked[0].method, server.asked[0].path) == ("POST", "/route")
    assert request["date_time"] == {"type": 0}
    assert (request["costing"], request["units"]) == ("auto", "kilometers")
    assert "current" in request["costing_options"]["auto"]["speed_types"]


def test_a_real_city_is_matched_back_to_the_very_path() -> None:
    city = harbour_city().network
    place = town(city)
    rng = np.random.default_rng(2)
    with connected(place) as (source, _):
        for origin, destination in rng.integers(city.num_nodes, size=(25, 2)).tolist():
            path = city.shortest_path(place.times_s, origin, destination)
            assert source.quote(origin, destination, NOW).path == path


def test_other_moments_are_asked_in_local_time(grid: RoadNetwork) -> None:
    params = ValhallaParams(time_zone="Asia/Hong_Kong", speed_types=("predicted",))
    with connected(town(grid), params) as (source, server):
        source.quote(3, 116, NOW + timedelta(hours=9))
        source.quote(3, 116, NOW - timedelta(days=1))
    asked = [json.loads(one.body) for one in server.asked]
    assert [one["date_time"] for one in asked] == [
        {"type": 1, "value": "2026-03-03T01:00"},
        {"type": 1, "value": "2026-03-01T16:00"},
    ]
    assert asked[0]["costing_options"] == {"auto": {"speed_types": ["predicted"]}}


def test_other_moments_need_a_time_zone(grid: RoadNetwork) -> None:
    with (
        connected(town(grid)) as (source, _),
        pytest.raises(InputError, match="time_zone"),
    ):
        source.quote(3, 116, NOW + timedelta(hours=9))


@pytest.mark.parametrize("code", [170, 441, 442])
def test_no_way_is_unreachable(grid: RoadNetwork, code: int) -> None:
    first = [error(code, text="No path")]
    with (
        connected(town(grid, first=first)) as (source, _),
        pytest.raises(UnreachableError, match=str(code)),
    ):
        source.quote(3, 116, NOW)


def test_other_refusals_say_code_and_status(grid: RoadNetwork) -> None:
    with (
        connected(town(grid), ValhallaParams(costing="autoo")) as (source, server),
        pytest.raises(RefusedError, match="HTTP 400 error 125: No costing method found") as caught,
    ):
        source.quote(3, 116, NOW)
    assert caught.value.body["error_code"] == 125
    assert len(server.asked) == 1


def _trip(**values: Any) -> Callable[[Any], None]:
    return lambda said: said["trip"].update(values)


def _leg(**values: Any) -> Callable[[Any], None]:
    return lambda said: said["trip"]["legs"][0].update(values)


def _first_maneuver(**values: Any) -> Callable[[Any], None]:
    return lambda said: said["trip"]["legs"][0]["maneuvers"][0].update(values)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda said: said.pop("trip"),
        _trip(legs=[]),
        _trip(legs=[None]),
        _trip(summary=None),
        _trip(summary={}),
        _trip(summary={"time": "5"}),
        _trip(summary={"time": -5}),
        _trip(summary={"time": True}),
        _trip(units="miles"),
        _leg(shape=None),
        _leg(shape="~"),
        _leg(maneuvers=3),
        _leg(maneuvers=[3]),
        _first_maneuver(time=-1),
        _first_maneuver(length="x"),
    ],
)
def test_an_answer_that_cannot_be_used(grid: RoadNetwork, spoil: Callable[[Any], None]) -> None:
    with (
        connected(town(grid, spoil=spoil)) as (source, _),
        pytest.raises(TrafficServiceError, match="^Valhalla: cannot read the answer"),
    ):
        source.quote(3, 116, NOW)


@pytest.mark.parametrize(
    "spoil", [_leg(maneuvers=[]), _first_maneuver(time=None), _first_maneuver(length=None)]
)
def test_missing_maneuvers_leave_the_mean_pace(
    grid: RoadNetwork, spoil: Callable[[Any], None]
) -> None:
    with connected(town(grid, spoil=spoil)) as (source, _):
        quote = source.quote(3, 116, NOW)
    share = grid.length_m[quote.path.edges[0]] / quote.path.length_m(grid)
    assert quote.next_segment_s == pytest.approx(share * quote.duration_s)
    assert "mean pace" in quote.fell_back


@pytest.mark.parametrize("seconds", [0.0, 1e6])
def test_a_time_that_cannot_be_driven_is_no_quote(grid: RoadNetwork, seconds: float) -> None:
    with (
        connected(town(grid, spoil=_trip(summary={"time": seconds}))) as (source, _),
        pytest.raises(TrafficError, match="cannot be driven"),
    ):
        source.quote(3, 116, NOW)


def test_a_shape_of_the_wrong_precision_is_no_route_here(grid: RoadNetwork) -> None:
    from tests.polylines import encode_polyline

    line = np.column_stack([grid.lon[:5], grid.lat[:5]])
    with (
        connected(town(grid, spoil=_leg(shape=encode_polyline(line, 5)))) as (source, _),
        pytest.raises(TrafficError, match="node 0 to node 4"),
    ):
        source.quote(0, 4, NOW)


def test_warnings_are_surfaced(grid: RoadNetwork) -> None:
    warnings = [{"code": 204, "text": "clamped"}, "odd"]
    with connected(town(grid, spoil=_trip(warnings=warnings))) as (source, _):
        assert source.quote(3, 116, NOW).fell_back == "Valhalla warns: clamped; Valhalla warns: odd"


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"speed_types": ("magic",)}, "magic"),
        ({"speed_types": ()}, "speed types"),
        ({"time_zone": "Mars/Base"}, "Mars/Base"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], key: str) -> None:
    with pytest.raises(InputError, match=key):
        ValhallaParams(**settings)


def test_closed_roads_are_told_by_their_middles(grid: RoadNetwork) -> None:
    """Once for both directions; without any, nothing is said of them."""
    twin = int(np.flatnonzero((grid.tail == grid.head[7]) & (grid.head == grid.tail[7]))[0])
    with connected(town(grid)) as (source, server):
        source.avoiding([7, twin, 20]).quote(3, 116, NOW)
        source.quote(3, 116, NOW)
    told, untold = (json.loads(one.body) for one in server.asked)
    assert "exclude_locations" not in untold
    ends = [grid.tail[[7, 20]], grid.head[[7, 20]]]
    middles = {
        (round(float(grid.lat[[a, b]].mean()), 6), round(float(grid.lon[[a, b]].mean()), 6))
        for a, b in np.transpose(ends)
    }
    assert {(one["lat"], one["lon"]) for one in told["exclude_locations"]} == middles
    assert len(told["exclude_locations"]) == 2


def test_of_many_closed_roads_those_near_the_trip_are_told(grid: RoadNetwork) -> None:
    with connected(town(grid)) as (source, server):
        source.avoiding(range(grid.num_edges)).quote(0, 5, NOW)
    told = json.loads(server.asked[0].body)["exclude_locations"]
    assert len(told) == MOST_EXCLUDED
    south = np.array([one["lat"] for one in told])
    assert south.max() < grid.lat[0] + 0.5 * np.ptp(grid.lat)
    assert any(south == round(float(grid.lat[0]), 6))  # of the very road between the two
