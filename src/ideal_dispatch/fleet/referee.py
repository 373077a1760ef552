"""What a unit away really costs the others: the same future with it and without it.

A moment of a simulated year is continued twice by the same calls, once with a unit away for
a while and once with it at its place, until both fleets are in the same state again. Every
call of the first priority counts as the cardiac arrest that it may be, so that few futures
tell much. Prices are compared with the mean difference, and calibrated on it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import FloatArray, frozen
from ideal_dispatch.compiled import kernel
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.calls import DAY_S, WARM_UP_DAYS, Calls, draw_calls
from ideal_dispatch.fleet.chances import risk_at
from ideal_dispatch.fleet.events import advance
from ideal_dispatch.fleet.prices import LATE_S, Harm
from ideal_dispatch.fleet.simulation import Columns, SecondRule, Simulator
from ideal_dispatch.fleet.units import (
    AWAY,
    HOME,
    NEXT_CALL,
    QUEUED,
    Log,
    State,
    is_free,
    mean_response,
)

TAIL_S = 6 * 3600.0
"""For how long after its return an absence is followed, unless the fleets meet before."""

_DAYS = 365  # of futures
_LOOK_S = 900.0  # how often it is looked whether they have met


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A fleet just after the first unit has left for a call, and the one that would be second.

    ``state`` and ``log`` know only the calls that are under way, ``calls``.
    """

    now_s: float
    unit: int
    free: int
    state: State
    log: Log
    calls: Calls


@dataclass(frozen=True, slots=True, eq=False)
class AbsenceCost:
    """What absences cost: rows are moments, columns are how long the unit was away.

    ``deaths`` and ``late`` are means over futures, the others their standard errors.
    """

    deaths: FloatArray
    deaths_error: FloatArray
    late: FloatArray
    late_error: FloatArray

    def of(self, harm: Harm) -> tuple[FloatArray, FloatArray]:
        """The costs in one harm, and their standard errors."""
        return (
            (self.deaths, self.deaths_error) if harm == "deaths" else (self.late, self.late_error)
        )


def moments(simulator: Simulator, count: int, seed: int) -> list[Moment]:
    """So many moments at which a second unit might be sent, from a year of the city.

    They are of calls of the first priority for which a unit left at once and another one was
    free. Nobody is sent as a second before.
    """
    city, world = simulator.city, simulator.world
    rule = SecondRule("never").compiled("first arrival")
    calls = draw_calls(city, seed)
    state, log = State.at_home(world, len(calls)), Log.empty(len(calls))
    urgent = np.flatnonzero((calls.priority == 0) & (calls.at_s > WARM_UP_DAYS * DAY_S))
    rng = np.random.default_rng([seed, 1])
    found: list[Moment] = []
    for call in np.sort(rng.permutation(urgent)[: 4 * count]):
        now_s = float(calls.at_s[call] + city.work.delay_s)
        simulator.go_on(calls, rule, state, log, now_s)
        if log.sent_s[call, 0] != now_s:
            continue
        free = [unit for unit in range(city.num_units) if is_free(world, state, unit, now_s)]
        about = int(calls.cell[call]), 0, now_s
        if free:
            unit = min(free, key=lambda u: float(mean_response(world, state, u, *about)))
            found.append(_compact(now_s, unit, len(free), state, log, calls))
    if len(found) < count:
        raise InputError(
            f"fleet {city.name}: {len(found)} moments of a year had a unit to spare, {count} are "
            "needed; take fewer calls or more units"
        )
    chosen = np.sort(rng.permutation(len(found))[:count])
    return [found[k] for k in chosen]


def _compact(now_s: float, unit: int, free: int, state: State, log: Log, calls: Calls) -> Moment:
    """A moment that knows only the calls under way, with numbers from 0."""
    waiting = state.queue[: state.count[QUEUED]]
    rows = np.unique(np.concatenate([state.call[state.call >= 0], waiting]))
    number = np.searchsorted(rows, state.call)
    here = state._replace(
        call=np.where(state.call >= 0, number, -1), queue=np.searchsorted(rows, waiting)
    ).copy()
    here.count[NEXT_CALL] = len(rows)
    kept = Log(*(column[rows] for column in log))
    few = Calls(*(getattr(calls, name)[rows] for name in calls.__slots__))
    return Moment(now_s, unit, free, here, kept, few)


def judged(
    simulator: Simulator,
    at: Sequence[Moment],
    hold_s: Sequence[float],
    futures: int,
    seed: int,
    *,
    watch: Callable[[float], None] = lambda share: None,
) -> AbsenceCost:
    """What it costs in truth if each moment's unit is away, over so many futures of each.

    A future is what happened after the same time of another day, of years that no moment
    was taken from. Same seed, same result.
    """
    city, rule = simulator.city, SecondRule("never").compiled("first arrival")
    future = draw_calls(city, seed, year=1, days=_DAYS + 2)
    rng = np.random.default_rng([seed, 2])
    span_s = max(hold_s) + TAIL_S
    busiest = np.searchsorted(future.at_s, future.at_s + span_s) - np.arange(len(future))
    room = int(busiest.max()) + 2 + max(len(one.calls) for one in at)
    logs = Log.empty(room), Log.empty(room)
    columns = Columns.of(future)
    rows = Columns(*(np.empty((room, *column.shape[1:]), column.dtype) for column in columns))
    weight = city.arrests / city.priorities[0].share
    out = np.empty((len(at), len(hold_s), futures, 2))
    for k, one in enumerate(at):
        days = rng.integers(0, _DAYS, futures)
        begin_s = days * DAY_S + one.now_s % DAY_S
        first = np.searchsorted(future.at_s, begin_s - city.work.delay_s, side="right")
        last = np.searchsorted(future.at_s, begin_s + span_s)
        roomy = one.state._replace(queue=np.zeros(room + 1, np.int64))  # for more waiting calls
        states = roomy.copy(), roomy.copy()
        _rollouts(
            simulator.world, simulator.tables, rule, one.state, one.log, Columns.of(one.calls),
            columns, first, last, one.now_s - begin_s, one.unit,
            np.array(hold_s, float), states, logs, rows, Columns(*map(frozen, rows)), weight,
            out[k],
        )  # fmt: skip
        watch((k + 1) / len(at))
    mean, spread = out.mean(axis=2), out.std(axis=2, ddof=1) / np.sqrt(futures)
    return AbsenceCost(mean[..., 0], spread[..., 0], mean[..., 1], spread[..., 1])


@kernel
def _rollouts(  # type: ignore[no-untyped-def]
    world, tables, rule, start, known, active, future, first, last, shift_s, unit, hold_s,
    states, logs, rows, calls, weight, out,
):  # fmt: skip
    """Differences in deaths and late arrivals, by hold and future, of one moment.

    Rows ``first`` to ``last`` of ``future`` are the calls of each future, later by
    ``shift_s``. ``rows`` and ``calls`` are the same memory, to write and to read.
    """
    now_s, under_way = start.clock[0], active.at_s.size
    _copy_rows(rows, 0, active, 0, under_way, 0.0)
    for f in range(first.size):
        used = under_way + last[f] - first[f]
        _copy_rows(rows, under_way, future, first[f], last[f], shift_s[f])
        here = _upto(calls, used)
        for h in range(hold_s.size):
            for k in range(2):
                _reset(states[k], logs[k], start, known, used)
            states[1].status[unit], states[1].next_s[unit] = AWAY, now_s + hold_s[h]
            until_s, end_s = now_s + hold_s[h], now_s + hold_s[h] + TAIL_S
            while True:
                for k in range(2):
                    advance(world, tables, rule, here, states[k], logs[k], until_s)
                if until_s == np.inf or _met(states[0], states[1]):
                    break
                until_s = until_s + _LOOK_S if until_s < end_s else np.inf
            out[h, f, 0], out[h, f, 1] = _difference(here, logs, world.risk, weight)


@kernel
def _copy_rows(rows, to, source, start, end, shift_s):  # type: ignore[no-untyped-def]
    there = slice(to, to + end - start)
    rows.at_s[there] = source.at_s[start:end] + shift_s
    rows.cell[there] = source.cell[start:end]
    rows.priority[there] = source.priority[start:end]
    rows.entitled[there] = source.entitled[start:end]
    rows.scene_s[there] = source.scene_s[start:end]
    rows.transported[there] = source.transported[start:end]
    rows.handover_s[there] = source.handover_s[start:end]
    rows.chance[there] = source.chance[start:end]
    rows.luck[there] = source.luck[start:end]
    rows.assist_s[there] = source.assist_s[start:end]


@kernel
def _upto(calls, used):  # type: ignore[no-untyped-def]
    return Columns(
        calls.at_s[:used], calls.cell[:used], calls.priority[:used], calls.entitled[:used],
        calls.scene_s[:used], calls.transported[:used], calls.handover_s[:used],
        calls.chance[:used], calls.luck[:used], calls.assist_s[:used],
    )  # fmt: skip


@kernel
def _reset(state, log, start, known, used):  # type: ignore[no-untyped-def]
    """Back to the moment, with calls that nobody has heard of yet."""
    state.status[:], state.origin[:], state.target[:] = start.status, start.origin, start.target
    state.left_s[:], state.arrive_s[:], state.next_s[:] = start.left_s, start.arrive_s, start.next_s
    state.call[:], state.role[:], state.sent_s[:] = start.call, start.role, start.sent_s
    state.expect[:], state.clock[:], state.count[:] = start.expect, start.clock, start.count
    state.queue[: start.queue.size] = start.queue
    rows = known.first_s.size
    log.unit[:rows], log.sent_s[:rows], log.first_s[:rows] = known.unit, known.sent_s, known.first_s
    log.unit[rows:used], log.sent_s[rows:used], log.first_s[rows:used] = -1, np.inf, np.inf


@kernel
def _met(one, other):  # type: ignore[no-untyped-def]
    """Whether two fleets are in the same state, so that they will stay so."""
    waiting = one.count[QUEUED]
    if waiting != other.count[QUEUED] or (one.queue[:waiting] != other.queue[:waiting]).any():
        return False
    for unit in range(one.status.size):
        if one.status[unit] != other.status[unit] or one.next_s[unit] != other.next_s[unit]:
            return False
        if one.status[unit] != HOME and one.call[unit] != other.call[unit]:
            return False
    return True


@kernel
def _difference(calls, logs, risk, weight):  # type: ignore[no-untyped-def]
    """What the second of two runs has more: deaths, and first arrivals that are late.

    A call that nobody has reached in either run is the same in both: they have met.
    """
    deaths, late = 0.0, 0
    for call in range(calls.at_s.size):
        for k in range(2):
            response_s = logs[k].first_s[call] - calls.at_s[call]
            if response_s == np.inf:
                continue
            sign = 2 * k - 1
            late += sign * (response_s > LATE_S)
            if calls.priority[call] == 0:
                deaths += sign * weight * risk_at(risk, response_s)
    return deaths, late
