from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch import Depot, RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.drawing import draw_network
from ideal_dispatch.pages import save_figure

SIGNATURES = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("kind", SIGNATURES)
def test_maps_are_written_and_repeatable(grid: RoadNetwork, tmp_path: Path, kind: str) -> None:
    written = []
    for attempt in ("a", "b"):
        figure = draw_network(grid, [Depot("West", 0), Depot("East", 11)], "Grid")
        save_figure(figure, tmp_path / f"{attempt}{kind}")
        written.append((tmp_path / f"{attempt}{kind}").read_bytes())
    assert written[0].startswith(SIGNATURES[kind])
    assert written[0] == written[1]


def test_what_is_drawn(grid: RoadNetwork) -> None:
    names = ["Mount Davis Ambulance Depot", "Morrison Hill Ambulance Depot"]
    figure = draw_network(grid, [Depot(name, i) for i, name in enumerate(names)], title="Grid")
    axes = figure.axes[0]
    layers: list[Any] = list(axes.collections)
    assert sum(len(layer.get_segments()) for layer in layers) == grid.num_edges
    texts = [text.get_text() for text in axes.texts]
    assert texts[:2] == ["Mount Davis", "Morrison Hill"]
    assert texts[-1] == "200 m", "a scale bar"
    assert figure.legends[0].get_texts()[0].get_text() == "trunk, motorway"


def test_without_classes_speed_is_shown() -> None:
    network = RoadNetwork.from_arrays(
        [0, 1, 0], [1, 0, 1], [90.0] * 3, [0.0, 0.001], [0.0, 0.0], speed_kmh=[80, 60, float("nan")]
    )
    labels = [text.get_text() for text in draw_network(network).legends[0].get_texts()]
    assert labels == ["above 70", "above 50", "limit up to 50 km/h or unknown"]


def test_bad_requests(grid: RoadNetwork, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x.gif: a map ends in .png, .svg, .pdf"):
        save_figure(draw_network(grid), tmp_path / "x.gif")
    with pytest.raises(InputError, match="a map needs lon and lat"):
        draw_network(RoadNetwork.from_arrays([0], [1], [1.0]))
