"""What the service shows of its city: roads, model, how well units cover it, invented calls."""

import gzip
import json
import math
from collections.abc import Sequence
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.closing import closed_edges
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.service.clock import moment
from ideal_dispatch.service.deciding.assets import Assets
from ideal_dispatch.service.deciding.depot_names import DepotNames
from ideal_dispatch.service.messages import MOST_CLOSED, CityFacts, Closed, Cover, RoadMap
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.units import Unit

_CONTESTED = 1.25  # the second nearest depot takes at most so many times as long


class CityView:
    """Questions about the city beside advice; may be asked from many threads."""

    def __init__(self, assets: Assets, settings: ServiceSettings) -> None:
        self._assets = assets
        self.depot_names = DepotNames((one.name for one in assets.depots), settings.city.aliases)
        self.invented_call = InventedCalls(assets.network, assets.depots).call

    @cached_property
    def facts(self) -> CityFacts:
        """Name, depots, bounds and checksums."""
        network = self._assets.network
        lon, lat = network.lon.round(6), network.lat.round(6)
        return CityFacts(
            self._assets.name,
            {one.name: (float(lon[one.node]), float(lat[one.node])) for one in self._assets.depots},
            (float(lon.min()), float(lat.min()), float(lon.max()), float(lat.max())),
            (float(network.lon.mean()), float(network.lat.mean())),
            self._assets.calendar.time_zone,
            self._assets.checksums,
        )

    @property
    def edges(self) -> int:
        """How many edges the network has."""
        return self._assets.network.num_edges

    def road_map(self) -> RoadMap:
        """The roads for a map: one line per street, for both of its directions."""
        network = self._assets.network
        seen: dict[tuple[int, int, bytes], dict[str, Any]] = {}
        features = []
        for edge in range(network.num_edges):
            ends = int(network.tail[edge]), int(network.head[edge])
            line = network.polyline(edge)
            twin = seen.get((ends[1], ends[0], line[::-1].tobytes()))
            if twin is not None:
                twin["properties"]["edges"].append(edge)
                continue
            feature = {
                "type": "Feature",
                "properties": {
                    "name": network.name[edge],
                    "road_class": ROAD_CLASSES[network.road_class[edge]],
                    "edges": [edge],
                },
                "geometry": {"type": "LineString", "coordinates": np.round(line, 6).tolist()},
            }
            seen[(*ends, line.tobytes())] = feature
            features.append(feature)
        document = {"type": "FeatureCollection", "features": features}
        plain = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
        return RoadMap(network.checksum, plain, gzip.compress(plain, 6, mtime=0))

    def model_card(self) -> str:
        """The card of the model, as Markdown."""
        from ideal_dispatch.forecast.model_directory import model_card

        return model_card(self._assets.model)

    def closed_edges(self, kind: str, drawn: Sequence[Any]) -> list[int]:
        """The edges that a line or a polygon closes, or the given edges, checked."""
        found = closed_edges(self._assets.network, kind, drawn)
        if len(found) > MOST_CLOSED:
            raise InputError(
                f"{kind}: it closes {len(found):,} edges, at most {MOST_CLOSED:,} are possible; "
                "draw a smaller one, or several"
            )
        return found

    def cover(self, free: Sequence[Unit], closures: Sequence[Closed], now: int) -> Cover | None:
        """How far the next call is from these units on open roads; None where there are none."""
        starts = self._assets.starts.everywhere(free, now)
        if not starts:
            return None
        network, times_s = self._assets.roads.open(closures), self._usual_times_s
        drive_s = network.distances(times_s, starts)
        reached_s = network.opened.distances(times_s, starts) if closures else drive_s
        drive_s = np.sort(drive_s[np.isfinite(reached_s)])
        within_s = [float(drive_s[math.ceil(share * drive_s.size) - 1]) for share in (0.5, 0.9)]
        return Cover(*(limit_s if math.isfinite(limit_s) else None for limit_s in within_s))

    @cached_property
    def _usual_times_s(self) -> FloatArray:
        """Times of roads in an average context."""
        model = self._assets.model
        average = np.full(len(model.encoding.columns), np.nan)
        return model.forecast(average, self._assets.network).nominal_times


class InventedCalls:
    """Requests at places where depots compete; most name the nearest depot for the primary."""

    def __init__(self, network: RoadNetwork, depots: Sequence[Depot]) -> None:
        self._network, self._depots = network, depots
        self._rng, self._lock = np.random.default_rng(), Lock()

    def call(self, number: int, now: int) -> dict[str, Any]:
        """A call received now; the number makes its name."""
        network, at = self._network, moment(now)
        with self._lock:
            node = int(self._rng.choice(self._places))
            off, accuracy_m = self._rng.normal(0, 1e-4, 2), float(self._rng.integers(5, 60))
            unnamed, house = self._rng.random() < 0.15, int(self._rng.integers(1, 200))
        depot = self._depots[int(self._reach_s[:, node].argmin())]
        streets = {network.name[e] for e in np.flatnonzero(network.head == node)} - {""}
        return {
            "call_id": f"SIM-{at:%H%M%S}-{number:03d}",
            "received_at": at,
            "location": {
                "lon": round(float(network.lon[node] + off[0]), 6),
                "lat": round(float(network.lat[node] + off[1]), 6),
                "accuracy_m": accuracy_m,
            },
            "primary": None if unnamed else {"depot": depot.name},
            "note": f"{house} {min(streets)}" if streets else None,
        }

    @cached_property
    def _reach_s(self) -> FloatArray:
        """Seconds on empty roads, a row per depot and a column per node."""
        network = self._network
        times_s = network.free_flow_times_s
        return np.array([network.distances(times_s, one) for one in self._depots])

    @cached_property
    def _places(self) -> npt.NDArray[np.intp]:
        """Nodes at which two depots compete, or all that can be reached."""
        nearest = np.sort(self._reach_s, axis=0)
        near = np.isfinite(nearest[1]) & (nearest[0] > 60) & (nearest[1] < _CONTESTED * nearest[0])
        return np.flatnonzero(near if near.any() else np.isfinite(nearest[0]))
