"""The spool keeps order, survives crashes, and loses no entry that it took."""

import os
import shutil
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.audit import spool as spool_module
from ideal_dispatch.service.audit.record import Entry, StoreError
from ideal_dispatch.service.audit.spool import Spool
from tests.audit_entries import entry


class Looked(Exception):  # noqa: N818
    """Ends a replay that only wants to look."""


def waiting(spool: Spool, limit: int = 99) -> list[Entry]:
    """What a replay would take; all of it goes on waiting."""
    found: list[Entry] = []

    def look(entries: list[Entry]) -> None:
        found.extend(entries)
        raise Looked

    with suppress(Looked):
        spool.replay(limit, look)
    return found


def replay(spool: Spool, limit: int = 99) -> list[Entry]:
    """All that a replay takes."""
    found: list[Entry] = []
    spool.replay(limit, found.extend)
    return found


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.sqlite"))


def leave(folder: Path, entries: list[Entry]) -> Path:
    """The file of a worker that ended."""
    spool = Spool(folder, reserve_bytes=4096)
    spool.write(entries)
    spool.close()
    return files(folder)[-1]


def change_bytes(path: Path, old: bytes, new: bytes) -> None:
    """Damage a file that nobody has open."""
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))


def test_entries_come_back_in_order(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    entries = [entry(number, body={"text": "香港 \x00 \ud800 \n"}) for number in range(7)]
    spool.write(entries[:3])
    spool.write(entries[3:])
    assert len(spool) == 7
    assert waiting(spool, 2) == replay(spool, 2) == entries[:2]
    spool.write([entry(7)])
    assert [one.call_id for one in replay(spool)] == [f"call-{n}" for n in range(2, 8)]
    assert (len(spool), replay(spool)) == (0, [])
    spool.write(entries[:1])
    assert replay(spool) == entries[:1]
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_space_is_taken_in_advance_and_for_the_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    spool = Spool(folder, reserve_bytes=200_000)
    spool.write([entry(1)])
    found = sorted(folder.iterdir())
    assert [path.suffix for path in found] == [".sqlite", ".sqlite-wal"]
    for path in found:
        assert path.stat().st_blocks * 512 >= 200_000
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    before = [path.stat().st_size for path in found]
    for number in range(20):  # into the space that was taken
        spool.write([entry(number, body={"text": "x" * 5000})])
    assert [path.stat().st_size for path in found] == before
    spool.close()


def test_every_commit_is_synced(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert spool._own is not None
    ask = spool._own._connection.execute
    assert ask("PRAGMA synchronous").fetchone() == (2,)
    assert ask("PRAGMA journal_mode").fetchone() == ("wal",)
    spool.close()


def test_a_file_whose_entries_are_rows_gives_way_to_a_fresh_one(tmp_path: Path) -> None:
    """What is on record is not kept here as well."""
    spool = Spool(tmp_path, reserve_bytes=4096)
    (first,) = files(tmp_path)
    spool.tidy()
    assert files(tmp_path) == [first]  # it was not used
    spool.write([entry(1)])
    spool.tidy()
    assert files(tmp_path) == [first]  # it is still needed
    replay(spool)
    spool.tidy()
    (fresh,) = files(tmp_path)
    assert fresh != first
    spool.write([entry(2)])
    assert [one.call_id for one in replay(spool)] == ["call-2"]
    spool.close()


def test_looking_for_entries_that_wait(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    first, again, answer = entry(1), entry(1), entry(1, kind="response")
    spool.write([first, entry(2), again, answer])
    assert spool.find("recommendation", "call-1", "k") == first
    assert spool.find("recommendation", "call-1", "other") is None
    assert spool.find("recommendation", "call-9", "k") is None
    assert spool.get(again.id) == again
    assert spool.get("nothing") is None
    assert spool.of_call("call-1") == [first, again, answer]
    assert spool.of_call("call-9") == []
    assert spool.recent("recommendation", 1) == [again]
    replay(spool, 2)
    assert spool.find("recommendation", "call-1", "k") == again
    assert spool.get(first.id) is None
    assert (spool.knows("call-1"), spool.knows("call-2")) == (True, False)
    spool.close()


def test_nobody_waits_for_the_disk_to_hear_how_many_wait(tmp_path: Path) -> None:
    """The event loop asks this for every call."""
    spool = Spool(tmp_path)
    spool.write([entry(1)])
    assert spool._own is not None
    with spool._writing, spool._own._lock:  # the disk hangs
        assert (len(spool), spool.knows("call-1"), spool.knows("call-2")) == (1, True, False)
    spool.close()


def test_entries_that_the_disk_does_not_let_go_are_not_replayed_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    entries = [entry(number) for number in range(4)]
    spool.write(entries)
    assert spool._own is not None
    spool._own._connection.execute("PRAGMA query_only = ON")  # nothing can be written
    assert replay(spool, 2) == entries[:2]
    assert spool.get(entries[0].id) is None
    assert replay(spool) == entries[2:]
    assert len(spool) == 0
    spool.close()


def test_entries_go_on_waiting_where_the_database_fails(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.write([entry(1)])

    def fail(_: list[Entry]) -> None:
        raise StoreError("down")

    with pytest.raises(StoreError):
        spool.replay(9, fail)
    assert len(spool) == 1
    spool.close()
    successor = Spool(tmp_path)
    assert len(successor) == 1
    successor.close()


def test_a_successor_takes_over_what_is_left(tmp_path: Path) -> None:
    entries = [entry(number) for number in range(4)]
    leave(tmp_path, entries[:2])
    spool = Spool(tmp_path)
    spool.write(entries[2:])
    assert len(spool) == 4
    assert spool.find("recommendation", "call-1", "k") == entries[1]
    assert [one.call_id for one in spool.recent("recommendation", 3)] == [
        "call-3", "call-2", "call-1",
    ]  # fmt: skip
    assert replay(spool) == entries[:2]
    assert len(files(tmp_path)) == 1
    assert replay(spool) == entries[2:]
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_two_workers_leave_each_other_alone(tmp_path: Path) -> None:
    one, two = Spool(tmp_path), Spool(tmp_path)
    one.write([entry(1)])
    two.write([entry(2)])
    assert two.tidy() == 0
    assert [one.call_id for one in waiting(two)] == ["call-2"]
    one.close()  # with one entry left
    assert two.tidy() == 1
    assert len(two) == 2
    three = Spool(tmp_path)
    assert len(three) == 0
    three.close()
    assert [one.call_id for one in replay(two) + replay(two)] == ["call-1", "call-2"]
    two.close()


def test_nobody_waits_while_files_of_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading may take seconds after a long outage; writing must not."""
    one, left = Spool(tmp_path), [entry(number) for number in range(3)]
    leave(tmp_path, left)
    reading, go_on = threading.Event(), threading.Event()
    original = spool_module._File

    def slowly(path: Path, timeout_s: float = 0.0) -> spool_module._File:
        file = original(path, timeout_s)
        reading.set()
        assert go_on.wait(30)
        return file

    monkeypatch.setattr(spool_module, "_File", slowly)
    with ThreadPoolExecutor(1) as pool:
        adopted = pool.submit(one.tidy)
        assert reading.wait(30)
        mine = entry(9)
        one.write([mine])
        assert waiting(one) == [mine]
        assert one.tidy() == 0  # somebody does already
        assert replay(one) == [mine]
        go_on.set()
        assert adopted.result(30) == 3
    monkeypatch.undo()
    assert replay(one) == left
    one.close()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_read_does_not_hold_up_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left = entry(1)
    leave(tmp_path, [left])
    (tmp_path / "0-1.sqlite").write_text("not a database at all, " * 100)
    (tmp_path / "0-2.sqlite").mkdir()
    spool = Spool(tmp_path)
    assert replay(spool) == [left]
    assert "0-1.sqlite: file is not a database; it stays there" in caplog.text
    assert "0-2.sqlite: unable to open database file; it stays there" in caplog.text
    caplog.clear()
    spool.tidy()
    assert caplog.text == ""  # it is said once
    spool.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0-1.sqlite", "0-2.sqlite"]


def test_a_damaged_entry_costs_no_other_and_its_file_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, damaged, last = (entry(n, "call", body={"text": f"text {n}"}) for n in range(3))
    path = leave(tmp_path, [first, damaged, last])
    change_bytes(path, b"text 1", b"text 7")
    spool = Spool(tmp_path)
    assert spool.of_call("call") == [first, last]
    assert spool.get(damaged.id) is None
    assert replay(spool) == [first, last]
    assert len(spool) == 0
    assert "entry 2 is damaged; the file stays there" in caplog.text
    assert spool.tidy() == 0
    spool.close()
    assert files(tmp_path) == [path]


def test_damaged_pages_cost_the_entries_in_them(tmp_path: Path) -> None:
    entries = [entry(number, body={"text": f"{number}" * 3000}) for number in range(9)]
    path = leave(tmp_path, entries)
    content = path.read_bytes()
    page = content.index(b"4444") // 4096 * 4096
    path.write_bytes(content[:page] + b"\xff" * 4096 + content[page + 4096 :])
    spool = Spool(tmp_path)
    assert replay(spool) == [one for number, one in enumerate(entries) if number != 4]
    spool.close()
    assert files(tmp_path) == [path]


def test_a_journal_torn_by_a_crash_keeps_what_was_committed(tmp_path: Path) -> None:
    """As SIGKILL leaves it, in the middle of the last write."""
    spool = Spool(tmp_path / "live", reserve_bytes=400_000)
    spool.write([entry(1)])
    (file,) = files(tmp_path / "live")
    journal = file.with_name(f"{file.name}-wal")
    before = journal.read_bytes()
    spool.write([entry(2)])
    after = journal.read_bytes()
    before = before.ljust(len(after), b"\0")
    changed = [at for at in range(len(after)) if before[at] != after[at]]
    for number, cut in enumerate((changed[0] + 1, (changed[0] + changed[-1]) // 2, changed[-1])):
        folder = tmp_path / str(number)
        folder.mkdir()
        shutil.copy(file, folder)
        (folder / journal.name).write_bytes(after[:cut] + before[cut:])
        successor = Spool(folder)
        assert [one.call_id for one in replay(successor)] == ["call-1"]
        successor.close()
    spool.close()


def test_an_empty_file_of_a_worker_that_ended_is_removed(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000001-77.sqlite").write_bytes(b"")
    Spool(tmp_path).close()
    assert list(tmp_path.iterdir()) == []


def test_files_of_the_version_before_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "00000000000000000001-77-000001.spool").write_bytes(b"12345678 []\n")
    Spool(tmp_path).close()
    assert "1 files of version 0.1 wait; run that version once while the database" in caplog.text
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "no" / "such"):
        with pytest.raises(InputError, match=f"audit spool {folder}: (File exists|No such file)"):
            Spool(folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match=f"audit spool {tmp_path}: Permission denied"):
        Spool(tmp_path)


def test_a_write_that_fails_is_tried_in_another_file(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.write([entry(1)])
    assert spool._own is not None
    spool._own._connection.execute("PRAGMA query_only = ON")  # writes to it fail from now on
    spool.write([entry(2)])
    assert [one.call_id for one in spool.recent("recommendation", 9)] == ["call-2", "call-1"]
    spool.close()
    successor = Spool(tmp_path)
    assert [one.call_id for one in replay(successor) + replay(successor)] == ["call-1", "call-2"]
    successor.close()


def test_entries_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert spool._own is not None
    spool._own._connection.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON entries WHEN new.call_id = 'call-2' "
        "BEGIN SELECT raise(ABORT, 'no'); END"
    )
    with pytest.raises(sqlite3.Error, match="no"):
        spool._own.write([entry(1), entry(2)])
    assert len(spool) == 0
    spool.write([entry(3)])
    assert [one.call_id for one in replay(spool)] == ["call-3"]
    spool.close()


def test_a_folder_that_somebody_removed_is_no_place_to_write(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    shutil.rmtree(tmp_path / "spool")
    with pytest.raises(StoreError, match="audit spool .*: .*No such file"):
        spool.write([entry(1)])
    assert len(spool) == 0
    spool.close()
