"""Proved, selective dual dispatch of ambulances: the IDEAL framework as software."""

from ideal_dispatch.network import Depot, Path, RoadNetwork

__version__ = "0.1.0"

__all__ = ["Depot", "Path", "RoadNetwork", "__version__"]
