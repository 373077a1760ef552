"""Where the ambulances of a call start, by what is known of units."""

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch.answer import Reason
from ideal_dispatch.service.settings import UnitsTable
from ideal_dispatch.service.solver.messages import KnownUnit, Scene
from ideal_dispatch.service.solver.starts import UnitStarts
from tests.unit.dispatch.worlds import depots

TABLE = UnitsTable(candidates=3)


@pytest.fixture
def starts(grid: RoadNetwork) -> UnitStarts:
    return UnitStarts(grid, depots(2), TABLE, 300.0)


def driving(grid: RoadNetwork, name: str, node: int, rolling: bool = False) -> KnownUnit:
    place = float(grid.lon[node]), float(grid.lat[node]), None
    return KnownUnit(
        name, "D1", "", place, 1.0, waiting=False, free=not rolling, rolling=rolling
    )  # fmt: skip


def scene(grid: RoadNetwork, node: int) -> Scene:
    return Scene(float(grid.lon[node]), float(grid.lat[node]))


def test_units_that_are_too_far_away_are_counted(starts: UnitStarts, grid: RoadNetwork) -> None:
    fleet = [driving(grid, f"A{node}", node) for node in range(20, 27)]
    reasons: list[Reason] = []
    found = starts.read(fleet, scene(grid, 20), None, None, reasons)
    assert [one.name for one in found.depots[2:]] == ["A20", "A21", "A22"]
    assert (sum(found.free), found.elsewhere, reasons) == (3, {"D1": 4}, [])


@pytest.mark.parametrize("rolling", [False, True])
def test_a_first_that_is_under_way_drives_already(
    starts: UnitStarts, grid: RoadNetwork, rolling: bool
) -> None:
    found = starts.read([driving(grid, "A1", 40, rolling)], scene(grid, 20), "A1", None, [])
    assert found.sent is not None
    assert found.depots[found.sent].rolling is rolling


def test_a_station_has_the_kind_of_the_unit_that_would_go(
    starts: UnitStarts, grid: RoadNetwork
) -> None:
    fleet = [KnownUnit("A2", "D1", "basic"), KnownUnit("A1", "D1", "advanced")]
    found = starts.read(fleet, scene(grid, 20), None, None, [])
    assert [one.kind for one in found.depots] == ["", "advanced"]


def test_a_unit_that_stands_on_a_closed_road_leaves_it_by_the_nearer_end(
    starts: UnitStarts, grid: RoadNetwork
) -> None:
    line = grid.polyline(40)
    lon, lat = (line[0] + 0.25 * (line[-1] - line[0])).tolist()
    unit = KnownUnit("A1", "D1", "", (lon, lat, None), 1.0, waiting=False)
    there, reasons = scene(grid, int(grid.head[40])), list[Reason]()
    assert starts.read([unit], there, None, None, reasons).depots[-1].node == grid.head[40]
    assert reasons == []
    both = np.flatnonzero(
        np.isin(grid.tail, line_ends := (grid.tail[40], grid.head[40]))
        & np.isin(grid.head, line_ends)
    ).tolist()
    found = starts.read([unit], there, None, None, reasons, both).depots[-1]
    assert found.node == grid.tail[40]
    assert [code for code, _ in reasons] == ["closed_road"]


def test_a_unit_that_stands_leaves_towards_the_scene(starts: UnitStarts, grid: RoadNetwork) -> None:
    edge = 40
    lon, lat = grid.polyline(edge).mean(axis=0).tolist()
    unit = KnownUnit("A1", "D1", "", (lon, lat, None), 1.0, waiting=False)
    for end in (int(grid.tail[edge]), int(grid.head[edge])):
        found = starts.read([unit], scene(grid, end), None, None, []).depots[-1]
        assert found.node == end
        assert found.ahead == pytest.approx(0.5, abs=0.01)
