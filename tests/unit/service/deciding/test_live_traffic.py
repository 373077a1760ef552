"""Traffic for calls that happen now: replayed, asked, or forecast."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import Assignment, Incident, Readiness
from ideal_dispatch.errors import UnreachableError
from ideal_dispatch.network import Depot
from ideal_dispatch.service.deciding.live_traffic import (
    LiveTraffic,
    RecordedLive,
    RouterLive,
    TrafficQuery,
)
from ideal_dispatch.traffic.source import RouteQuote
from tests.unit.dispatch.worlds import CALENDAR, depots, random_model, world


@pytest.fixture
def forecast(grid: RoadNetwork) -> LiveTraffic:
    return LiveTraffic(random_model(grid))


def recorded(grid: RoadNetwork) -> RecordedLive:
    return RecordedLive(random_model(grid), world(grid).recording)


def query(network: RoadNetwork, ready: Readiness, node: int = 65) -> TrafficQuery:
    now = datetime.now(UTC)
    return TrafficQuery(network, Incident("x", node, now), CALENDAR.context(now), ready)


def asked(
    network: RoadNetwork, units: Sequence[int] = (1, 1), sent: Assignment | int | None = None
) -> TrafficQuery:
    ready = Readiness(depots(len(units)), units, None, sent)
    return query(network, ready)


def of_places(network: RoadNetwork, count: int) -> TrafficQuery:
    places = [Depot(f"d{number}", number) for number in range(count)]
    ready = Readiness(places, [1] * count)
    return query(network, ready)


def test_a_recording_stands_for_every_moment(grid: RoadNetwork) -> None:
    recording = world(grid).recording
    stretch = recording.stretches[0]
    seen = set()
    for minutes in range(0, 2 * 24 * 60, 7):
        now = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=minutes)
        at = recording.standing_for(now)
        assert stretch.start + timedelta(minutes=59) <= at < recording.end(stretch)
        seen.add(at.minute)
        local = CALENDAR.local(now)
        if local.hour == 8 and local.minute < 45:
            assert (at.hour, at.minute) == (local.hour, local.minute)
    assert len(seen) > 20


def test_where_no_day_has_the_hour_time_goes_on_there_as_here(grid: RoadNetwork) -> None:
    at, night = world(grid).recording.standing_for, datetime(2026, 3, 1, 18, 0, tzinfo=UTC)
    steps = [at(night + timedelta(seconds=n)) - at(night) for n in (0, 1, 2)]
    assert steps == [timedelta(seconds=n) for n in (0, 1, 2)]


def test_answers_say_that_it_is_a_recording(grid: RoadNetwork) -> None:
    seen = recorded(grid).look(asked(grid), 1.0)
    assert [code for code, _ in seen.reasons] == ["recorded_traffic"]
    assert seen.traffic_age_s is not None
    assert 0.0 <= seen.traffic_age_s < 60.0
    assert seen.router_times_s is not None


def test_the_unit_that_was_sent_is_no_longer_free(grid: RoadNetwork, forecast: LiveTraffic) -> None:
    seen = forecast.look(asked(grid, (0, 1), 0), 1.0)
    assert seen.sent is not None
    assert seen.sent.path == seen.stations[0].quote.path  # type: ignore[union-attr]
    assert [station.units for station in seen.stations] == [0, 1]
    assert seen.available == (1,)
    free = forecast.look(asked(grid, (2, 1)), 1.0)
    assert free.sent is None


def test_a_reported_path_is_kept(grid: RoadNetwork, forecast: LiveTraffic) -> None:
    rng = np.random.default_rng(1)
    path = grid.shortest_path(rng.uniform(1, 50, grid.num_edges), 0, 65)
    seen = forecast.look(asked(grid, (0, 1), Assignment(0, path)), 1.0)
    assert seen.sent is not None
    assert seen.sent.path == path


def test_a_primary_without_any_way_is_said_to_have_none() -> None:
    network = RoadNetwork.from_arrays([0, 1], [1, 2], [100.0, 100.0], [0, 0.001, 0.002], [0, 0, 0])
    forecast = LiveTraffic(random_model(network))
    places = [Depot("end", 2), Depot("start", 0)]
    ready = Readiness(places, (0, 1), None, 0)
    call = query(network, ready, 1)
    with pytest.raises(UnreachableError):
        forecast.look(call, 1.0)


class Gate:
    """A router that answers by free flow, but only while its gate is open."""

    def __init__(self, network: RoadNetwork) -> None:
        self._world = world(network)
        self._at = self._world.recording.stretches[0].start + timedelta(minutes=70)
        self.open = threading.Event()
        self.open.set()
        self.asked = 0

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        self.asked += 1
        self.open.wait(30)
        return self._world.quote(origin, destination, self._at)


def test_many_depots_and_calls_at_once_do_not_switch_a_router_off(grid: RoadNetwork) -> None:
    router = RouterLive(random_model(grid), Gate(grid))
    call = of_places(grid, 60)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: router.look(call, 20.0).reasons, range(4)))
    assert found == [()] * 4
    assert router.status == "ready"
    router.close()


def test_a_router_that_hangs_is_left_alone_and_says_so(grid: RoadNetwork) -> None:
    gate = Gate(grid)
    router = RouterLive(random_model(grid), gate)
    call = of_places(grid, 32)
    gate.open.clear()
    for _ in range(2):  # time to begin all questions
        assert [code for code, _ in router.look(call, 1.0).reasons] == ["traffic_unavailable"]
    asked_before = gate.asked
    assert [code for code, _ in router.look(call, 0.05).reasons] == ["traffic_unavailable"]
    assert gate.asked == asked_before
    assert router.status != "ready"
    gate.open.set()
    until = time.monotonic() + 30.0
    while router.look(call, 20.0).reasons and time.monotonic() < until:
        time.sleep(0.01)
    assert router.status == "ready"
    router.close()


def test_following_asks_no_router(grid: RoadNetwork) -> None:
    gate = Gate(grid)
    router = RouterLive(random_model(grid), gate)
    seen = router.look(asked(grid), None)
    expected = LiveTraffic(random_model(grid)).look(asked(grid), 0.0)
    assert seen.quote(0).path == expected.quote(0).path
    assert gate.asked == 0
    router.close()


# --- closed roads -------------------------------------------------------------------


class Obedient(Gate):
    """A router that can be asked to avoid edges; from some places it finds no way then."""

    def __init__(self, network: RoadNetwork, lost: tuple[int, ...] = ()) -> None:
        super().__init__(network.opened)
        self.avoided: list[tuple[int, ...]] = []
        self._network, self._lost = network, lost

    def avoiding(self, edges: Any) -> "Obedient":
        self.avoided.append(tuple(edges))
        return Obedient(self._network.closing(edges), self._lost)

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        if origin in self._lost and self._network.closed:
            raise UnreachableError("no way")
        times = self._network.free_flow_times_s
        path = self._network.shortest_path(times, origin, destination)
        return replace(super().quote(origin, destination, at), path=path)


def test_a_router_that_drives_over_a_closed_road_is_not_believed(grid: RoadNetwork) -> None:
    router = RouterLive(random_model(grid), Gate(grid))
    seen = router.look(asked(grid), 20.0)
    assert seen.reasons == ()
    closed = asked(grid.closing([int(seen.quote(1).path.edges[1])]))
    found = router.look(closed, 20.0)
    assert [code for code, _ in found.reasons] == ["closed_road"]
    expected = LiveTraffic(random_model(grid)).look(closed, 0.0)
    assert [found.quote(n).path for n in (0, 1)] == [expected.quote(n).path for n in (0, 1)]
    assert router.status == "ready"
    driven = {int(edge) for n in (0, 1) for edge in seen.quote(n).path.edges}
    elsewhere = next(edge for edge in range(grid.num_edges) if edge not in driven)
    assert router.look(asked(grid.closing([elsewhere])), 20.0).reasons == ()
    router.close()


def test_a_router_that_can_avoid_roads_is_asked_to(grid: RoadNetwork) -> None:
    source = Obedient(grid)
    router = RouterLive(random_model(grid), source)
    seen = router.look(asked(grid), 20.0)
    assert source.avoided == []
    closed = grid.closing([int(seen.quote(0).path.edges[1])])
    found = router.look(asked(closed), 20.0)
    assert source.avoided == [closed.closed]
    assert found.reasons == ()
    assert not set(found.quote(0).path.edges) & set(closed.closed)
    lost = RouterLive(random_model(grid), Obedient(grid, (0,)))
    assert [code for code, _ in lost.look(asked(closed), 20.0).reasons] == ["closed_road"]
    for one in (router, lost):
        one.close()
