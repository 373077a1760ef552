"""Benchmarks run to their end; what they measure is not asserted."""

import io

import numpy as np
import pytest
from rich.console import Console


@pytest.fixture
def console() -> Console:
    for peer in ("igraph", "rustworkx", "leuvenmapmatching"):
        pytest.importorskip(peer, reason="the bench extra is not installed")
    return Console(file=io.StringIO(), width=100)


def test_shortest_paths_at_a_tiny_size(console: Console) -> None:
    from benchmarks.shortest_paths import run
    from benchmarks.table import benchmark

    assert benchmark("shortest_paths") is run
    run(console, sizes=(300,), seconds=0.01)
    assert isinstance(console.file, io.StringIO)
    assert "batch of 64" in console.file.getvalue()


def test_a_fleet_in_simpy_has_the_same_year() -> None:
    pytest.importorskip("simpy", reason="the bench extra is not installed")
    from benchmarks.fleet import run

    console = Console(file=io.StringIO(), width=160)
    run(console, days=3, rounds=1)
    assert isinstance(console.file, io.StringIO)
    assert "always, first arrival" in console.file.getvalue()


def test_every_benchmark_can_be_called_with_a_console() -> None:
    for peer in ("igraph", "simpy"):
        pytest.importorskip(peer, reason="the bench extra is not installed")
    from benchmarks.table import NAMES, benchmark

    assert set(NAMES) >= {"shortest_paths", "map_matching"}
    assert all(callable(benchmark(name)) for name in NAMES)


def test_map_matching_without_its_data(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import map_matching

    monkeypatch.setattr(map_matching, "DATA", map_matching.DATA / "none")
    map_matching.run(console)
    assert isinstance(console.file, io.StringIO)
    assert "No data" in console.file.getvalue()


def test_one_step_of_algorithm_2_and_depots_in_pairs(console: Console) -> None:
    from benchmarks.algorithm_2 import depot_pairs, one_step

    one_step(console, [(300, 4)], calls=2, seconds=0.01)
    depot_pairs(console, calls=2)
    assert isinstance(console.file, io.StringIO)
    assert "Proposition 4" in console.file.getvalue()
    assert "0.300" in console.file.getvalue()


def test_the_count_of_proposition_4() -> None:
    from benchmarks.algorithm_2 import operations

    root = 8 * np.log2(12 * np.log2(10))
    assert operations(1024, 3000, 8) == pytest.approx(3000 * 64 + 1024 * 10 + 512 + root)
