"""Saving, loading and the checksum."""

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from ideal_dispatch import RoadNetwork
from tests.properties.strategies import attributed_networks

COLUMNS = [field.name for field in dataclasses.fields(RoadNetwork)]


@given(attributed_networks())
def test_save_and_load_is_the_identity(network: RoadNetwork) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.network"
        network.save(path)
        loaded = RoadNetwork.load(path)
    for column in COLUMNS:
        ours, theirs = getattr(network, column), getattr(loaded, column)
        if isinstance(ours, np.ndarray):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
        else:
            assert ours == theirs
    assert loaded.checksum == network.checksum


def _changed(network: RoadNetwork, **columns: Any) -> RoadNetwork:
    return dataclasses.replace(network, **columns)


def _bump(values: Any, index: int) -> Any:
    bumped = np.array(values)
    if bumped.dtype == bool:
        bumped[index] = not bumped[index]
    elif bumped.dtype.kind in "iu":
        bumped[index] = (bumped[index] + 1) % 3
    else:
        bumped[index] = 1.5 if np.isnan(bumped[index]) else np.nextafter(bumped[index], 0)
    return bumped


@pytest.mark.parametrize(
    "column",
    ["lon", "lat", "tail", "head", "length_m", "speed_kmh", "lanes", "oneway", "road_class"],
)
def test_checksum_sees_what_the_model_depends_on(grid: RoadNetwork, column: str) -> None:
    for index in (0, 7, len(getattr(grid, column)) - 1):
        other = _changed(grid, **{column: _bump(getattr(grid, column), index)})
        assert other.checksum != grid.checksum


def test_checksum_ignores_everything_else(grid: RoadNetwork) -> None:
    other = _changed(
        grid,
        node_ids=grid.node_ids[::-1],
        name=("x",) * grid.num_edges,
        geometry=[[0.0, 0.0], [1.0, 1.0]],
        geometry_start=[0, *[2] * grid.num_edges],
        provenance={"report": {}},
    )
    assert other.checksum == grid.checksum
    assert _changed(grid).checksum == grid.checksum


def test_checksum_knows_the_number_of_nodes() -> None:
    few, many = (RoadNetwork.from_arrays([0], [1], [1.0], num_nodes=n) for n in (2, 3))
    assert few.checksum != many.checksum


@given(attributed_networks())
def test_checksum_does_not_depend_on_how_nan_or_zero_is_written(network: RoadNetwork) -> None:
    odd_nan = np.frombuffer(np.uint64(0xFFF8_0000_0000_0001).tobytes(), np.float64)[0]
    speed = np.where(np.isnan(network.speed_kmh), odd_nan, network.speed_kmh)
    lon = np.where(network.lon == 0, -0.0, network.lon)
    assert _changed(network, speed_kmh=speed, lon=lon).checksum == network.checksum
