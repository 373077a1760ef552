"""When and where calls of a made-up agency come in."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import Depot, RoadNetwork

_NEAREST_M, _FARTHEST_M = 600.0, 9_800.0


@dataclass(slots=True)
class SyntheticCalls:
    """Draws calls of a year, or of some ``days``, at nodes within reach of a depot."""

    network: RoadNetwork
    depots: Sequence[Depot]
    zone: ZoneInfo
    year: int
    days: Sequence[date] = ()
    free_flow_s: FloatArray = field(init=False)
    in_reach: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        network, depots = self.network, self.depots
        metres = np.array([network.distances(network.length_m, d) for d in depots])
        times = network.free_flow_times_s
        self.free_flow_s = np.array([network.distances(times, depot) for depot in depots])
        self.in_reach = (metres >= _NEAREST_M) & (metres <= _FARTHEST_M)
        if not self.in_reach.any(axis=1).all():
            raise InputError(
                f"a depot has no node {_NEAREST_M:.0f} to {_FARTHEST_M:.0f} m away by road; "
                "use a larger network"
            )

    def moment(self, rng: np.random.Generator) -> datetime:
        """A call time, more by day than by night, in no hour that comes twice."""
        start, end = (datetime(self.year + n, 1, 1, tzinfo=self.zone) for n in (0, 1))
        while True:
            if self.days:
                start = datetime.combine(self.days[int(rng.integers(len(self.days)))], time.min)
                start = start.replace(tzinfo=self.zone)
                end = start + timedelta(days=1, hours=1)
            length_s = int((end - start).total_seconds())
            at = start.astimezone(UTC) + timedelta(seconds=int(rng.integers(length_s - 3600)))
            local = at.astimezone(self.zone)
            hours = [(at + timedelta(hours=h)).astimezone(self.zone).utcoffset() for h in (-2, 2)]
            if hours[0] == hours[1] and rng.random() < (0.45 if local.hour < 7 else 1.0):
                return at

    def ends(self, rng: np.random.Generator) -> tuple[int, int]:
        """A destination and its depot: the quicker, or now and then another."""
        while True:
            node = int(rng.integers(self.network.num_nodes))
            depot = int(np.argmin(self.free_flow_s[:, node]))
            if rng.random() < 0.15:
                depot = int(rng.integers(len(self.depots)))
            if self.in_reach[depot, node]:
                return depot, node

    def beside(self, rng: np.random.Generator, node: int) -> tuple[float, float]:
        """A point beside the node that no other node is nearer to."""
        lon, lat = float(self.network.lon[node]), float(self.network.lat[node])
        x, y = lon + rng.normal(0, 1e-4), lat + rng.normal(0, 1e-4)
        nearest, far_m = self.network.snapper.nodes(np.array([x]), np.array([y]))
        near = nearest[0] == node and far_m[0] < 100
        return (x, y) if near else (lon, lat)
