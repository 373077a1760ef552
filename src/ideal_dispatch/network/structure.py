"""What the shape of a network says about its streets: through traffic, density, direction."""

from typing import TYPE_CHECKING

import numpy as np
import shapely

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.geodesy import LocalPlane
from ideal_dispatch.network.road_network import RoadNetwork
from ideal_dispatch.network.shortest_path import canonical_edges

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_PAIRS = 3000
_AROUND_M = 300.0
_AT_ONCE = 10_000  # edges, each near tens of nodes


def midpoints(network: RoadNetwork) -> FloatArray:
    """Longitude and latitude halfway between the ends of each edge."""
    lon, lat = network.lon, network.lat
    ends = (network.tail, network.head)
    return np.column_stack([sum(lon[end] for end in ends) / 2, sum(lat[end] for end in ends) / 2])


def headings(network: RoadNetwork) -> FloatArray:
    """East and north parts of each edge's direction, of length one; zero for a loop."""
    plane = LocalPlane(float(network.lat.mean()))
    places = plane.to_metres(np.column_stack([network.lon, network.lat]))
    steps = places[network.head] - places[network.tail]
    length = np.hypot(*steps.T)[:, None]
    units: FloatArray = np.divide(steps, length, out=np.zeros_like(steps), where=length > 0)
    return units


def meetings(network: RoadNetwork) -> "csr_array":
    """How many ends each two edges have in common, (E, E); an edge with itself two."""
    from scipy.sparse import csr_array

    edges = np.arange(network.num_edges)
    ends = np.concatenate([network.tail, network.head])
    touches = csr_array(
        (np.ones(ends.size), (np.concatenate([edges, edges]), ends)),
        shape=(network.num_edges, network.num_nodes),
    )
    return touches @ touches.T


def through_traffic(network: RoadNetwork) -> FloatArray:
    """How many of 3,000 fastest free-flow trips between random nodes use each edge.

    An estimate of betweenness, always from the same draws. Pairs with no way
    between them do not count.
    """
    rng = np.random.default_rng(0)
    count = np.zeros(network.num_edges)
    per_origin = 30
    times = network.free_flow_times_s
    for origin in rng.integers(network.num_nodes, size=_PAIRS // per_origin):
        g = network.distances(times, int(origin))
        reached = np.flatnonzero(np.isfinite(g) & (np.arange(g.size) != origin))
        if reached.size:
            for target in rng.choice(reached, size=per_origin).tolist():
                count[canonical_edges(network.incoming, times, g, np.array([origin]), target)] += 1
    return count


def node_density(network: RoadNetwork) -> FloatArray:
    """Nodes within 300 m of each edge's midpoint."""
    if np.isnan(network.lon).any():
        raise InputError("this network has no coordinates; how dense it is cannot be told")
    plane = LocalPlane(float(network.lat.mean()))
    nodes = shapely.points(plane.to_metres(np.column_stack([network.lon, network.lat])))
    middles = shapely.points(plane.to_metres(midpoints(network)))
    tree, around = shapely.STRtree(nodes), np.empty(network.num_edges)
    for first in range(0, network.num_edges, _AT_ONCE):
        some = middles[first : first + _AT_ONCE]
        middle, _ = tree.query(some, "dwithin", distance=_AROUND_M)
        around[first : first + _AT_ONCE] = np.bincount(middle, minlength=len(some))
    return around
