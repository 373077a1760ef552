"""One-way streets: made until a city has the wanted number of directed edges."""

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from ideal_dispatch.arrays import BoolArray, FloatArray
from workshop.city.junctions import Piece
from workshop.city.street import NEVER, Street, length_m

_WAYS_BACK_M = (800.0, 1600.0)
"""The longest way round that makes a one-way street bearable: at first, and if need be."""


def oneway_pieces(
    streets: Sequence[Street],
    pieces: Sequence[Piece],
    num_nodes: int,
    num_edges: int,
    rng: np.random.Generator,
) -> BoolArray:
    """Which pieces are one-way, so that ``num_edges`` remain and every node reaches every other.

    Whole streets turn one-way in the order of their rank, by chance within a
    rank; the last few edges are taken piece by piece. A street that would send
    drivers on a long way round stays two-way.
    """
    street = np.array([piece.street for piece in pieces])
    ends = np.array([(piece.tail, piece.head) for piece in pieces])
    lengths = np.array([length_m(piece.points) for piece in pieces])
    oneway = np.array([streets[index].oneway for index in street])
    roads = _roads(ends, lengths, oneway, num_nodes)
    if connected_components(roads, connection="strong")[0] > 1:
        raise RuntimeError("the plan has a street without a way back; check its one-way streets")
    rank = np.array([s.oneway_rank for s in streets])
    order = np.lexsort((rng.random(len(streets)), rank))
    whole = [np.flatnonzero(street == index) for index in order if rank[index] < NEVER]
    single = [group[i : i + 1] for group in whole for i in range(group.size)]
    surplus = len(pieces) + int(np.sum(~oneway)) - num_edges
    for limit_m, group in itertools.product(_WAYS_BACK_M, [*whole, *single]):
        if not 0 < group.size <= surplus or oneway[group].any():
            continue
        oneway[group] = True
        roads = _roads(ends, lengths, oneway, num_nodes)
        tails, heads = ends[group].T
        back_m = dijkstra(roads, indices=heads, limit=limit_m)[np.arange(group.size), tails]
        if np.isfinite(back_m).all():
            surplus -= group.size
        else:
            oneway[group] = False
    if surplus:
        raise RuntimeError(f"{surplus} edges too many; give more streets a one-way rank")
    return oneway


def _roads(
    ends: npt.NDArray[np.int_], lengths: FloatArray, oneway: BoolArray, num_nodes: int
) -> csr_array:
    arcs = np.concatenate([ends, ends[~oneway, ::-1]])
    metres = np.concatenate([lengths, lengths[~oneway]])
    return coo_array((metres, arcs.T), shape=(num_nodes, num_nodes)).tocsr()
