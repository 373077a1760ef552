"""Years of a fleet under a rule: who gets a second unit, when it is stood down, what follows."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.dispatch.price import UNCALIBRATED, PriceTables
from ideal_dispatch.dispatch.recall import RECALLS as RECALLS
from ideal_dispatch.dispatch.recall import Recall as Recall
from ideal_dispatch.dispatch.recall import check_s
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet import events
from ideal_dispatch.fleet.calls import DAY_S, Calls, counted_from_s
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.prices import price_tables
from ideal_dispatch.fleet.units import (
    HOME,
    TOLD,
    Log,
    Numbers,
    Rule,
    State,
    World,
    is_free,
    mean_response,
    place_of,
)

KINDS = ("never", "always", "random", "fixed", "priced")
"""Built-in rules for the second unit."""

BIN_S, BINS = 5.0, 1440
"""First arrivals are counted in bins of so many seconds, each with its end; the last is open."""


@dataclass(frozen=True, slots=True)
class SecondRule:
    """Which of the calls that are entitled to a second unit get one.

    "never" and "always" say it. "random" takes the share ``limit`` of them, "fixed" those
    that save more than the chance of death ``limit``, "priced" those that save more than
    ``limit`` times the price of the unit at that moment.
    """

    kind: Literal["never", "always", "random", "fixed", "priced"] = "priced"
    limit: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"rule {self.kind!r}: choose {', '.join(KINDS)}")
        if not (math.isfinite(self.limit) and self.limit >= 0.0):
            raise InputError(f"rule {self.kind}: limit {self.limit}; zero or more is needed")

    @property
    def name(self) -> str:
        """Its name in tables."""
        if self.kind == "random":
            return "random half" if self.limit == 0.5 else f"random {self.limit:g}"
        if self.kind == "fixed":
            return f"fixed {self.limit:g}"
        if self.kind == "priced" and self.limit != 1.0:
            return f"priced x {self.limit:g}"
        return self.kind

    def compiled(self, recall: Recall) -> Rule:
        """As the event loop takes it."""
        if recall not in RECALLS:
            raise InputError(f"recall {recall!r}: choose {', '.join(RECALLS)}")
        return Rule(
            KINDS.index(self.kind), float(self.limit), RECALLS.index(recall), check_s(recall)
        )


@dataclass(frozen=True, slots=True, eq=False)
class FleetView:
    """The fleet as a dispatcher sees it when a call waits for units.

    ``response_s`` are the means of the responses of all units if sent now, infinite where a
    unit cannot go; ``primary`` is the unit expected soonest. ``place`` is where each unit is,
    ``at_home`` whether it is idle in its station.
    """

    city: FleetCity
    calls: Calls
    call: int
    now_s: float
    response_s: FloatArray
    free: Any
    place: Any
    primary: int
    simulator: "Simulator"
    state: State
    log: Log

    @property
    def at_home(self) -> BoolArray:
        """Which units are idle in their stations."""
        return np.asarray(self.state.status == HOME)

    def suggested(self, rule: Rule) -> tuple[int, int]:
        """What a built-in rule would choose."""
        parts = self.simulator
        chosen: tuple[int, int] = events.choose(
            parts.world, parts.tables, rule, Columns.of(self.calls), self.state, self.log,
            self.call, self.now_s,
        )  # fmt: skip
        return chosen


@runtime_checkable
class Chooser(Protocol):
    """A rule written in Python: it names the primary and the second, −1 for no second."""

    @property
    def name(self) -> str:
        """Its name in tables."""
        ...

    def choose(self, view: FleetView) -> tuple[int, int]:
        """Two units."""
        ...


@dataclass(frozen=True, eq=False)
class Simulator:
    """A city made ready for the event loop; ``factors`` calibrate its prices."""

    city: FleetCity
    factors: tuple[float, ...] = UNCALIBRATED

    @cached_property
    def world(self) -> World:
        """What the loop reads."""
        city, model, work = self.city, self.city.responses, self.city.work
        away_s = city.travel.slow_s[city.cells, city.hospital] @ city.weights / city.weights.sum()
        numbers = Numbers(
            model.turnout.spread, math.exp(0.5 * model.turnout.spread**2), model.road_turnout_s,
            model.drive_scale, model.beside_s,
            model.drive_spread, model.slack_s, model.shared, model.surprise, model.wide,
            float(city.street_start), work.delay_s,
            math.inf if work.neighbour_s is None else work.neighbour_s, work.assist.mean_s,
            work.scene.mean_s, work.transported, float(away_s) + work.handover.mean_s,
            city.arrests / city.entitled,
        )  # fmt: skip
        part_time = city.shifts[city.shifts[:, 1] - city.shifts[:, 0] < 24.0, 0]
        return World(
            city.travel.fast_s, city.travel.slow_s, city.travel.between, city.stations,
            city.units, city.shifts, np.unique(part_time), city.cells, city.hospital,
            np.array([one.lights for one in city.priorities]), city.redispatch, city.turnout_s,
            city.risk, numbers,
        )  # fmt: skip

    @cached_property
    def tables(self) -> PriceTables:
        """What prices are worked out from."""
        return price_tables(self.city)._replace(factors=np.array(self.factors, float))

    def run(
        self, calls: Calls, rule: Rule | Chooser, recall: Recall = "first arrival"
    ) -> tuple[State, Log]:
        """All calls to their end, from a fleet at home."""
        state, log = State.at_home(self.world, len(calls)), Log.empty(len(calls))
        self.go_on(calls, rule, state, log, recall=recall)
        return state, log

    def go_on(
        self,
        calls: Calls,
        rule: Rule | Chooser,
        state: State,
        log: Log,
        until_s: float = math.inf,
        *,
        recall: Recall = "first arrival",
    ) -> None:
        """From a moment until another; ``state`` and ``log`` are written into."""
        told = rule
        if not isinstance(told, Rule):
            told = Rule(TOLD, 0.0, RECALLS.index(recall), check_s(recall))
        parts = self.world, self.tables, told, Columns.of(calls), state, log
        while (call := events.advance(*parts, until_s)) >= 0:
            assert isinstance(rule, Chooser)
            state.choice[:] = self._told(rule, calls, call, state, log)

    def _told(
        self, rule: Chooser, calls: Calls, call: int, state: State, log: Log
    ) -> tuple[int, int]:
        """The units that a rule in Python names, checked."""
        world, now_s, columns = self.world, float(state.clock[0]), Columns.of(calls)
        units = range(self.city.num_units)
        free = np.array([is_free(world, state, unit, now_s) for unit in units])
        about = int(calls.cell[call]), int(calls.priority[call]), now_s
        means = [mean_response(world, state, unit, *about) for unit in units]
        place = np.array([place_of(world, state, unit, now_s) for unit in units])
        primary = events.primary_of(world, state, columns, log, call, now_s)
        seconds = np.where(free, means, np.inf)
        seconds[primary] = means[primary]  # it may be redirected from a less urgent call
        view = FleetView(
            self.city, calls, call, now_s, seconds, free, place, primary, self, state, log
        )
        first, second = rule.choose(view)
        good = 0 <= first < len(free) and np.isfinite(seconds[first]) and second < len(free)
        if not good or second == first or (second >= 0 and not free[second]):
            raise InputError(
                f"rule {rule.name}, call {call}: it sends units {first} and {second}; two "
                "different free units are needed, or −1 for no second"
            )
        return first, second


class Columns(NamedTuple):
    """The columns of calls that the loop reads."""

    at_s: Any
    cell: Any
    priority: Any
    entitled: Any
    scene_s: Any
    transported: Any
    handover_s: Any
    chance: Any
    luck: Any
    assist_s: Any

    @classmethod
    def of(cls, calls: Calls) -> "Columns":
        return cls(*(getattr(calls, name) for name in cls._fields))


# --- what a year comes to ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Year:
    """One year of a fleet in numbers.

    ``groups`` are the arrests, the calls that are not entitled to a second unit, and then
    each priority; of every group there are the number of calls, the sum of seconds until the
    first arrival, and how many fell into each bin of seconds. ``deaths`` is the expected number
    among the arrests. ``seconds`` second units went to ``entitled``
    calls; ``held_s`` is for how long units were kept that took no patient, ``stood`` how many
    were stood down on their way. ``queued`` calls found no unit free, or lost theirs to a more
    urgent call.
    """

    groups: tuple[str, ...]
    calls: Any
    total_s: Any
    bins: Any
    deaths: float
    entitled: int
    seconds: int
    held_s: float
    stood: int
    stood_s: float
    queued: int
    busy: float
    events: int


def summed(simulator: Simulator, calls: Calls, state: State, log: Log, days: float) -> Year:
    """A run in numbers; calls count as :func:`~ideal_dispatch.fleet.calls.counted_from_s` says."""
    city = simulator.city
    counted = calls.at_s >= counted_from_s(city, days)
    response_s = log.first_s - calls.at_s
    named = {"arrests": calls.arrest, "others": ~calls.entitled}
    named |= {one.name: calls.priority == k for k, one in enumerate(city.priorities)}
    columns = []
    for inside in named.values():
        chosen = counted & inside
        spot = np.clip(np.ceil(response_s[chosen] / BIN_S) - 1, 0, BINS - 1).astype(np.int64)
        columns.append(
            (int(chosen.sum()), response_s[chosen].sum(), np.bincount(spot, minlength=BINS))
        )
    count, total_s, bins = zip(*columns, strict=True)
    risk = np.interp(response_s[counted & calls.arrest], np.arange(len(city.risk)), city.risk)
    second = counted & (log.unit[:, 1] >= 0)
    stood = np.isfinite(log.stood_s[second])
    kept = (log.stood_s[second] - log.sent_s[second])[stood]
    waited = counted & (log.sent_s[:, 0] > calls.at_s + city.work.delay_s + 1e-6)
    length_s = days * DAY_S
    return Year(
        tuple(named), np.array(count), np.array(total_s), np.array(bins),
        float(risk.sum()), int((counted & calls.entitled).sum()), int(second.sum()),
        float(log.held_s[second].sum()), int(stood.sum()), float(kept.sum()), int(waited.sum()),
        float(state.busy_s.sum() / (length_s * city.on_duty.mean())), int(state.count[3]),
    )  # fmt: skip
