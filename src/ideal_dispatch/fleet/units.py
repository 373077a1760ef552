"""The units of a fleet in compiled code: where they are, who is free, when each would arrive."""

import math
from typing import Any, NamedTuple

import numpy as np

from ideal_dispatch.compiled import kernel
from ideal_dispatch.dispatch.price import price_of
from ideal_dispatch.fleet.chances import response
from ideal_dispatch.fleet.travel import STEPS

HOME, RETURNING, GOING, SCENE, HOSPITAL, ASSIST, AWAY = range(7)
"""What a unit does. At home and returning it is free; away means taken from the fleet."""

NEVER, ALWAYS, RANDOM, FIXED, PRICED, TOLD = range(6)
"""Who gets a second unit; told means that Python chooses both units."""

NO_RECALL, ON_ARRIVAL, ON_WORTH, LIVE = range(4)
"""When the unit that will not be first is stood down."""

NEXT_CALL, QUEUED, PENDING, EVENTS = range(4)  # of State.count


class Numbers(NamedTuple):
    """Plain numbers of a city; names as in its response times and its work.

    ``turnout_lift`` leads from the median of a turnout to its mean. ``transport_s`` is the
    mean drive to a hospital with the handover there. ``neighbour_s`` is
    infinite where calls wait for a unit.
    """

    turnout_spread: float
    turnout_lift: float
    road_turnout_s: float
    drive_scale: float
    beside_s: float
    drive_spread: float
    slack_s: float
    shared: float
    surprise: float
    wide: float
    street_start: float
    delay_s: float
    neighbour_s: float
    assist_s: float
    scene_s: float
    transported: float
    transport_s: float
    arrest_chance: float


class World(NamedTuple):
    """What does not change while a year is simulated."""

    fast_s: Any
    slow_s: Any
    between: Any
    station: Any
    unit_station: Any
    shifts: Any
    starts: Any
    cell: Any
    hospital: Any
    lights: Any
    redispatch: Any
    turnout_s: Any
    risk: Any
    numbers: Numbers


class Rule(NamedTuple):
    """Who gets a second unit, and when it is stood down.

    ``limit`` is a share of calls for ``RANDOM`` and a chance of death for ``FIXED``. With
    ``ON_WORTH`` and ``LIVE`` a pair is looked at each ``check_s``.
    """

    kind: int
    limit: float = 0.0
    recall: int = ON_ARRIVAL
    check_s: float = 30.0


class State(NamedTuple):
    """All that the fleet is at a moment; arrays that the loop writes into.

    ``expect`` has the means of the turnout and of the drive of a unit when it was sent.
    """

    status: Any
    origin: Any
    target: Any
    left_s: Any
    arrive_s: Any
    next_s: Any
    call: Any
    role: Any
    sent_s: Any
    expect: Any
    busy_s: Any
    queue: Any
    clock: Any
    count: Any
    choice: Any
    scratch: Any

    @classmethod
    def at_home(cls, world: World, calls: int) -> "State":
        """Every unit free at its station, at midnight."""
        units = len(world.unit_station)
        home = world.station[world.unit_station].astype(np.int32)
        return cls(
            np.zeros(units, np.int8), home.copy(), home.copy(), np.zeros(units), np.zeros(units),
            np.full(units, np.inf), np.full(units, -1, np.int64), np.zeros(units, np.int8),
            np.zeros(units), np.zeros((units, 2)), np.zeros(units), np.zeros(calls + 1, np.int64),
            np.array([0.0, next_start(world.starts, 0.0)]), np.array([0, 0, -1, 0]),
            np.full(2, -1, np.int64), np.zeros((4, max(units, len(world.station)))),
        )  # fmt: skip

    def copy(self) -> "State":
        """The same moment, to be continued in another way."""
        return State(*(array.copy() for array in self))


class Log(NamedTuple):
    """What became of every call; columns of pairs are primary and second.

    ``unit`` is −1 where none was sent, ``stood_s`` infinite where none was stood down.
    ``held_s`` is for how long a unit was kept that did not take the patient. ``saved`` and
    ``cost`` are what the rule weighed, where it did.
    """

    unit: Any
    sent_s: Any
    arrive_s: Any
    stood_s: Any
    first_s: Any
    held_s: Any
    saved: Any
    cost: Any

    @classmethod
    def empty(cls, calls: int) -> "Log":
        """Nothing yet."""
        pairs = (calls, 2)
        return cls(
            np.full(pairs, -1, np.int16), np.full(pairs, np.inf), np.full(pairs, np.inf),
            np.full(pairs, np.inf), np.full(calls, np.inf), np.zeros(calls),
            np.full(calls, np.nan), np.full(calls, np.nan),
        )  # fmt: skip


# --- where units are, and who is free ----------------------------------------------------


@kernel(counted=False)
def next_start(starts, now_s):  # type: ignore[no-untyped-def]
    """When the next shift begins; infinite where everybody is on duty all day."""
    best = np.inf
    day = math.floor(now_s / 86400.0) * 86400.0
    for hour in starts:
        at = day + hour * 3600.0
        if at <= now_s:
            at += 86400.0
        best = min(best, at)
    return best


@kernel(counted=False, forceinline=True)
def on_duty(shifts, unit, now_s):  # type: ignore[no-untyped-def]
    """Whether a unit is on duty."""
    start, end = shifts[unit, 0], shifts[unit, 1]
    if end - start >= 24.0:
        return True
    hour = (now_s / 3600.0) % 24.0
    if start < end:
        return start <= hour < end
    return hour >= start or hour < end


@kernel(counted=False, forceinline=True)
def is_free(world, state, unit, now_s):  # type: ignore[no-untyped-def]
    """Whether a unit may be sent: at home or returning, and on duty."""
    return state.status[unit] <= RETURNING and on_duty(world.shifts, unit, now_s)


@kernel(counted=False, forceinline=True)
def place_of(world, state, unit, now_s):  # type: ignore[no-untyped-def]
    """The place nearest to a unit."""
    origin, target = state.origin[unit], state.target[unit]
    if state.status[unit] == HOME or now_s <= state.left_s[unit]:
        return origin
    whole = state.arrive_s[unit] - state.left_s[unit]
    part = int((now_s - state.left_s[unit]) / whole * (STEPS + 1)) if whole > 0.0 else STEPS + 1
    if part <= 0:
        return origin
    if part > STEPS:
        return target
    return world.between[origin, target, part - 1]


@kernel(counted=False, forceinline=True)
def in_station(world, state, unit, now_s):  # type: ignore[no-untyped-def]
    """Whether a unit is in its station: idle there, or sent and not yet left."""
    if state.status[unit] == HOME:
        return True
    home = world.station[world.unit_station[unit]]
    return (
        state.status[unit] == GOING and now_s <= state.left_s[unit] and state.origin[unit] == home
    )


@kernel(counted=False, forceinline=True)
def _drive(world, place, cell, priority):  # type: ignore[no-untyped-def]
    """The mean drive from a place to a cell."""
    times = world.fast_s if world.lights[priority] else world.slow_s
    return world.numbers.drive_scale * times[place, world.cell[cell]] + world.numbers.beside_s


@kernel(counted=False, forceinline=True)
def parts_of(world, state, unit, cell, priority, now_s):  # type: ignore[no-untyped-def]
    """The means of the turnout and of the drive of a unit that would be sent now."""
    numbers = world.numbers
    median_s = world.turnout_s[world.unit_station[unit], int(now_s / 3600.0) % 24]
    if not in_station(world, state, unit, now_s) and numbers.street_start > 0.0:
        median_s = numbers.road_turnout_s
    drive_s = _drive(world, place_of(world, state, unit, now_s), cell, priority)
    return median_s * numbers.turnout_lift, drive_s


@kernel(counted=False, forceinline=True)
def mean_response(world, state, unit, cell, priority, now_s):  # type: ignore[no-untyped-def]
    """The expected seconds until a unit that would be sent now is there."""
    leaving, drive = parts_of(world, state, unit, cell, priority, now_s)
    return max(leaving + drive, 1.0)


@kernel(counted=False, forceinline=True)
def spreads_of(numbers):  # type: ignore[no-untyped-def]
    """The spreads of a drive, as a response takes them."""
    return numbers.drive_spread, numbers.slack_s, numbers.shared


@kernel(counted=False, forceinline=True)
def lasting(numbers, luck, call, role, leaving_s, drive_s):  # type: ignore[no-untyped-def]
    """The turnout and the drive of a unit with these means, by the luck of a call and a role."""
    column = 1 + 4 * role
    factor = 1.0
    if luck[call, column + 2] < numbers.surprise:
        factor = math.exp(numbers.wide * luck[call, column + 3])
    square = math.log1p(numbers.drive_spread**2 + (numbers.slack_s / max(drive_s, 1.0)) ** 2)
    logarithm = (
        math.sqrt(square) * luck[call, column + 1] - 0.5 * square
        + numbers.shared * luck[call, 0] - 0.5 * numbers.shared**2
    )  # fmt: skip
    turnout = numbers.turnout_spread * luck[call, column] - 0.5 * numbers.turnout_spread**2
    return factor * leaving_s * math.exp(turnout), factor * drive_s * math.exp(logarithm)


@kernel(counted=False, forceinline=True)
def expected(world, state, unit, cell, priority, now_s):  # type: ignore[no-untyped-def]
    """The response of a unit that would be sent now."""
    numbers = world.numbers
    leaving, drive = parts_of(world, state, unit, cell, priority, now_s)
    square = leaving**2 * math.expm1(numbers.turnout_spread**2)
    return response(leaving, square, drive, spreads_of(numbers))


@kernel(counted=False)
def _ready(world, state, now_s, ready_s):  # type: ignore[no-untyped-def]
    """For every unit the expected seconds until it is free, as a price takes them."""
    scene_s, transport_s = world.numbers.scene_s, world.numbers.transport_s
    after_s = world.numbers.transported * transport_s
    for unit in range(ready_s.size):
        status = state.status[unit]
        if not on_duty(world.shifts, unit, now_s):
            ready_s[unit] = np.inf
        elif status == HOME:
            ready_s[unit] = 0.0
        elif status == RETURNING:
            ready_s[unit] = min(now_s - state.arrive_s[unit], 0.0)
        elif status == GOING:
            lasted = now_s - state.sent_s[unit]
            ready_s[unit] = max(state.expect[unit, 0] + state.expect[unit, 1] - lasted, 60.0)
            if state.role[unit] == 0:  # a second mostly turns round before it has a patient
                ready_s[unit] += scene_s + after_s
        elif status == SCENE:
            ready_s[unit] = scene_s + after_s
        elif status == HOSPITAL:
            ready_s[unit] = transport_s
        elif status == ASSIST:
            ready_s[unit] = 0.5 * world.numbers.assist_s
        else:
            ready_s[unit] = max(state.next_s[unit] - now_s, 0.0)


@kernel(counted=False)
def cost_of(world, tables, state, unit, leaving, hold_s, now_s):  # type: ignore[no-untyped-def]
    """What the others lose while a unit is away, by the price of its moment.

    ``leaving`` is the unit that is sent first, which the state has still as free; −1 for none.
    """
    ready_s = state.scratch[0, : state.status.size]
    _ready(world, state, now_s, ready_s)
    if leaving >= 0:
        ready_s[leaving] = tables.occupation_s
    ready_s[unit] = min(ready_s[unit], 0.0)  # as if it were free: the price is of taking it
    hour = int(now_s / 3600.0) % 24
    return price_of(tables, world.unit_station, ready_s, unit, hold_s, hour, state.scratch[1:])
