"""Classes of others: found by name or by module, made from their tables, refused in one line."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.plugins import POLICIES, WEATHER, find_plugin, load_plugin, make_plugin
from ideal_dispatch.traffic.source import TrafficSource

HERE = "tests.unit.test_plugins"


@dataclass
class Kettle:
    size: int
    colour: str = "red"
    lid: Any = None


class Plain:
    def __init__(self, network: str, *, factor: float = 1.0) -> None:
        if factor < 0:
            raise ValueError(f"factor {factor} is negative")
        self.network, self.factor = network, factor


NUMBER = 3


def install(folder: Path, name: str, text: str) -> None:
    """What an installer leaves beside the modules of a package."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(text)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("of_others")]:
        del sys.modules[name]


def test_a_class_by_its_module() -> None:
    assert find_plugin(POLICIES, f"{HERE}:Kettle", ["region"], "kind") is Kettle


def test_a_class_by_its_registered_name(installed: Path) -> None:
    install(installed, "of-others", f"[{POLICIES}]\nkettle = {HERE}:Kettle\n")
    assert find_plugin(POLICIES, "kettle", [], "kind") is Kettle
    install(installed, "with-extras", f"[{POLICIES}]\nextra = {HERE}:Kettle [big]\n")
    assert find_plugin(POLICIES, "extra", [], "kind") is Kettle
    with pytest.raises(InputError, match="kind 'pot': choose one of region, extra, kettle, or"):
        find_plugin(POLICIES, "pot", ["region"], "kind")
    with pytest.raises(InputError, match=r"source 'kettle': name a class as \"module:Name\""):
        find_plugin(WEATHER, "kettle", [], "source")
    install(installed, "more", f"[{POLICIES}]\nkettle = {HERE}:Plain\n")
    with pytest.raises(InputError, match="'kettle': registered by .* and .*; name it as"):
        find_plugin(POLICIES, "kettle", [], "kind")


def test_a_module_in_the_working_directory(
    installed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "of_others_here.py").write_text("def rule(): return 1\n")
    monkeypatch.chdir(tmp_path / "desk")
    before = list(sys.path)
    assert find_plugin(POLICIES, "of_others_here:rule", [], "kind")() == 1
    sys.path[:] = before


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("of_others_not:X", "kind 'of_others_not:X': there is no module of_others_not; install"),
        (f"{HERE}:Pot", "has no attribute 'Pot'"),
        (f"{HERE}:NUMBER", "no class or function, but 3"),
        ("of_others_bad:X", r"module of_others_bad fails at import \(ValueError: no day\)"),
        ("of_others_more:X", "module of_others_more needs of_others_missing; install it"),
        (3, "kind 3: choose one of region, or name a class"),
    ],
)
def test_what_cannot_be_found(installed: Path, asked: Any, message: str) -> None:
    (installed / "of_others_bad.py").write_text("raise ValueError('no day')\n")
    (installed / "of_others_more.py").write_text("import of_others_missing\n")
    with pytest.raises(InputError, match=message):
        find_plugin(POLICIES, asked, ["region"], "kind")


def test_made_from_its_table_and_what_it_names() -> None:
    made = make_plugin(Kettle, {"size": 2}, "kettle", lid="a lid", steam=True)
    assert made == Kettle(2, "red", "a lid")
    plain = make_plugin(Plain, {"factor": 2}, "x", network="roads", recorded=None)
    assert (plain.network, plain.factor) == ("roads", 2.0)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"sizes": 2}, "x.sizes is not known; did you mean size"),
        ({"size": 2.5}, "x.size 2.5: a whole number is needed"),
        ({}, "x.size is missing"),
    ],
)
def test_tables_that_fit_no_class(table: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_plugin(Kettle, table, "x")


def test_faults_of_its_own() -> None:
    with pytest.raises(InputError, match=r"\[x\] cannot be made: ValueError: factor -1.0 is neg"):
        make_plugin(Plain, {"factor": -1}, "x", network="roads")
    with pytest.raises(InputError, match="Kettle': not a TrafficSource; see docs/plugins.md"):
        load_plugin(WEATHER, f"{HERE}:Kettle", {"size": 1}, "source", TrafficSource)  # type: ignore[type-abstract]


@pytest.mark.parametrize("asked", ["a b:C", "module:", ":Name"])
def test_what_is_no_module_and_name(asked: str) -> None:
    with pytest.raises(InputError, match='is not of the form "module:Name"'):
        find_plugin(POLICIES, asked, [], "kind")


def test_a_file_whose_name_is_no_identifier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my-rules.py").write_text("class Own:\n    pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    assert find_plugin(POLICIES, "my-rules:Own", [], "kind").__name__ == "Own"


def test_a_class_that_does_not_tell_its_arguments() -> None:
    made_by = find_plugin(POLICIES, "builtins:dict", [], "kind")
    with pytest.raises(InputError, match="dict: its arguments"):
        make_plugin(made_by, {}, "policies.x")
