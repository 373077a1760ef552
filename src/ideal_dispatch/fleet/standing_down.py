"""When one of two units on their way is stood down, and what a dispatcher knows of both.

Without live information it is known whether a unit has left, and that it has not arrived. With
it, the share p of the drive that is done is known, too. The true drive has one pace all the way,
so that the seconds driven, divided by p and by the drive that was expected, are its factor f.
The dispatcher does not count on one pace: of the rest he believes f to the power of p, so that
the forecast counts first and the pace last. The rest has the spread of a whole drive of that
length, all of the slack included, as :mod:`ideal_dispatch.dispatch.reassessment` has it.
"""

import math

import numpy as np

from ideal_dispatch.compiled import kernel
from ideal_dispatch.dispatch.reassessment import STAND_DOWN_BELOW, SURELY_FIRST
from ideal_dispatch.fleet.chances import pair, remaining, response, second_first
from ideal_dispatch.fleet.units import (
    GOING,
    HOME,
    LIVE,
    QUEUED,
    RETURNING,
    cost_of,
    in_station,
    place_of,
    spreads_of,
)


@kernel(counted=False, forceinline=True)
def homewards(world, state, unit, place, now_s):  # type: ignore[no-untyped-def]
    """A unit is free and drives home."""
    home = world.station[world.unit_station[unit]]
    state.status[unit], state.call[unit] = RETURNING, -1
    state.origin[unit], state.target[unit] = place, home
    state.left_s[unit], state.arrive_s[unit] = now_s, now_s + world.slow_s[place, home]
    state.next_s[unit] = state.arrive_s[unit]


@kernel(counted=False)
def stand_down(world, state, log, unit, now_s):  # type: ignore[no-untyped-def]
    """A unit on its way is not needed any more."""
    call, role = state.call[unit], state.role[unit]
    log.stood_s[call, role] = now_s
    log.held_s[call] = now_s - state.sent_s[unit]
    state.busy_s[unit] += now_s - state.sent_s[unit]
    if in_station(world, state, unit, now_s):
        state.status[unit], state.call[unit], state.next_s[unit] = HOME, -1, np.inf
    else:
        homewards(world, state, unit, place_of(world, state, unit, now_s), now_s)


@kernel(counted=False)
def _left(state, unit, numbers, now_s):  # type: ignore[no-untyped-def]
    """What is left of the response of a unit on its way, as far as anybody can know.

    It is known whether it has left its station, and that it has not arrived. One that has not
    left has all of its drive ahead. Surprises widen the spread: who is late is hardly told
    from who surprises.
    """
    drive_s = max(state.expect[unit, 1], 1.0)
    if now_s <= state.left_s[unit]:
        turnout = (state.expect[unit, 0], numbers.turnout_spread, 0.0)
        leaving, own, _ = remaining(turnout, now_s - state.sent_s[unit])
        square = leaving**2 * math.expm1(own**2)
        mean, own, shared = response(leaving, square, drive_s, spreads_of(numbers))
        return mean, math.sqrt(own**2 + numbers.surprise * numbers.wide**2), shared
    square = math.log1p(numbers.drive_spread**2 + (numbers.slack_s / drive_s) ** 2)
    square += numbers.surprise * numbers.wide**2
    return remaining((drive_s, math.sqrt(square), numbers.shared), now_s - state.left_s[unit])


@kernel(counted=False)
def _seen(state, unit, numbers, now_s):  # type: ignore[no-untyped-def]
    """The same of a unit whose place is known once it drives; see the head of this module."""
    driven_s = now_s - state.left_s[unit]
    if driven_s <= 0.0:
        return _left(state, unit, numbers, now_s)
    done = driven_s / (state.arrive_s[unit] - state.left_s[unit])
    drive_s = max(state.expect[unit, 1], 1.0)
    rest_s = (1.0 - done) * drive_s * (driven_s / (done * drive_s)) ** done
    mean, own, shared = response(0.0, 0.0, rest_s, spreads_of(numbers))
    return mean, math.sqrt(own**2 + numbers.surprise * numbers.wide**2), shared


@kernel(counted=False)
def look_again(world, tables, rule, calls, state, log, unit, now_s):  # type: ignore[no-untyped-def]
    """Stand one of a pair down where what it may still save is below its price.

    So it is, too, where another call waits for a unit: prices know of calls to come alone. With
    live information the margins are those of a running dispatch, and the one that will surely
    not be first is stood down as well.
    """
    call = state.call[unit]
    first = log.unit[call, 0]
    state.next_s[unit] = min(state.arrive_s[unit], now_s + rule.check_s)
    if first < 0 or state.status[first] != GOING or state.call[first] != call:
        state.next_s[unit] = state.arrive_s[unit]  # it is alone
        return
    live = rule.recall == LIVE
    if live:
        one = _seen(state, first, world.numbers, now_s)
        other = _seen(state, unit, world.numbers, now_s)
    else:
        one = _left(state, first, world.numbers, now_s)
        other = _left(state, unit, world.numbers, now_s)
    loser = unit
    if other[0] < one[0]:
        one, other, loser = other, one, first
    saved, both_s = pair(one, other, now_s - calls.at_s[call], world.risk, (0.0, 0.0))
    cost = cost_of(world, tables, state, loser, -1, both_s, now_s)
    if live:
        cost *= STAND_DOWN_BELOW
    needless = state.count[QUEUED] > 0 or saved * world.numbers.arrest_chance < cost
    if needless or (live and second_first(one, other) < SURELY_FIRST):
        stand_down(world, state, log, loser, now_s)
        if loser == first:
            state.next_s[unit] = state.arrive_s[unit]
