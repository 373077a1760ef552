import json
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.archive import ArchiveKind
from ideal_dispatch.errors import FileFormatError
from ideal_dispatch.records.trips import KIND as TRIPS

KIND = ArchiveKind("ideal-dispatch parcels", 3, "parcels file", "pack one with `pack`")
ARRAYS = {"weights": np.arange(6.0).reshape(2, 3), "names": np.array([3, 1], np.uint8)}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "x.parcels"
    KIND.write(path, {"note": "größe \udcff"}, ARRAYS)
    return path


def test_what_is_written_is_read(saved: Path) -> None:
    manifest, arrays = KIND.read(saved)
    assert manifest == {"format": "ideal-dispatch parcels", "version": 3, "note": "größe \udcff"}
    assert set(arrays) == set(ARRAYS)
    for name, values in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], values)
        assert arrays[name].dtype == values.dtype


def test_same_contents_same_bytes(saved: Path, tmp_path: Path) -> None:
    KIND.write(tmp_path / "again", {"note": "größe \udcff"}, ARRAYS)
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()


def test_older_versions_are_read_and_newer_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parcels"
    ArchiveKind("ideal-dispatch parcels", 1, "", "").write(path, {}, {})
    assert KIND.read(path)[0]["version"] == 1
    ArchiveKind("ideal-dispatch parcels", 4, "", "").write(path, {}, {})
    with pytest.raises(FileFormatError, match="format 4, this version reads up to 3; upgrade"):
        KIND.read(path)
    ArchiveKind("ideal-dispatch trips", 2, "", "").write(path, {}, {})
    with pytest.raises(FileFormatError, match="x.parcels: written in format 2, this version"):
        TRIPS.read(path)


@pytest.mark.parametrize("manifest", [b"[]", b"3", b"{", b"\xff", b'{"format": "other"}'])
def test_manifests_that_make_no_sense(tmp_path: Path, manifest: bytes) -> None:
    path = tmp_path / "x.parcels"
    with path.open("wb") as file:
        np.savez(file, manifest=np.frombuffer(manifest, np.uint8))
    with pytest.raises(FileFormatError, match="not a parcels file|damaged parcels file"):
        KIND.read(path)


def test_nothing_in_an_archive_is_executed(saved: Path) -> None:
    manifest = json.dumps({"format": KIND.format, "version": 3}).encode()
    with saved.open("wb") as file:
        np.savez(file, manifest=np.frombuffer(manifest, np.uint8), evil=np.array([{1: 2}], object))
    with pytest.raises(FileFormatError, match="damaged parcels file .ValueError."):
        KIND.read(saved)
