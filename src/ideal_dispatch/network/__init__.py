"""The road network of any city: arrays, paths, features, readers, snapping, matching."""

from typing import TYPE_CHECKING

from ideal_dispatch.lazy import on_first_use

if TYPE_CHECKING:
    from ideal_dispatch.network.depot import Depot
    from ideal_dispatch.network.path import Path
    from ideal_dispatch.network.road_network import RoadNetwork

__all__ = ["SNAP_LIMIT_M", "Depot", "Path", "RoadNetwork"]

SNAP_LIMIT_M = 300.0
"""How far a place may lie from the road it is put on, where nothing else is said."""

# the compiled kernels take a while to import, and geodesy is wanted without them
__getattr__ = on_first_use(
    __name__, {"Depot": "depot", "Path": "path", "RoadNetwork": "road_network"}
)
