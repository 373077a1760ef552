"""``ideal bench``: the rows of the benchmark page, measured here."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from ideal_dispatch.cli import bench
from ideal_dispatch.errors import InputError

needs_peers = pytest.mark.skipif(
    find_spec("igraph") is None, reason="the bench extra is not installed"
)


@needs_peers
def test_an_unknown_name_is_one_line() -> None:
    with pytest.raises(InputError, match="no benchmark 'nothing'; there are: shortest_paths, "):
        bench.bench(["nothing"])


@needs_peers
def test_names_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    bench.bench(list_only=True)
    names = capsys.readouterr().out.split()
    for name in ("shortest_paths", "gap", "target_radius", "training", "replay", "service"):
        assert name in names


def test_what_is_named_is_measured_in_order_and_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def telling(word: str) -> bench.Benchmark:
        return lambda console: console.print(word)

    monkeypatch.setattr(bench, "_benchmarks", lambda root: {n: telling(n) for n in "abc"})
    bench.bench(["c", "a", "c"])
    assert capsys.readouterr().out.split() == ["c", "a"]


def test_outside_a_clone_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "lib" / "site-packages" / "ideal_dispatch" / "cli" / "bench.py"
    monkeypatch.setattr(bench, "__file__", str(deep))
    with pytest.raises(InputError, match="works in a clone of the project"):
        bench.checkout()
