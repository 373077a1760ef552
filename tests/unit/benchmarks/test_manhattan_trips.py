"""The real trips: what the cleaning keeps, and what it says it dropped."""

import csv
import gzip
from pathlib import Path

import numpy as np

from benchmarks.manhattan_trips import EDGES, NODES, TRIPS, manhattan
from ideal_dispatch.context.encoding import PAPER_COLUMNS

HEADER = (
    "obs_id,duration,hour,weekday,"
    "pickup_longitude,pickup_latitude,dropoff_longitude,dropoff_latitude"
)
WEST, EAST = "-73.99,40.75", "-73.97,40.75"


def _folder(folder: Path, rows: list[str], header: str = HEADER) -> Path:
    """Two junctions 1.7 km apart, and the trips given."""
    (folder / NODES).write_text(f"osmid,lon,lat\n1,{WEST}\n2,{EAST}\n")
    edges = "u,v,length_m,highway,oneway\n1,2,1700,primary,False\n2,1,1700,primary,False\n"
    (folder / EDGES).write_bytes(gzip.compress(edges.encode()))
    (folder / TRIPS).write_text("\n".join([header, *rows]) + "\n")
    return folder


def test_real_trips(shared_data: Path) -> None:
    network, trips = manhattan(shared_data / "manhattan")
    assert (network.num_nodes, network.num_edges) == (4385, 9571)  # 9,579 with 8 loops
    assert len(trips) == 7268
    dropped = trips.provenance["dropped"]
    assert trips.provenance["read"] - sum(dropped.values()) == len(trips)
    assert list(dropped.values()) == [2000, 696, 7, 23, 6]
    trips.check(network)
    assert ((trips.observed_s >= 60) & (trips.observed_s <= 3600)).all()
    assert (trips.origin != trips.destination).all()
    known = np.flatnonzero(~np.isnan(trips.contexts).any(axis=0))
    assert [PAPER_COLUMNS[column] for column in known] == [
        "hour", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
    ]  # fmt: skip
    with open(shared_data / "manhattan" / TRIPS, newline="") as file:
        source = list(csv.DictReader(file))
    rows = np.asarray(trips.row)
    for index in range(0, len(trips), 500):
        row = source[rows[index]]
        assert float(row["duration"]) == trips.observed_s[index]
        assert float(row["hour"]) == trips.contexts[index, 5]


def test_each_rule_drops_its_row_and_is_counted(tmp_path: Path) -> None:
    rows = [
        f"kept,300,17,1,{WEST},{EAST}",
        f"no duration,NA,17,2,{WEST},{EAST}",
        f"far,300,17,3,-73.98,40.75,{EAST}",
        f"short,59,17,4,{WEST},{EAST}",
        f"long,3601,17,5,{WEST},{EAST}",
        f"same node,300,17,6,{WEST},-73.9901,40.75",
        f"too fast,60.5,17,7,{WEST},{EAST}",
        f"kept,1e3,5,7,{EAST},{WEST}",
        f"zero,0,17,7,{WEST},{EAST}",
    ]
    network, trips = manhattan(_folder(tmp_path, rows))
    assert np.asarray(trips.row).tolist() == [0, 7]
    assert trips.observed_s.tolist() == [300.0, 1000.0]
    assert trips.contexts[:, 5].tolist() == [17.0, 5.0]
    assert trips.contexts[0, 6:13].argmax() == 6  # weekday 1 is Sunday
    assert trips.contexts[1, 6:13].argmax() == 5
    assert [network.node_ids[node] for node in trips.origin] == [1, 2]
    assert trips.provenance["dropped"] == {
        "without a duration": 1,
        "an end 150 m or more from every node": 1,
        "duration outside 60–3600 s": 3,
        "both ends at one node": 1,
        "straight-line speed outside 1–100 km/h": 1,
    }
