"""Traffic of now: replayed, asked, or forecast."""

import threading
from collections.abc import Sequence
from concurrent.futures import wait
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.context import Weather
from ideal_dispatch.dispatch import Assignment, Incident, Readiness
from ideal_dispatch.errors import UnreachableError
from ideal_dispatch.network import Depot
from ideal_dispatch.service.solver.case import Case
from ideal_dispatch.service.solver.live_traffic import LiveTraffic, RecordedLive, RouterLive
from ideal_dispatch.traffic.source import RouteQuote
from tests.unit.dispatch.worlds import CALENDAR, depots, random_model, world


@pytest.fixture
def forecast(grid: RoadNetwork) -> LiveTraffic:
    return LiveTraffic(grid, CALENDAR, random_model(grid))


def recorded(grid: RoadNetwork, hours: Sequence[tuple[int, int]] = ()) -> RecordedLive:
    return RecordedLive(grid, CALENDAR, random_model(grid), lambda: world(grid).recording, hours)


def asked(units: tuple[int, ...] = (1, 1), sent: Assignment | int | None = None) -> Case:
    incident = Incident("x", 65, datetime.now(UTC))
    return Case(incident, Readiness(depots(len(units)), units, None, sent), Weather())


def test_a_recording_stands_for_every_moment(grid: RoadNetwork) -> None:
    live = recorded(grid)
    assert live.status == "starting"
    live.prepare()
    assert live.status == "ready"
    recording = world(grid).recording
    stretch = recording.stretches[0]
    seen = set()
    for minutes in range(0, 2 * 24 * 60, 7):
        now = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=minutes)
        at = live.moment(now)
        assert stretch.start + timedelta(minutes=59) <= at < recording.end(stretch)
        seen.add(at.minute)
        local = CALENDAR.local(now)
        if local.hour == 8 and local.minute < 45:
            assert (at.hour, at.minute) == (local.hour, local.minute)
    assert len(seen) > 20


def test_some_hours_may_take_turns_alone(grid: RoadNetwork) -> None:
    live = recorded(grid, [(8, 9), (20, 22)])
    live.prepare()
    for minutes in range(0, 24 * 60, 7):
        at = live.moment(datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=minutes))
        assert CALENDAR.local(at).hour == 8
    one = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
    steps = [live.moment(one + timedelta(seconds=n)) - live.moment(one) for n in (0, 1, 2)]
    assert steps == [timedelta(seconds=n) for n in (0, 1, 2)]  # time goes on there as here


def test_until_it_is_read_the_forecast_answers(grid: RoadNetwork) -> None:
    live = recorded(grid)
    assert live.look(asked(), 1.0).reasons[0][0] == "traffic_unavailable"
    live.prepare()
    seen = live.look(asked(), 1.0)
    assert [code for code, _ in seen.reasons] == ["recorded_traffic"]
    show = recorded(grid, [(8, 9)])
    show.prepare()
    assert show.look(asked(), 1.0).reasons == ()
    assert seen.traffic_age_s is not None
    assert 0.0 <= seen.traffic_age_s < 60.0
    assert seen.router_times_s is not None


def test_who_was_sent_is_no_longer_free(forecast: LiveTraffic) -> None:
    seen = forecast.look(asked((0, 1), 0), 1.0)
    assert seen.sent is not None
    assert seen.sent.path == seen.stations[0].quote.path  # type: ignore[union-attr]
    assert [station.units for station in seen.stations] == [0, 1]
    assert seen.available == (1,)
    free = forecast.look(asked((2, 1)), 1.0)
    assert free.sent is None


def test_a_path_that_was_told_is_kept(grid: RoadNetwork, forecast: LiveTraffic) -> None:
    rng = np.random.default_rng(1)
    path = grid.shortest_path(rng.uniform(1, 50, grid.num_edges), 0, 65)
    seen = forecast.look(asked((0, 1), Assignment(0, path)), 1.0)
    assert seen.sent is not None
    assert seen.sent.path == path


def test_a_primary_without_any_way_is_said_to_have_none() -> None:
    network = RoadNetwork.from_arrays([0, 1], [1, 2], [100.0, 100.0], [0, 0.001, 0.002], [0, 0, 0])
    forecast = LiveTraffic(network, CALENDAR, random_model(network))
    places = [Depot("end", 2), Depot("start", 0)]
    incident = Incident("x", 1, datetime.now(UTC))
    with pytest.raises(UnreachableError, match="no way leads from end to the incident"):
        forecast.look(Case(incident, Readiness(places, (0, 1), None, 0), Weather()), 1.0)


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
    gate = Gate(grid)
    router = RouterLive(grid, CALENDAR, random_model(grid), gate)
    places = [Depot(f"d{number}", number) for number in range(60)]
    call = Case(Incident("x", 65, datetime.now(UTC)), Readiness(places, [1] * 60), Weather())
    found: list[tuple[tuple[str, str], ...]] = []
    calls = [
        threading.Thread(target=lambda: found.append(router.look(call, 20.0).reasons))
        for _ in range(4)
    ]
    for one in calls:
        one.start()
    for one in calls:
        one.join()
    assert found == [()] * 4
    assert router.status == "ready"
    router.close()


def test_a_router_that_hangs_is_left_alone_and_says_so(grid: RoadNetwork) -> None:
    gate = Gate(grid)
    router = RouterLive(grid, CALENDAR, random_model(grid), gate)
    places = [Depot(f"d{number}", number) for number in range(30)]

    def look(wait_s: float) -> str:
        incident = Incident("x", 65, datetime.now(UTC))
        call = Case(incident, Readiness(places, [1] * 30), Weather())
        return " ".join(words for _, words in router.look(call, wait_s).reasons)

    gate.open.clear()
    assert "did not answer within" in look(1.0)  # time to begin all questions
    assert "did not answer within" in look(1.0)
    asked_before = gate.asked
    assert "not asked again" in look(0.05)
    assert gate.asked == asked_before
    assert router.status.startswith("the router did not answer the last question")
    gate.open.set()
    wait(router._overdue)
    assert look(20.0) == ""
    assert router.status == "ready"
    router.close()
