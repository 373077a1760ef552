"""Real speeds of Hong Kong, published by its Transport Department, for comparison.

The traffic speed map gives 607 directed links every two minutes or so, here of
one Friday evening; the road network's detector speeds one instant. The map
tells no limit, so urban roads are taken at 50 km/h and major routes at 70.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.errors import FileFormatError
from ideal_dispatch.files import check_source
from workshop.traffic.slowness import Slowness

LIMITS_KMH = {"URBAN ROAD": 50.0, "MAJOR ROUTE": 70.0}
LEAST_KMH = 2.0
"""Slower speeds are taken as this one: the map publishes whole numbers, zero among them."""

EVENING = ("tsm_speed_20161014_peak.csv.gz", "tsm_links.csv")
INSTANT = ("irn_segment_speed_20260416_1055.csv", "irn_all_edges.csv.gz", "irn_all_nodes.csv.gz")


def read_evening(folder: str | os.PathLike[str], road_type: str | None = None) -> Slowness:
    """Friday 14 October 2016, captured 17:56:16 to 18:50:35; one road type, or both.

    The map published them two to five minutes later, from 18:00:48 to 18:52:52;
    moments here are those of capture. Links that repeat another link's whole
    series are left out: it is one detector.
    """
    speeds, links = (_table(folder, name) for name in EVENING)
    with _columns(folder, EVENING):
        links = links.set_index("Link ID")
        if road_type is not None:
            speeds = speeds[speeds["road_type"] == road_type]
        caught = speeds.groupby("snapshot")["capture_date"].min()
        grid = speeds.pivot(index="snapshot", columns="link_id", values="speed_kmh")
        if grid.isna().to_numpy().all():
            of = "" if road_type is None else f" of type {road_type}"
            raise FileFormatError(f"{os.fspath(folder)}: {EVENING[0]}: no speed{of} in it")
        grid = grid.loc[:, ~grid.T.duplicated()]
        links = links.loc[grid.columns]
        ends = [links[f"{end} Node {axis}"].to_numpy(float) for axis in ("Longitude", "Latitude")
                for end in ("Start", "End")]  # fmt: skip
        east, north = (
            links[f"End Node {axis}"].to_numpy(float) - links[f"Start Node {axis}"].to_numpy(float)
            for axis in ("Eastings", "Northings")
        )
        limit = links["Road Type"].map(LIMITS_KMH).to_numpy(float)
        # in the city's time; only differences are used
        moments = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in caught]
    seconds = np.array([moment.timestamp() for moment in moments])
    return Slowness(
        np.log(limit / np.maximum(grid.to_numpy(float), LEAST_KMH)).astype(np.float32),
        seconds,
        np.zeros(seconds.size, np.int64),
        (ends[0] + ends[1]) / 2,
        (ends[2] + ends[3]) / 2,
        np.maximum(np.hypot(east, north), 1.0),
    )


def read_instant(folder: str | os.PathLike[str]) -> Slowness:
    """Thursday 16 April 2026, 10:55: every segment with a valid speed, against its limit."""
    speeds, edges, nodes = (_table(folder, name) for name in INSTANT)
    with _columns(folder, INSTANT):
        known = edges.merge(speeds[speeds["valid"] == "Y"], on="road_id")
        nodes = nodes.set_index("int_id")
        places = [nodes.loc[known[end], ["lon", "lat"]].to_numpy(float)
                  for end in ("from_int_id", "to_int_id")]  # fmt: skip
        limit, speed, length = (
            known[name].to_numpy(float) for name in ("speed_limit_kmh", "speed_kmh", "straight_m")
        )
    middle = (places[0] + places[1]) / 2
    return Slowness(
        np.log(limit / np.maximum(speed, LEAST_KMH))[None].astype(np.float32),
        np.zeros(1),
        np.zeros(1, np.int64),
        middle[:, 0],
        middle[:, 1],
        np.maximum(length, 1.0),
    )


def _table(folder: str | os.PathLike[str], name: str) -> Any:
    import pandas as pd  # type: ignore[import-untyped]

    path = Path(folder) / name
    check_source(path)
    try:
        return pd.read_csv(path)
    except (ValueError, OSError, EOFError) as error:
        raise FileFormatError(f"{path}: not a table of speeds ({type(error).__name__})") from None


@contextmanager
def _columns(folder: str | os.PathLike[str], names: tuple[str, ...]) -> Iterator[None]:
    """Turns a missing or unusable column into one line."""
    try:
        yield
    except (KeyError, ValueError, TypeError) as error:
        raise FileFormatError(
            f"{os.fspath(folder)}: {', '.join(names)}: columns are not as published "
            f"({type(error).__name__}: {error}); fetch them again"
        ) from None
