"""The road network of any city: arrays, paths, features, readers, snapping, matching."""

from typing import TYPE_CHECKING

from ideal_dispatch.lazy import on_first_use

if TYPE_CHECKING:
    from ideal_dispatch.network.depot import Depot
    from ideal_dispatch.network.path import Path
    from ideal_dispatch.network.road_network import RoadNetwork

__all__ = ["Depot", "Path", "RoadNetwork"]

# the compiled kernels take a while to import, and geodesy is wanted without them
__getattr__ = on_first_use(
    __name__, {"Depot": "depot", "Path": "path", "RoadNetwork": "road_network"}
)
