import dataclasses
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import FileFormatError, IdealError, InputError
from ideal_dispatch.network.road_network import FILE


@pytest.fixture
def saved(grid: RoadNetwork, tmp_path: Path) -> Path:
    path = tmp_path / "grid.network"
    grid.save(path)
    return path


def test_same_network_same_bytes(grid: RoadNetwork, saved: Path, tmp_path: Path) -> None:
    RoadNetwork.load(saved).save(tmp_path / "again.network")
    assert (tmp_path / "again.network").read_bytes() == saved.read_bytes()


def test_provenance_and_any_text_are_kept(tmp_path: Path) -> None:
    names = ["彌敦道", "\ud800", "\x00\n"]
    report = {"report": {"read": {"ways": 3}}}
    network = RoadNetwork.from_arrays(
        [0, 1, 0], [1, 0, 1], [1.0] * 3, name=names, provenance=report
    )
    network.save(tmp_path / "x.network")
    loaded = RoadNetwork.load(tmp_path / "x.network")
    assert (loaded.name, loaded.provenance) == (tuple(names), report)


def test_foreign_files(tmp_path: Path) -> None:
    text, npz, npy, objects = (tmp_path / name for name in ("a.txt", "b.npz", "c.npy", "d.npz"))
    text.write_text("nodes,edges\n")
    np.savez(npz, numbers=np.arange(3))
    np.save(npy, np.arange(3))
    np.savez(objects, manifest=np.frombuffer(b"[1, 2]", np.uint8))
    for path in (text, npz, npy, objects):
        with pytest.raises(FileFormatError, match="not a network file; make one with"):
            RoadNetwork.load(path)


def _changed(path: Path, manifest: Any = None, **arrays: Any) -> None:
    """Write the file again with another manifest or other arrays; None leaves one out."""
    with np.load(path) as archive:
        kept = dict(archive)
    text = {**json.loads(kept.pop("manifest").tobytes()), **(manifest or {})}
    kept |= {name: make(kept[name]) for name, make in arrays.items()}
    with path.open("wb") as file:
        np.savez(file, manifest=np.frombuffer(json.dumps(text).encode(), np.uint8), **kept)


@pytest.mark.parametrize(
    "manifest",
    [
        {"version": "one"},
        {"version": FILE.version + 1},
        {"format": "ideal-dispatch traffic"},
        {"names": []},
        {"names": 7},
        {"names": [1] * 17},
        {"provenance": [1, 2]},
        {"checksum": "0" * 32},
    ],
)
def test_odd_manifests(saved: Path, manifest: dict[str, object]) -> None:
    _changed(saved, manifest)
    with pytest.raises(FileFormatError, match="grid.network: ") as caught:
        RoadNetwork.load(saved)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "arrays",
    [{"name": lambda a: np.append(-1, a[1:])}, {"length_m": np.negative}, {"tail": np.sort}],
)
def test_odd_arrays(saved: Path, arrays: dict[str, Any]) -> None:
    _changed(saved, **arrays)
    with pytest.raises(FileFormatError, match="grid.network: "):
        RoadNetwork.load(saved)


def test_a_missing_array(saved: Path, tmp_path: Path) -> None:
    short = tmp_path / "short.network"
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(short, "w") as new:
        for name in old.namelist():
            if name != "tail.npy":
                new.writestr(name, old.read(name))
    with pytest.raises(FileFormatError, match="damaged network file"):
        RoadNetwork.load(short)


def _same(ours: RoadNetwork, theirs: RoadNetwork) -> bool:
    values = ((getattr(ours, f.name), getattr(theirs, f.name)) for f in dataclasses.fields(ours))
    return all(
        np.array_equal(a, b, equal_nan=isinstance(a, np.ndarray) and a.dtype.kind == "f")
        for a, b in values
    )


def test_any_damage_is_noticed_or_harmless(tmp_path: Path) -> None:
    bend = [[7.0, 43.0], [7.001, 43.001], [7.002, 43.0]]
    network = RoadNetwork.from_arrays(
        [0, 1, 1], [1, 0, 2], [150.0, 150.0, 80.0], [7.0, 7.002, 7.003], [43.0, 43.0, 43.0],
        node_ids=[11, 12, 13], name=["Quai", "Quai", "Rue"], geometry=[bend, bend[::-1], None],
        provenance={"report": {"read": {"ways": 2}}},
    )  # fmt: skip
    path = tmp_path / "x.network"
    network.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    harmless = 0
    for position, flip in zip(
        rng.integers(0, len(whole), 300), rng.integers(1, 256, 300), strict=True
    ):
        damaged = bytearray(whole)
        damaged[position] ^= int(flip)
        path.write_bytes(damaged)
        try:
            assert _same(RoadNetwork.load(path), network), f"byte {position} ^ {flip}"
            harmless += 1
        except IdealError as error:
            assert "\n" not in str(error)  # noqa: PT017
    assert harmless < 150
    for length in (0, *rng.integers(1, len(whole), 50)):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError):
            RoadNetwork.load(path)


def test_what_cannot_be_read_or_written(
    grid: RoadNetwork, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (tmp_path / "none.network", tmp_path):
        with pytest.raises(InputError):
            RoadNetwork.load(path)
    with pytest.raises(InputError):
        grid.save(tmp_path / "none" / "x.network")
    before = saved.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(OSError, match="No space left"):
        grid.save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(InputError, match="permissions"):
        RoadNetwork.load(saved)
