"""Real taxi trips on the streets of Manhattan, cleaned by stated rules.

NYC TLC open data by way of statsmaths, OpenStreetMap roads. The odometer column
is not read: an agency has none.
"""

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch import RoadNetwork
from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.context import ContextEncoding
from ideal_dispatch.context.encoding import WEEKDAYS
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.network.readers import read_network
from ideal_dispatch.records import Trips

NODES, EDGES = "manhattan_osm_nodes.csv", "manhattan_osm_edges.csv.gz"
TRIPS = "nyc_taxi_10k_statsmaths.csv"
SNAP_LIMIT_M = 150.0
SHORTEST_S, LONGEST_S = 60.0, 3600.0
SLOWEST_KMH, FASTEST_KMH = 1.0, 100.0
"""Of the straight line between the ends given: below, the taxi waited; above, a clock is wrong."""

_ENDS = ("pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude")
_COLUMNS = ("duration", "hour", "weekday", *_ENDS)


def manhattan(data_folder: str | os.PathLike[str]) -> tuple[RoadNetwork, Trips]:
    """The network and the clean trips of the folder's Manhattan files.

    The edge list's loops are left out, no other edge is merged or dropped.
    Hour and weekday are known; month, holidays, weather and the instant are
    not. ``row`` counts the file's trips from 0; how many each rule dropped, in
    its order, is in the trips' provenance.
    """
    folder = Path(data_folder)
    network = read_network(folder / EDGES, nodes=folder / NODES, directed=True, simplify=False)
    columns = _columns(folder / TRIPS)
    observed_s, *ends = (columns[name] for name in ("duration", *_ENDS))
    (origin, from_m), (destination, to_m) = (
        network.snapper.nodes(ends[0], ends[1]),
        network.snapper.nodes(ends[2], ends[3]),
    )
    with np.errstate(divide="ignore"):  # no duration, no speed: dropped before it is looked at
        straight_kmh = 3.6 * great_circle_m(*ends) / observed_s
    kept = np.ones(observed_s.size, bool)
    dropped = {}
    rules: tuple[tuple[str, BoolArray], ...] = (
        ("without a duration", ~np.isnan(observed_s)),
        (f"an end {SNAP_LIMIT_M:.0f} m or more from every node",
         np.maximum(from_m, to_m) < SNAP_LIMIT_M),
        (f"duration outside {SHORTEST_S:.0f}–{LONGEST_S:.0f} s",
         (observed_s >= SHORTEST_S) & (observed_s <= LONGEST_S)),
        ("both ends at one node", origin != destination),
        (f"straight-line speed outside {SLOWEST_KMH:.0f}–{FASTEST_KMH:.0f} km/h",
         (straight_kmh >= SLOWEST_KMH) & (straight_kmh <= FASTEST_KMH)),
    )  # fmt: skip
    for what, good in rules:
        dropped[what] = int((kept & ~good).sum())
        kept &= good
    return network, Trips(
        origin=origin[kept],
        destination=destination[kept],
        observed_s=observed_s[kept],
        contexts=_contexts(columns["hour"][kept], columns["weekday"][kept]),
        row=np.flatnonzero(kept),
        network_checksum=network.checksum,
        provenance={"source": TRIPS, "read": int(kept.size), "dropped": dropped},
    )


def _columns(path: Path) -> dict[str, Any]:
    """The columns as numbers, NaN where the file says NA."""
    check_source(path)
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    try:
        return {
            name: np.array([np.nan if row[name] == "NA" else float(row[name]) for row in rows])
            for name in _COLUMNS
        }
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not the taxi trips of statsmaths ({error})") from None


def _contexts(hour: FloatArray, weekday: FloatArray) -> FloatArray:
    """Rows of the paper's encoding; the file's weekday 1 is Sunday."""
    columns = ContextEncoding().columns
    monday = columns.index(WEEKDAYS[0])
    rows = np.full((hour.size, len(columns)), np.nan)
    rows[:, columns.index("hour")] = hour
    rows[:, monday : monday + 7] = np.eye(7)[(weekday.astype(int) + 5) % 7]
    return rows
