"""``ideal bench``: the rows of the benchmark page, measured here."""

import sys
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import table
from ideal_dispatch.cli import bench
from ideal_dispatch.errors import InputError


def test_an_unknown_name_is_one_line() -> None:
    with pytest.raises(InputError, match="no benchmark 'nothing'; there are: shortest_paths, "):
        bench.bench(["nothing"])


def test_names_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    bench.bench(list_=True)
    names = capsys.readouterr().out.split()
    for name in ("shortest_paths", "gap", "target_radius", "training", "replay", "service"):
        assert name in names


def test_what_is_named_is_measured_in_order_and_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def telling(word: str) -> table.Benchmark:
        def tell(console: Console) -> None:
            console.print(word)

        return tell

    monkeypatch.setattr(table, "NAMES", ("a", "b", "c"))
    monkeypatch.setattr(table, "benchmark", telling)
    bench.bench(["c", "a", "c"])
    assert capsys.readouterr().out.split() == ["c", "a"]


def test_a_peer_that_is_not_installed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "igraph", None)
    monkeypatch.delitem(sys.modules, "benchmarks.shortest_paths", raising=False)
    with pytest.raises(InputError, match="igraph is not installed; `make bench` installs what"):
        table.benchmark("shortest_paths")


def test_outside_a_clone_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "lib" / "site-packages" / "ideal_dispatch" / "cli" / "bench.py"
    monkeypatch.setattr(bench, "__file__", str(deep))
    with pytest.raises(InputError, match="works in a clone of the project"):
        bench.bench()
