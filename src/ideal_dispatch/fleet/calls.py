"""The calls of a year: when, where, how urgent, how long they take, and their luck."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import count as count_up

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import read_only
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.city import HOURS, FleetCity

DAY_S = 86_400.0
YEAR_DAYS = 365
WARM_UP_DAYS = 1
"""Days before the year that fill the streets with units and are not counted."""

ROLES = 2
"""The primary and the second: each has luck of its own at a call, whoever takes the role."""


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Calls in the order in which they come in, one entry each.

    ``at_s`` counts from a midnight. ``cell`` and ``priority`` are indices of the city.
    ``arrest`` marks cardiac arrests, ``entitled`` the calls for which a second unit is
    considered. ``scene_s`` and ``handover_s`` are what the patient takes, ``transported``
    says whether there is a handover at all; ``assist_s`` is what a unit takes that comes
    second. ``chance`` is a uniform number for rules that draw. ``luck`` has standard normal
    numbers, one column for the part that all units of the call share and then, for each
    role, turnout, drive, surprise (uniform) and its size. So luck belongs to the call and
    the role: it is the same under every rule.
    """

    at_s: npt.NDArray[np.float64]
    cell: npt.NDArray[np.int32]
    priority: npt.NDArray[np.int8]
    arrest: npt.NDArray[np.bool_]
    entitled: npt.NDArray[np.bool_]
    scene_s: npt.NDArray[np.float64]
    transported: npt.NDArray[np.bool_]
    handover_s: npt.NDArray[np.float64]
    chance: npt.NDArray[np.float64]
    luck: npt.NDArray[np.float64]
    assist_s: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        kinds = ("f8", "i4", "i1", "?", "?", "f8", "?", "f8", "f8", "f8", "f8")
        for item, kind in zip(fields(self), kinds, strict=True):
            columns = (1 + 4 * ROLES,) if item.name == "luck" else ()
            shape = (len(self.at_s), *columns)
            values = read_only(
                getattr(self, item.name), np.dtype(kind), shape, f"calls {item.name}"
            )
            object.__setattr__(self, item.name, values)
        if (np.diff(self.at_s) < 0.0).any():
            raise InputError("calls: they must be in the order in which they come in")

    def __len__(self) -> int:
        return len(self.at_s)


def counted_from_s(city: FleetCity, days: float) -> float:
    """The moment from which the calls of a run count: after the first days, which fill the streets.

    All calls of a list count, and all of a run that is over so soon.
    """
    whole = city.listed is not None or days <= WARM_UP_DAYS
    return 0.0 if whole else WARM_UP_DAYS * DAY_S


def draw_calls(
    city: FleetCity, seed: int, year: int = 0, *, days: int = YEAR_DAYS + WARM_UP_DAYS
) -> Calls:
    """The calls of one year, a Poisson process by hour of the day; same seed and year, same calls.

    Every kind of number has its generator: another setting of one changes no other.
    A city with a list has the calls of the list, whatever ``days`` says; what they take is drawn.
    """
    rng = _generators(seed, year)
    if city.listed is not None:
        at_s, cell, priority, _ = city.listed
    else:
        rate = city.by_hour / city.by_hour.mean() * city.calls_per_day / HOURS
        counts = next(rng).poisson(np.tile(rate, days))
        begin = np.repeat(np.arange(days * HOURS) * 3600.0, counts)
        at_s = np.sort(begin + 3600.0 * next(rng).random(len(begin)), kind="stable")
        shares = np.array([one.share for one in city.priorities])
        cell = _of_shares(next(rng).random(len(at_s)), city.weights)
        priority = _of_shares(next(rng).random(len(at_s)), shares)
    count, work, first = len(at_s), city.work, city.priorities[0].share
    which = next(rng).random(count)
    urgent = priority == 0
    luck = next(rng).standard_normal((count, 1 + 4 * ROLES))
    luck[:, 3::4] = next(rng).random((count, ROLES))  # surprises are drawn evenly
    return Calls(
        at_s, cell, priority.astype(np.int8),
        urgent & (which < city.arrests / first), urgent & (which < city.entitled / first),
        work.scene.drawn(next(rng), count), next(rng).random(count) < work.transported,
        work.handover.drawn(next(rng), count), next(rng).random(count), luck,
        work.assist.drawn(next(rng), count),
    )  # fmt: skip


def _generators(seed: int, year: int) -> Iterator[np.random.Generator]:
    for part in count_up():
        yield np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, year, part])))


def _of_shares(
    uniform: npt.NDArray[np.float64], shares: npt.NDArray[np.float64]
) -> npt.NDArray[np.int32]:
    edges = np.cumsum(shares / shares.sum())
    which = np.minimum(np.searchsorted(edges, uniform, side="right"), len(shares) - 1)
    return which.astype(np.int32)
