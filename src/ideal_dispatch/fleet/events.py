"""The compiled loop over the events of a fleet: calls come in, units leave, arrive, are free again.

A unit has at most one event ahead, so the next one is found by looking at all of them. Every
random number belongs to a call and a role and was drawn before. The loop either chooses units
itself, by a :class:`~ideal_dispatch.fleet.units.Rule`, or stops at every call and waits to be
told.
"""

import numpy as np

from ideal_dispatch.compiled import kernel
from ideal_dispatch.fleet.chances import pair
from ideal_dispatch.fleet.standing_down import homewards, look_again, stand_down
from ideal_dispatch.fleet.units import (
    ASSIST,
    AWAY,
    EVENTS,
    FIXED,
    GOING,
    HOME,
    HOSPITAL,
    NEVER,
    NEXT_CALL,
    NO_RECALL,
    ON_WORTH,
    PENDING,
    PRICED,
    QUEUED,
    RANDOM,
    RETURNING,
    SCENE,
    TOLD,
    cost_of,
    expected,
    is_free,
    lasting,
    mean_response,
    next_start,
    parts_of,
    place_of,
)

_OPTIONS = 3  # units that are looked at as the second: those expected soonest


# --- choosing ----------------------------------------------------------------------------


@kernel(counted=False, forceinline=True)
def _redirectable(world, state, calls, log, unit, priority, now_s):  # type: ignore[no-untyped-def]
    """Whether a unit on its way to a less urgent call may be taken for this one."""
    if state.status[unit] != GOING or state.role[unit] != 0:
        return False
    other = state.call[unit]
    alone = log.unit[other, 1] < 0 and log.first_s[other] == np.inf
    return alone and world.redispatch[calls.priority[other], priority]


@kernel(counted=False, forceinline=True)
def primary_of(world, state, calls, log, call, now_s):  # type: ignore[no-untyped-def]
    """The unit with the least expected response; −1 where none can go."""
    cell, priority = calls.cell[call], calls.priority[call]
    best, best_s = -1, np.inf
    for unit in range(state.status.size):
        if is_free(world, state, unit, now_s) or _redirectable(
            world, state, calls, log, unit, priority, now_s
        ):
            mean = mean_response(world, state, unit, cell, priority, now_s)
            if mean < best_s:
                best, best_s = unit, mean
    return best


@kernel(counted=False)
def _second(world, state, calls, call, first, now_s):  # type: ignore[no-untyped-def]
    """The best second unit, what it saves, and how long both are on their way."""
    cell, priority = calls.cell[call], calls.priority[call]
    one = expected(world, state, first, cell, priority, now_s)
    surprise = (world.numbers.surprise, world.numbers.wide)
    best, best_saved, best_both = -1, -1.0, 0.0
    last, last_s = -1, 0.0
    for _ in range(_OPTIONS):  # those expected soonest, one after the other
        unit, unit_s = -1, np.inf
        for other in range(state.status.size):
            if other == first or not is_free(world, state, other, now_s):
                continue
            mean = mean_response(world, state, other, cell, priority, now_s)
            if (mean, other) > (last_s, last) and mean < unit_s:
                unit, unit_s = other, mean
        if unit < 0:
            break
        last, last_s = unit, unit_s
        other = expected(world, state, unit, cell, priority, now_s)
        saved, both = pair(one, other, now_s - calls.at_s[call], world.risk, surprise)
        if saved > best_saved:
            best, best_saved, best_both = unit, saved, both
    return best, best_saved * world.numbers.arrest_chance, best_both


@kernel(counted=False)
def _hold(world, state, calls, call, unit, both_s, recall, now_s):  # type: ignore[no-untyped-def]
    """For how long a second unit will be away, by the rule that stands it down."""
    if recall != NO_RECALL:
        return both_s
    cell, priority = calls.cell[call], calls.priority[call]
    mean = mean_response(world, state, unit, cell, priority, now_s)
    return mean + world.numbers.assist_s


@kernel(counted=False, forceinline=True)
def choose(world, tables, rule, calls, state, log, call, now_s):  # type: ignore[no-untyped-def]
    """The primary of a call and the second that goes with it; −1 for none."""
    first = primary_of(world, state, calls, log, call, now_s)
    if first < 0 or not calls.entitled[call] or rule.kind == NEVER:
        return first, -1
    if rule.kind == RANDOM and calls.chance[call] >= rule.limit:
        return first, -1
    second, saved, both_s = _second(world, state, calls, call, first, now_s)
    if second < 0:
        return first, -1
    log.saved[call] = saved
    if rule.kind == FIXED:
        log.cost[call] = rule.limit
    elif rule.kind == PRICED:
        away_s = _hold(world, state, calls, call, second, both_s, rule.recall, now_s)
        log.cost[call] = cost_of(world, tables, state, second, first, away_s, now_s)
    else:
        return first, second
    return first, second if saved > log.cost[call] else -1


# --- sending and setting free -----------------------------------------------------------------


@kernel(counted=False, forceinline=True)
def _send(world, rule, calls, state, log, unit, call, role, now_s):  # type: ignore[no-untyped-def]
    """A unit leaves for a call; one that was on its way to another leaves that call waiting."""
    cell, priority = calls.cell[call], calls.priority[call]
    numbers = world.numbers
    leaving_s, drive_s = parts_of(world, state, unit, cell, priority, now_s)
    place = place_of(world, state, unit, now_s)
    if state.status[unit] == GOING:
        other = state.call[unit]
        log.unit[other, 0], log.sent_s[other, 0] = -1, np.inf
        state.busy_s[unit] += now_s - state.sent_s[unit]
        _push(state, other)
    turnout_s, lasts_s = lasting(numbers, calls.luck, call, role, leaving_s, drive_s)
    state.status[unit], state.call[unit], state.role[unit] = GOING, call, role
    state.origin[unit], state.target[unit] = place, world.cell[cell]
    state.sent_s[unit], state.left_s[unit] = now_s, now_s + turnout_s
    state.arrive_s[unit] = state.left_s[unit] + lasts_s
    state.next_s[unit] = state.arrive_s[unit]
    state.expect[unit, 0], state.expect[unit, 1] = leaving_s, drive_s
    if role == 1 and rule.recall >= ON_WORTH:
        state.next_s[unit] = min(state.arrive_s[unit], now_s + rule.check_s)
    log.unit[call, role], log.sent_s[call, role] = unit, now_s


@kernel(counted=False, forceinline=True)
def _push(state, call):  # type: ignore[no-untyped-def]
    state.queue[state.count[QUEUED]] = call
    state.count[QUEUED] += 1


@kernel(counted=False, forceinline=True)
def _pop(state, place):  # type: ignore[no-untyped-def]
    """Take the call at a place out of the queue."""
    call = state.queue[place]
    state.count[QUEUED] -= 1
    for k in range(place, state.count[QUEUED]):
        state.queue[k] = state.queue[k + 1]
    return call


@kernel(counted=False, forceinline=True)
def _most_urgent(state, calls):  # type: ignore[no-untyped-def]
    """Where the queue's most urgent call stands; of equals the one that came first."""
    best = 0
    for k in range(1, state.count[QUEUED]):
        a, b = state.queue[k], state.queue[best]
        if (calls.priority[a], a) < (calls.priority[b], b):
            best = k
    return best


@kernel(counted=False, forceinline=True)
def _arrive(world, rule, calls, state, log, unit, now_s):  # type: ignore[no-untyped-def]
    """A unit is at the scene: the first takes the patient, the other helps."""
    call, role = state.call[unit], state.role[unit]
    log.arrive_s[call, role] = now_s
    if log.first_s[call] < np.inf:
        state.status[unit], state.next_s[unit] = ASSIST, now_s + calls.assist_s[call]
        return
    log.first_s[call] = now_s
    state.status[unit], state.next_s[unit] = SCENE, now_s + calls.scene_s[call]
    other = log.unit[call, 1 - role]
    going = other >= 0 and state.status[other] == GOING and state.call[other] == call
    if going and rule.recall != NO_RECALL:
        stand_down(world, state, log, other, now_s)


@kernel(counted=False, forceinline=True)
def _unit_event(world, tables, rule, calls, state, log, unit, now_s):  # type: ignore[no-untyped-def]
    """What a unit had ahead happens."""
    status, call = state.status[unit], state.call[unit]
    if status == GOING and now_s < state.arrive_s[unit]:
        look_again(world, tables, rule, calls, state, log, unit, now_s)
    elif status == GOING:
        _arrive(world, rule, calls, state, log, unit, now_s)
    elif status == SCENE and calls.transported[call]:
        place, hospital = world.cell[calls.cell[call]], world.hospital[calls.cell[call]]
        state.status[unit], state.target[unit] = HOSPITAL, hospital
        state.next_s[unit] = now_s + world.slow_s[place, hospital] + calls.handover_s[call]
    elif status in (RETURNING, AWAY):
        state.status[unit], state.next_s[unit] = HOME, np.inf
        state.origin[unit] = world.station[world.unit_station[unit]]
    else:
        state.busy_s[unit] += now_s - state.sent_s[unit]
        if status == ASSIST:
            log.held_s[call] = now_s - state.sent_s[unit]
        homewards(world, state, unit, state.target[unit], now_s)


@kernel(counted=False, forceinline=True)
def _serve(world, tables, rule, calls, state, log, now_s):  # type: ignore[no-untyped-def]
    """Send units to waiting calls, the most urgent first, as long as any can go.

    Where Python chooses, the first call that can be served is left pending for it. A call
    that finds nobody waits, or is handed to a neighbour where there is one.
    """
    while state.count[QUEUED] > 0:
        place = _most_urgent(state, calls)
        call = state.queue[place]
        if rule.kind == TOLD:
            first, second = primary_of(world, state, calls, log, call, now_s), -1
        else:
            first, second = choose(world, tables, rule, calls, state, log, call, now_s)
        if first < 0:
            if world.numbers.neighbour_s == np.inf:
                return
            _pop(state, place)
            log.first_s[call] = now_s + world.numbers.neighbour_s
        elif rule.kind == TOLD:
            state.count[PENDING] = call
            return
        else:
            _dispatch(world, rule, calls, state, log, place, first, second, now_s)


@kernel(counted=False, forceinline=True)
def _dispatch(world, rule, calls, state, log, place, first, second, now_s):  # type: ignore[no-untyped-def]
    """Take a call out of the queue and send its units."""
    call = _pop(state, place)
    _send(world, rule, calls, state, log, first, call, 0, now_s)
    if second >= 0:
        _send(world, rule, calls, state, log, second, call, 1, now_s)


@kernel(counted=False)
def advance(world, tables, rule, calls, state, log, until_s):  # type: ignore[no-untyped-def]
    """Let events happen until a moment, or until a call waits for a choice.

    Returns the call that waits, or −1. The choice is put into ``state.choice`` before the
    next call of this function.
    """
    total = calls.at_s.size
    if state.count[PENDING] >= 0:
        now_s = state.clock[0]
        place = _most_urgent(state, calls)
        state.count[PENDING] = -1
        _dispatch(world, rule, calls, state, log, place, state.choice[0], state.choice[1], now_s)
        _serve(world, tables, rule, calls, state, log, now_s)
        if state.count[PENDING] >= 0:
            return state.count[PENDING]
    while True:
        now_s, who = np.inf, -1
        for unit in range(state.next_s.size):
            if state.next_s[unit] < now_s:
                now_s, who = state.next_s[unit], unit
        number = state.count[NEXT_CALL]
        comes_s = calls.at_s[number] + world.numbers.delay_s if number < total else np.inf
        if number < total and comes_s <= now_s:
            now_s, who = comes_s, -2
        if state.clock[1] < now_s and (number < total or state.count[QUEUED] > 0):
            now_s, who = state.clock[1], -3
        if now_s > until_s or who == -1:
            state.clock[0] = max(state.clock[0], min(until_s, now_s))
            return -1
        state.clock[0] = now_s
        state.count[EVENTS] += 1
        if who == -2:
            state.count[NEXT_CALL] += 1
            _push(state, number)
        elif who == -3:
            state.clock[1] = next_start(world.starts, now_s)
        else:
            _unit_event(world, tables, rule, calls, state, log, who, now_s)
        if state.count[QUEUED] > 0:
            _serve(world, tables, rule, calls, state, log, now_s)
            if state.count[PENDING] >= 0:
                return state.count[PENDING]
