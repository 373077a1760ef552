import gzip
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import Depot, RoadNetwork
from ideal_dispatch.dispatch import Incident
from ideal_dispatch.errors import InputError
from ideal_dispatch.replay import RecordedCalls, sample_incidents
from ideal_dispatch.replay.incidents import check_incidents, with_units_on_road
from tests.unit.replay.small import CALL
from tests.unit.traffic.small import CALENDAR, START, recording


def test_every_day_has_its_calls_in_order(grid: RoadNetwork) -> None:
    made = recording(grid)
    calls = sample_incidents(made, np.ones(grid.num_nodes), 50, seed=1)
    check_incidents(calls, made)
    assert len(calls) == 150
    assert [call.name for call in calls[49:51]] == ["2023-05-09-0050", "2023-05-10-0001"]
    assert calls == sample_incidents(made, np.ones(grid.num_nodes), 50, seed=1)
    assert calls != sample_incidents(made, np.ones(grid.num_nodes), 50, seed=2)


def test_a_day_does_not_depend_on_the_others(grid: RoadNetwork) -> None:
    made = recording(grid)
    calls = sample_incidents(made, np.ones(grid.num_nodes), 10, seed=1)
    assert sample_incidents(made.only([1]), np.ones(grid.num_nodes), 10, seed=1) == calls[10:20]


def test_they_are_uniform_over_what_is_recorded_and_leave_time_to_drive(grid: RoadNetwork) -> None:
    made = recording(grid, days=1)  # two hours
    first = made.stretches[0]
    later = replace(first, start=first.start + timedelta(hours=5))
    made = replace(made, stretches=(first, later))
    calls = sample_incidents(made, np.ones(grid.num_nodes), 4000, seed=0, margin_s=1800)
    minutes = np.array([(call.at - START).total_seconds() / 60 for call in calls])
    assert ((minutes < 90) | ((minutes >= 300) & (minutes < 390))).all()
    counts = np.histogram(minutes, [0, 30, 60, 90, 330, 360, 390])[0]
    assert counts == pytest.approx(4000 / 6, rel=0.15)


def test_a_lead_leaves_the_router_time_to_see(grid: RoadNetwork) -> None:
    made = recording(grid, days=1)  # two hours
    calls = sample_incidents(made, np.ones(grid.num_nodes), 2000, 0, margin_s=1800, lead_s=600)
    minutes = np.array([(call.at - START).total_seconds() / 60 for call in calls])
    assert (minutes.min(), minutes.max()) == pytest.approx((10, 90), abs=0.5)
    with pytest.raises(InputError, match="lead_s -1"):
        sample_incidents(made, np.ones(grid.num_nodes), 1, 0, lead_s=-1)


@pytest.mark.parametrize(("margin_s", "lead_s"), [(1800.0, 0.0), (900.0, 900.0), (0.0, 1800.0)])
def test_edges_that_leave_nothing_of_a_stretch_are_refused(
    grid: RoadNetwork, margin_s: float, lead_s: float
) -> None:
    """A stretch of half an hour: calls would else be left out silently, by nature the late ones."""
    short = recording(grid, days=1, bins=30)
    with pytest.raises(InputError, match="margin_s"):
        sample_incidents(short, np.ones(grid.num_nodes), 5, 0, margin_s, lead_s)
    found = RecordedCalls("calls", (Incident("a", 5, START),), (2,))
    with pytest.raises(InputError, match="margin_s"):
        found.within(short, margin_s, lead_s)
    calls = sample_incidents(short, np.ones(grid.num_nodes), 500, 0, margin_s / 2, lead_s / 2)
    offsets = [(call.at - START).total_seconds() for call in calls]
    assert lead_s / 2 <= min(offsets) < max(offsets) < 1800.0 - margin_s / 2


def test_places_follow_their_weights(grid: RoadNetwork) -> None:
    weights = np.zeros(grid.num_nodes)
    weights[[3, 7]] = 1.0, 3.0
    calls = sample_incidents(recording(grid, days=1), weights, 2000, seed=0)
    nodes = np.array([call.node for call in calls])
    assert set(nodes.tolist()) == {3, 7}
    assert (nodes == 7).mean() == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize(
    ("weights", "per_day", "margin_s", "message"),
    [
        (np.ones(3), 1, 0.0, "weights"),
        (np.full(120, -1.0), 1, 0.0, "weights: .*node 0"),
        (np.zeros(120), 1, 0.0, "weights"),
        (np.ones(120), 0, 0.0, "per_day 0"),
        (np.ones(120), 1, np.nan, "margin_s nan"),
    ],
)
def test_draws_that_cannot_be_made(
    grid: RoadNetwork, weights: np.ndarray, per_day: int, margin_s: float, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        sample_incidents(recording(grid), weights, per_day, 0, margin_s)


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ([], "no incident given: there is nothing to replay"),
        ([Incident("a", 120, CALL)], r"incident a: 120 is not a node \(0 … 119\)"),
        ([Incident("a", -1, CALL)], "incident a: -1 is not a node"),
        ([Incident("a", 1, CALL), Incident("a", 2, CALL)], "incident a: the name is used twice"),
        (
            [Incident("a", 1, CALL), Incident("b", 2, CALL - timedelta(seconds=1))],
            "incident b: it comes before the one above it; sort them by time",
        ),
        (
            [Incident("a", 1, CALL + timedelta(days=9))],
            "incident a: 2023-05-18T22:40:30.* is not in the recording",
        ),
    ],
)
def test_calls_that_cannot_be_replayed(
    grid: RoadNetwork, calls: list[Incident], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        check_incidents(calls, recording(grid))


# --- recorded calls -------------------------------------------------------------------

DEPOTS = [Depot("Low", 0), Depot("High", 119)]
RECORDED = """call_id;lon;lat;call_at
A;114.0031;22.0021;2023-05-09 06:10
B;114.005;22.004;2023-05-09T06:00+08:00
C;22.004;114.005;2023-05-09 06:20
D;114.5;22.004;2023-05-09 06:20
E;;22.004;2023-05-09 06:20
A;114.005;22.004;2023-05-09 06:21
F;114.005;22.004;noon
G;114.005;22.004;2023-05-10 09:00
H;114.005;22.004;2023-05-09 07:59
I;114.005;22.004;2023-05-10 06:30
"""


def read(source: object, network: RoadNetwork) -> RecordedCalls:
    return RecordedCalls.read(source, network, DEPOTS, CALENDAR)


def test_recorded_calls_are_put_on_the_network_in_order(grid: RoadNetwork, tmp_path: Path) -> None:
    (tmp_path / "calls.csv").write_text(RECORDED)
    found = read(tmp_path / "calls.csv", grid).within(recording(grid), margin_s=1800)
    assert [call.name for call in found.incidents] == ["B", "A", "I"]
    assert [call.node for call in found.incidents] == [53, 27, 53]
    assert found.incidents[0].at == START
    assert found.incidents[1].at.utcoffset() == timedelta(hours=8)
    assert found.lines == (3, 2, 11)
    assert found.of_days(recording(grid), [1]) == found.incidents[2:]
    assert "7 rows left out, 3 calls remain: 3 off the network" in found.words
    found.write_left_out(tmp_path / "lost.csv")
    lines = (tmp_path / "lost.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["line", "4", "5", "6", "7", "8", "9", "10"]
    assert "the nearest road is" in lines[2]
    assert "neither a node nor lon and lat" in lines[3]
    assert "A is in line 2 already" in lines[4]
    assert "at is not a known form of a time" in lines[5]


UNITS = """call;unit;lon;lat;kind
A;A7;114.005;22.004;medic
A;A8;114.0031;22.0021;
A;A7;114.005;22.004;
A;West;114.005;22.004;
A;A9;115.5;22.004;
Z;A7;114.005;22.004;
"""


def test_units_on_the_road_are_origins_of_their_call(grid: RoadNetwork, tmp_path: Path) -> None:
    (tmp_path / "calls.csv").write_text(RECORDED)
    (tmp_path / "units.csv").write_text(UNITS)
    files = tmp_path / "calls.csv", grid, [Depot("West", 0), Depot("East", 114)], CALENDAR
    plain = RecordedCalls.read(*files)
    found = RecordedCalls.read(*files, tmp_path / "units.csv")
    of_call = {call.name: call.on_road for call in found.incidents}
    assert of_call.pop("A") == (Depot("A7", 53, True, "medic"), Depot("A8", 27, True))
    assert set(of_call.values()) == {()}
    assert [replace(call, on_road=()) for call in found.incidents] == list(plain.incidents)
    assert found.left_out[: len(plain.left_out)] == plain.left_out
    unused = found.left_out[len(plain.left_out) :]
    assert [(line, why) for line, why, _ in unused] == [
        (n, "unit on the road") for n in range(4, 8)
    ]
    reasons = [details for _, _, details in unused]
    assert "'A7' of call A" in reasons[0]
    assert "'West' of call A" in reasons[1]
    assert "the nearest road is" in reasons[2]
    assert "'Z'" in reasons[3]
    assert found.within(recording(grid), margin_s=1800).left_out[: len(found.left_out)] == (
        found.left_out
    )
    found.write_left_out(tmp_path / "lost.csv")
    assert "7,unit on the road,no call 'Z' is replayed" in (tmp_path / "lost.csv").read_text()
    (tmp_path / "units.csv").write_text("call,lon,lat\nA,114.0,22.0\n")
    with pytest.raises(InputError, match="no column for 'unit' .*; call, unit, and node or lon"):
        RecordedCalls.read(*files, tmp_path / "units.csv")


def test_drawn_units_depend_on_their_call_alone(grid: RoadNetwork) -> None:
    calls = sample_incidents(recording(grid), np.ones(grid.num_nodes), 40, seed=1)
    drawn = with_units_on_road(calls, grid, 2, seed=1)
    assert [replace(call, on_road=()) for call in drawn] == list(calls)
    assert with_units_on_road(calls[5:], grid, 2, seed=1) == drawn[5:]
    one = with_units_on_road(calls, grid, 1, seed=1)
    assert [call.on_road for call in one] == [call.on_road[:1] for call in drawn]
    assert with_units_on_road(calls, grid, 2, seed=2) != drawn
    assert with_units_on_road(calls, grid, 0, seed=1) == calls
    nodes = {unit.node for call in drawn for unit in call.on_road}
    assert len(nodes) > 40
    assert all(call.node not in [unit.node for unit in call.on_road] for call in drawn)
    assert [unit.name for unit in drawn[0].on_road] == ["road 1", "road 2"]


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        (Depot("West", 3, True), "call A: unit West on the road has the name of a depot"),
        (Depot("A7", 999, True), "call A: unit A7: 999 is not a node"),
    ],
)
def test_units_that_cannot_be_replayed(grid: RoadNetwork, unit: Depot, message: str) -> None:
    made, call = recording(grid), Incident("call A", 5, CALL, (unit,))
    with pytest.raises(InputError, match=message):
        check_incidents([call], made, [Depot("West", 0)])


def test_recorded_calls_of_any_table(grid: RoadNetwork, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas", reason="the records extra is not installed")
    (tmp_path / "calls.csv").write_text(RECORDED)
    with gzip.open(tmp_path / "calls.csv.gz", "wt") as file:
        file.write(RECORDED)
    plain = read(tmp_path / "calls.csv", grid)
    assert read(tmp_path / "calls.csv.gz", grid).incidents == plain.incidents
    frame = pd.read_csv(tmp_path / "calls.csv", sep=";")
    assert read(frame, grid).incidents == plain.incidents
    pytest.importorskip("openpyxl", reason="the records extra is not installed")
    frame.to_excel(tmp_path / "calls.xlsx", index=False)
    assert read(tmp_path / "calls.xlsx", grid).incidents == plain.incidents


def test_recorded_calls_by_node(grid: RoadNetwork) -> None:
    pd = pytest.importorskip("pandas", reason="the records extra is not installed")
    island = RoadNetwork.from_arrays([0, 1, 2], [1, 0, 0], np.full(3, 100.0))
    rows = {"node": [1, 2, 3, "x"], "at": ["2023-05-09 06:10"] * 4}
    found = RecordedCalls.read(pd.DataFrame(rows), island, [Depot("Low", 0)], CALENDAR)
    assert [(call.name, call.node) for call in found.incidents] == [("line 2", 1)]
    assert found.left_out == (
        (3, "no depot reaches", "no way leads from any depot to node 2"),
        (4, "off the network", "'3' is not a node (0 … 2)"),
        (5, "off the network", "'x' is not a node (0 … 2)"),
    )
    sampled = sample_incidents(recording(grid), np.ones(grid.num_nodes), 5, 0)
    rows = {name: [getattr(one, name) for one in sampled] for name in ("name", "node")}
    again = read(pd.DataFrame(rows | {"at": [one.at.isoformat() for one in sampled]}), grid)
    assert (again.incidents, again.words) == (sampled, "")


def test_a_lead_has_no_calls(grid: RoadNetwork) -> None:
    pd = pytest.importorskip("pandas", reason="the records extra is not installed")
    rows = {"node": [5, 6], "at": ["2023-05-09 06:05", "2023-05-09 06:29"]}
    late = read(pd.DataFrame(rows), grid).within(recording(grid, bins=30), 0, lead_s=600)
    assert [call.node for call in late.incidents] == [6]
    assert late.left_out[0][1] == "in the first 600 s of a stretch"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lon,lat\n114,22\n", "no column for 'at' .*; at, and node or lon and lat are needed"),
        ("at,node\n", "no call in it"),
        ("at,node\nsoon,1\n", "1 rows left out"),
    ],
)
def test_tables_without_a_call(grid: RoadNetwork, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "calls.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "calls.csv", grid)
