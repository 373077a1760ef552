"""Random road networks for property tests."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from ideal_dispatch import RoadNetwork


@st.composite
def multigraphs(draw: st.DrawFn, max_nodes: int = 9, max_edges: int = 28) -> RoadNetwork:
    """Small multigraphs: parallel edges, loops and isolated nodes included."""
    nodes = draw(st.integers(1, max_nodes))
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    pairs = draw(st.lists(ends, max_size=max_edges))
    tail, head = ([pair[i] for pair in pairs] for i in (0, 1))
    return RoadNetwork.from_arrays(tail, head, np.ones(len(pairs)), num_nodes=nodes)


def edge_costs(network: RoadNetwork) -> st.SearchStrategy[Any]:
    """Costs with many ties and zeros, closed edges, and wildly uneven ones."""
    small = st.sampled_from([0.0, 1.0, 2.0, 3.0])
    rough = st.one_of(small, st.floats(0, 1e6), st.just(float("inf")), st.floats(1e-300, 1e300))
    size = network.num_edges
    lists = st.one_of(
        st.lists(small, min_size=size, max_size=size), st.lists(rough, min_size=size, max_size=size)
    )
    return lists.map(lambda values: np.array(values, dtype=np.float64))


@st.composite
def attributed_networks(draw: st.DrawFn) -> RoadNetwork:
    """Networks with every column filled in some way."""
    plain = draw(multigraphs())
    edges, nodes = plain.num_edges, plain.num_nodes

    def column(values: st.SearchStrategy[Any], size: int = edges) -> list[Any]:
        return draw(st.lists(values, min_size=size, max_size=size))

    maybe = st.one_of(st.just(float("nan")), st.floats(0.5, 200))
    point = st.tuples(st.floats(-180, 180), st.floats(-90, 90))
    line = st.one_of(st.none(), st.lists(point, min_size=2, max_size=4))
    return RoadNetwork.from_arrays(
        plain.tail,
        plain.head,
        column(st.floats(0.1, 1e5)),
        column(st.floats(-180, 180), nodes),
        column(st.floats(-90, 90), nodes),
        node_ids=draw(st.permutations(range(-3, nodes - 3))),
        speed_kmh=column(maybe),
        lanes=column(maybe),
        oneway=column(st.booleans()),
        road_class=np.array(column(st.integers(0, 13)), np.uint8),
        name=column(st.text(max_size=6)),
        geometry=column(line),
    )
