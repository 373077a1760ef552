"""A day in SUMO: what it reads, what it writes, and what comes of it."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import FileFormatError, InputError, MissingExtraError
from ideal_dispatch.network.geodesy import polyline_length_m
from ideal_dispatch.traffic.sumo import day as module
from ideal_dispatch.traffic.sumo.day import (
    DayTimes,
    Passages,
    left_times_s,
    prepare_period,
    rain_effect,
    read_passages,
    read_summary,
    simulate_day,
    write_closures,
    write_trips,
)
from ideal_dispatch.traffic.sumo.demand import Demand, Departures
from ideal_dispatch.traffic.sumo.network import (
    SumoError,
    export_network,
    is_installed,
    lanes_per_direction,
    roads_checksum,
    run,
    speeds_m_s,
    turns_left_out,
)
from ideal_dispatch.traffic.sumo.plan import Closure
from tests.unit.traffic.sumo.days import DRY, needs_sumo, plan

LIGHT = {"demand_factor": 0.4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sumo")


@pytest.fixture(scope="module")
def day(grid: RoadNetwork, folder: Path) -> DayTimes:
    return simulate_day(grid, plan(**LIGHT), workdir=folder)


# --- without SUMO ------------------------------------------------------------------


def test_lanes_are_those_of_one_direction(grid: RoadNetwork) -> None:
    lanes = lanes_per_direction(grid)
    assert lanes.min() == 1
    wide = np.flatnonzero((grid.lanes == 4) & ~grid.oneway)[0]
    oneway = np.flatnonzero((grid.lanes == 3) & grid.oneway)[0]
    assert (lanes[wide], lanes[oneway]) == (2, 3)


def test_speeds_keep_the_free_flow_time_of_the_drawn_road(grid: RoadNetwork) -> None:
    drawn_m = polyline_length_m(grid.polyline(5))
    assert drawn_m / speeds_m_s(grid)[5] == pytest.approx(grid.free_flow_times_s[5], rel=1e-3)


def test_rain_slows_and_spreads() -> None:
    light, heavy = rain_effect(1.0), rain_effect(40.0)
    assert 0.83 < heavy[0] < light[0] < 1.0 < light[1] < heavy[1] <= 1.3


def test_every_driver_has_a_type_that_exists(tmp_path: Path) -> None:
    """Departures are rounded: the last of a day may be at its very end."""
    place = np.zeros(3, np.int32)
    trips = Departures(np.array([-30.0, 0.0, 24 * 3600.0]), place, place)
    write_trips(plan(), trips, tmp_path / "trips.xml")
    root = ElementTree.parse(tmp_path / "trips.xml").getroot()
    types = {one.get("id") for one in root.iter("vType")}
    assert [one.get("type") for one in root.iter("trip")] == ["hour-1", "hour0", "hour23"]
    assert {one.get("type") for one in root.iter("trip")} <= types


def test_closures_are_announced_on_the_edges_before(grid: RoadNetwork, tmp_path: Path) -> None:
    lanes = lanes_per_direction(grid)
    wide, narrow = int(np.argmax(lanes)), int(np.argmin(lanes))
    closures = (
        Closure((wide,), 100, 200, lanes_left=1),
        Closure((narrow,), 100, 200, lanes_left=1),
    )
    write_closures(grid, plan(closures=closures), tmp_path / "closures.xml")
    first, second = ElementTree.parse(tmp_path / "closures.xml").getroot()
    before = [int(edge) for edge in first.attrib["edges"].split()]
    assert grid.head[before[0]] == grid.tail[wide]
    assert wide not in before
    shut = [lane.attrib["id"] for lane in first.iter("closingLaneReroute")]
    assert shut == [f"{wide}_{lane}" for lane in range(lanes[wide] - 1)]
    # a road of one lane cannot keep one: it is closed
    assert [edge.attrib["id"] for edge in second.iter("closingReroute")] == [str(narrow)]


def test_a_closure_outside_the_network_is_refused(grid: RoadNetwork, tmp_path: Path) -> None:
    bad = plan(closures=(Closure((99_999,), 0, 60),))
    with pytest.raises(InputError, match="99999"):
        write_closures(grid, bad, tmp_path / "closures.xml")


def test_nodes_need_places(tmp_path: Path) -> None:
    nowhere = RoadNetwork.from_arrays([0, 1], [1, 0], [100.0, 100.0])
    with pytest.raises(InputError, match="lon and lat"):
        export_network(nowhere, tmp_path)


@pytest.mark.skipif(is_installed(), reason="SUMO is here")
def test_without_sumo_the_extra_is_named(grid: RoadNetwork, tmp_path: Path) -> None:
    with pytest.raises(MissingExtraError, match=r"ideal-dispatch\[sumo\]"):
        simulate_day(grid, plan(), workdir=tmp_path)


# --- with SUMO ---------------------------------------------------------------------


@needs_sumo
def test_edges_and_turns_are_ours(grid: RoadNetwork, folder: Path) -> None:
    root = ElementTree.parse(export_network(grid, folder)).getroot()
    ends = {
        edge.attrib["id"]: (edge.attrib["from"], edge.attrib["to"])
        for edge in root.iter("edge")
        if edge.get("function") != "internal"
    }
    assert ends == {str(e): (str(grid.tail[e]), str(grid.head[e])) for e in range(grid.num_edges)}
    turns = {(c.attrib["from"], c.attrib["to"]) for c in root.iter("connection")}
    for edge in range(grid.num_edges):
        for after in np.flatnonzero(grid.tail == grid.head[edge]):
            if grid.head[after] != grid.tail[edge]:
                assert (str(edge), str(after)) in turns


@needs_sumo
def test_nobody_makes_a_forbidden_turn(grid: RoadNetwork, folder: Path, tmp_path: Path) -> None:
    crossings = np.bincount(grid.tail) == 4
    pairs = [
        (edge, int(np.flatnonzero(grid.tail == grid.head[edge])[0]))
        for edge in range(0, grid.num_edges, 3)
        if crossings[grid.head[edge]]
    ]
    longer = (1, *grid.shortest_path(grid.length_m, int(grid.head[1]), 50).edges[:2].tolist())
    town = replace(grid, forbidden_turns=(*pairs, longer))
    assert turns_left_out(town) == 1
    assert roads_checksum(town) != roads_checksum(grid)
    net = export_network(town, tmp_path)
    made = {
        (int(one.attrib["from"]), int(one.attrib["to"]))
        for one in ElementTree.parse(net).getroot().iter("connection")
        if not one.attrib["from"].startswith(":")
    }
    assert made.isdisjoint(pairs)
    assert {edge for edge, _ in made} == set(range(town.num_edges)), "a way on is left everywhere"
    _, options = prepare_period(town, Demand.of(town), plan(**LIGHT), (7, 8), net, tmp_path)
    run("sumo", options, tmp_path, 600.0)
    driven = [
        route.attrib["edges"].split()
        for vehicle in ElementTree.parse(tmp_path / "routes.xml").getroot().iter("vehicle")
        for route in list(vehicle.iter("route"))[-1:]
    ]
    turns = {turn for route in driven for turn in pairwise(map(int, route))}
    assert len(turns) > 200
    assert turns.isdisjoint(pairs)


@needs_sumo
def test_a_day_has_times_near_free_flow_when_little_is_going_on(
    grid: RoadNetwork, day: DayTimes
) -> None:
    assert day.times_s.shape == (60, grid.num_edges)
    assert day.bins == (60,)
    seen = np.isfinite(day.times_s)
    assert 0.02 < seen.mean() < 1
    ratio = (day.times_s / grid.free_flow_times_s)[seen]
    assert ratio.min() >= 0.8 - 1e-6
    assert 0.9 < np.median(ratio) < 2
    (hour,) = day.hours
    assert hour.departed == pytest.approx(hour.wanted, rel=0.02)
    assert hour.completed > 0.8 * hour.departed
    assert 0.4 < hour.relative_speed < 1.1
    assert day.cpu_s > 0


@needs_sumo
def test_same_plan_same_times(grid: RoadNetwork, day: DayTimes, folder: Path) -> None:
    again = simulate_day(grid, plan(**LIGHT), workdir=folder)
    np.testing.assert_array_equal(again.times_s, day.times_s)
    assert again.hours == day.hours
    assert [path.suffix for path in folder.iterdir()] == [".xml"]  # the network alone is kept


@needs_sumo
def test_a_day_queue_by_queue_has_other_times_of_the_same_trips(
    grid: RoadNetwork, day: DayTimes, folder: Path
) -> None:
    queued = simulate_day(grid, plan(**LIGHT, queues=True), workdir=folder)
    assert [hour.wanted for hour in queued.hours] == [hour.wanted for hour in day.hours]
    assert not np.array_equal(queued.times_s, day.times_s, equal_nan=True)
    assert 0.8 < np.nanmedian(queued.times_s / grid.free_flow_times_s) < 2.0
    assert queued.unfinished == 0.0


@needs_sumo
def test_rain_makes_the_day_slower(grid: RoadNetwork, day: DayTimes, folder: Path) -> None:
    wet = tuple((t, 30.0, h, w, p) for t, _, h, w, p in DRY)
    rainy = simulate_day(grid, plan(weather=wet, **LIGHT), workdir=folder)
    assert rainy.hours[0].relative_speed < day.hours[0].relative_speed - 0.03


@needs_sumo
def test_nobody_enters_a_closed_edge(grid: RoadNetwork, day: DayTimes, folder: Path) -> None:
    edge = int(np.isfinite(day.times_s).sum(axis=0).argmax())
    shut = plan(closures=(Closure((edge,), 25_800, 28_800),), **LIGHT)  # from 07:10
    closed = simulate_day(grid, shut, workdir=folder)
    assert np.isfinite(day.times_s[12:, edge]).sum() > 10
    assert np.isfinite(closed.times_s[12:, edge]).sum() <= 1
    assert closed.hours[0].completed > 0.8 * closed.hours[0].departed


@needs_sumo
def test_a_period_may_begin_and_end_at_midnight(grid: RoadNetwork, folder: Path) -> None:
    night = plan(hours=((0, 1), (23, 24)), demand_factor=1.0)
    day = simulate_day(grid, night, workdir=folder)
    assert [f"{hour.start:%d %H:%M}" for hour in day.hours] == ["04 00:00", "04 23:00"]
    assert day.bins == (60, 60)
    assert np.isfinite(day.times_s[:5]).any()  # the warm-up of the evening before
    assert np.isfinite(day.times_s[-5:]).any()


@needs_sumo
def test_odd_bins_are_refused(grid: RoadNetwork, folder: Path) -> None:
    with pytest.raises(InputError, match="bins of 7 s"):
        simulate_day(grid, plan(), workdir=folder, bin_s=7)


@needs_sumo
def test_what_sumo_says_is_passed_on(folder: Path) -> None:
    with pytest.raises(SumoError, match="sumo: Error: .*nothing.xml"):
        run("sumo", ["--net-file", "nothing.xml"], folder, 60)


@needs_sumo
def test_a_run_that_was_stopped_is_no_day(
    grid: RoadNetwork, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(path: Path) -> dict[str, np.ndarray]:
        return {name: values[:-3] for name, values in read_summary(path).items()}

    monkeypatch.setattr(module, "read_summary", stopped)
    with pytest.raises(SumoError, match="stopped"):
        simulate_day(grid, plan(**LIGHT), workdir=folder)


# --- what SUMO wrote ---------------------------------------------------------------


ROUTES = """<routes>
  <vehicle id="a" depart="10.00" arrival="60.00">
    <route edges="4 2 7" exitTimes="20.00 45.00 60.00"/>
  </vehicle>
  <vehicle id="teleported" depart="10.00" arrival="90.00">
    <route edges="4 2 7 1" exitTimes="30.00 -1.00 70.00 90.00"/>
  </vehicle>
  <vehicle id="rerouted" depart="5.00">
    <routeDistribution><route edges="9 9"/><route edges="4 2" exitTimes="12.00 -1"/>
    </routeDistribution>
  </vehicle>
  <vehicle id="short" depart="5.00" arrival="6.00"><route edges="3" exitTimes="6.00"/></vehicle>
</routes>"""


def test_passages_run_from_entering_to_entering(tmp_path: Path) -> None:
    path = tmp_path / "routes.xml"
    path.write_text(ROUTES)
    passages = read_passages(path)
    # last edges and what was teleported over are left out
    assert passages.edge.tolist() == [4, 2, 4, 4]
    assert passages.enter_s.tolist() == [10, 20, 10, 5]
    assert passages.leave_s.tolist() == [20, 45, 30, 12]
    path.write_text("<routes></routes>")
    assert read_passages(path).edge.size == 0


NO_EXITS = '<routes><vehicle id="x" depart="1"><route edges="1 2"/></vehicle></routes>'


@pytest.mark.parametrize("text", ["", ROUTES[:200], "not xml", NO_EXITS])
def test_damaged_outputs_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "routes.xml"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=r"routes\.xml"):
        read_passages(path)
    path.write_text("<summary></summary>")
    with pytest.raises(FileFormatError, match=r"routes\.xml"):
        read_summary(path)


def test_bins_hold_clipped_means_and_nan_where_no_vehicle_was() -> None:
    passages = Passages(
        np.array([0, 0, 1, 1, 1, 2, 2], np.int32),
        np.array([0.0, 10.0, 50.0, 500.0, -40.0, 0.0, -900.0]),
        np.array([20.0, 40.0, 70.0, 520.0, 10.0, 1.0, 70.0]),
    )
    times = left_times_s(passages, np.full(3, 10.0), 0, 2, 60)
    np.testing.assert_array_equal(times, [[25.0, 50.0, 8.0], [np.nan, 20.0, 260.0]])
    assert times.dtype == np.float32
