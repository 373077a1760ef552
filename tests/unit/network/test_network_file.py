import dataclasses
import json
import zipfile
from pathlib import Path

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


def test_provenance_survives(tmp_path: Path) -> None:
    network = RoadNetwork.from_arrays(
        [0], [1], [2.0], name=["彌敦道"], provenance={"report": {"read": {"ways": 3}}}
    )
    network.save(tmp_path / "x.network")
    loaded = RoadNetwork.load(tmp_path / "x.network")
    assert loaded.provenance == {"report": {"read": {"ways": 3}}}
    assert loaded.name == ("彌敦道",)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_truncated(saved: Path, share: float) -> None:
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(FileFormatError, match=r"the file is empty|truncated or damaged") as caught:
        RoadNetwork.load(saved)
    assert str(saved) in str(caught.value)
    assert "ideal network build" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("position", [0.2, 0.5, 0.8])
def test_damaged_bytes_are_noticed(saved: Path, position: float) -> None:
    whole = bytearray(saved.read_bytes())
    whole[int(position * len(whole))] ^= 0xFF
    saved.write_bytes(whole)
    with pytest.raises(FileFormatError, match="grid.network: "):
        RoadNetwork.load(saved)


def test_foreign_files(tmp_path: Path) -> None:
    text, pickle, npz = tmp_path / "a.txt", tmp_path / "b.pickle", tmp_path / "c.npz"
    npy, objects = tmp_path / "d.npy", tmp_path / "e.npz"
    np.save(npy, np.arange(3))
    np.savez(objects, manifest=np.frombuffer(b"[1, 2]", np.uint8))
    text.write_text("nodes,edges\n")
    pickle.write_bytes(b"\x80\x04N.")
    np.savez(npz, numbers=np.arange(3))
    for path in (text, pickle, npz, npy, objects):
        with pytest.raises(FileFormatError, match="not a network file; make one with"):
            RoadNetwork.load(path)


def _rewrite_manifest(path: Path, **changes: object) -> None:
    with np.load(path) as archive:
        arrays = dict(archive)
    manifest = {**json.loads(arrays.pop("manifest").tobytes()), **changes}
    text = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, manifest=text, **arrays)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": "one"},
        {"version": None},
        {"names": []},
        {"names": 7},
        {"names": [1] * 17},
        {"names": ["short"]},
        {"provenance": [1, 2]},
        {"provenance": None},
        {"checksum": None},
    ],
)
def test_odd_manifests(saved: Path, changes: dict[str, object]) -> None:
    _rewrite_manifest(saved, **changes)
    with pytest.raises(FileFormatError, match="grid.network: ") as caught:
        RoadNetwork.load(saved)
    assert "\n" not in str(caught.value)


def test_names_out_of_range(saved: Path) -> None:
    with np.load(saved) as archive:
        arrays = dict(archive)
    arrays["name"][0] = -1
    with saved.open("wb") as file:
        np.savez(file, **arrays)
    with pytest.raises(FileFormatError, match="damaged network file"):
        RoadNetwork.load(saved)


def _same(ours: RoadNetwork, theirs: RoadNetwork) -> bool:
    return all(
        np.array_equal(getattr(ours, f.name), getattr(theirs, f.name), equal_nan=True)
        if isinstance(getattr(ours, f.name), np.ndarray) and getattr(ours, f.name).dtype.kind == "f"
        else np.array_equal(getattr(ours, f.name), getattr(theirs, f.name))
        for f in dataclasses.fields(ours)
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
        rng.integers(0, len(whole), 500), rng.integers(1, 256, 500), strict=True
    ):
        damaged = bytearray(whole)
        damaged[position] ^= int(flip)
        path.write_bytes(damaged)
        try:
            assert _same(RoadNetwork.load(path), network), f"byte {position} ^ {flip}"
            harmless += 1
        except IdealError as error:
            assert "\n" not in str(error)  # noqa: PT017
    assert harmless < 250
    for length in rng.integers(0, len(whole), 100):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError):
            RoadNetwork.load(path)


def test_a_file_that_may_not_be_read(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(InputError, match="grid.network: cannot be read; check its permissions"):
        RoadNetwork.load(saved)


def test_any_text_is_kept(tmp_path: Path) -> None:
    names = ["彌敦道", "\ud800", "\x00\n"]
    RoadNetwork.from_arrays([0, 1, 0], [1, 0, 1], [1.0] * 3, name=names).save(tmp_path / "x")
    assert RoadNetwork.load(tmp_path / "x").name == tuple(names)


def test_future_version(saved: Path) -> None:
    _rewrite_manifest(saved, version=FILE.version + 1)
    with pytest.raises(
        FileFormatError, match="written in format 2, this version reads up to 1; upg"
    ):
        RoadNetwork.load(saved)


def test_other_format(saved: Path) -> None:
    _rewrite_manifest(saved, format="ideal-dispatch traffic")
    with pytest.raises(FileFormatError, match="not a network file"):
        RoadNetwork.load(saved)


def test_contents_must_match_the_checksum(saved: Path) -> None:
    _rewrite_manifest(saved, checksum="0" * 32)
    with pytest.raises(FileFormatError, match="do not match the checksum"):
        RoadNetwork.load(saved)


def test_invalid_contents(saved: Path) -> None:
    with np.load(saved) as archive:
        arrays = dict(archive)
    arrays["length_m"] = -arrays["length_m"]
    with saved.open("wb") as file:
        np.savez(file, **arrays)
    with pytest.raises(FileFormatError, match="edge 0: length must be a positive number"):
        RoadNetwork.load(saved)


def test_missing_array(saved: Path, tmp_path: Path) -> None:
    short = tmp_path / "short.network"
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(short, "w") as new:
        for name in old.namelist():
            if name != "tail.npy":
                new.writestr(name, old.read(name))
    with pytest.raises(FileFormatError, match="truncated or damaged network file"):
        RoadNetwork.load(short)


def test_no_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        RoadNetwork.load(tmp_path / "none.network")
    with pytest.raises(InputError, match="is a folder"):
        RoadNetwork.load(tmp_path)


def test_failed_save_leaves_the_old_file(
    grid: RoadNetwork, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(OSError, match="No space left"):
        grid.save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_save_into_no_folder(grid: RoadNetwork, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the folder .* does not exist; create it first"):
        grid.save(tmp_path / "none" / "x.network")
