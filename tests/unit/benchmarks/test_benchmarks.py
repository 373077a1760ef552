"""Benchmarks run to their end; what they measure is not asserted."""

import io

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


def test_every_benchmark_can_be_called_with_a_console() -> None:
    pytest.importorskip("igraph", reason="the bench extra is not installed")
    from benchmarks.table import NAMES, benchmark

    assert set(NAMES) >= {"shortest_paths", "map_matching"}
    assert all(callable(benchmark(name)) for name in NAMES)


def test_map_matching_without_its_data(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import map_matching

    monkeypatch.setattr(map_matching, "DATA", map_matching.DATA / "none")
    map_matching.run(console)
    assert isinstance(console.file, io.StringIO)
    assert "No data" in console.file.getvalue()
