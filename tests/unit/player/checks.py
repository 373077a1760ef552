"""What must hold of the statuses that a player reports, and a map as a service draws it."""

from collections.abc import Iterable, Mapping
from typing import Any

from ideal_dispatch import RoadNetwork

DEPOTS = {"D0": (114.0, 22.0), "D1": (114.011, 22.009)}
"""Of the town on the grid of the tests."""

POSSIBLE = {
    "at_station": {"dispatched", "out_of_service"},
    "available": {"dispatched", "at_station", "out_of_service"},
    "dispatched": {"en_route", "available", "out_of_service"},
    "en_route": {"on_scene", "available", "out_of_service"},
    "on_scene": {"transporting", "available", "out_of_service"},
    "transporting": {"at_hospital"},
    "at_hospital": {"available", "out_of_service"},
    "out_of_service": {"at_station", "available"},
}
AT_WORK = {"dispatched", "en_route", "on_scene", "transporting", "at_hospital"}


def check_statuses(news: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Every unit's statuses; each may follow the one before, and a call ends before the next."""
    last: dict[str, Mapping[str, Any]] = {}
    found: dict[str, list[str]] = {}
    for one in news:
        before = last.get(one["id"])
        if before is not None and before["status"] != one["status"]:
            assert one["status"] in POSSIBLE[before["status"]], (before, one)
        if before is not None:
            assert before["at"] <= one["at"], (before, one)
            if before["status"] in AT_WORK and one["status"] in AT_WORK:
                assert before["call_id"] == one["call_id"], (before, one)
        assert (one["call_id"] is not None) == (one["status"] in AT_WORK), one
        last[one["id"]] = one
        statuses = found.setdefault(one["id"], [])
        if statuses[-1:] != [one["status"]]:
            statuses.append(one["status"])
    return found


def geojson(network: RoadNetwork) -> dict[str, Any]:
    """The network as the service draws it, a line for every edge."""
    return {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"name": "", "road_class": "residential", "edges": [edge]},
                "geometry": {
                    "type": "LineString", "coordinates": network.polyline(edge).round(6).tolist(),
                },
            }
            for edge in range(network.num_edges)
        ],
    }  # fmt: skip
