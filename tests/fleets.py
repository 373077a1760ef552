"""Small fleets for tests: some whose every time is known beforehand, one like a town."""

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.fleet.calls import ROLES, Calls
from ideal_dispatch.fleet.city import Duration, FleetCity, Priority, Work
from ideal_dispatch.fleet.travel import STEPS, Travel
from ideal_dispatch.forecast.response_time import Effects, ResponseModel

URGENT = (Priority("urgent", 1.0),)


def certain(turnout_s: float = 60.0, road_turnout_s: float = 10.0) -> ResponseModel:
    """Responses without any spread: a turnout, and the drive as the matrix has it."""
    return ResponseModel(
        Effects(turnout_s, 0.0), road_turnout_s, drive_spread=0.0, slack_s=0.0, shared=0.0
    )


def fleet(
    fast_s: npt.ArrayLike | Travel,
    units: npt.ArrayLike,
    *,
    slow_s: npt.ArrayLike | None = None,
    stations: int = 1,
    hospital: int = 0,
    responses: ResponseModel | None = None,
    **settings: Any,
) -> FleetCity:
    """A fleet on a matrix of seconds: its first places are the stations, every place is a cell."""
    travel = fast_s if isinstance(fast_s, Travel) else matrix_travel(fast_s, slow_s)
    places = np.arange(travel.num_places, dtype=np.int32)
    usual: dict[str, Any] = {
        "calls_per_day": 10.0, "priorities": URGENT, "arrests": 1.0, "weights": np.ones(len(places))
    }  # fmt: skip
    return FleetCity(
        "test", travel, tuple(f"S{k}" for k in range(stations)), places[:stations],
        np.asarray(units, np.int32), np.array([hospital], np.int32), places,
        responses=responses or certain(), **(usual | settings),
    )  # fmt: skip


def matrix_travel(fast_s: Any, slow_s: Any = None) -> Travel:
    """Places without a map: a unit is where it left until five eighths of the way are done."""
    fast = np.asarray(fast_s, np.float64)
    count, half = len(fast), (np.arange(STEPS) + 1) * 2 > STEPS + 1
    ends = np.meshgrid(np.arange(count), np.arange(count), indexing="ij")
    between = np.where(half, ends[1][..., None], ends[0][..., None])
    nowhere = np.full(count, np.nan)
    slow = fast if slow_s is None else np.asarray(slow_s, np.float64)
    return Travel(fast, slow, between.astype(np.int32), nowhere, nowhere)


def line(*at_s: float) -> Travel:
    """Places on one straight road, so many seconds from its begin; twice that without lights."""
    where = np.array(at_s)
    fast_s = np.abs(where[:, None] - where)
    parts = (np.arange(STEPS) + 1) / (STEPS + 1)
    way = where[:, None, None] + (where[:, None] - where[:, None, None]) * parts
    between = np.abs(way[..., None] - where).argmin(axis=-1)
    nowhere = np.full(len(where), np.nan)
    return Travel(fast_s, 2.0 * fast_s, between.astype(np.int32), nowhere, nowhere)


def one_place(units: int, service: Duration, erlangs: float, **work: Any) -> FleetCity:
    """All units and all calls in one place, no time but that at the scene: a queue."""
    return fleet(
        [[0.0]], np.zeros(units, int), responses=certain(1e-6, 1e-6),
        calls_per_day=erlangs * 86_400.0 / service.mean_s, arrests=1e-9,
        work=Work(delay_s=0.0, scene=service, transported=0.0, **work),
    )  # fmt: skip


def calls_at(
    city: FleetCity,
    at_s: list[float],
    cell: list[int],
    priority: list[int] | None = None,
    *,
    scene_s: float = 600.0,
    transported: bool = False,
    handover_s: float = 0.0,
    assist_s: float = 300.0,
    entitled: bool = True,
) -> Calls:
    """Calls as they are told, with no luck of any kind."""
    count = len(at_s)
    level = np.array(priority or [0] * count, np.int8)
    second = np.full(count, entitled) & (level == 0)
    return Calls(
        np.array(at_s, float), np.array(cell, np.int32), level, second, second,
        np.full(count, scene_s), np.full(count, transported), np.full(count, handover_s),
        np.full(count, 0.5), np.zeros((count, 1 + 4 * ROLES)), np.full(count, assist_s),
    )  # fmt: skip


def town(units: int = 8, **settings: Any) -> FleetCity:
    """A town of 30 places and three stations within 12 minutes of each other, as published."""
    where = np.random.default_rng(7).uniform(0.0, 500.0, (30, 2))
    fast_s = 30.0 + np.hypot(*(where[:, None] - where[None]).transpose(2, 0, 1))
    np.fill_diagonal(fast_s, 0.0)
    priorities = (Priority("red", 0.4), Priority("amber", 0.4), Priority("green", 0.2, False))
    usual: dict[str, Any] = {
        "slow_s": 1.3 * fast_s, "stations": 3, "hospital": 5, "priorities": priorities,
        "calls_per_day": 60.0, "arrests": 0.1, "responses": ResponseModel.published(),
        "redispatch": np.triu(np.ones((3, 3), bool), 1).T,
        "by_hour": 1.0 + 0.5 * np.sin(np.arange(24) / 24 * 2.0 * np.pi),
    }  # fmt: skip
    return fleet(fast_s, np.arange(units) % 3, **(usual | settings))


def with_luck(calls: Calls, call: int, **columns: float) -> Calls:
    """The same calls, one of them with some luck: shared, turnout0, drive0, turnout1, drive1."""
    place = {"shared": 0, "turnout0": 1, "drive0": 2, "turnout1": 5, "drive1": 6}
    luck = calls.luck.copy()
    for name, value in columns.items():
        luck[call, place[name]] = value
    return dataclasses.replace(calls, luck=luck)
