"""Years of a fleet under a rule: who gets a second unit, when it is stood down, what follows."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.dispatch.price import UNCALIBRATED, PriceTables
from ideal_dispatch.dispatch.recall import RECALLS, Recall, check_s
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet import events
from ideal_dispatch.fleet.calls import Calls
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.prices import price_tables
from ideal_dispatch.fleet.units import (
    ALWAYS,
    FIXED,
    HOME,
    NEVER,
    PRICED,
    RANDOM,
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
from ideal_dispatch.ranges import Range
from ideal_dispatch.toml_tables import require

KINDS = ("never", "always", "random", "survival")
"""Rules for the second unit that the event loop has compiled."""


@dataclass(frozen=True, slots=True)
class SecondRule:
    """Which of the calls that are entitled to a second unit get one.

    "never" and "always" have no ``threshold``. "random" draws a number from 0 to 1 for each call
    and sends a second where it reaches the threshold: 0.75 sends one in four. "survival" sends
    one where the second saves more than the threshold, a chance of death, or "priced": more than
    the price of the unit at that moment.
    """

    kind: Literal["never", "always", "random", "survival"] = "survival"
    threshold: float | Literal["priced"] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"rule {self.kind!r}: choose {', '.join(KINDS)}")
        usual = {"random": 0.5, "survival": "priced"}.get(self.kind)
        asked = usual if self.threshold is None else self.threshold
        if usual is None:
            require(asked is None, f"rule {self.kind}: it has no threshold")
        elif asked != usual:
            Range(0, 1).check(asked, f"rule {self.kind}: threshold")
        object.__setattr__(self, "threshold", asked)

    @property
    def name(self) -> str:
        """Its name in tables."""
        return self.kind if self.threshold is None else f"{self.kind} {self.threshold}"

    def compiled(self, recall: Recall) -> Rule:
        """As the event loop takes it."""
        if recall not in RECALLS:
            raise InputError(f"recall {recall!r}: choose {', '.join(RECALLS)}")
        kinds = {"never": NEVER, "always": ALWAYS, "random": RANDOM, "survival": FIXED}
        kind, limit = kinds[self.kind], 0.0
        if self.threshold == "priced":
            kind = PRICED
        elif self.threshold is not None:
            limit = 1.0 - self.threshold if kind == RANDOM else self.threshold
        return Rule(kind, limit, RECALLS.index(recall), check_s(recall))


@dataclass(frozen=True, slots=True, eq=False)
class FleetView:
    """The fleet as a dispatcher sees it when a call waits for units.

    ``response_s`` are the means of the responses of all units if sent now, infinite where a
    unit cannot go; ``primary`` is the unit expected soonest. ``place`` is where each unit is,
    ``at_home`` whether it is idle in its station.
    """

    calls: Calls
    call: int
    now_s: float
    response_s: FloatArray
    free: BoolArray
    place: IntArray
    at_home: BoolArray
    primary: int
    state: State
    log: Log


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
        compiled = rule
        if not isinstance(compiled, Rule):
            compiled = Rule(TOLD, 0.0, RECALLS.index(recall), check_s(recall))
        parts = self.world, self.tables, compiled, Columns.of(calls), state, log
        while (call := events.advance(*parts, until_s)) >= 0:
            assert isinstance(rule, Chooser)
            state.choice[:] = self._chosen(rule, calls, call, state, log)

    def _chosen(
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
        at_home = np.asarray(state.status == HOME)
        view = FleetView(calls, call, now_s, seconds, free, place, at_home, primary, state, log)
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
