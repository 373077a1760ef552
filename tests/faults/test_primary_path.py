"""A primary's path that we cannot use is said to be so, and the router's assumed."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.network.snapping import Snapper
from ideal_dispatch.traffic import foreign_route
from tests.faults.service_faults import advised, codes, words
from tests.polylines import encode_polyline
from tests.service_town import Local, Town, application, local


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    with local(application(town.settings("primary.toml"))) as opened:
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
        ("\x00\x01", "not part of an encoded polyline"),
        (encode_polyline([[0.0, 0.0], [0.01, 0.01]]), "is not on this network"),
        (encode_polyline([[22.0, 114.0 - 90], [22.01, 24.01]]), "is not on this network"),
        (encode_polyline([[0.0, 0.0], [1.0, 1.0]]), "its line is 15"),
    ],
)
def test_primary_polyline_off_our_graph(client: Local, town: Town, line: str, why: str) -> None:
    assumed(client, town, {"depot": "D0", "polyline": line}, why)


def test_primary_polyline_of_many_points_far_away(
    client: Local, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is near, each point that is looked for takes long: only one is."""
    looked_for: list[int] = []
    nodes = Snapper.nodes

    def counted(snapper: Snapper, lon: Any, lat: Any) -> Any:
        looked_for.append(len(lon))
        return nodes(snapper, lon, lat)

    monkeypatch.setattr(Snapper, "nodes", counted)
    assumed(client, town, {"depot": "D0", "polyline": "?" * 65_000}, "the nearest road is")
    assert max(looked_for) == 1


def test_primary_polyline_to_somewhere_else(client: Local, town: Town) -> None:
    path = town.network.shortest_path(town.network.free_flow_times_s, 0, 119)
    line = encode_polyline(path.coordinates(town.network))
    assumed(client, town, {"depot": "D0", "polyline": line}, "not on this network")


@pytest.mark.parametrize(("points", "noise"), [(200, 1e-2), (12_000, 2e-4)])
def test_primary_polyline_of_many_kilometres(
    client: Local, town: Town, points: int, noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Laying it would take seconds of a solver, a few hundred points across the town suffice."""
    laid: list[Any] = []
    monkeypatch.setattr(foreign_route, "laid_on", lambda *given: laid.append(given))
    path = town.network.shortest_path(town.network.free_flow_times_s, 0, 65)
    exact = path.coordinates(town.network)
    along = np.linspace(0, len(exact) - 1, points)
    line = np.column_stack([np.interp(along, np.arange(len(exact)), part) for part in exact.T])
    line[1:-1] += np.random.default_rng(0).normal(0, noise, (points - 2, 2))
    text = encode_polyline(line)
    assumed(client, town, {"depot": "D0", "polyline": text}, "km; send the planned route")
    assert laid == []


def test_primary_polyline_of_many_points_is_a_path(client: Local, town: Town) -> None:
    path = town.network.shortest_path(town.network.free_flow_times_s, 0, 65)
    exact = path.coordinates(town.network)
    along = np.linspace(0, len(exact) - 1, 12_000)
    line = np.column_stack([np.interp(along, np.arange(len(exact)), part) for part in exact.T])
    made = advised(client, town.call(primary={"depot": "D0", "polyline": encode_polyline(line)}))
    assert "primary_path_unknown" not in codes(made)
    assert made.primary is not None
    assert made.primary.route.edges == path.edges.tolist()


def test_no_path_at_all_is_no_fault(client: Local, town: Town) -> None:
    made = advised(client, town.call(primary={"depot": "D1", "unit": "A7"}))
    assert "primary_path_unknown" not in codes(made)
