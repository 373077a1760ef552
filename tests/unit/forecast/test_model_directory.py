"""The model directory: same bytes each time, never half written, refused when it is not one."""

import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ideal_dispatch import Model
from ideal_dispatch.errors import FileFormatError, IdealError, InputError
from ideal_dispatch.files import write_file
from ideal_dispatch.forecast import model_directory
from ideal_dispatch.forecast.model_directory import model_card
from tests.unit.forecast.models import small_model


@pytest.fixture(scope="module")
def model() -> Model:
    return small_model()


@pytest.fixture(scope="module")
def other() -> Model:
    return small_model(seed=5)


@pytest.fixture
def folder(model: Model, tmp_path: Path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _manifest(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _weights(folder: Path) -> Path:
    (path,) = folder.glob("*.safetensors")
    return path


def test_a_new_model_leaves_no_response_times_of_the_old_one(other: Model, folder: Path) -> None:
    (folder / "response_times.json").write_text("{}")
    other.save(folder)
    assert not (folder / "response_times.json").exists()
    assert Model.load(folder).checksum == other.checksum


def test_saved_and_loaded(model: Model, folder: Path, tmp_path: Path) -> None:
    again = Model.load(folder)
    assert again.checksum == model.checksum
    assert again.details == model.details
    assert repr(again) == "Model(attributes, polar head, d = 4)"
    assert (again.architecture, again.radius_rule) == (model.architecture, model.radius_rule)
    for name, values in model.weights.items():
        np.testing.assert_array_equal(again.weights[name], values)
    again.save(tmp_path / "deep" / "again")
    assert _bytes(tmp_path / "deep" / "again") == _bytes(folder)
    before = _bytes(folder)
    model.save(folder)
    assert _bytes(folder) == before
    assert sorted(before) == ["card.md", "manifest.json", _weights(folder).name]


def test_a_new_model_replaces_the_old(model: Model, other: Model, folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    other.save(folder)
    assert Model.load(folder).checksum == other.checksum != model.checksum
    assert len(list(folder.glob("weights-*"))) == 1, "stale weights are gone"
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("at", ["weights", "card.md", "manifest.json"])
def test_an_interrupted_save_leaves_the_old_model(
    model: Model, other: Model, folder: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:

    def interrupted(path: Path, content: str | bytes) -> None:
        if path.name.startswith(at):
            raise KeyboardInterrupt
        write_file(path, content)

    monkeypatch.setattr(model_directory, "write_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        other.save(folder)
    assert Model.load(folder).checksum == model.checksum
    monkeypatch.undo()
    other.save(folder)
    assert Model.load(folder).checksum == other.checksum
    assert len(list(folder.iterdir())) == 3


def _tensors(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    tensors = load_file(_weights(folder))
    change(tensors)
    save_file(tensors, _weights(folder))


def _folder_as_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").mkdir()


ANY = "static.0.weight"
REFUSALS: list[Callable[[Path], Any]] = [
    lambda f: (f / "manifest.json").unlink(),
    lambda f: _weights(f).unlink(),
    _folder_as_manifest,
    lambda f: _weights(f).write_bytes(_weights(f).read_bytes()[:-100]),
    lambda f: _weights(f).write_bytes(b""),
    lambda f: _weights(f).write_bytes(pickle.dumps({ANY: [1.0]})),
    lambda f: _tensors(f, lambda t: t[ANY].fill(np.nan)),
    lambda f: _tensors(f, lambda t: t[ANY].__iadd__(np.float32(1e-3))),
    lambda f: _tensors(f, lambda t: t.pop(ANY)),
    lambda f: (f / "manifest.json").write_text("{"),
    lambda f: (f / "manifest.json").write_bytes(b"\xff\xfe\x00"),
    lambda f: (f / "manifest.json").write_text("[1, 2]"),
    lambda f: _manifest(f, format="ideal-dispatch trips"),
    lambda f: _manifest(f, version=3),
    lambda f: _manifest(f, version=1),
    lambda f: _manifest(f, version="two"),
    lambda f: _manifest(f, bounds={}),
    lambda f: _manifest(f, encoding="0" * 32),
    lambda f: _manifest(f, extra_context=["events"]),
    lambda f: _manifest(f, extra_context=["hour"]),
    lambda f: _manifest(f, architecture={"head": "round"}),
    lambda f: _manifest(f, architecture={"depth": 3}),
    lambda f: _manifest(f, architecture={"dimension": 4, "width": 9}),
    lambda f: _manifest(f, base_ratio=2.0),
    lambda f: _manifest(f, base_ratio=None),
    lambda f: _manifest(f, radius={"scale": -1.0}),
    lambda f: _manifest(f, seen={}),
    lambda f: _manifest(f, details=3),
    lambda f: _manifest(f, weights="card.md"),
    lambda f: _manifest(f, weights=""),
    lambda f: _manifest(f, weights=".."),
    lambda f: _manifest(f, weights=7),
]


@pytest.mark.parametrize("damage", REFUSALS)
def test_what_is_no_model_is_refused_in_one_line(
    folder: Path, damage: Callable[[Path], Any]
) -> None:
    damage(folder)
    with pytest.raises(FileFormatError) as caught:
        Model.load(folder)
    assert str(caught.value).startswith(f"{folder}: ")
    assert "\n" not in str(caught.value)


def test_models_of_earlier_versions_name_the_command_that_makes_them(folder: Path) -> None:
    _manifest(folder, version=1)
    with pytest.raises(FileFormatError, match="ideal train"):
        Model.load(folder)


def test_weights_outside_the_folder_are_never_read(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere.safetensors"
    shutil.move(_weights(folder), outside)
    for name in ("../elsewhere.safetensors", str(outside)):
        _manifest(folder, weights=name)
        with pytest.raises(FileFormatError, match="elsewhere.safetensors"):
            Model.load(folder)


def test_files_and_nothing_instead_of_a_folder(model: Model, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(FileFormatError, match="a file"):
        Model.load(file)
    with pytest.raises(InputError, match="is a file"):
        model.save(file)
    with pytest.raises(InputError, match="no such folder"):
        Model.load(tmp_path / "none")
    with pytest.raises(FileFormatError, match="manifest.json"):
        Model.load(tmp_path)


def test_any_damaged_byte_is_noticed_or_harmless(model: Model, folder: Path) -> None:
    rng = np.random.default_rng(0)
    harmless = 0
    for path in (folder / "manifest.json", _weights(folder)):
        whole = path.read_bytes()
        for position in rng.integers(0, len(whole), 120):
            damaged = bytearray(whole)
            damaged[position] ^= int(rng.integers(1, 256))
            path.write_bytes(damaged)
            try:
                same = Model.load(folder).checksum == model.checksum
            except IdealError as error:
                assert "\n" not in str(error)  # noqa: PT017
            else:
                assert same
                harmless += 1
        path.write_bytes(whole)
    assert harmless < 60, "only what enters no forecast may change unnoticed"


def test_details_that_json_cannot_hold_are_refused_before_writing(
    model: Model, folder: Path
) -> None:
    before = _bytes(folder)
    with pytest.raises(ValueError, match="not JSON compliant"):
        replace(model, details={"mae_s": float("nan")}).save(folder)
    assert _bytes(folder) == before


def test_the_card_says_what_the_model_is(model: Model, folder: Path) -> None:
    text = (folder / "card.md").read_text()
    assert text.startswith("# Model card")
    assert f"checksum `{model.checksum}`" in text
    assert "rescaled by 1.250" in model_card(model.rescaled(1.25))
