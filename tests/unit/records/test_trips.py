from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.context import Context, ContextEncoding
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.records import Trip, Trips
from ideal_dispatch.records.trips import GIVEN, KIND, TARGETS

CONTEXT = Context(datetime(2023, 5, 1, 8, tzinfo=UTC), extra={"events": 2.0})


def _trips(**columns: Any) -> Trips:
    trips = [Trip(0, 5, CONTEXT, 120.0), Trip(3, 7, CONTEXT, 60.5)]
    return Trips.of(trips, ContextEncoding(("events",)), **columns)


def test_single_trips_become_a_table() -> None:
    trips = _trips()
    assert repr(trips) == "Trips(2 trips)"
    assert trips.contexts[:, -1].tolist() == [2.0, 2.0]
    assert [TARGETS[code] for code in np.asarray(trips.target)] == [GIVEN, GIVEN]
    assert str(np.asarray(trips.at)[0]) == "2023-05-01T08:00:00"
    with pytest.raises(ValueError, match="read-only"):
        trips.origin[0] = 1


def test_saved_and_loaded(tmp_path: Path) -> None:
    trips = _trips(network_checksum="abc", provenance={"rows": 2})
    for name in ("a.trips", "b.trips"):
        trips.save(tmp_path / name)
    assert (tmp_path / "a.trips").read_bytes() == (tmp_path / "b.trips").read_bytes()
    again = Trips.load(tmp_path / "a.trips")
    for name in ("origin", "destination", "observed_s", "contexts", "at", "target", "row"):
        np.testing.assert_array_equal(getattr(again, name), getattr(trips, name))
    assert (again.network_checksum, again.provenance) == ("abc", {"rows": 2})
    assert again.encoding == trips.encoding


def test_a_part_of_them() -> None:
    trips = _trips()
    assert trips.select([1]).destination.tolist() == [7]
    assert trips.select(np.array([True, False])).origin.tolist() == [0]
    assert len(trips.select([])) == 0


def test_trips_of_another_network(grid: RoadNetwork) -> None:
    _trips().check(grid)
    _trips(network_checksum=grid.checksum).check(grid)
    with pytest.raises(InputError, match="the trips belong to another network"):
        _trips(network_checksum="abc").check(grid)
    far = Trips.of([Trip(0, 500, CONTEXT, 1.0)])
    with pytest.raises(InputError, match="trip 0: destination 500 is not in the network"):
        far.check(grid)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"origin": [0, -1]}, "trip 1: origin is not a node"),
        ({"observed_s": [0.0, 1.0]}, "trip 0: travel time must be a positive"),
        ({"observed_s": [1.0, np.inf]}, "trip 1: travel time must be a positive"),
        ({"contexts": np.full((2, 27), np.inf)}, "trip 0: context holds an infinite value"),
        ({"contexts": np.zeros((2, 5))}, "contexts: expected 2 × 27 values"),
        ({"target": [0, 9]}, "trip 1: target must be one of the known kinds"),
        ({"at": np.zeros(3, "M8[s]")}, "at: expected 2 values, got 3"),
    ],
)
def test_what_is_no_trip(changes: dict[str, Any], message: str) -> None:
    columns: dict[str, Any] = {
        "origin": [0, 1], "destination": [2, 3], "observed_s": [10.0, 20.0],
        "contexts": np.zeros((2, 27)),
    }  # fmt: skip
    with pytest.raises(InputError, match=message):
        Trips(**columns | changes)


def test_files_that_hold_no_trips(tmp_path: Path, grid: RoadNetwork) -> None:
    path = tmp_path / "x.trips"
    grid.save(path)
    with pytest.raises(FileFormatError, match="x.trips: not a trips file; make one with `ideal"):
        Trips.load(path)
    _trips().save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(FileFormatError, match="truncated or damaged trips file"):
        Trips.load(path)
    KIND.write(path, {"extra": [], "encoding": "other"}, {})
    with pytest.raises(FileFormatError, match="contexts are encoded otherwise"):
        Trips.load(path)
    KIND.write(path, {"extra": []}, {})
    with pytest.raises(FileFormatError, match="damaged trips file .KeyError."):
        Trips.load(path)
    with pytest.raises(InputError, match="no such file"):
        Trips.load(tmp_path / "none.trips")
