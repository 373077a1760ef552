import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import Depot, RoadNetwork
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.records.territories import CELL_LIMIT_M, region_of

DEPOTS = (Depot("West", 0), Depot("East", 119))
COLUMN = np.arange(120) % 12
"""The column of each node of the grid: 0 is at longitude 114.000, 11 at 114.011."""


def box(west: float, east: float, **properties: Any) -> dict[str, Any]:
    lon, lat = (114 + west / 1000, 114 + east / 1000), (21.99, 22.02)
    ring = [[lon[i], lat[j]] for i, j in ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def geojson(folder: Path, *features: dict[str, Any]) -> Path:
    file = folder / "areas.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return file


def test_polygons_with_the_name_of_a_depot(grid: RoadNetwork, tmp_path: Path) -> None:
    file = geojson(tmp_path, box(-0.5, 2.5, depot="east"), box(2.5, 11.5, depot="WEST "))
    np.testing.assert_array_equal(region_of(file, grid, DEPOTS), np.where(COLUMN <= 2, 1, 0))


def test_overlaps_and_gaps_are_counted(grid: RoadNetwork, tmp_path: Path) -> None:
    file = geojson(
        tmp_path, box(1.5, 4.5, name="East"), box(3.5, 6.5, name="West"), box(2.5, 3.5, name="East")
    )
    with pytest.warns(UserWarning, match="of 120 nodes are in") as told:
        region = region_of(file, grid, DEPOTS)
    words = [str(one.message) for one in told]
    assert words[0].startswith(f"{file}: 70 of 120 nodes are in no territory")
    assert words[1].startswith(f"{file}: 10 of 120 nodes are in several")  # 3 is East's twice
    assert (region[COLUMN == 4] == 1).all()
    nearest = np.argmin([grid.distances(grid.free_flow_times_s, one) for one in DEPOTS], axis=0)
    gap = (COLUMN < 2) | (COLUMN > 6)
    np.testing.assert_array_equal(region[gap], nearest[gap])
    assert gap.sum() == 70


def test_depots_that_take_no_part_and_their_other_names(grid: RoadNetwork, tmp_path: Path) -> None:
    table = tmp_path / "depots.csv"
    table.write_text("name,code,lon,lat\nWest,W1,114,22\nEast,E1,114.011,22.009\nFar,F1,7,43\n")
    file = geojson(
        tmp_path, box(-0.5, 5.5, code="w1"), box(5.5, 7.5, code="E1"), box(7.5, 11.5, code="F1")
    )
    with pytest.warns(UserWarning, match="40 of 120 nodes are in no territory"):
        region = region_of(file, grid, DEPOTS, table)
    assert (region[COLUMN <= 5] == 0).all()
    assert (region[(COLUMN > 5) & (COLUMN <= 7)] == 1).all()


def test_a_table_of_nodes(grid: RoadNetwork, tmp_path: Path) -> None:
    file = tmp_path / "nodes.csv"
    rows = [f"{node},{'East' if node < 60 else 'West'}" for node in range(119)]
    file.write_text("\n".join(["node,depot", *rows, "3,West", "119,"]))
    with pytest.warns(UserWarning, match="1 of 120 nodes are in (no|several)") as told:
        region = region_of(file, grid, DEPOTS)
    assert len(told) == 2
    np.testing.assert_array_equal(region[:119], np.where(np.arange(119) < 60, 1, 0))


def test_a_table_of_cells(grid: RoadNetwork, tmp_path: Path) -> None:
    file = tmp_path / "cells.csv"
    file.write_text("lon;lat;station\n114,002;22,004;East\n114,009;22,004;West\n113;22;West\n")
    np.testing.assert_array_equal(region_of(file, grid, DEPOTS), np.where(COLUMN <= 5, 1, 0))
    file.write_text("lon,lat,depot\n114.002,22.012,East\n")  # far rows lie beyond the limit
    far = great_circle_m(grid.lon, grid.lat, np.array(114.002), np.array(22.012)) > CELL_LIMIT_M
    assert far.any()
    with pytest.warns(UserWarning, match=f"{far.sum()} of 120 nodes are in no territory"):
        region_of(file, grid, DEPOTS)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([box(0, 5, depot="Wst")], "feature 1: depot Wst: no such depot; did you mean West"),
        ([box(0, 5, depot="Q")], "feature 1: depot Q: no such depot; there are West, East"),
        ([box(0, 5, area="West")], "no property names the depot of a territory"),
        ([box(0, 5, depot="West"), box(0, 5)], "feature 2: no depot; each territory is a polygon"),
        ([box(500, 600, depot="West")], "no node of the network lies in any territory"),
        ([], "no property names the depot"),
        ([{"type": "Feature", "properties": {"depot": "West"}, "geometry": None}],
         "feature 1: no geometry, not a polygon"),
        ([{"type": "Feature", "properties": {"depot": "West"},
           "geometry": {"type": "Polygon", "coordinates": [[1]]}}],
         "feature 1: its coordinates are not a polygon"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_used(
    grid: RoadNetwork, tmp_path: Path, features: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises((InputError, FileFormatError), match=message):
        region_of(geojson(tmp_path, *features), grid, DEPOTS)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("areas.json", "[]", "not GeoJSON with features"),
        ("areas.json", "{", "not GeoJSON with features"),
        ("nodes.csv", "node,depot\n120,West\n", r"line 2: '120' is not a node \(0 … 119\)"),
        ("nodes.csv", "node,depot\n5,Nobody\n", "line 2: depot Nobody: no such depot"),
        ("nodes.csv", "node\n5\n", "no column for 'depot'"),
        ("cells.csv", "lon,lat,depot\n114,x,West\n", "lat is 'x'; a finite number is needed"),
        ("none.csv", None, "no such file"),
    ],
)
def test_tables_that_cannot_be_used(
    grid: RoadNetwork, tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises((InputError, FileFormatError), match=message):
        region_of(tmp_path / name, grid, DEPOTS)
