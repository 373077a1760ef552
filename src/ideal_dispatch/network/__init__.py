"""The road network of any city: arrays, paths, features, readers, snapping, matching."""

from ideal_dispatch.network.depot import Depot
from ideal_dispatch.network.path import Path
from ideal_dispatch.network.road_network import RoadNetwork

__all__ = ["Depot", "Path", "RoadNetwork"]
