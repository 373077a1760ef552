"""Who drives where and when: a gravity model by hour.

Streets carry homes and jobs by their class and length; jobs gather where the
city is quickest to reach. Three gravity matrices (to work, from work, all
else) are mixed by the hour, and the level of each hour follows the kind of day.
Every day has its own seeded unevenness, so that no two Mondays are alike.
"""

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import LocalPlane
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.traffic.sumo.network import lanes_per_direction, strong_parts
from ideal_dispatch.traffic.sumo.plan import HOUR_S, DayPlan

PEAK_TRIPS_PER_LANE_KM = 30.0
"""Departures per hour and lane kilometre at level 1; calibrated on the embedded city."""

LEVELS = MappingProxyType(
    {
        "weekday": (.10, .07, .05, .05, .07, .18, .45, .84, 1., .84, .66, .62,
                    .64, .64, .64, .70, .82, .96, 1., .82, .58, .44, .32, .18),
        "saturday": (.14, .10, .07, .05, .05, .08, .20, .36, .50, .60, .68, .74,
                     .76, .76, .76, .76, .76, .76, .74, .66, .54, .44, .36, .26),
        "sunday": (.16, .11, .08, .06, .05, .06, .14, .24, .36, .48, .58, .64,
                   .66, .66, .66, .68, .68, .68, .64, .56, .46, .36, .28, .18),
        "holiday": (.18, .12, .08, .06, .05, .06, .12, .20, .32, .46, .58, .66,
                    .70, .70, .70, .72, .72, .70, .66, .60, .52, .42, .32, .22),
    }
)  # fmt: skip
"""Departures of each hour relative to the weekday's peak, by kind of day."""

TO_WORK = (.2, .2, .2, .3, .5, .65, .70, .70, .65, .5, .3, .2,
           .15, .15, .1, .1, .1, .1, .1, .1, .1, .1, .1, .15)  # fmt: skip
FROM_WORK = (.2, .2, .2, .1, .1, .1, .1, .1, .1, .1, .15, .2,
             .2, .2, .25, .3, .5, .65, .65, .6, .5, .45, .4, .3)  # fmt: skip
"""Shares of commuting on a weekday; on other days a third of them."""

_HOMES = {"residential": 1.0, "living_street": 1.0, "unclassified": 0.8, "tertiary": 0.5,
          "service": 0.4, "secondary": 0.3, "primary": 0.15}  # fmt: skip
_JOBS = {"primary": 1.0, "secondary": 1.0, "tertiary": 0.8, "unclassified": 0.6,
         "service": 0.4, "residential": 0.25, "living_street": 0.2}  # fmt: skip
_ZONE_M = 400.0
_CENTRE_S = 240.0
_REACH_S = 420.0
_WALK_S, _WALK_FACTOR = 90.0, 0.02  # few drive round the corner
_UNEVEN = 0.25
_SLOT_S = 300
_ROUNDS = 30


@dataclass(frozen=True, slots=True, eq=False)
class Departures:
    """Departures in order of time: second of the day, first edge, last edge."""

    depart_s: FloatArray
    origin: IntArray
    destination: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """Zones of a city with their homes, jobs and distances; draws the drivers of a day."""

    zone: IntArray
    homes: FloatArray
    jobs: FloatArray
    between_s: FloatArray
    peak_trips: float

    @classmethod
    def of(cls, network: RoadNetwork) -> "Demand":
        """The demand that the network's own streets suggest."""
        usable = _strong(network)
        homes, jobs = (_weights(network, table) * usable for table in (_HOMES, _JOBS))
        if not (homes.any() and jobs.any()):
            raise InputError("demand: no streets with homes and jobs that are joined both ways")
        zone, nodes = _zones(network, usable)
        between_s = np.array(
            [network.distances(network.free_flow_times_s, int(node))[nodes] for node in nodes]
        )
        mean_s = between_s.mean(axis=0)
        jobs = jobs * np.exp(-(mean_s - mean_s.min()) / _CENTRE_S)[zone]
        lane_km = float(network.length_m @ lanes_per_direction(network)) / 1000
        return cls(zone, homes, jobs, between_s, PEAK_TRIPS_PER_LANE_KM * lane_km)

    def departures(self, plan: DayPlan, from_s: int, until_s: int) -> Departures:
        """The drivers who leave between two seconds of the day, the same for the same plan."""
        rng = np.random.default_rng([plan.seed, from_s % (24 * HOUR_S)])
        uneven = np.random.default_rng(plan.seed).lognormal(0, _UNEVEN, (2, len(self.between_s)))
        homes, jobs = self.homes * uneven[0][self.zone], self.jobs * uneven[1][self.zone]
        both = homes / homes.sum() + jobs / jobs.sum()
        purposes = [(homes, jobs), (jobs, homes), (both, both)]
        matrices = [self._gravity(a, b) for a, b in purposes]
        parts = []
        for start_s in range(from_s, until_s, _SLOT_S):
            stop_s = min(start_s + _SLOT_S, until_s)
            hourly = self.peak_trips * plan.demand_factor * level(plan, (start_s + stop_s) / 2)
            for share, (a, b), matrix in zip(
                _shares(plan, start_s), purposes, matrices, strict=True
            ):
                count = int(rng.poisson(hourly * share * (stop_s - start_s) / HOUR_S))
                pair = rng.choice(matrix.size, count, p=matrix.ravel())
                origins, destinations = np.divmod(pair, len(matrix))
                parts.append(
                    (
                        rng.uniform(start_s, stop_s, count),
                        self._edges(origins, a, plan, rng),
                        self._edges(destinations, b, plan, rng),
                    )
                )
        if not parts:
            raise InputError(f"demand: no time between {from_s} s and {until_s} s")
        depart_s, origin, destination = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        order = np.argsort(depart_s, kind="stable")
        return Departures(depart_s[order].round(1), origin[order], destination[order])

    def _gravity(self, origin: FloatArray, destination: FloatArray) -> FloatArray:
        """Shares of zone pairs whose margins are the given weights (Furness's method)."""
        size = len(self.between_s)
        out, into = (np.bincount(self.zone, weight, size) for weight in (origin, destination))
        out, into = out / out.sum(), into / into.sum()
        matrix = np.exp(-self.between_s / _REACH_S)
        matrix[self.between_s < _WALK_S] *= _WALK_FACTOR
        for _ in range(_ROUNDS):
            matrix *= (out / np.maximum(matrix.sum(axis=1), 1e-300))[:, None]
            matrix *= into / np.maximum(matrix.sum(axis=0), 1e-300)
        shares: FloatArray = matrix / matrix.sum()
        return shares

    def _edges(
        self, zones: npt.NDArray[np.int64], weight: FloatArray, plan: DayPlan,
        rng: np.random.Generator,
    ) -> IntArray:  # fmt: skip
        """An edge of each zone, by weight; no trip starts or ends on a closed road."""
        open_weight = weight.copy()
        for closure in plan.closures:
            open_weight[list(closure.edges)] *= 1e-9
        order = np.argsort(self.zone, kind="stable")
        sums = np.cumsum(open_weight[order])
        ends = np.searchsorted(self.zone[order], np.arange(len(self.between_s)), side="right")
        high = sums[ends - 1][zones]
        low = np.concatenate([[0.0], sums[ends[:-1] - 1]])[zones]
        draw = low + (high - low) * rng.random(zones.size)
        slot = np.minimum(np.searchsorted(sums, draw, side="right"), ends[zones] - 1)
        edges: IntArray = order[slot].astype(np.int32)
        return edges


def level(plan: DayPlan, second: float) -> float:
    """Demand at a second of the day, between the levels of the hours around it."""
    levels = LEVELS[plan.kind]
    return float(np.interp(second / HOUR_S - 0.5, np.arange(24), levels, period=24))


def _shares(plan: DayPlan, second: int) -> tuple[float, float, float]:
    hour, weight = second // HOUR_S % 24, 1.0 if plan.kind == "weekday" else 1 / 3
    to_work, from_work = TO_WORK[hour] * weight, FROM_WORK[hour] * weight
    return to_work, from_work, 1 - to_work - from_work


def _weights(network: RoadNetwork, table: dict[str, float]) -> FloatArray:
    by_class = np.array([table.get(name, 0.0) for name in ROAD_CLASSES])
    # a long road has no more doors than the city's blocks are long
    weights: FloatArray = by_class[network.road_class] * np.minimum(network.length_m, 200.0)
    return weights


def _strong(network: RoadNetwork) -> BoolArray:
    """Edges within the largest part of the network where every place reaches every other."""
    part = strong_parts(network)
    largest = part == np.bincount(part).argmax()
    inside: BoolArray = largest[network.tail] & largest[network.head]
    return inside


def _zones(network: RoadNetwork, usable: BoolArray) -> tuple[IntArray, npt.NDArray[np.int64]]:
    """Squares of the map: the zone of each edge by its head, and its middle node."""
    plane = LocalPlane(float(network.lat.mean()))
    places = plane.to_metres(np.column_stack([network.lon, network.lat]))
    heads = places[network.head]
    cells = np.floor((heads - places.min(axis=0)) / _ZONE_M).astype(np.int64)
    # edges that cannot be used share the square of the first that can
    cells[~usable] = cells[np.argmax(usable)]
    _, number_of = np.unique(cells, axis=0, return_inverse=True)
    zone: IntArray = number_of.ravel().astype(np.int32)
    nodes = []
    for number in range(int(zone.max()) + 1):
        members = network.head[(zone == number) & usable]
        away = np.hypot(*(places[members] - places[members].mean(axis=0)).T)
        nodes.append(members[np.argmin(away)])
    return zone, np.array(nodes, np.int64)
