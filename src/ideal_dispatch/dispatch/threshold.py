"""How many seconds a second ambulance must be worth ([IDEAL] thr, appendix B)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from ideal_dispatch.arrays import IntArray, non_negative, whole_number
from ideal_dispatch.dispatch.price import PriceTables
from ideal_dispatch.dispatch.recall import RECALLS, Recall
from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE, SurvivalCurve
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.geodesy import unit_vectors

if TYPE_CHECKING:
    from ideal_dispatch.dispatch.candidate import Worth
    from ideal_dispatch.dispatch.decision import Pair
    from ideal_dispatch.dispatch.situation import Situation

USUAL_COST = 0.001
"""What a second ambulance must bring by default: one life in a thousand calls.

The others lose less while one unit is away for 15 minutes in a fleet that is busy half of its
time, and more at 70 %; docs/dispatch.md has how to find one's own.
"""

LONGEST_S = 86_400.0
"""No threshold is longer: where a curve is all but flat, nothing is worth a second ambulance."""


@runtime_checkable
class Threshold(Protocol):
    """A rule for the seconds that justify a second ambulance.

    It may also have ``words(primary_s, free_units)``, the same for people, and
    ``second_cost(situation, pair, primary_s, worth)``: the :class:`SecondCost` of one call,
    whose seconds then are the threshold. ``worth`` is None where the policy computes none.
    """

    def seconds(self, primary_s: float, free_units: int) -> float:
        """The threshold if the primary is expected after ``primary_s``.

        ``free_units`` are all that are free when the call comes in, the
        primary included. Minus infinity means that a second always goes.
        """
        ...


@dataclass(frozen=True, slots=True)
class ConstantThreshold:
    """The same threshold for every call; minus infinity always sends a second."""

    limit_s: float

    def __post_init__(self) -> None:
        if math.isnan(self.limit_s) or self.limit_s == math.inf:
            raise InputError(
                f"threshold {self.limit_s}: a number of seconds is needed, "
                "or minus infinity to always send a second"
            )

    def seconds(self, primary_s: float, free_units: int) -> float:
        return self.limit_s

    def words(self, primary_s: float, free_units: int) -> str:
        if self.limit_s == -math.inf:
            return "a second ambulance always goes"
        return f"a second ambulance must be worth more than {self.limit_s:.0f} s, as for every call"


@dataclass(frozen=True, slots=True)
class SecondCost:
    """What the second ambulance of one call costs the others, in lives.

    ``per_s`` are the lives that one second of time saves in this call. ``hold_s`` is for how
    long the unit is expected to be away, None where the cost does not depend on it.
    """

    lives: float
    per_s: float
    words: str
    hold_s: float | None = None

    @property
    def seconds(self) -> float:
        """The seconds that are worth the cost: the threshold."""
        return seconds_worth(self.lives, self.per_s)


def seconds_worth(lives: float, per_s: float) -> float:
    """The seconds that save so many lives, where each second saves ``per_s``."""
    return lives / per_s if lives < per_s * LONGEST_S else LONGEST_S


ALWAYS = ConstantThreshold(-math.inf)
"""A second ambulance always goes: the "dual" form of a policy."""

AT_ZERO = ConstantThreshold(0.0)
"""A second ambulance goes where its score is above zero."""


@dataclass(frozen=True, slots=True)
class CapacityCost:
    """What sending a second ambulance costs, as a risk of death elsewhere ([IDEAL] C).

    ``base`` is the cost with at least ``full_units`` free: 0.001 says that a
    second must save one life in a thousand calls. With fewer it grows as
    (full_units / free)^steepness; without ``full_units`` it is the same always.
    """

    base: float
    full_units: int | None = None
    steepness: float = 1.0

    def __post_init__(self) -> None:
        non_negative(self.base, "cost")
        non_negative(self.steepness, "steepness")
        if self.full_units is not None and whole_number(self.full_units, "full_units") < 1:
            raise InputError(f"full_units {self.full_units}: at least one is needed")

    def risk(self, free_units: int) -> float:
        """The cost with so many units free."""
        if self.full_units is None or free_units >= self.full_units:
            return self.base
        return float(self.base * (self.full_units / max(free_units, 1)) ** self.steepness)


@dataclass(frozen=True, slots=True)
class ClinicalThreshold:
    """Cost over slope, C / λ(t): what the second must save to be worth its cost.

    A gain of δ seconds exceeds it just where λ·δ > C ([IDEAL] appendix B).
    With a logistic curve the slope falls with the primary's time and the
    threshold grows: the farther the patient, the fewer second ambulances.
    """

    curve: SurvivalCurve
    cost: CapacityCost

    def seconds(self, primary_s: float, free_units: int) -> float:
        slope_per_s = float(self.curve.slope_per_s(primary_s))
        return seconds_worth(self.cost.risk(free_units), slope_per_s)

    def words(self, primary_s: float, free_units: int) -> str:
        limit_s = self.seconds(primary_s, free_units)
        risk, slope = self.cost.risk(free_units), float(self.curve.slope_per_s(primary_s))
        return (
            f"a second ambulance must be worth more than {limit_s:.0f} s: with "
            f"{free_units} units free it costs {_points(100 * risk)} of survival, and after "
            f"{primary_s / 60:.1f} min a minute is worth {_points(6000 * slope)} by "
            f"{self.curve.name}"
        )

    def second_cost(
        self, situation: "Situation", pair: "Pair", primary_s: float, worth: "Worth | None"
    ) -> SecondCost:
        """The fixed cost; it is the same for every second unit and every absence."""
        free_units = situation.free_units
        slope_per_s = float(self.curve.slope_per_s(primary_s))
        words = self.words(primary_s, free_units)
        return SecondCost(self.cost.risk(free_units), slope_per_s, words)


def _points(percent: float) -> str:
    number = f"{percent:.2g}"
    return f"{number} {'point' if number == '1' else 'points'}"


# --- the price of a fleet -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class PricedThreshold:
    """A second goes where the lives it saves exceed C(H), the price of its absence.

    ``prices`` know the stations in the order of ``units``, the number on duty at each. H, for
    how long the unit is away, follows from ``recall``: where the loser is stood down it is
    E[min(T₁, T₂)], the time until the first arrival; else it is the second's response and
    ``assist_s`` at the scene. Of the calls that are asked about a share ``arrest_chance`` are
    cardiac arrests, which alone are saved.

    With a gain of δ seconds that saves ΔR lives the threshold is C(H) δ / ΔR seconds: δ
    exceeds it just where ΔR > C(H). A policy that computes no ΔR is given C(H) / λ(t).
    """

    prices: PriceTables
    units: Mapping[str, int]
    recall: Recall = "first arrival"
    curve: SurvivalCurve = CURVES[USUAL_CURVE]
    arrest_chance: float = 1.0
    assist_s: float = 600.0

    def __post_init__(self) -> None:
        if self.recall not in RECALLS:
            raise InputError(f"recall {self.recall!r}: choose {', '.join(RECALLS)}")
        if not 0.0 < self.arrest_chance <= 1.0:
            raise InputError(f"arrest_chance {self.arrest_chance}: more than 0, up to 1 is needed")
        non_negative(self.assist_s, "assist_s")
        count = self.prices.order.shape[1]
        if len(self.units) != count:
            raise InputError(f"units of {len(self.units)} stations, prices of {count}")
        object.__setattr__(self, "units", dict(self.units))

    def second_cost(
        self, situation: "Situation", pair: "Pair", primary_s: float, worth: "Worth | None"
    ) -> SecondCost:
        """What the second of a call costs in the fleet as it is now."""
        primary, second = pair
        assert second is not None
        stations = self._stations(situation)
        free = np.zeros(len(self.units), np.int32)
        for number, station in zip(stations, situation.stations, strict=True):
            free[number] += station.units
        for number, name in enumerate(self.units):
            free[number] += situation.elsewhere.get(name, 0)
        if situation.sent is None:  # the primary is still among the units of its station
            free[stations[primary.station]] -= 1
        left_s = max(primary_s - situation.sent_ago_s, 0.0)
        if worth is None:
            second_s = situation.expected_s(second.station, second.path)
            hold_s = self._hold_s(min(left_s, second_s), second_s)
            per_s = self.arrest_chance * float(self.curve.slope_per_s(primary_s))
            saving = f"a minute saves {_of_10_000(60.0 * per_s)}"
        else:
            hold_s = self._hold_s(left_s - worth.gain_s, left_s - worth.mean_s)
            saved = self.arrest_chance * worth.survival_gain
            per_s = saved / worth.gain_s if worth.gain_s > 0.0 else 0.0
            saving = f"it saves {_of_10_000(saved)}"
        hour = situation.context.at.hour
        lives = self._lives(free, stations[second.station], hold_s, hour)
        words = f"{_words(lives, per_s, hold_s)}; here {saving}"
        return SecondCost(lives, per_s, words, hold_s)

    def cost_of(self, free: Mapping[str, int], station: str, hold_s: float, hour: int) -> float:
        """What the others lose, in lives, if a unit of a station stays away for ``hold_s`` more.

        ``free`` are the units that are free by station, without that one.
        """
        names = [*self.units]
        if station not in names:
            raise InputError(f"depot {station}: the fleet has no units of it; add them")
        at_home = np.array([free.get(name, 0) for name in names], np.int32)
        at_home[names.index(station)] += 1
        return self._lives(at_home, names.index(station), max(hold_s, 0.0), hour)

    def seconds(self, primary_s: float, free_units: int) -> float:
        """The threshold where no more is known: the units evenly free, in the busiest hour."""
        lives, per_s, _ = self._usual(primary_s, free_units)
        return seconds_worth(lives, per_s)

    def words(self, primary_s: float, free_units: int) -> str:
        return f"{_words(*self._usual(primary_s, free_units))} with {free_units} units free"

    def _usual(self, primary_s: float, free_units: int) -> tuple[float, float, float]:
        """The cost and what a second saves, by the curve's slope, and the absence."""
        on_duty = np.array([*self.units.values()], np.int32)
        free = np.zeros_like(on_duty)
        for _ in range(max(free_units, 1)):
            free[(on_duty - free).argmax()] += 1
        hold_s, hour = self._hold_s(primary_s, primary_s), int(self.prices.busy.argmax())
        costs = [self._lives(free, one, hold_s, hour) for one in np.flatnonzero(free).tolist()]
        per_s = self.arrest_chance * float(self.curve.slope_per_s(primary_s))
        return float(np.mean(costs)), per_s, hold_s

    def _hold_s(self, first_s: float, second_s: float) -> float:
        """For how long the second is away, by when the first and when itself are expected."""
        return max(second_s + self.assist_s if self.recall == "none" else first_s, 0.0)

    def _lives(self, free: IntArray, station: int, hold_s: float, hour: int) -> float:
        away = np.maximum(np.array([*self.units.values()]) - free, 0)
        busy = [(int(at), None) for at in np.repeat(np.arange(len(away)), away)]
        return self.prices.cost(free, busy, station, hold_s, hour)

    def _stations(self, situation: "Situation") -> list[int]:
        """The station of the prices for every start: a unit's home, else the nearest."""
        known = {name: number for number, name in enumerate(self.units)}
        starts = [station.depot for station in situation.stations]
        found = [known.get(depot.home or depot.name, -1) for depot in starts]
        homes = [start for start, number in enumerate(found) if number >= 0]
        for start, depot in enumerate(starts):
            if found[start] >= 0:
                continue
            if not (depot.on_road and homes):
                raise InputError(f"depot {depot.name}: the fleet has no units of it; add them")
            network, nodes = situation.network, [starts[home].node for home in homes]
            here, *there = unit_vectors(*(each[[depot.node, *nodes]] for each in
                                          (network.lon, network.lat)))  # fmt: skip
            found[start] = found[homes[int((there @ here).argmax())]]
        return found


def _words(lives: float, per_s: float, hold_s: float) -> str:
    return (
        f"a second ambulance must be worth more than {seconds_worth(lives, per_s):.2g} s: away for "
        f"{hold_s / 60:.0f} min it costs the others {_of_10_000(lives)} of 10,000 lives"
    )


def _of_10_000(lives: float) -> str:
    return f"{1e4 * lives:.2g}"
