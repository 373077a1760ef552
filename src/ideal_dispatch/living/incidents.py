"""The calls of a living city: when and where they come, and what they take."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.fleet.calls import DAY_S, YEAR_DAYS, Calls, draw_calls
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.living.plan import Plan

if TYPE_CHECKING:
    from ideal_dispatch.living.city import Unit

_ASTRAY = 1e-4  # degrees: how far a caller is from the junction that stands for the address
_HANDS, _DICE = 1, 2  # generators of a call: of its units, and of its dispatcher


@dataclass(eq=False)
class Incident:
    """A call and who works on it. ``first`` is the unit that was there first."""

    id: str
    at_s: float
    node: int
    lon: float
    lat: float
    hospital: int | None
    scene_s: float
    handover_s: float
    assist_s: float
    priority: int
    luck: Any
    rng: np.random.Generator
    dice: np.random.Generator
    primary: "Unit | None" = None
    second: "Unit | None" = None
    first: "Unit | None" = None
    over: bool = False
    units: "list[Unit]" = field(default_factory=list)


def incoming(plan: Plan, seed: int, begins_s: float) -> Iterator[Incident]:
    """The calls of a city from a moment on, without end; same seed, same calls."""
    for year in count():
        calls = draw_calls(plan.fleet, seed, year, days=YEAR_DAYS)
        before_s = year * YEAR_DAYS * DAY_S
        first = int(np.searchsorted(calls.at_s, begins_s - before_s))
        for row in range(first, len(calls)):
            yield _incident(plan, calls, row, seed, year, before_s)


def _incident(
    plan: Plan, calls: Calls, row: int, seed: int, year: int, before_s: float
) -> Incident:
    cell = int(calls.cell[row])
    node = int(plan.cells[cell])
    rng, dice = (np.random.default_rng([seed, year, row, part]) for part in (_HANDS, _DICE))
    lon, lat = (
        round(float(at[node]) + float(rng.normal(0.0, _ASTRAY)), 6)
        for at in (plan.network.lon, plan.network.lat)
    )
    return Incident(
        f"L{seed}-{year}-{row:05d}", before_s + float(calls.at_s[row]), node, lon, lat,
        int(plan.hospitals[cell]) if calls.transported[row] else None, float(calls.scene_s[row]),
        float(calls.handover_s[row]), float(calls.assist_s[row]), int(calls.priority[row]),
        calls.luck[row], rng, dice,
    )  # fmt: skip


def lasting(
    responses: ResponseModel, luck: Any, role: int, leaving_s: float, drive_s: float
) -> tuple[float, float]:
    """The turnout and the drive of a unit with these means, by the luck of its call and role.

    As in the compiled fleet (:mod:`ideal_dispatch.fleet.events`).
    """
    turnout, own, chance, size = luck[1 + 4 * role : 5 + 4 * role]
    surprise = math.exp(responses.wide * size) if chance < responses.surprise else 1.0
    spread, shared = responses.turnout.spread, responses.shared
    square = math.log1p(responses.drive_spread**2 + (responses.slack_s / max(drive_s, 1.0)) ** 2)
    part = math.sqrt(square) * own - 0.5 * square + shared * luck[0] - 0.5 * shared**2
    return (
        surprise * leaving_s * math.exp(spread * turnout - 0.5 * spread**2),
        surprise * drive_s * math.exp(part),
    )
