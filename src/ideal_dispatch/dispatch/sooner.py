"""The better primary: another free unit that is expected sooner than the one that was sent."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ideal_dispatch.dispatch.expected_gain import positive_probability

if TYPE_CHECKING:
    from ideal_dispatch.dispatch.situation import Situation
    from ideal_dispatch.dispatch.worth import Worth

LEAST_SOONER_S = 30.0
"""Seconds by which another unit must be expected sooner to be named: its crew has yet to leave."""

LEAST_SURE = 0.8
"""How probable it must be that it is sooner at all."""


@dataclass(frozen=True, slots=True)
class SoonerUnit:
    """A depot with free units, one of which is expected so many seconds sooner than the primary.

    ``probability`` is that of its arriving before the primary at all, by the spread of the
    expected gain.
    """

    depot: str
    units: int
    seconds: float
    probability: float


def sooner_unit(
    situation: "Situation", primary: int, worths: Iterable["Worth"], least_s: float
) -> SoonerUnit | None:
    """The unit of another station than the primary's that is expected soonest.

    It would leave now, the primary has been driving for ``situation.sent_ago_s``.
    None where none is sooner by more than ``least_s``, or none surely enough.
    """
    found = []
    for one in worths:
        station, lead_s = one.way.assignment.station, one.mean_s - situation.sent_ago_s
        probability = positive_probability(lead_s, one.spread_s)
        if station != primary and lead_s > least_s and probability >= LEAST_SURE:
            depot, units = situation.stations[station].depot.name, situation.stations[station].units
            found.append(SoonerUnit(depot, units, round(lead_s, 1), round(probability, 3)))
    return max(found, key=lambda one: one.seconds, default=None)
