"""The threshold of a fleet: a second ambulance must save more lives than its absence costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ideal_dispatch.arrays import IntArray, non_negative
from ideal_dispatch.dispatch.price import UnitPrices
from ideal_dispatch.dispatch.recall import RECALLS, Recall
from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE, SurvivalCurve
from ideal_dispatch.dispatch.threshold import SecondCost, seconds_worth
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.geodesy import unit_vectors

if TYPE_CHECKING:
    from ideal_dispatch.dispatch.candidate import Worth
    from ideal_dispatch.dispatch.decision import Pair
    from ideal_dispatch.dispatch.situation import Situation


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

    prices: UnitPrices
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
        count = self.prices.num_stations
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
        hold_s, hour = self._hold_s(primary_s, primary_s), int(self.prices.tables.busy.argmax())
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
