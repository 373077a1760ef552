"""The paper's 20 edge features, and how missing values are filled.

Columns ([IDEAL] table of geographic features): length in metres; speed limit
in km/h; number of neighbouring nodes at the tail and at the head; one-way;
number of lanes, both directions together; 14 one-hot road classes.

Missing values: a speed limit is 50 km/h; lanes are two per direction on
motorways and trunk roads and one per direction elsewhere. Classes outside the
14 were mapped when the network was read (:mod:`ideal_dispatch.network.road_class`).
"""

from typing import TYPE_CHECKING

import numpy as np
import shapely

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.geodesy import LocalPlane
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.network.road_network import DEFAULT_SPEED_KMH, RoadNetwork
from ideal_dispatch.network.shortest_path import canonical_edges

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_WIDE = np.isin(ROAD_CLASSES, ("motorway", "trunk"))
_PAIRS = 3000
_AROUND_M = 300.0
_AT_ONCE = 10_000  # edges, each near tens of nodes


def edge_features(network: RoadNetwork) -> FloatArray:
    """The (E, 20) matrix 𝒜, one row per edge, columns as said above."""
    neighbours = neighbour_counts(network)
    columns = [
        network.length_m,
        np.where(np.isnan(network.speed_kmh), DEFAULT_SPEED_KMH, network.speed_kmh),
        neighbours[network.tail],
        neighbours[network.head],
        network.oneway,
        filled_lanes(network),
    ]
    classes = network.road_class[:, None] == np.arange(len(ROAD_CLASSES))
    return np.column_stack([*columns, classes]).astype(np.float64)


def filled_lanes(network: RoadNetwork) -> FloatArray:
    """Lanes of both directions together, by the stated rule where unknown."""
    per_direction = np.where(_WIDE[network.road_class], 2.0, 1.0)
    assumed = per_direction * np.where(network.oneway, 1.0, 2.0)
    return np.where(np.isnan(network.lanes), assumed, network.lanes)


def neighbour_counts(network: RoadNetwork) -> FloatArray:
    """How many other nodes each node is joined to, in either direction."""
    ends = np.sort(np.column_stack([network.tail, network.head]), axis=1)
    pairs = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    return np.bincount(pairs.ravel(), minlength=network.num_nodes).astype(np.float64)


# --- what the shape of the network says about its streets ---------------------------


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
    between them do not count. Forbidden turns and closed edges are ignored.
    """
    network = network.opened.ignoring_turns
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


def junctions(network: RoadNetwork, traffic: FloatArray) -> FloatArray:
    """What meets each edge at its ends, (E, 7), from the :func:`through_traffic` of all edges.

    Log of the traffic that enters the head from other edges and that enters the
    tail; most lanes of a street at the head and at the tail; whether four or more
    streets meet at the head and at the tail; most lanes at the head beyond its own.
    """
    tail, head, lanes = network.tail, network.head, filled_lanes(network)
    entering = np.bincount(head, traffic, network.num_nodes)
    widest = np.zeros(network.num_nodes)
    for end in (tail, head):
        np.maximum.at(widest, end, lanes)
    crossing = neighbour_counts(network) >= 4
    return np.column_stack(
        [
            np.log1p(entering[head] - traffic),
            np.log1p(entering[tail]),
            widest[head],
            widest[tail],
            crossing[head],
            crossing[tail],
            widest[head] - lanes,
        ]
    )


def node_density(network: RoadNetwork) -> FloatArray:
    """Nodes within 300 m of each edge's midpoint."""
    if np.isnan(network.lon).any():
        raise InputError("this network has no coordinates; its density needs lon and lat")
    plane = LocalPlane(float(network.lat.mean()))
    nodes = shapely.points(plane.to_metres(np.column_stack([network.lon, network.lat])))
    middles = shapely.points(plane.to_metres(midpoints(network)))
    tree, around = shapely.STRtree(nodes), np.empty(network.num_edges)
    for first in range(0, network.num_edges, _AT_ONCE):
        some = middles[first : first + _AT_ONCE]
        middle, _ = tree.query(some, "dwithin", distance=_AROUND_M)
        around[first : first + _AT_ONCE] = np.bincount(middle, minlength=len(some))
    return around
