"""A primary's path that we cannot use is said to be so, and the router's assumed."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.network.snapping import Snapper
from ideal_dispatch.traffic import foreign_route
from tests.polylines import encode_polyline
from tests.service_town import Local, Town, application, codes, local


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    with local(application(town.settings("primary.toml"))) as opened:
        opened.report()
        yield opened


def assumed(client: Local, town: Town, primary: dict[str, Any]) -> None:
    made = client.advice(town.call("odd", primary={"depot": "D0", **primary}))
    assert made["decision"] != "no_advice"
    assert "primary_path_unknown" in codes(made)
    assert (made["primary"]["depot"], made["primary"]["chosen_by"]) == ("D0", "cad")
    usual = client.advice(town.call("usual", primary={"depot": "D0"}))
    assert "primary_path_unknown" not in codes(usual)
    assert made["primary"]["route"]["edges"] == usual["primary"]["route"]["edges"]


def path(network: RoadNetwork, start: int, end: int) -> Any:
    return network.shortest_path(network.free_flow_times_s, start, end)


def dense(network: RoadNetwork, points: int, noise: float) -> str:
    """The way from D0 to the scene, drawn with so many points."""
    exact = path(network, 0, 65).coordinates(network)
    along = np.linspace(0, len(exact) - 1, points)
    line = np.column_stack([np.interp(along, np.arange(len(exact)), part) for part in exact.T])
    line[1:-1] += np.random.default_rng(0).normal(0, noise, (points - 2, 2))
    return encode_polyline(line)


@pytest.mark.parametrize("edges", [[10**6], [-1], [2**70], [0, 200], [], "short", "elsewhere"])
def test_edges_that_are_no_path_to_the_scene(client: Local, town: Town, edges: Any) -> None:
    ends = {"short": (0, 64), "elsewhere": (11, 65)}
    if isinstance(edges, str):
        edges = path(town.network, *ends[edges]).edges.tolist()
    assumed(client, town, {"edges": edges})


@pytest.mark.parametrize(
    "line",
    [
        "", "_", "\x00\x01", encode_polyline([[0.0, 0.0], [0.01, 0.01]]),
        encode_polyline([[22.0, 114.0 - 90], [22.01, 24.01]]),
        encode_polyline([[0.0, 0.0], [1.0, 1.0]]), "wrong end",
    ],
)  # fmt: skip
def test_polylines_that_are_no_path_to_the_scene(client: Local, town: Town, line: str) -> None:
    if line == "wrong end":
        line = encode_polyline(path(town.network, 0, 119).coordinates(town.network))
    assumed(client, town, {"polyline": line})


def test_of_many_points_far_away_one_is_looked_for(
    client: Local, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is near, each point that is looked for takes long."""
    looked_for: list[int] = []
    nodes = Snapper.nodes

    def counted(snapper: Snapper, lon: Any, lat: Any) -> Any:
        looked_for.append(len(lon))
        return nodes(snapper, lon, lat)

    monkeypatch.setattr(Snapper, "nodes", counted)
    assumed(client, town, {"polyline": "?" * 65_000})
    assert max(looked_for) == 1


@pytest.mark.parametrize(("points", "noise"), [(200, 1e-2), (12_000, 2e-4)])
def test_a_line_of_many_kilometres_is_not_laid(
    client: Local, town: Town, points: int, noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Laying it would take seconds; a few hundred points across the town suffice."""
    laid: list[Any] = []
    monkeypatch.setattr(foreign_route, "laid_on", lambda *given: laid.append(given))
    assumed(client, town, {"polyline": dense(town.network, points, noise)})
    assert laid == []


def test_a_line_of_many_points_is_a_path(client: Local, town: Town) -> None:
    line = dense(town.network, 12_000, 0.0)
    made = client.advice(town.call("dense", primary={"depot": "D0", "polyline": line}))
    assert "primary_path_unknown" not in codes(made)
    assert made["primary"]["route"]["edges"] == path(town.network, 0, 65).edges.tolist()
