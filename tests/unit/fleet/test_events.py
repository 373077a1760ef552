"""Each rule of the event loop on a fleet of one or two units whose times are known.

The road is straight: station A at second 0, station B at 1000, a place each hundred seconds.
Turnout takes 60 s at a station and 10 s on the road, a call is dispatched at once, and a
scene takes 600 s. Without lights a drive takes twice as long.
"""

import math
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.dispatch.recall import RECALLS, Recall, check_s
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet import events
from ideal_dispatch.fleet.calls import draw_calls
from ideal_dispatch.fleet.city import FleetCity, Priority, Work
from ideal_dispatch.fleet.results import year_totals
from ideal_dispatch.fleet.simulation import Columns, FleetView, SecondRule, Simulator
from ideal_dispatch.fleet.units import ASSIST, HOME, RETURNING, SCENE, Log, Rule, State
from ideal_dispatch.forecast.response_time import Effects, ResponseModel
from tests.fleets import calls_at, fleet, line, town, with_luck

_ROAD = line(0, 1000, *range(100, 1000, 100))
_CLASSES = (Priority("urgent", 0.5), Priority("routine", 0.5))
_HOUR_S = 3600.0
_NEVER = SecondRule("never").compiled("none")


def _at(seconds: int) -> int:
    """The place at so many seconds of the road."""
    return {0: 0, 1000: 1}.get(seconds, seconds // 100 + 1)


def _city(units: list[int], **settings: Any) -> FleetCity:
    work = Work(**({"delay_s": 0.0} | settings.pop("work", {})))
    return fleet(_ROAD, units, stations=2, work=work, **settings)


def _two_classes(units: list[int], **settings: Any) -> FleetCity:
    return _city(units, priorities=_CLASSES, arrests=0.5, **settings)


def _always(recall: Recall) -> Rule:
    return SecondRule("always").compiled(recall)


def _slow_turnout(spread: float = 0.5) -> ResponseModel:
    """Turnouts that luck changes; everything else is certain."""
    return ResponseModel(
        Effects(60.0, spread), 10.0, drive_spread=0.0, slack_s=0.0, shared=0.0
    )  # fmt: skip


# --- one unit: leaving, the scene, hospitals, the way back --------------------------------


def test_nearest_unit_goes_and_is_busy_until_the_scene_is_over() -> None:
    city = _city([0, 1])
    calls = calls_at(city, [0.0], [_at(300)])
    state, log = Simulator(city).run(calls, _NEVER)
    assert log.unit.tolist() == [[0, -1]]
    assert log.first_s[0] == pytest.approx(360.0)
    assert state.busy_s == pytest.approx([960.0, 0.0])
    assert state.clock[0] == math.inf
    assert (state.status == HOME).all()


def test_turnout_decides_between_units_as_near() -> None:
    slow_a = ResponseModel(
        Effects(60.0, 0.0, station={"S0": 2.0}), 10.0, drive_spread=0.0, slack_s=0.0, shared=0.0
    )
    city = _city([0, 1], responses=slow_a)
    _, log = Simulator(city).run(calls_at(city, [0.0], [_at(500)]), _NEVER)
    assert log.unit[0, 0] == 1
    assert log.first_s[0] == pytest.approx(560.0)


def test_dispatch_follows_the_call_after_its_delay() -> None:
    city = _city([0], work={"delay_s": 90.0})
    _, log = Simulator(city).run(calls_at(city, [5.0], [_at(300)]), _NEVER)
    assert log.sent_s[0, 0] == 95.0
    assert log.first_s[0] == pytest.approx(455.0)


def test_patient_is_taken_to_the_hospital_without_lights() -> None:
    city = _city([0], hospital=_at(1000))
    calls = calls_at(city, [0.0], [_at(300)], transported=True, handover_s=500.0)
    simulator = Simulator(city)
    state, log = simulator.run(calls, _NEVER)
    free_s = 360.0 + 600.0 + 2.0 * 700.0 + 500.0
    assert state.busy_s[0] == pytest.approx(free_s)
    state, log = State.at_home(simulator.world, 1), Log.empty(1)
    simulator.go_on(calls, _NEVER, state, log, free_s + 1.0)
    assert state.status[0] == RETURNING
    assert state.origin[0] == _at(1000)
    assert state.arrive_s[0] == pytest.approx(free_s + 2.0 * 1000.0)


def test_units_drive_to_a_routine_call_without_lights() -> None:
    routine = (Priority("urgent", 0.5), Priority("routine", 0.5, lights=False))
    city = _city([0], priorities=routine, arrests=0.5)
    _, log = Simulator(city).run(calls_at(city, [0.0], [_at(300)], [1]), _NEVER)
    assert log.first_s[0] == pytest.approx(60.0 + 2.0 * 300.0)


@pytest.mark.parametrize(("street_start", "turnout_s"), [(True, 10.0), (False, 60.0)])
def test_returning_unit_is_sent_from_where_it_is(street_start: bool, turnout_s: float) -> None:
    city = _city([0], street_start=street_start)
    # free at 960, home at 1560; after three tenths of the way it is nearest to 200
    calls = calls_at(city, [0.0, 1140.0], [_at(300), _at(200)])
    state, log = Simulator(city).run(calls, _NEVER)
    assert log.first_s[1] == pytest.approx(1140.0 + turnout_s)
    assert state.busy_s[0] == pytest.approx(960.0 + turnout_s + 600.0)


# --- two units: who is first, who is stood down, and when -----------------------------------


def test_without_recall_the_later_unit_comes_and_helps() -> None:
    city = _city([0, 1])
    simulator, calls = Simulator(city), calls_at(city, [0.0], [_at(300)])
    state, log = simulator.run(calls, _always("none"))
    assert log.unit.tolist() == [[0, 1]]
    assert log.arrive_s[0] == pytest.approx([360.0, 760.0])
    assert log.first_s[0] == pytest.approx(360.0)
    assert log.held_s[0] == pytest.approx(760.0 + 300.0)
    assert state.busy_s == pytest.approx([960.0, 1060.0])
    state, log = State.at_home(simulator.world, 1), Log.empty(1)
    simulator.go_on(calls, _always("none"), state, log, 800.0)
    assert state.status.tolist() == [SCENE, ASSIST]


def test_on_first_arrival_the_other_turns_round_where_it_is() -> None:
    city = _city([0, 1])
    simulator, calls = Simulator(city), calls_at(city, [0.0], [_at(300)])
    state, log = State.at_home(simulator.world, 1), Log.empty(1)
    simulator.go_on(calls, _always("first arrival"), state, log, 400.0)
    assert log.stood_s[0].tolist() == [math.inf, pytest.approx(360.0)]
    assert log.arrive_s[0].tolist() == [pytest.approx(360.0), math.inf]
    assert log.held_s[0] == pytest.approx(360.0)
    assert state.status.tolist() == [SCENE, RETURNING]
    # three eighths of its way are done: 1000 − 263 is nearest to 700, 600 s from home
    assert state.origin[1] == _at(700)
    assert state.arrive_s[1] == pytest.approx(960.0)
    assert state.busy_s[1] == pytest.approx(360.0)


@pytest.mark.parametrize(
    ("luck", "status", "what"), [(4.0, RETURNING, "on the road"), (6.0, HOME, "in its station")]
)
def test_primary_is_stood_down_where_the_second_comes_first(
    luck: float, status: int, what: str
) -> None:
    city = _city([0, 1], responses=_slow_turnout())
    simulator, rule = Simulator(city), _always("first arrival")
    calls = with_luck(calls_at(city, [0.0], [_at(400)]), 0, turnout0=luck)
    state, log = State.at_home(simulator.world, 1), Log.empty(1)
    simulator.go_on(calls, rule, state, log, 700.0)
    assert log.unit.tolist() == [[0, 1]]
    assert log.first_s[0] == log.arrive_s[0, 1] == pytest.approx(60.0 + 600.0)
    assert log.stood_s[0].tolist() == [pytest.approx(660.0), math.inf]
    assert state.status[0] == status, what
    assert state.status[1] == SCENE
    assert log.held_s[0] == pytest.approx(660.0)
    simulator.go_on(calls, rule, state, log)
    assert state.busy_s == pytest.approx([660.0, 1260.0])


def test_on_worth_a_second_that_cannot_be_first_is_stood_down_at_the_next_look() -> None:
    city = _city([0, 1], responses=_slow_turnout(0.1), calls_per_day=100.0)
    simulator, calls = Simulator(city), calls_at(city, [0.0], [_at(100)])
    rule = _always("worth")
    state, log = State.at_home(simulator.world, 1), Log.empty(1)
    simulator.go_on(calls, rule, state, log, 31.0)
    assert log.stood_s[0].tolist() == [math.inf, rule.check_s]
    assert state.status[1] == HOME
    assert state.next_s[1] == math.inf
    simulator.go_on(calls, rule, state, log)
    assert log.first_s[0] == pytest.approx(160.0)
    assert log.held_s[0] == rule.check_s


def test_on_worth_a_primary_that_does_not_leave_is_stood_down_for_the_second() -> None:
    city = _city([0, 1], responses=_slow_turnout(), calls_per_day=1.0)
    calls = with_luck(calls_at(city, [0.0], [_at(500)]), 0, turnout0=8.0)
    rule = _always("worth")
    state, log = Simulator(city).run(calls, rule)
    stood_s = log.stood_s[0, 0]
    assert rule.check_s <= stood_s < 560.0
    assert stood_s % rule.check_s == 0.0
    assert log.stood_s[0, 1] == math.inf
    assert log.first_s[0] == pytest.approx(560.0)
    assert log.held_s[0] == stood_s
    assert state.busy_s == pytest.approx([stood_s, 1160.0])


def test_on_worth_one_of_a_pair_is_stood_down_for_a_call_that_waits() -> None:
    city = _city([0, 1], responses=_slow_turnout(), calls_per_day=1e-6)
    rule = _always("worth")
    _, alone = Simulator(city).run(calls_at(city, [0.0], [_at(500)]), rule)
    assert (alone.stood_s[0] > rule.check_s).all()  # nobody is missed elsewhere
    _, log = Simulator(city).run(calls_at(city, [0.0, 10.0], [_at(500), _at(100)]), rule)
    assert log.stood_s[0].min() == rule.check_s
    assert log.sent_s[1, 0] == rule.check_s


@pytest.mark.parametrize("slow", [0, 1])
def test_positions_tell_who_will_not_be_first_long_before_anybody_arrives(slow: int) -> None:
    """Two units as far away, of which one drives slowly: time alone tells nothing."""
    model = ResponseModel(Effects(60.0, 0.0), 10.0, drive_spread=0.2, slack_s=0.0, shared=0.0)
    city = _city([0, 1], responses=model, calls_per_day=1.0)
    calls = with_luck(calls_at(city, [0.0], [_at(500)]), 0, **{f"drive{slow}": 2.0})
    seen, unseen = (Simulator(city).run(calls, _always(how))[1] for how in ("live", "worth"))
    first_s = seen.first_s[0]
    assert first_s == unseen.first_s[0] == seen.arrive_s[0, 1 - slow]
    assert unseen.stood_s[0, slow] == first_s  # at the arrival of the other
    assert 60.0 < seen.stood_s[0, slow] < 0.8 * first_s
    assert seen.stood_s[0, slow] % check_s("live") == 0.0
    assert seen.stood_s[0, 1 - slow] == math.inf


def test_with_positions_a_second_that_will_surely_not_be_first_leaves_at_the_first_look() -> None:
    city = _city([0, 1], responses=_slow_turnout(0.1), calls_per_day=100.0)
    _, log = Simulator(city).run(calls_at(city, [0.0], [_at(100)]), _always("live"))
    assert log.stood_s[0].tolist() == [math.inf, check_s("live")]


def test_unit_that_was_stood_down_serves_the_next_call() -> None:
    city = _city([0, 1])
    calls = calls_at(city, [0.0, 400.0], [_at(300), _at(700)])
    _, log = Simulator(city).run(calls, _always("first arrival"))
    assert log.unit[1].tolist() == [1, -1]  # the other is at the scene
    assert log.first_s[1] == pytest.approx(400.0 + 10.0)


# --- more calls than units ------------------------------------------------------------------


def test_urgent_calls_leave_the_queue_first_and_equals_in_their_order() -> None:
    city = _two_classes([0])
    calls = calls_at(city, [0.0, 10.0, 20.0, 30.0, 40.0], [_at(100)] * 5, [1, 1, 0, 1, 0])
    _, log = Simulator(city).run(calls, _NEVER)
    assert np.argsort(log.sent_s[:, 0]).tolist() == [0, 2, 4, 1, 3]
    assert log.sent_s[2, 0] == pytest.approx(160.0 + 600.0)


@pytest.mark.parametrize(
    ("allowed", "urgent_s", "routine_s"), [(True, 470.0, 1680.0), (False, 2170.0, 960.0)]
)
def test_unit_on_its_way_is_taken_for_an_urgent_call_where_that_is_allowed(
    allowed: bool, urgent_s: float, routine_s: float
) -> None:
    redispatch = np.array([[False, False], [allowed, False]])
    city = _two_classes([0], redispatch=redispatch)
    calls = calls_at(city, [0.0, 460.0], [_at(900), _at(300)], [1, 0])
    state, log = Simulator(city).run(calls, _NEVER)
    assert log.first_s == pytest.approx([routine_s, urgent_s])
    assert log.unit[:, 0].tolist() == [0, 0]
    if allowed:  # the routine call was served again, from the urgent one's scene
        assert log.sent_s[0, 0] == pytest.approx(1070.0)
        assert state.busy_s[0] == pytest.approx(2280.0)


@pytest.mark.parametrize("other", [[0, 0], [1, 1], [0, 1]])
def test_unit_on_its_way_is_not_taken_for_a_call_that_is_not_more_urgent(other: list[int]) -> None:
    redispatch = np.array([[False, False], [True, False]])
    city = _two_classes([0], redispatch=redispatch)
    calls = calls_at(city, [0.0, 460.0], [_at(900), _at(300)], other)
    _, log = Simulator(city).run(calls, _NEVER)
    assert log.sent_s[0, 0] == 0.0
    assert log.first_s[0] == pytest.approx(960.0)


class _TwoToAll:
    name = "two to all"

    def choose(self, view: FleetView) -> tuple[int, int]:
        others = [unit for unit in np.flatnonzero(view.free).tolist() if unit != view.primary]
        return view.primary, next(iter(others), -1)


def test_unit_of_a_pair_is_not_taken_for_another_call() -> None:
    city = _two_classes([0, 1], redispatch=np.array([[False, False], [True, False]]))
    calls = calls_at(city, [0.0, 200.0], [_at(400), _at(100)], [1, 0])
    _, log = Simulator(city).run(calls, _TwoToAll(), "none")
    assert log.sent_s[0].tolist() == [0.0, 0.0]
    assert log.first_s[1] > 460.0


def test_call_that_finds_nobody_goes_to_the_neighbour() -> None:
    city = _city([0], work={"neighbour_s": 1500.0})
    calls = calls_at(city, [0.0, 100.0], [_at(300), _at(300)])
    state, log = Simulator(city).run(calls, _NEVER)
    assert log.unit[1].tolist() == [-1, -1]
    assert log.first_s[1] == 1600.0
    year, _ = year_totals(Simulator(city), calls, state, log, 1.0)
    assert year["queued"] == 1
    assert year["groups"]["arrests"]["calls"] == 2
    assert year["groups"]["arrests"]["total_s"] == pytest.approx(1860.0)


# --- shifts -----------------------------------------------------------------------------------


def test_units_are_sent_in_their_hours_alone() -> None:
    city = _city([0, 0], shifts=np.array([[8.0, 20.0], [20.0, 8.0]]))
    hours = [3.0, 8.0, 12.0, 20.0, 23.0, 31.0]
    calls = calls_at(city, [hour * _HOUR_S for hour in hours], [_at(100)] * 6)
    _, log = Simulator(city).run(calls, _NEVER)
    assert log.unit[:, 0].tolist() == [1, 0, 0, 1, 1, 1]


def test_call_at_night_waits_for_the_morning_where_nobody_is_on_duty() -> None:
    city = _city([0], shifts=np.array([[8.0, 20.0]]))
    calls = calls_at(city, [3.0 * _HOUR_S, 30.0 * _HOUR_S], [_at(100)] * 2)
    _, log = Simulator(city).run(calls, _NEVER)
    assert log.sent_s[:, 0].tolist() == [8.0 * _HOUR_S, 32.0 * _HOUR_S]


def test_shift_ends_after_the_call_that_it_began() -> None:
    city = _city([0], shifts=np.array([[8.0, 20.0]]))
    late = 20.0 * _HOUR_S - 60.0
    calls = calls_at(city, [late, late + 1500.0], [_at(500), _at(500)])
    state, log = Simulator(city).run(calls, _NEVER)
    assert log.first_s[0] == pytest.approx(late + 560.0)
    assert log.sent_s[1, 0] == 32.0 * _HOUR_S  # it was still on the road, but off duty
    assert state.busy_s[0] == pytest.approx(2 * 1160.0)


# --- the same in pieces, and in Python ------------------------------------------------------


def test_year_in_pieces_is_the_year_at_once() -> None:
    city = town()
    simulator, calls = Simulator(city), draw_calls(city, 4, days=20)
    rule = SecondRule("survival").compiled("worth")
    _, whole = simulator.run(calls, rule)
    state, log = State.at_home(simulator.world, len(calls)), Log.empty(len(calls))
    for moment in np.arange(0.0, 20 * 86_400.0, 40_000.0):
        simulator.go_on(calls, rule, state, log, moment)
    simulator.go_on(calls, rule, state, log)
    assert [column.tobytes() for column in log] == [column.tobytes() for column in whole]


class _Repeats:
    """A rule in Python that does what a built-in rule does."""

    name = "repeats"

    def __init__(self, simulator: Simulator, rule: Rule) -> None:
        self.simulator, self.rule = simulator, rule

    def choose(self, view: FleetView) -> tuple[int, int]:
        chosen: tuple[int, int] = events.choose(
            self.simulator.world, self.simulator.tables, self.rule, Columns.of(view.calls),
            view.state, view.log, view.call, view.now_s,
        )  # fmt: skip
        return chosen


@pytest.mark.parametrize("recall", RECALLS)
@pytest.mark.parametrize(
    "rule", [SecondRule("always"), SecondRule("survival"), SecondRule("never")]
)
def test_rule_in_python_has_the_same_log(rule: SecondRule, recall: Recall) -> None:
    city = town(5)
    simulator, calls = Simulator(city), draw_calls(city, 4, days=4)
    state, log = simulator.run(calls, rule.compiled(recall))
    told_state, told = simulator.run(calls, _Repeats(simulator, rule.compiled(recall)), recall)
    assert [column.tobytes() for column in told] == [column.tobytes() for column in log]
    assert told_state.busy_s.tobytes() == state.busy_s.tobytes()
    waited = log.sent_s[:, 0] > calls.at_s + city.work.delay_s + 1e-6
    assert waited.any()  # the queue is part of what was compared


class _Sends:
    """A rule in Python that always names the same units."""

    name = "sends"

    def __init__(self, first: int, second: int) -> None:
        self.units = first, second

    def choose(self, view: FleetView) -> tuple[int, int]:
        return self.units


@pytest.mark.parametrize(("first", "second"), [(0, 0), (-1, -1), (5, -1), (0, 5), (1, -1)])
def test_rule_that_names_units_that_cannot_go_is_refused(first: int, second: int) -> None:
    city = _city([0, 0], shifts=np.array([[0.0, 24.0], [8.0, 20.0]]))
    with pytest.raises(InputError, match="rule sends, call 0: it sends units .* free units are"):
        Simulator(city).run(calls_at(city, [0.0], [0]), _Sends(first, second))
