"""The paper's 20 edge features, and how missing values are filled.

Columns ([IDEAL] table of geographic features): length in metres; speed limit
in km/h; number of neighbouring nodes at the tail and at the head; one-way;
number of lanes, both directions together; 14 one-hot road classes.

Missing values: a speed limit is 50 km/h; lanes are two per direction on
motorways and trunk roads and one per direction elsewhere. Classes outside the
14 were mapped when the network was read (:mod:`ideal_dispatch.network.road_class`).
"""

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.network.road_network import DEFAULT_SPEED_KMH, RoadNetwork

FEATURE_NAMES = (
    "length_m",
    "speed_kmh",
    "neighbours_tail",
    "neighbours_head",
    "oneway",
    "lanes",
    *(f"class_{name}" for name in ROAD_CLASSES),
)

_WIDE = np.isin(ROAD_CLASSES, ("motorway", "trunk"))


def edge_features(network: RoadNetwork) -> FloatArray:
    """The (E, 20) matrix 𝒜, one row per edge, columns as :data:`FEATURE_NAMES`."""
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


def imputed_counts(network: RoadNetwork) -> dict[str, int]:
    """How many edges have each feature filled in rather than known."""
    return {
        "speed_kmh": int(np.isnan(network.speed_kmh).sum()),
        "lanes": int(np.isnan(network.lanes).sum()),
    }
