"""The places of a fleet on a road network: stations, hospitals and the cells of calls."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray, first_where
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.travel import Travel, cells_of, junction_weights
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import chord_to_metres, unit_vectors

BY_JUNCTIONS = (
    "calls fall on road nodes, weighted by the number of junctions within 500 m: no map of the "
    "population was given"
)

FAR_M = 2000.0
"""How far a station, a hospital or a call may lie from the road that stands for it."""


class Places(NamedTuple):
    """Travel between places, and which of them are stations, hospitals and cells."""

    travel: Travel
    stations: IntArray
    hospitals: IntArray
    cells: IntArray

    @classmethod
    def on_roads(
        cls,
        network: RoadNetwork,
        nodes: tuple[IntArray, IntArray, IntArray],
        fast_s: FloatArray,
        slow_s: FloatArray,
    ) -> "Places":
        """Of the nodes of stations, hospitals and cells; a node that is two of them is one place.

        ``fast_s`` and ``slow_s`` are the seconds of every edge, with lights and without.
        """
        together, place = np.unique(np.concatenate(nodes), return_inverse=True)
        ends = np.cumsum([len(some) for some in nodes])
        return cls(
            Travel.on_roads(network, together, fast_s, slow_s),
            *np.split(place.astype(np.int32), ends[:-1]),
        )


def nearest_of(
    network: RoadNetwork, nodes: IntArray, lon: FloatArray, lat: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Which of some nodes is nearest to every point, by its row, and how many metres away it is."""
    from scipy.spatial import KDTree

    tree = KDTree(unit_vectors(network.lon[nodes], network.lat[nodes]))
    chord, row = tree.query(unit_vectors(lon, lat))
    return np.asarray(row, np.int32), chord_to_metres(np.asarray(chord))


def snapped(
    network: RoadNetwork, nodes: IntArray, lon: FloatArray, lat: FloatArray, names: Sequence[str]
) -> IntArray:
    """The node of every station or hospital; ``names`` say in complaints which one is meant."""
    row, away_m = nearest_of(network, nodes, lon, lat)
    far = first_where(away_m > FAR_M)
    if far is not None:
        raise InputError(
            f"{names[far]}: {away_m[far] / 1000:.1f} km from the nearest road that leads "
            "everywhere; check its coordinates"
        )
    return nodes[row]


def cells_by_junctions(
    network: RoadNetwork, nodes: IntArray, cells: int
) -> tuple[IntArray, FloatArray]:
    """Nodes that stand for the cells of a city and their weights, by :data:`BY_JUNCTIONS`."""
    return cells_of(network, nodes, junction_weights(network, nodes), cells)
