"""Roads as people call them: by their name, and without one by what they are."""

from ideal_dispatch.network.path import Path
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.network.road_network import RoadNetwork

_KINDS = {
    "motorway": "motorway",
    "trunk": "main road",
    "primary": "main road",
    "secondary": "main road",
    "residential": "residential road",
    "living_street": "living street",
    "service": "service road",
}

Road = tuple[str, int]
"""What a road is called, and 0 for a name; roads without one are numbered along a path."""


def roads(network: RoadNetwork, path: Path) -> list[Road]:
    """The road of every edge of a path.

    Edges of one name are one road. Every stretch without a name is a road of its own.
    """
    found: list[Road] = []
    stretch, before = 0, ""
    for edge in path.edges.tolist():
        name = network.name[edge]
        if name:
            found.append((name, 0))
        else:
            described = _unnamed(ROAD_CLASSES[network.road_class[edge]])
            stretch += described != before
            found.append((described, stretch))
        before = found[-1][0]
    return found


def _unnamed(road_class: str) -> str:
    if road_class.endswith("_link"):
        return "an unnamed slip road"
    return f"an unnamed {_KINDS.get(road_class, 'road')}"
