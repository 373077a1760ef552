"""The disk is full: space taken in advance is used, then callers are told; nothing is lost."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ideal_dispatch.service.audit.record import NotRecordedError
from ideal_dispatch.service.audit.spool import Spool
from ideal_dispatch.service.audit.store import AuditStore
from tests.audit_entries import BlockingWriter, entry
from tests.faults.audit_checks import PATIENCE_S, all_rows, nothing_waits, wait_for_replay

WAIT_S = 10.0  # of a caller, on a busy machine


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a file system can only be mounted by root")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> Path:
    """Take all space that is left."""
    path = folder / "filler"
    with open(path, "wb", buffering=0) as file:
        for size in (65_536, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    assert os.statvfs(folder).f_bavail == 0
    return path


def test_disk_full_of_database_and_spool(small_disk: Path) -> None:
    store = AuditStore(f"sqlite:///{small_disk / 'audit.db'}")
    spool = Spool(small_disk / "spool", reserve_bytes=300_000)
    acknowledged = []
    with BlockingWriter(store, spool) as writer:
        for number in range(5):
            acknowledged.append(entry(number))
            assert writer.write(acknowledged[-1], PATIENCE_S) is not None
        filler = fill(small_disk)
        refused = None
        while refused is None:
            one = entry(len(acknowledged), body={"text": "x" * 3_000})
            try:
                writer.write(one, WAIT_S)
            except NotRecordedError as error:
                refused = str(error)
            else:
                acknowledged.append(one)
        assert "database or disk is full); check the database and the spool's disk" in refused
        assert writer.spooled >= 80  # what was set aside in advance
        assert "full" in str(writer.error)
        with pytest.raises(NotRecordedError, match="disk is full"):
            writer.write(one, WAIT_S)
        filler.unlink()
        wait_for_replay(writer)
        acknowledged.append(one)
        assert writer.write(one, PATIENCE_S) is not None
        rows = all_rows(store)
    assert [row.entry.id for row in rows] == [one.id for one in acknowledged]
    assert nothing_waits(small_disk / "spool")


def test_disk_full_at_the_start(small_disk: Path, tmp_path: Path) -> None:
    """Without space to set aside it starts nevertheless, and the database takes the entries."""
    filler = fill(small_disk)
    store = AuditStore(f"sqlite:///{tmp_path / 'audit.db'}")
    with BlockingWriter(store, Spool(small_disk)) as writer:
        assert writer.write(entry(1), PATIENCE_S) is not None
    filler.unlink()


def test_disk_full_by_quota(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'audit.db'}"
    command = [sys.executable, "-m", "tests.faults.audit_quota", url, str(tmp_path / "spool")]
    ended = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=True)
    told = json.loads(ended.stdout)
    assert told["spooled"] == 40
    assert told["error"] is not None
    store = AuditStore(url)
    assert [row.entry.id for row in all_rows(store)] == told["ids"]
    store.close()
    assert nothing_waits(tmp_path / "spool")
