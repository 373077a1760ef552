"""How long a unit takes from being sent to standing at the scene: a distribution.

A response is turnout + drive. Of the drive's spread a part is the unit's own and a part
is shared by all units of the incident: the weather, the hour, an address that is hard
to find. The sum is taken to be log-normal with the same mean and variance. Now and then
a unit surprises: it was on the road near by, or it got lost. It then has the same median
and a wide spread. Two units of one incident have closed forms. Symbols: μ median, m mean,
σ standard deviation of the logarithm of a response, own part; s the same of the shared
part; Φ the normal distribution function; v² = σ₁² + σ₂² + (s₁ − s₂)². Then

    P(T₂ < T₁) = Φ(log(μ₁ / μ₂) / v),
    E[(T₁ − T₂)⁺] = m₁ Φ(d + v/2) − m₂ Φ(d − v/2),   d = log(m₁ / m₂) / v,

the second by Margrabe's formula for the exchange of two log-normal prices, both weighted
over who surprises.
"""

import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ideal_dispatch.archive import JsonKind
from ideal_dispatch.arrays import FloatArray, non_negative
from ideal_dispatch.errors import InputError
from ideal_dispatch.records.places import plain_name

_FILE = JsonKind(
    "ideal-dispatch response times", 2, "file of response times", "make one with `ideal races`", 2
)
_LEAST_SPREAD = 1e-6  # a certain response is one of hardly any spread
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_STEPS = 96  # of the integral over time: the change in survival is right to three digits
_REACH = 6.0  # standard deviations that it covers
_COLUMNS = ("median_s", "own", "shared", "road")

Words = str | npt.ArrayLike
"""A name, or one for every row."""


@dataclass(frozen=True, slots=True, eq=False)
class ResponseTime:
    """Seconds from dispatch to scene: a distribution of one unit, or arrays of many.

    ``median_s`` halves them. ``own`` and ``shared`` are standard deviations of the
    logarithm: the unit's own part, and the part that all units of the incident share.
    Of the own part ``road`` comes from the roads: whoever drives the same ones has it, too.
    With probability ``surprise`` the own part has a spread of ``wide`` in addition.
    """

    median_s: Any
    own: Any
    shared: Any
    surprise: float = 0.0
    wide: float = 0.0
    road: Any = 0.0

    def __post_init__(self) -> None:
        own = np.maximum(self.own, _LEAST_SPREAD)
        columns = np.broadcast_arrays(self.median_s, own, self.shared, np.minimum(self.road, own))
        for name, values in zip(_COLUMNS, columns, strict=True):
            values = np.array(values, np.float64)
            least = 0.0 if name in ("shared", "road") else np.finfo(float).tiny
            if not (np.isfinite(values) & (values >= least)).all():
                raise InputError(f"response times: {name} must be finite and above zero")
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def __getitem__(self, rows: Any) -> "ResponseTime":
        """Those of some rows."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})

    @property
    def parts(self) -> list[tuple[float, FloatArray]]:
        """The usual response and the surprise: how probable each is, and its own spread."""
        usual = [(1.0 - self.surprise, self.own)]
        if not self.surprise:
            return usual
        return [*usual, (self.surprise, np.hypot(self.own, self.wide))]

    @property
    def mean_s(self) -> FloatArray:
        """The expected time."""
        return self._moment(1)

    @property
    def deviation_s(self) -> FloatArray:
        """Its standard deviation."""
        return np.sqrt(np.maximum(self._moment(2) - self._moment(1) ** 2, 0.0))

    def _moment(self, power: int) -> FloatArray:
        lifts = [w * np.exp(0.5 * power**2 * (own**2 + self.shared**2)) for w, own in self.parts]
        return np.asarray(self.median_s**power * sum(lifts))

    def later_than(self, limit_s: npt.ArrayLike) -> FloatArray:
        """The probability of arriving later than after so many seconds."""
        from scipy.special import ndtr

        off = np.log(self.median_s / np.asarray(limit_s, np.float64))
        return np.asarray(sum(w * ndtr(off / np.hypot(own, self.shared)) for w, own in self.parts))

    def after(self, elapsed_s: float) -> "ResponseTime":
        """What is left of the response of a unit that has been on its way for so long.

        It has not arrived yet. What is left is log-normal with the mean and variance of
        T − elapsed, given T > elapsed.
        """
        from scipy.special import log_ndtr

        if elapsed_s <= 0.0:
            return self
        off = np.log(self.median_s / elapsed_s)
        logs = []  # of E[Tⁿ; T > elapsed]: far out in the tail the numbers themselves are zero
        for power in (0, 1, 2):
            terms = []
            for weight, own in self.parts:
                spread = np.hypot(own, self.shared)
                lifted = 0.5 * (power * spread) ** 2 + log_ndtr(off / spread + power * spread)
                terms.append(np.log(weight) + power * np.log(self.median_s) + lifted)
            logs.append(np.logaddexp.reduce(terms, axis=0))
        mean = np.maximum(np.exp(logs[1] - logs[0]) - elapsed_s, 1.0)
        variance = np.maximum(np.exp(logs[2] - logs[0]) - (mean + elapsed_s) ** 2, 0.0)
        whole = np.sqrt(np.log1p(variance / mean**2))
        part = whole / np.hypot(self.own, self.shared)
        return ResponseTime(
            mean * np.exp(-0.5 * whole**2), part * self.own, part * self.shared,
            road=part * self.road,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class ResponsePair:
    """Two units of one incident: how probably, and by how much, the second is first.

    ``together`` is the share of both drives on the same roads: a jam there stops both. What
    the crews do, and surprises, they have each for themselves.
    """

    first: ResponseTime
    second: ResponseTime
    together: float = 0.0

    @property
    def _common(self) -> FloatArray:
        """The variance of the own parts that both have."""
        return np.asarray(self.together * np.minimum(self.first.road, self.second.road) ** 2)

    def _parts(self) -> Iterator[tuple[float, FloatArray, FloatArray, FloatArray]]:
        """How probable, both own spreads, and v, whoever of the two surprises."""
        shared = self.first.shared - self.second.shared
        for weight, one in self.first.parts:
            for other_weight, two in self.second.parts:
                square = one**2 + two**2 - 2.0 * self._common + shared**2
                yield weight * other_weight, one, two, np.sqrt(np.maximum(square, _LEAST_SPREAD**2))

    @property
    def second_first(self) -> FloatArray:
        """P(T₂ < T₁)."""
        from scipy.special import ndtr

        off = np.log(self.first.median_s / self.second.median_s)
        return np.asarray(sum(weight * ndtr(off / v) for weight, _, _, v in self._parts()))

    @property
    def mean_s(self) -> FloatArray:
        """Expected T₁ − T₂."""
        return np.asarray(self.first.mean_s - self.second.mean_s)

    @property
    def deviation_s(self) -> FloatArray:
        """Standard deviation of T₁ − T₂."""
        one, two = self.first, self.second
        product: FloatArray = np.zeros_like(one.median_s)
        for weight, first, second, v in self._parts():
            # E[T₁T₂] of two log-normals: their covariance follows from v
            squares = first**2 + one.shared**2 + second**2 + two.shared**2
            product = product + weight * np.exp(squares - 0.5 * v**2)
        covariance = one.median_s * two.median_s * product - one.mean_s * two.mean_s
        square = one.deviation_s**2 + two.deviation_s**2 - 2.0 * covariance
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))

    @property
    def gain_s(self) -> FloatArray:
        """E[(T₁ − T₂)⁺]: the seconds by which a second unit is expected to be sooner."""
        from scipy.special import ndtr

        total: FloatArray = np.zeros_like(self.first.median_s)
        for weight, one, two, v in self._parts():
            m1 = self.first.median_s * np.exp(0.5 * (one**2 + self.first.shared**2))
            m2 = self.second.median_s * np.exp(0.5 * (two**2 + self.second.shared**2))
            d = np.log(m1 / m2) / v
            gain = m1 * ndtr(d + v / 2) - m2 * ndtr(d - v / 2)
            total = total + weight * np.maximum(gain, np.maximum(m1 - m2, 0.0))
        return np.asarray(total)

    def survival_gain(self, survival: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """E[S(min(T₁, T₂)) − S(T₁)] of a curve S that falls with the seconds until help.

        It is ∫ (S(t) − S(t + dt)) P(T₁ > t, T₂ ≤ t) over all t, computed as it stands: the
        slope of the curve times the expected seconds would say too much.
        """
        from scipy.special import ndtr

        units = (self.first, self.second)
        common = self._common
        shared = [np.sqrt(unit.shared**2 + common) for unit in units]
        middle = [np.log(unit.median_s) for unit in units]
        widest = [np.hypot(unit.parts[-1][1], unit.shared) for unit in units]
        low = np.minimum(*(m - _REACH * w for m, w in zip(middle, widest, strict=True)))
        high = np.maximum(*(m + _REACH * w for m, w in zip(middle, widest, strict=True)))
        logs = low + np.linspace(0.0, 1.0, _STEPS + 1).reshape(-1, *(1,) * low.ndim) * (high - low)
        halfway = 0.5 * (logs[1:] + logs[:-1])
        only_second: FloatArray = np.zeros_like(halfway)
        for node, node_weight in zip(_NODES, _WEIGHTS / _WEIGHTS.sum(), strict=True):
            there = []
            for unit, centre, part in zip(units, middle, shared, strict=True):
                far = halfway - centre - part * node
                own = [(w, np.sqrt(np.maximum(o**2 - common, _LEAST_SPREAD**2)))
                       for w, o in unit.parts]  # fmt: skip
                there.append(sum(w * ndtr(far / o) for w, o in own))
            only_second = only_second + node_weight * (1.0 - there[0]) * there[1]
        fall = -np.diff(survival(np.exp(logs)), axis=0)
        return np.asarray((fall * only_second).sum(axis=0))


@dataclass(frozen=True, slots=True)
class Effects:
    """Seconds with factors by station, hour of the day and kind of unit: a log-normal.

    ``seconds`` is the median where nothing is known, ``spread`` the standard deviation of
    the logarithm. A name or hour that was not seen has the factor one.
    """

    seconds: float
    spread: float
    station: Mapping[str, float] = field(default_factory=dict)
    hour: Mapping[str, float] = field(default_factory=dict)
    kind: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.seconds) and self.seconds > 0.0):
            raise InputError(f"response times: {self.seconds} s; a time above zero is needed")
        non_negative(self.spread, "response times: spread")
        for name in ("station", "hour", "kind"):
            factors = {str(key): float(value) for key, value in getattr(self, name).items()}
            if not all(math.isfinite(value) and value > 0.0 for value in factors.values()):
                raise InputError(f"response times: a factor by {name} is not above zero")
            object.__setattr__(self, name, factors)

    def median_s(self, station: Words, hour: npt.ArrayLike, kind: Words) -> FloatArray:
        """The median for every row."""
        hours = np.nan_to_num(np.asarray(hour, np.float64), nan=-1.0).astype(int)
        given = (station, self.station), (hours, self.hour), (kind, self.kind)
        return np.asarray(self.seconds * math.prod(_looked_up(v, table) for v, table in given))


@dataclass(frozen=True, slots=True)
class ResponseModel:
    """Turnout, drive and what units share, as fitted on a unit log or as published.

    ``turnout`` is of units at their station, ``road_turnout_s`` the median of units that
    are already on the road. A drive of an expected D seconds is ``drive_scale`` · D +
    ``beside_s`` on average; its own variance is (``drive_spread`` · D)² + ``slack_s``².
    ``shared`` is the standard deviation of the logarithm of the drive's shared part. With
    probability ``surprise`` a response has a spread of ``wide`` in addition.
    ``unplaced`` is the whole response where no drive can be predicted. ``source`` says in
    words what it rests on, ``until`` is the last day it was fitted on, ``rows`` how many
    responses. ``drive`` says whose D they were fitted on: the checksum of a model, or words;
    "" where it was no drive at all.
    """

    turnout: Effects
    road_turnout_s: float = 10.0
    drive_scale: float = 1.0
    beside_s: float = 0.0
    drive_spread: float = 0.207
    slack_s: float = 34.0
    shared: float = 0.13
    surprise: float = 0.0
    wide: float = 0.0
    unplaced: Effects | None = None
    source: str = "published spreads"
    until: str = ""
    rows: int = 0
    drive: str = ""

    FORMAT: ClassVar[str] = _FILE.format

    def __post_init__(self) -> None:
        for name in ("road_turnout_s", "drive_scale"):
            if not (math.isfinite(value := getattr(self, name)) and value > 0.0):
                raise InputError(f"response times: {name} {value}; a number above zero is needed")
        for name in ("beside_s", "drive_spread", "slack_s", "shared", "surprise", "wide"):
            non_negative(getattr(self, name), f"response times: {name}")
        if self.surprise >= 1.0:
            raise InputError(f"response times: surprise {self.surprise}; it must be below 1")

    @classmethod
    def published(cls) -> "ResponseModel":
        """What is known without a log: spreads of San Francisco's fire department.

        Turnout of engines: median 74 s, 90 % within 132 s. Drives: a coefficient of variation
        of 0.6 at one minute, 0.28 at three, 0.23 at five and 0.21 at ten, and an incident's
        share of 0.13. An agency's own log says more.
        """
        return cls(Effects(74.0, math.log(132.0 / 74.0) / 1.2816))

    def of(
        self,
        drive_s: npt.ArrayLike,
        *,
        station: Words = "",
        hour: npt.ArrayLike = -1,
        kind: Words = "",
        on_road: npt.ArrayLike = False,
        quoted: bool = False,
        waited_s: float = 0.0,
        rolling: bool = False,
    ) -> ResponseTime:
        """The response of a unit whose drive is expected to take ``drive_s``.

        ``quoted`` means a router's quote, which is taken as the drive's mean; else it is
        the time along a path by learned times of roads. NaN means that no drive is known.
        A unit that was sent ``waited_s`` ago and has not left has the rest of its turnout ahead.
        One that is ``rolling`` has none: ``drive_s`` is from where it is.
        """
        drive = np.asarray(drive_s, np.float64)
        if not (np.isnan(drive) | ((drive >= 0.0) & np.isfinite(drive))).all():
            raise InputError("response times: a drive takes zero seconds or more")
        if not quoted:
            drive = self.drive_scale * drive + self.beside_s
        median = self.leaving(station=station, hour=hour, kind=kind, on_road=on_road).median_s
        leaving = median * math.exp(0.5 * self.turnout.spread**2)
        leaving_square = leaving**2 * math.expm1(self.turnout.spread**2)
        turnout = leaving, leaving_square
        if rolling:
            leaving, leaving_square = np.zeros_like(leaving), np.zeros_like(leaving)
        elif waited_s > 0.0:
            left = ResponseTime(median, self.turnout.spread, 0.0).after(waited_s)
            leaving, leaving_square = left.mean_s, left.deviation_s**2
        mean = np.maximum(leaving + drive, 1.0)
        square = leaving_square + (self.drive_spread * drive) ** 2 + self.slack_s**2
        own = np.sqrt(np.log1p(square / mean**2))
        shared = self.shared * drive / mean
        middle = mean * np.exp(-0.5 * (own**2 + shared**2))
        road = self.drive_spread * drive / mean
        if self.unplaced is not None:
            unknown, effects = np.isnan(drive), self.unplaced
            rest = ResponseTime(effects.median_s(station, hour, kind), effects.spread, self.shared)
            if rolling or waited_s > 0.0:
                rest = _with_turnout(rest, turnout, (leaving, leaving_square))
            middle = np.where(unknown, rest.median_s, middle)
            own = np.where(unknown, rest.own, own)
            shared, road = np.where(unknown, rest.shared, shared), np.where(unknown, 0.0, road)
        if np.isnan(middle).any():
            raise InputError(
                "response times: no drive is known, and the log they were fitted on had no "
                "responses without a place; give a drive"
            )
        return ResponseTime(middle, own, shared, self.surprise, self.wide, road)

    def leaving(
        self,
        *,
        station: Words = "",
        hour: npt.ArrayLike = -1,
        kind: Words = "",
        on_road: npt.ArrayLike = False,
    ) -> ResponseTime:
        """The turnout of a unit: seconds from being sent to leaving."""
        at_station = self.turnout.median_s(station, hour, kind)
        median = np.where(on_road, self.road_turnout_s, at_station)
        return ResponseTime(median, self.turnout.spread, 0.0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file that :meth:`load` turns into an equal model."""
        _FILE.write(path, asdict(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str], drives: str = "") -> "ResponseModel":
        """Read a model, or say in one line why the file holds none.

        A file that was fitted on other drives than ``drives``, the checksum of the model that is
        used, is warned about.
        """
        with _FILE.reading(path) as content:
            stored: dict[str, Any] = {name: content[name] for name in cls.__slots__}
            for name in ("turnout", "unplaced"):
                stored[name] = None if stored[name] is None else Effects(**stored[name])
            found = cls(**stored)
        if drives and found.drive not in ("", drives):
            warnings.warn(
                f"{os.fspath(path)}: fitted on drives by {found.drive}, not by this model "
                f"({drives}): its forecasts are not scaled as they should be; fit response times "
                "with `ideal races --model`",
                stacklevel=2,
            )
        return found


def _with_turnout(
    whole: ResponseTime, before: tuple[Any, Any], now: tuple[Any, Any]
) -> ResponseTime:
    """A whole response with what is left of its turnout instead of all; (mean, variance) each.

    Turnout and drive are taken to be independent.
    """
    shared_s = whole.shared * whole.mean_s
    mean = np.maximum(whole.mean_s - before[0], 1.0) + now[0]
    square = np.maximum(whole.deviation_s**2 - before[1], shared_s**2) + now[1]
    return _of_moments(mean, square, shared_s, 0.0)


def mixed(one: ResponseTime, other: ResponseTime, share: Any) -> ResponseTime:
    """A response that is ``other`` with a chance of ``share`` and else ``one``, as a log-normal."""
    parts = ((1.0 - share, one), (share, other))
    mean = sum(chance * time.mean_s for chance, time in parts)
    square = sum(chance * (time.deviation_s**2 + time.mean_s**2) for chance, time in parts)
    shared_s, road_s = (
        sum(chance * getattr(time, name) * time.mean_s for chance, time in parts)
        for name in ("shared", "road")
    )
    return _of_moments(mean, square - mean**2, shared_s, road_s)


def _of_moments(mean: Any, square: Any, shared_s: Any, road_s: Any) -> ResponseTime:
    """A log-normal by its mean, its variance, and the seconds of it that are shared."""
    spread = np.sqrt(np.log1p(np.maximum(square, 0.0) / mean**2))
    shared = np.minimum(shared_s / mean, spread)
    own = np.sqrt(np.maximum(spread**2 - shared**2, 0.0))
    return ResponseTime(mean * np.exp(-0.5 * spread**2), own, shared, road=road_s / mean)


@lru_cache(maxsize=64)
def _by_plain_name(factors: tuple[tuple[str, float], ...]) -> Mapping[str, float]:
    return {plain_name(name): factor for name, factor in factors}


def _looked_up(values: Any, table: Mapping[str, float]) -> FloatArray:
    """The factor of every row; one where the table does not have it.

    A station is meant whether its name is in capitals or not, with spaces and hyphens or not.
    """
    known = _by_plain_name(tuple(table.items()))
    if np.ndim(values) == 0:  # one unit of one call: the usual case, and a hundred times as fast
        return np.asarray(known.get(plain_name(str(values)), 1.0))
    names, place = np.unique(np.asarray(values).astype(str), return_inverse=True)
    factors = np.array([known.get(plain_name(str(name)), 1.0) for name in names])
    return factors[place.reshape(np.shape(values))]
