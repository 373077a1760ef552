"""Compiled parts of map matching: samples of a route, and the search through them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.compiled import kernel
from ideal_dispatch.network.shortest_path import Adjacency, heap_pop, heap_push

BEAM_M = 200.0  # labels this much worse than the best wait for a gap


@kernel
def route_samples(line, spacing_m):  # type: ignore[no-untyped-def]
    """Samples of a polyline and how far each is from the nearest given point.

    A sample is kept once it is away from the last one as the crow flies: a walk
    along the line would follow every jitter.
    """
    room = 2
    for i in range(1, len(line)):
        step = line[i] - line[i - 1]
        room += int(np.ceil(np.hypot(step[0], step[1]) / spacing_m))
    kept = np.empty((room, 2))
    apart_m = np.zeros(room)
    kept[0] = line[0]
    count = 1
    for i in range(1, len(line)):
        step = line[i] - line[i - 1]
        step_m = np.hypot(step[0], step[1])
        pieces = int(np.ceil(step_m / spacing_m))
        for piece in range(1, pieces + 1):
            share = piece / pieces
            x, y = line[i - 1, 0] + share * step[0], line[i - 1, 1] + share * step[1]
            if np.hypot(x - kept[count - 1, 0], y - kept[count - 1, 1]) >= 0.8 * spacing_m:
                kept[count, 0], kept[count, 1] = x, y
                apart_m[count] = min(share, 1.0 - share) * step_m
                count += 1
    if np.any(kept[count - 1] != line[-1]):
        kept[count] = line[-1]
        apart_m[count] = 0.0
        count += 1
    return kept[:count], apart_m[:count]


@kernel
def _with_room(array, used):  # type: ignore[no-untyped-def]
    return array if used < len(array) else np.concatenate((array, np.empty_like(array)))


class Streets(NamedTuple):
    """The edges of the network, and which nodes a path may pass."""

    out: Adjacency
    tail: IntArray
    head: IntArray
    length_m: FloatArray
    usable: BoolArray


class Samples(NamedTuple):
    """Samples of a route: candidates ``layer[k]:layer[k+1]`` belong to sample k.

    A candidate is an edge, the metres along it that are nearest to the sample, and
    how far off that is. A sample has its reach, and how far it moved from the last.
    """

    layer: npt.NDArray[np.intp]
    candidate: IntArray
    place_m: FloatArray
    off_m: FloatArray
    reach_m: FloatArray
    moved_m: FloatArray


class Ends(NamedTuple):
    """Nodes where a path may begin, or end, and the price of each."""

    nodes: IntArray
    costs: FloatArray


@kernel
def best_alignment(streets, samples, unmatched_m, starts, stops):  # type: ignore[no-untyped-def]
    """Edges of the cheapest path and its last node, −1 where no target can be reached.

    Instead of paying for an unmatched sample a label gains ``unmatched_m`` less
    its deviation for a matched one: then labels stay valid from one sample to the next, and one
    heap lives through all of them. ``value[v]`` is the cost of standing at node
    v, ``inside[e]`` of being on edge e, its rest included, no less than
    ``reached_m[e]`` from its tail. A label remembers the chain of edges behind it.
    """
    (start, edge, other), tail, head, length_m, usable = streets
    layer, candidate, place_m, off_m, reach_m, moved_m = samples
    sources, source_costs = starts
    targets, target_costs = stops
    value = np.full(start.size - 1, np.inf)
    inside = np.full(head.size, np.inf)
    reached_m = np.zeros(head.size)
    chain_of_node = np.full(value.size, -1, np.int64)
    chain_of_edge = np.full(head.size, -1, np.int64)
    links = np.empty((4 * head.size, 2), np.int64)  # an edge, and the link before it
    count = 0
    keys = np.empty(4 * head.size)
    nodes = np.empty(4 * head.size, np.int32)
    size = 0
    best = np.inf
    for i in range(sources.size):
        v = sources[i]
        if usable[v] and source_costs[i] < value[v]:
            value[v] = source_costs[i]
            best = min(best, value[v])
            size = heap_push(keys, nodes, size, value[v], v)

    entering = np.empty(candidate.size)
    lost_m = 0.0
    for k in range(layer.size):
        last = k == layer.size - 1
        if last:
            limit = np.inf
        else:
            lost_m += moved_m[k]
            for i in range(layer[k], layer[k + 1]):  # from labels of the sample before
                entering[i] = value[tail[candidate[i]]] + length_m[candidate[i]]
            for i in range(layer[k], layer[k + 1]):
                e = candidate[i]
                if not usable[head[e]]:
                    continue
                off = (off_m[i] / reach_m[k]) ** 2
                enter = entering[i] - unmatched_m * max(0.0, 1.0 - off)
                back = max(0.0, reached_m[e] - place_m[i]) / reach_m[k]
                stay = inside[e] - unmatched_m * max(0.0, 1.0 - off - back * back)
                if enter < stay:
                    links = _with_room(links, count)
                    links[count, 0], links[count, 1] = e, chain_of_node[tail[e]]
                    chain_of_edge[e] = count
                    count += 1
                    inside[e] = enter
                    reached_m[e] = place_m[i]
                else:
                    inside[e] = stay
                    reached_m[e] = max(reached_m[e], place_m[i])
            for i in range(layer[k], layer[k + 1]):
                v = head[candidate[i]]
                if inside[candidate[i]] < value[v]:
                    value[v] = inside[candidate[i]]
                    chain_of_node[v] = chain_of_edge[candidate[i]]
                    keys = _with_room(keys, size)
                    nodes = _with_room(nodes, size)
                    size = heap_push(keys, nodes, size, value[v], v)
                    if value[v] < best:
                        best = value[v]
                        lost_m = 0.0
            limit = best + BEAM_M + 2.0 * lost_m
        while size and keys[0] <= limit:
            u = nodes[0]
            cost = keys[0]
            if last and cost >= np.min(value[targets] + target_costs):
                break
            size = heap_pop(keys, nodes, size)
            if cost > value[u]:
                continue
            for j in range(start[u], start[u + 1]):
                v = other[j]
                if usable[v] and cost + length_m[edge[j]] < value[v]:
                    value[v] = cost + length_m[edge[j]]
                    links = _with_room(links, count)
                    links[count, 0], links[count, 1] = edge[j], chain_of_node[u]
                    chain_of_node[v] = count
                    count += 1
                    keys = _with_room(keys, size)
                    nodes = _with_room(nodes, size)
                    size = heap_push(keys, nodes, size, value[v], v)

    totals = value[targets] + target_costs
    end = targets[np.argmin(totals)] if totals.size and totals.min() < np.inf else -1
    path, first = np.empty(count, np.int32), count
    link = chain_of_node[end] if end >= 0 else -1
    while link >= 0:
        first -= 1
        path[first] = links[link, 0]
        link = links[link, 1]
    return path[first:], end
