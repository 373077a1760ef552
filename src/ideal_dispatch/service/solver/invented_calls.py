"""Calls that a CAD might send, at places where depots compete."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.network import Depot, RoadNetwork

_CONTESTED = 1.25  # the second nearest depot takes at most so many times as long


class InventedCalls:
    """Bodies of requests, mostly with the ambulance of the nearest depot."""

    def __init__(self, network: RoadNetwork, depots: Sequence[Depot]) -> None:
        self._network, self._depots = network, depots
        self._rng = np.random.default_rng()

    def call(self, number: int) -> dict[str, Any]:
        """A call received now; the number makes its name."""
        network, rng, now = self._network, self._rng, datetime.now(UTC)
        node = int(rng.choice(self._places))
        depot = self._depots[int(self._reach_s[:, node].argmin())]
        streets = {network.name[e] for e in np.flatnonzero(network.head == node)} - {""}
        primary = {"depot": depot.name, "unit": f"A{rng.integers(100, 400)}"}
        return {
            "call_id": f"SIM-{now:%H%M%S}-{number:03d}",
            "received_at": now,
            "location": {
                "lon": round(float(network.lon[node]) + float(rng.normal(0, 1e-4)), 6),
                "lat": round(float(network.lat[node]) + float(rng.normal(0, 1e-4)), 6),
                "accuracy_m": float(rng.integers(5, 60)),
            },
            "primary": None if rng.random() < 0.15 else primary,
            "depots": [
                {"name": one.name, "units": int(rng.choice([0, 1, 2, 3], p=[0.06, 0.3, 0.4, 0.24]))}
                for one in self._depots
            ],
            "note": f"{rng.integers(1, 200)} {min(streets)}" if streets else None,
        }

    @cached_property
    def _reach_s(self) -> FloatArray:
        """Seconds on empty roads, a row per depot and a column per node."""
        network = self._network
        times = network.free_flow_times_s
        return np.array([network.distances(times, one) for one in self._depots])

    @cached_property
    def _places(self) -> npt.NDArray[np.intp]:
        """Nodes at which two depots compete, or all that can be reached."""
        nearest = np.sort(self._reach_s, axis=0)
        near = np.isfinite(nearest[1]) & (nearest[0] > 60) & (nearest[1] < _CONTESTED * nearest[0])
        return np.flatnonzero(near if near.any() else np.isfinite(nearest[0]))
