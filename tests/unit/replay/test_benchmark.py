"""The benchmark of replays runs to its end; what it measures is not asserted."""

import io

from rich.console import Console

from benchmarks import replay


def test_it_prints_both_tables() -> None:
    console = Console(file=io.StringIO(), width=100)
    replay.run(console, incidents=16, workers=(1,))
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert "incidents/s" in printed
    assert "a quote per junction" in printed
