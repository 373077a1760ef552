"""The better primary: another free unit that is expected sooner than the one that was sent."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

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

    None where none is sooner by more than ``least_s``, or none surely enough.
    """
    better = [
        one
        for one in worths
        if one.way.assignment.station != primary
        and one.mean_s > least_s
        and one.probability >= LEAST_SURE
    ]
    best = max(better, key=lambda one: one.mean_s, default=None)
    if best is None:
        return None
    station = situation.stations[best.way.assignment.station]
    seconds, probability = round(best.mean_s, 1), round(best.probability, 3)
    return SoonerUnit(station.depot.name, station.units, seconds, probability)
