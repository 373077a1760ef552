"""A city with its whole fleet: stations, units, hospitals, calls, and how long everything takes."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray, read_only
from ideal_dispatch.context import Calendar
from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE, SurvivalCurve
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.travel import Travel
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.ranges import Checked, Positive, Share, ZeroOrMore

HOURS = 24
MIDNIGHT = "2026-01-01"
"""The date on which calls without dates begin."""


@dataclass(frozen=True, slots=True)
class Duration(Checked):
    """How long a part of the work takes: its mean, and how it varies.

    ``variation`` is the standard deviation over the mean of a log-normal time.
    """

    mean_s: ZeroOrMore
    form: Literal["exponential", "lognormal", "fixed"] = "exponential"
    variation: ZeroOrMore = 0.5

    def drawn(self, rng: np.random.Generator, count: int) -> FloatArray:
        """So many times; one draw of ``rng`` each, whatever the form."""
        normal = rng.standard_normal(count)
        if self.form == "fixed":
            return np.full(count, self.mean_s)
        if self.form == "lognormal":
            square = math.log1p(self.variation**2)
            return np.asarray(self.mean_s * np.exp(math.sqrt(square) * normal - 0.5 * square))
        from scipy.special import log_ndtr

        return np.asarray(-self.mean_s * log_ndtr(normal))


@dataclass(frozen=True, slots=True)
class Priority(Checked):
    """A class of calls: its share of all, whether units drive with lights, when help is late."""

    name: str
    share: Share
    lights: bool = True
    late_s: Positive = 480.0


@dataclass(frozen=True, slots=True)
class Work(Checked):
    """What a unit does at a call and after it.

    ``delay_s`` passes between the call and the dispatch. ``transported`` is the share of
    patients that go to the nearest hospital. ``assist`` is how long the unit that came
    second stays at the scene, where nobody stands it down. With ``neighbour_s`` no call
    waits: one that finds no unit free is handed to a neighbour, whose unit is there after so
    many seconds.
    """

    delay_s: ZeroOrMore = 60.0
    scene: Duration = Duration(720.0)
    transported: Share = 0.8
    handover: Duration = Duration(720.0)
    assist: Duration = Duration(600.0, "fixed")
    neighbour_s: ZeroOrMore | None = None


class CallList(NamedTuple):
    """Calls that are simulated as they are: seconds from a midnight, cell and priority of each.

    ``midnight`` is the date on which the list begins.
    """

    at_s: FloatArray
    cell: IntArray
    priority: IntArray
    midnight: str = MIDNIGHT


@dataclass(frozen=True, eq=False)
class FleetCity:
    """Everything that a simulation of the fleet needs to know of a city.

    ``stations``, ``hospitals`` and ``cells`` are places of ``travel``. ``units`` has the
    station of every unit, as an index into ``stations``; ``shifts`` its hours on duty, from
    and until, (0, 24) for all day. ``weights`` says how the calls fall on the cells and
    ``by_hour`` how they fall on the hours of a day: 1 is the mean. ``arrests`` is the share
    of cardiac arrests among all calls, ``entitled`` the share of calls for which a second
    unit is considered: the arrests alone, or more calls of the first priority that the
    dispatcher cannot tell from them; 0 is taken as the former. ``redispatch[a, b]`` allows a
    unit on its way to a call of priority a to be sent to one of priority b < a instead.
    ``street_start`` says whether a unit on the road leaves at once, or only after a turnout
    like that at the station. ``listed`` are calls that are taken as they are in place of drawn
    ones. ``calendar`` and ``model``, of travel times, are for dispatch policies. ``notes`` say
    what was assumed.
    """

    name: str
    travel: Travel
    station_names: tuple[str, ...]
    stations: IntArray
    units: IntArray
    hospitals: IntArray
    cells: IntArray
    weights: FloatArray
    calls_per_day: float
    priorities: tuple[Priority, ...]
    by_hour: FloatArray = field(default_factory=lambda: np.ones(HOURS))
    shifts: FloatArray = field(default_factory=lambda: np.empty((0, 2)))
    redispatch: BoolArray = field(default_factory=lambda: np.empty((0, 0), bool))
    arrests: float = 0.03
    entitled: float = 0.0
    work: Work = Work()
    responses: ResponseModel = field(default_factory=ResponseModel.published)
    curve: SurvivalCurve = CURVES[USUAL_CURVE]
    street_start: bool = True
    listed: CallList | None = None
    calendar: Calendar | None = None
    model: Model | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        places, units, levels = self.travel.num_places, len(self.units), len(self.priorities)
        if not self.shifts.size:
            self._set("shifts", np.tile([0.0, 24.0], (units, 1)))
        if not self.redispatch.size:
            self._set("redispatch", np.zeros((levels, levels), bool))
        self._set("entitled", self.entitled or self.arrests)
        shapes: dict[str, tuple[Any, tuple[int | None, ...]]] = {
            "stations": (np.int32, (len(self.station_names),)), "hospitals": (np.int32, (None,)),
            "cells": (np.int32, (None,)), "units": (np.int32, (None,)),
            "weights": (np.float64, (len(self.cells),)), "by_hour": (np.float64, (HOURS,)),
            "shifts": (np.float64, (units, 2)), "redispatch": (np.bool_, (levels, levels)),
        }  # fmt: skip
        for name, (dtype, shape) in shapes.items():
            self._set(name, read_only(getattr(self, name), dtype, shape, f"{self.name}: {name}"))
        for name, count in (("stations", places), ("hospitals", places), ("cells", places),
                            ("units", len(self.stations))):  # fmt: skip
            index = getattr(self, name)
            self._require(
                index.size and index.min() >= 0 and index.max() < count,
                f"{name} must be one or more numbers of 0 … {count - 1}",
            )
        for name in ("weights", "by_hour"):
            values = getattr(self, name)
            good = (values >= 0.0).all() and values.sum() > 0.0
            self._require(good, f"{name} must be zero or more, and not all zero")
        hours = (self.shifts >= 0.0) & (self.shifts <= 24.0)
        self._require(hours.all(), "hours of shifts are from 0 to 24")
        shares = sum(one.share for one in self.priorities)
        self._require(
            abs(shares - 1.0) < 1e-6, f"shares of priorities add up to {shares:.4g}; 1 is needed"
        )
        self._require(
            not np.triu(self.redispatch).any(),
            "redispatch must lead to a more urgent call, of a priority that stands before",
        )
        enough = math.isfinite(self.calls_per_day) and self.calls_per_day > 0.0
        self._require(enough, f"{self.calls_per_day} calls a day; a number above zero is needed")
        first = self.priorities[0].share
        self._require(
            0.0 < self.arrests <= self.entitled <= first + 1e-9,
            f"arrests {self.arrests:.4g}, entitled {self.entitled:.4g}; both are shares of all "
            f"calls, arrests no more than entitled, entitled no more than {first:.4g}, the share "
            "of the first priority",
        )

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _require(self, good: Any, message: str) -> None:
        if not good:
            raise InputError(f"fleet {self.name}: {message}")

    @property
    def num_units(self) -> int:
        """How many units there are."""
        return len(self.units)

    def changed(self, **changes: Any) -> "FleetCity":
        """The same city with other settings; ``entitled`` follows ``arrests`` where it did."""
        if "arrests" in changes and "entitled" not in changes and self.entitled == self.arrests:
            changes["entitled"] = 0.0
        return replace(self, **changes)

    @cached_property
    def risk(self) -> FloatArray:
        """The chance of death at every whole second until help, up to two hours."""
        return np.asarray(1.0 - self.curve.probability(np.arange(7201.0)))

    @cached_property
    def hospital(self) -> IntArray:
        """The nearest hospital of every cell, as a place."""
        away_s = self.travel.slow_s[np.ix_(self.cells, self.hospitals)]
        return np.asarray(self.hospitals[away_s.argmin(axis=1)], np.int32)

    @cached_property
    def turnout_s(self) -> FloatArray:
        """The median turnout of every station at every hour."""
        turnout, hours = self.responses.turnout, np.arange(HOURS)
        rows = [turnout.median_s(name, hours, "") for name in self.station_names]
        return np.asarray(np.vstack(rows), np.float64)

    @cached_property
    def occupation_s(self) -> float:
        """The mean time for which a call takes one unit: response, scene, transport, handover."""
        drive = self.travel.fast_s[np.ix_(self.stations, self.cells)].min(axis=0) @ self.weights
        away = self.travel.slow_s[self.cells, self.hospital] @ self.weights
        total = self.weights.sum()
        work = self.work
        moved = work.transported * (away / total + work.handover.mean_s)
        return float(
            self.responses.of(drive / total, quoted=True).mean_s + work.scene.mean_s + moved
        )

    @cached_property
    def on_duty(self) -> FloatArray:
        """How many units are on duty in every hour, on average."""
        start, end = self.shifts.T
        # of every hour, the part before the start and before the end of a shift
        before = np.clip(self.shifts[:, :, None] - np.arange(HOURS), 0.0, 1.0)
        overnight = np.count_nonzero(start >= end)
        return np.asarray((before[:, 1] - before[:, 0]).sum(axis=0) + overnight, float)
