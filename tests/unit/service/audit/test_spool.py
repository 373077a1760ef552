"""The spool keeps order, survives crashes, and never loses a whole line."""

import os
import shutil
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.audit import Entry, Spool
from ideal_dispatch.service.audit import spool as spool_module
from ideal_dispatch.service.audit.spool_file import decode, encode, read_lines
from tests.audit_entries import entry


def files(folder: Path, ending: str = "spool") -> list[Path]:
    return sorted(folder.glob(f"*.{ending}"))


def leave(folder: Path, entries: list[Entry]) -> Path:
    """The file of a process that is dead."""
    spool = Spool(folder)
    spool.write(entries)
    spool.close()
    return files(folder)[-1]


def test_entries_come_back_in_order(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    entries = [entry(number, body={"text": "香港 \x00 \ud800 \n"}) for number in range(7)]
    spool.write(entries[:3])
    spool.write(entries[3:])
    assert len(spool) == 7
    assert spool.oldest(2) == entries[:2]
    spool.forget(2)
    assert spool.oldest(99) == entries[2:]
    spool.forget(5)
    assert (len(spool), spool.oldest(5)) == (0, [])
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_space_is_taken_in_advance_and_for_the_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    spool = Spool(folder, file_bytes=100_000)
    (path,) = files(folder)
    assert path.stat().st_blocks * 512 >= 100_000
    for one in (path, *files(folder, "lock")):
        assert stat.S_IMODE(one.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    spool.close()


def test_a_file_is_removed_when_its_entries_are_rows(tmp_path: Path) -> None:
    spool = Spool(tmp_path, file_bytes=1000)
    entries = [entry(number) for number in range(20)]
    for one in entries:
        spool.write([one])
    before = len(files(tmp_path))
    assert before > 3
    for left in range(20, 0, -1):
        assert spool.oldest(1) == entries[20 - left : 21 - left]
        spool.forget(1)
        assert len(files(tmp_path)) <= before
    assert len(files(tmp_path)) == 1  # a fresh one, ready for the next outage
    spool.write(entries[:1])
    assert spool.oldest(1) == entries[:1]
    spool.close()


def test_an_entry_larger_than_a_file_is_kept(tmp_path: Path) -> None:
    spool = Spool(tmp_path, file_bytes=1000)
    large = entry(1, body={"text": "x" * 5000})
    spool.write([entry(0), large])
    spool.write([entry(2)])
    assert spool.oldest(3)[1] == large
    spool.close()
    assert Spool(tmp_path).oldest(3)[1] == large


def test_looking_for_entries_that_wait(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    first, again, answer = entry(1), entry(1), entry(1, kind="response")
    spool.write([first, entry(2), again, answer])
    assert spool.find("recommendation", "call-1", "k") == first
    assert spool.find("recommendation", "call-1", "other") is None
    assert spool.get(again.id) == again
    assert spool.get("nothing") is None
    assert spool.of_call("call-1") == [first, again, answer]
    assert spool.of_call("call-9") == []
    assert spool.recent("recommendation", 1) == [again]
    spool.forget(1)
    assert spool.find("recommendation", "call-1", "k") == again
    spool.close()


def test_whoever_looks_holds_no_lock_while_the_disk_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool, first = Spool(tmp_path), entry(1)
    spool.write([first])
    held: list[bool] = []

    def slow(line: bytes) -> Entry:
        held.append(spool._index.locked())
        return decode(line)

    monkeypatch.setattr("ideal_dispatch.service.audit.spool.decode", slow)
    assert spool.get(first.id) == first
    assert spool.of_call("call-1") == spool.recent("recommendation", 9) == spool.oldest(9)
    assert spool.find("recommendation", "call-1", "k") == first
    assert held == [False] * 5
    spool.close()


def test_an_entry_that_becomes_a_row_while_it_is_looked_for_is_gone(tmp_path: Path) -> None:
    spool, first = Spool(tmp_path), entry(1)
    spool.write([first])
    (path,) = files(tmp_path)
    path.unlink()
    assert spool.get(first.id) is None
    assert spool.of_call("call-1") == spool.recent("recommendation", 9) == []


def test_a_damaged_entry_is_said_and_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool, first, second = Spool(tmp_path), entry(1), entry(1)
    spool.write([first, second])
    (path,) = files(tmp_path)
    with open(path, "r+b") as file:
        file.seek(30)
        file.write(b"?")
    assert spool.of_call("call-1") == [second]
    assert spool.get(first.id) is None
    assert "a line is not whole (checksum does not fit)" in caplog.text
    spool.close()


def test_ids_are_forgotten_with_their_entries(tmp_path: Path) -> None:
    spool, entries = Spool(tmp_path), [entry(number) for number in range(3)]
    spool.write(entries)
    spool.forget(2)
    assert [spool.get(one.id) for one in entries] == [None, None, entries[2]]
    spool.close()
    assert Spool(tmp_path).get(entries[2].id) == entries[2]


def test_a_successor_takes_over_what_is_left(tmp_path: Path) -> None:
    entries = [entry(number) for number in range(4)]
    leave(tmp_path, entries[:2])
    spool = Spool(tmp_path)
    spool.write(entries[2:])
    assert spool.oldest(9) == entries
    assert spool.find("recommendation", "call-1", "k") == entries[1]
    spool.forget(2)
    assert len(files(tmp_path)) == len(files(tmp_path, "lock")) == 1
    spool.forget(2)
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_two_processes_leave_each_other_alone(tmp_path: Path) -> None:
    one, two = Spool(tmp_path), Spool(tmp_path)
    one.write([entry(1)])
    two.write([entry(2)])
    assert two.adopt() == 0
    assert [one.call_id for one in two.oldest(9)] == ["call-2"]
    one.close()  # with one entry left
    assert two.adopt() == 1
    assert [one.call_id for one in two.oldest(9)] == ["call-2", "call-1"]
    assert Spool(tmp_path).oldest(9) == []
    two.close()


def test_nobody_waits_while_files_of_the_dead_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading may take seconds after a long outage; writing must not."""
    one = Spool(tmp_path, file_bytes=300)
    reading, go_on = threading.Event(), threading.Event()

    def slowly(path: Path) -> Iterator[tuple[int, bytes]]:
        reading.set()
        assert go_on.wait(30)
        return read_lines(path)

    left = [entry(number) for number in range(3)]
    other = Spool(tmp_path, file_bytes=300)
    for each in left:
        other.write([each])
    other.close()
    assert len(files(tmp_path)) == 4
    monkeypatch.setattr(spool_module, "read_lines", slowly)
    with ThreadPoolExecutor(1) as pool:
        adopted = pool.submit(one.adopt)
        assert reading.wait(30)
        mine = entry(9)
        one.write([mine])
        assert one.oldest(9) == [mine]
        assert one.adopt() == 0  # somebody does already
        one.forget(1)
        go_on.set()
        assert adopted.result(30) == 3
    assert one.oldest(9) == left
    one.forget(3)
    one.close()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_read_does_not_hold_up_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left = entry(1)
    path = leave(tmp_path, [left])
    unreadable = path.with_name(path.name.replace("000001", "000000"))
    unreadable.mkdir()
    spool = Spool(tmp_path)
    assert spool.oldest(9) == [left]
    assert f"{unreadable}: Is a directory; left to the next process" in caplog.text
    spool.forget(1)
    unreadable.rmdir()
    unreadable.write_bytes(encode(entry(2)))
    assert spool.adopt() == 0  # the family is this process's until it ends
    spool.close()
    successor = Spool(tmp_path)
    assert [one.call_id for one in successor.oldest(9)] == ["call-2"]
    successor.close()


def test_a_torn_line_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = leave(tmp_path, [entry(1), entry(2)])
    whole = path.read_bytes().rstrip(b"\0")
    torn = encode(entry(3))[:-20]
    path.write_bytes(whole + torn + b"\0" * 500)
    spool = Spool(tmp_path)
    assert [one.call_id for one in spool.oldest(9)] == ["call-1", "call-2"]
    (aside,) = files(tmp_path, "torn")
    assert aside.read_bytes() == torn + b"\n"
    assert "a line is not whole (checksum does not fit); kept in" in caplog.text
    spool.forget(2)
    spool.close()
    assert files(tmp_path, "torn") == [aside]


def test_damage_in_the_middle_costs_one_line(tmp_path: Path) -> None:
    path = leave(tmp_path, [entry(1), entry(2), entry(3)])
    content = bytearray(path.read_bytes())
    content[len(encode(entry(1))) + 60] ^= 1
    path.write_bytes(content)
    spool = Spool(tmp_path)
    assert [one.call_id for one in spool.oldest(9)] == ["call-1", "call-3"]
    spool.close()


def test_damage_after_the_write_does_not_stop_the_rest(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.write([entry(1), entry(2)])
    (path,) = files(tmp_path)
    with open(path, "r+b") as file:
        file.seek(30)
        file.write(b"?")
    assert [one.call_id for one in spool.oldest(9)] == ["call-2"]
    assert len(spool) == 1
    assert len(files(tmp_path, "torn")) == 1
    spool.close()


def test_a_line_cut_anywhere_is_never_an_entry() -> None:
    line = encode(entry(1))
    assert decode(line) == decode(line[:-1])  # only the line's end is gone
    for length in range(len(line) - 1):
        with pytest.raises(ValueError, match="checksum does not fit"):
            decode(line[:length])


def test_an_empty_file_of_a_dead_process_is_removed(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000001-77-000001.spool").write_bytes(b"\0" * 4096)
    Spool(tmp_path).close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "no" / "such"):
        with pytest.raises(InputError, match=f"audit spool {folder}: (File exists|No such file)"):
            Spool(folder)


def test_a_write_that_fails_is_tried_in_another_file(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.write([entry(1)])
    broken = spool._file._descriptor
    readonly = os.open(spool._file.path, os.O_RDONLY)
    os.dup2(readonly, broken)  # writes to it fail from now on
    os.close(readonly)
    spool.write([entry(2)])
    assert [one.call_id for one in spool.oldest(9)] == ["call-1", "call-2"]
    spool.close()
    assert [one.call_id for one in Spool(tmp_path).oldest(9)] == ["call-1", "call-2"]


def test_a_folder_that_somebody_removed_is_no_place_to_write(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    shutil.rmtree(tmp_path / "spool")
    with pytest.raises(FileNotFoundError):
        spool.write([entry(1)])
    assert len(spool) == 0
