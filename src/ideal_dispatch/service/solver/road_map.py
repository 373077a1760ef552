"""The roads of a city as GeoJSON, for a map."""

import gzip
import json
from typing import Any

import numpy as np

from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.service.solver.messages import RoadMap


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
    return RoadMap(network.checksum, plain, gzip.compress(plain, 6, mtime=0))
