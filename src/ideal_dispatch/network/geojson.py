"""A road network as GeoJSON, for maps."""

from typing import Any

from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.network.road_network import RoadNetwork


def streets(network: RoadNetwork) -> dict[str, Any]:
    """One line per street, for both directions; ``edges`` are the numbers of its edges."""
    found: dict[bytes, dict[str, Any]] = {}
    for edge in range(network.num_edges):
        line, road_class = network.polyline(edge), ROAD_CLASSES[network.road_class[edge]]
        key = min(line.tobytes(), line[::-1].tobytes())
        if key not in found:
            about = {"name": network.name[edge], "road_class": road_class, "edges": []}
            shape = {"type": "LineString", "coordinates": line.round(6).tolist()}
            found[key] = {"type": "Feature", "properties": about, "geometry": shape}
        found[key]["properties"]["edges"].append(edge)
    return {"type": "FeatureCollection", "features": list(found.values())}
