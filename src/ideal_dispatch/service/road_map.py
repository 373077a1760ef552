"""The city for a desk: its roads as GeoJSON, its depots and its extent."""

import gzip
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.road_class import ROAD_CLASSES

if TYPE_CHECKING:
    from ideal_dispatch.service.state import Service


@dataclass(frozen=True, slots=True)
class RoadMap:
    """The document, plain and packed, and its tag for caches."""

    plain: bytes
    packed: bytes
    tag: str


@lru_cache(2)
def road_map(network: RoadNetwork) -> RoadMap:
    """One line per street; the two directions of a street are one line."""
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
    return RoadMap(plain, gzip.compress(plain, 6, mtime=0), f'"{network.checksum}"')


def city_part(service: "Service") -> dict[str, Any]:
    """What a desk should know about the city."""
    assets, network = service.assets, service.assets.network
    bounds = [network.lon.min(), network.lat.min(), network.lon.max(), network.lat.max()]
    west, south, east, north = (round(float(value), 6) for value in bounds)
    units = {row["depot"]: row["units"] for row in service.units()}
    return {
        "name": assets.name,
        "depots": [
            {
                "name": depot.name,
                "lon": round(float(network.lon[depot.node]), 6),
                "lat": round(float(network.lat[depot.node]), 6),
                "units": units[depot.name],
            }
            for depot in assets.depots
        ],
        "centre": [round((west + east) / 2, 6), round((south + north) / 2, 6)],
        "bounds": [west, south, east, north],
        "languages": list(service.settings.city.languages),
        "time_zone": assets.calendar.time_zone,
        "simulated": service.settings.demo,
    }
