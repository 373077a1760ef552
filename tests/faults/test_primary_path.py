"""A primary's path that we cannot use is said to be so, and the router's assumed."""

from collections.abc import Iterator
from typing import Any

import pytest

from ideal_dispatch.service.app import create_app
from ideal_dispatch.traffic import polyline
from tests.faults.service_faults import advised, codes, words
from tests.service_town import Local, Town, local


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    with local(create_app(town.settings("primary.toml"))) as opened:
        yield opened


def assumed(client: Local, town: Town, primary: dict[str, Any], why: str) -> None:
    made = advised(client, town.call(primary=primary))
    assert made.decision != "no_advice"
    assert why in words(made, "primary_path_unknown")
    assert made.primary is not None
    assert (made.primary.depot, made.primary.chosen_by) == ("D0", "cad")
    usual = advised(client, town.call(primary={"depot": "D0"}))
    assert usual.primary is not None
    assert made.primary.route.edges == usual.primary.route.edges


@pytest.mark.parametrize(
    ("edges", "why"),
    [
        ([10**6], "edge"),
        ([-1], "edge"),
        ([2**70], "too large"),
        ([0, 200], "edge"),
        ([], "it ends at node 0, not at node 65"),
    ],
)
def test_primary_path_off_our_graph_or_disconnected(
    client: Local, town: Town, edges: list[int], why: str
) -> None:
    assumed(client, town, {"depot": "D0", "edges": edges}, why)


def test_primary_path_has_the_wrong_end(client: Local, town: Town) -> None:
    network = town.network
    times = network.free_flow_times_s
    short = network.shortest_path(times, 0, 64)
    assumed(client, town, {"depot": "D0", "edges": short.edges.tolist()}, "not at node 65")
    other = network.shortest_path(times, 11, 65)
    assumed(
        client,
        town,
        {"depot": "D0", "edges": other.edges.tolist()},
        "starts at node 11, not at node 0",
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "at least two points"),
        ("_", "cut off"),
        ("\x00\x01", "none of an encoded polyline"),
        (polyline.encode([[0.0, 0.0], [1.0, 1.0]]), "is not on this network"),
        (polyline.encode([[22.0, 114.0 - 90], [22.1, 24.1]]), "is not on this network"),
    ],
)
def test_primary_polyline_off_our_graph(client: Local, town: Town, line: str, why: str) -> None:
    assumed(client, town, {"depot": "D0", "polyline": line}, why)


def test_primary_polyline_to_somewhere_else(client: Local, town: Town) -> None:
    path = town.network.shortest_path(town.network.free_flow_times_s, 0, 119)
    line = polyline.encode(path.coordinates(town.network))
    assumed(client, town, {"depot": "D0", "polyline": line}, "not on this network")


def test_no_path_at_all_is_no_fault(client: Local, town: Town) -> None:
    made = advised(client, town.call(primary={"depot": "D1", "unit": "A7"}))
    assert "primary_path_unknown" not in codes(made)
