"""What the service shows of its city: roads, model, how well units cover it, invented calls."""

import gzip
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.service.clock import moment
from ideal_dispatch.service.deciding.assets import Assets
from ideal_dispatch.service.deciding.roads import closed_by, without
from ideal_dispatch.service.deciding.starts import NoAdviceError, UnitStarts
from ideal_dispatch.service.messages import Closed
from ideal_dispatch.service.units import Unit

_CONTESTED = 1.25  # the second nearest depot takes at most so many times as long
_PLACES = 50  # that are looked at to find one


class CityView:
    """Questions about the city beside advice; may be asked from many threads.

    ``depots`` are places (lon, lat) by name, ``bounds`` west, south, east and north, ``middle``
    the mean of all junctions; ``checksums`` are of the contents of all that decides, by part.
    """

    def __init__(self, assets: Assets) -> None:
        self._assets, self._network = assets, assets.network
        self.name, self.time_zone = assets.name, assets.calendar.time_zone
        self.checksums, self.depot_names = assets.checksums, assets.depot_names
        lon, lat = assets.network.lon.round(6), assets.network.lat.round(6)
        self.depots = {
            one.name: (float(lon[one.node]), float(lat[one.node])) for one in assets.depots
        }
        self.bounds = float(lon.min()), float(lat.min()), float(lon.max()), float(lat.max())
        self.middle = float(assets.network.lon.mean()), float(assets.network.lat.mean())

    def road_map(self) -> bytes:
        """The roads for a map, as packed GeoJSON: one line per street, for both directions."""
        network = self._network
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
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        return gzip.compress(text.encode(), 6, mtime=0)

    def cover(
        self, free: Sequence[Unit], closures: Sequence[Closed], now: int
    ) -> dict[str, float | None] | None:
        """How far the next call is from these units: drives to junctions on open roads.

        Half of them take at most ``median_s``, nine of ten at most ``p90_s``, of all junctions that
        a unit could reach if no road were closed; None where closures cut off so many. None where
        there are no units.
        """
        starts = []
        for unit in free:
            with suppress(NoAdviceError):  # its depot is not known
                starts.append(UnitStarts(self._assets, now).place(unit)[0])
        if not starts:
            return None
        network, times_s = self._network, self._usual_times_s
        drive_s = reached_s = network.distances(times_s, starts)
        if closures:
            reached_s = drive_s
            drive_s = without(network, closed_by(closures)).distances(times_s, starts)
        drive_s = np.sort(drive_s[np.isfinite(reached_s)])
        within_s = [float(drive_s[math.ceil(share * drive_s.size) - 1]) for share in (0.5, 0.9)]
        median_s, p90_s = (limit_s if math.isfinite(limit_s) else None for limit_s in within_s)
        return {"median_s": median_s, "p90_s": p90_s}

    @cached_property
    def _usual_times_s(self) -> FloatArray:
        """Times of roads in an average context."""
        model = self._assets.model
        average = np.full(len(model.encoding.columns), np.nan)
        return model.forecast(average, self._network).nominal_times

    def invented_call(self, number: int, now: int) -> dict[str, Any]:
        """A call received now, where depots compete; most name the nearest depot for the primary.

        The number makes its name.
        """
        network, at, rng = self._assets.network, moment(now), np.random.default_rng()
        depots = [depot.node for depot in self._assets.depots]
        for _ in range(_PLACES):
            node = int(rng.integers(network.num_nodes))
            drives_s = network.distances_to(network.free_flow_times_s, node)[depots]
            first_s, second_s = np.sort(drives_s)[:2]
            if first_s > 60.0 and second_s < _CONTESTED * first_s:
                break
        off, house = rng.normal(0, 1e-4, 2), int(rng.integers(1, 200))
        streets = {network.name[e] for e in np.flatnonzero(network.head == node)} - {""}
        nearest = self._assets.depots[int(drives_s.argmin())].name
        return {
            "call_id": f"SIM-{at:%H%M%S}-{number:03d}",
            "received_at": at,
            "location": {
                "lon": round(float(network.lon[node] + off[0]), 6),
                "lat": round(float(network.lat[node] + off[1]), 6),
                "accuracy_m": float(rng.integers(5, 60)),
            },
            "primary": None if rng.random() < 0.15 else {"depot": nearest},
            "note": f"{house} {min(streets)}" if streets else None,
        }
