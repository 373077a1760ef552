"""The places of a fleet on a road network: stations, hospitals and the cells of calls."""

from typing import NamedTuple

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.fleet.travel import Travel, cells_of, junction_weights
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import chord_to_metres, unit_vectors

BY_JUNCTIONS = (
    "calls fall on road nodes, weighted by the number of junctions within 500 m: no map of the "
    "population was given"
)


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
    """The nearest of some nodes to every point, and how many metres away it is."""
    from scipy.spatial import KDTree

    tree = KDTree(unit_vectors(network.lon[nodes], network.lat[nodes]))
    chord, row = tree.query(unit_vectors(lon, lat))
    return nodes[row], chord_to_metres(np.asarray(chord))


def cells_by_junctions(
    network: RoadNetwork, nodes: IntArray, cells: int
) -> tuple[IntArray, FloatArray]:
    """Nodes that stand for the cells of a city and their weights, by :data:`BY_JUNCTIONS`."""
    return cells_of(network, nodes, junction_weights(network, nodes), cells)
