"""The engine: cells are done once, by any number of workers, and after any interruption."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.ports import free_port
from ideal_dispatch import RoadNetwork
from ideal_dispatch.archive import FileKind
from ideal_dispatch.errors import FileFormatError, IdealError, InputError
from ideal_dispatch.experiment.engine import (
    LOCK,
    MANIFEST,
    STARTS,
    Files,
    Run,
    described,
    locked,
    read_manifest,
)
from tests.conftest import ROOT

KIND = FileKind("a test 1", 1, "test run", "run it again")
CELLS = 12
SETTINGS = {"seed": 3, "names": ("a", "b")}


def squared(factor: int, number: int) -> Files:
    """The work of a cell: a log, and its result."""
    time.sleep(0.02)
    result = f"{factor * number**2}\n".encode()
    return {f"log/{number}.txt": b"log", f"cells/{number}.txt": result}


def deadly(marker: str, number: int) -> Files:
    """The first worker at cell 5 dies; the next one does it."""
    if number == 5 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return squared(2, number)


def run(
    folder: Path, *, pause: bool = False, work: Any = squared, shared: Any = 2, **how: Any
) -> Path:
    tasks = {f"cells/{number}.txt": number for number in range(CELLS)}
    with Run.opened(folder, KIND, SETTINGS) as one:
        done = []
        for name in one.cells(work, shared, tasks, **how):
            done.append(name)
            if pause:
                signal.pause()
        assert sorted(done) == sorted(tasks)
    return folder


def contents(folder: Path) -> dict[str, Any]:
    """Every file of a run, without the times of its manifest."""
    found: dict[str, Any] = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    found[MANIFEST] = json.loads(found[MANIFEST])
    del found[MANIFEST][STARTS]
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return contents(run(tmp_path_factory.mktemp("whole") / "run"))


def test_every_cell_is_done_and_the_manifest_has_the_settings(whole: dict[str, Any]) -> None:
    assert whole["cells/3.txt"] == b"18\n"
    assert len(whole) == 2 * CELLS + 1
    manifest = whole[MANIFEST]
    assert (manifest["format"], manifest["seed"], manifest["names"]) == ("a test 1", 3, ["a", "b"])
    assert set(manifest["versions"]) == {"python", "ideal-dispatch", "numpy", "numba"}


def test_two_workers_write_the_same_bytes(whole: dict[str, Any], tmp_path: Path) -> None:
    assert contents(run(tmp_path / "run", workers=2)) == whole


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_run_continues_to_the_same_bytes(
    whole: dict[str, Any], tmp_path: Path, workers: int
) -> None:
    folder = tmp_path / "run"
    script = (  # it waits after the first cell to be killed
        "from pathlib import Path; from tests.unit.experiment.test_engine import run;"
        f"run(Path({str(folder)!r}), pause=True, workers={workers})"
    )
    process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, start_new_session=True)
    try:
        while not list(folder.glob("cells/*.txt")):
            assert process.poll() is None, "it ended by itself"
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = {path: path.stat().st_mtime_ns for path in folder.glob("cells/*.txt")}
    (folder / "cells" / ".0123456789abcdef.part").write_bytes(b"half")
    run(folder)
    assert {path: path.stat().st_mtime_ns for path in done} == done  # nothing is done twice
    assert contents(folder) == whole
    assert len(json.loads((folder / MANIFEST).read_bytes())[STARTS]) == 2


def test_a_killed_worker_is_reported_and_the_same_call_continues(
    whole: dict[str, Any], tmp_path: Path
) -> None:
    how: dict[str, Any] = {"work": deadly, "shared": str(tmp_path / "marker"), "workers": 2}
    with pytest.raises(IdealError, match="a worker process was ended from outside"):
        run(tmp_path / "run", **how)
    assert contents(run(tmp_path / "run", **how)) == whole


@contextmanager
def scheduler(workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a dask scheduler, and its workers: all are processes of their own."""
    pytest.importorskip("distributed", reason="the cluster extra is not installed")
    host, port = "127.0.0.1", free_port()
    address = f"tcp://{host}:{port}"
    quiet: Any = {"cwd": ROOT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    begin: Any = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", host,
                  "--port", str(port), "--no-dashboard"]  # fmt: skip
    started = [subprocess.Popen(begin, **quiet)]
    begin = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nworkers",
             "1", "--nthreads", "1", "--no-nanny", "--no-dashboard"]  # fmt: skip
    started += [subprocess.Popen(begin, **quiet) for _ in range(workers)]
    try:
        from distributed import Client

        with Client(address, timeout=60) as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(workers, timeout=60)
        yield address, started[1:]
    finally:
        for one in started:
            one.kill()
            one.wait()


def test_a_dask_worker_that_is_killed_changes_no_byte(
    whole: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "dask"
    with scheduler(2) as (address, workers):

        def kill() -> None:
            while len(list(folder.glob("cells/*.txt"))) < 2:
                time.sleep(0.005)
            workers[0].kill()

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        for _ in range(5):  # a dead worker may end the run in one line: the same call continues
            with suppress(IdealError):
                run(folder, cluster=address)
                break
        killer.join(10)
        assert workers[1].poll() is None
    assert contents(folder) == whole


def test_a_cluster_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="the cluster extra is not installed")
    monkeypatch.setattr("ideal_dispatch.cluster._CONNECT_S", 0.5)
    with pytest.raises(InputError, match=r"cluster tcp://127.0.0.1:9: no dask scheduler answers"):
        run(tmp_path / "run", cluster="tcp://127.0.0.1:9")
    assert not (tmp_path / "run").exists()


# --- folders --------------------------------------------------------------------------


def test_a_second_process_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path;"
        "from ideal_dispatch.experiment.engine import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InputError, match=f"process {holder.pid} on "), locked(tmp_path):
            pass
    finally:
        holder.kill()
        holder.communicate()
    assert (tmp_path / LOCK).exists()  # left behind by the killed process: it locks no more
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_fails_before_its_first_cell_leaves_no_folder(tmp_path: Path) -> None:
    new, empty = tmp_path / "new", tmp_path / "empty"
    empty.mkdir()
    for folder in (new, empty):
        with pytest.raises(InputError, match="workers 0"):
            run(folder, workers=0)
    assert not new.exists()
    assert list(empty.iterdir()) == []


def test_a_run_that_fails_later_is_kept(tmp_path: Path) -> None:
    with suppress(KeyError), Run.opened(tmp_path / "run", KIND, SETTINGS) as one:
        next(one.cells(squared, 2, {"cells/0.txt": 0}))
        raise KeyError
    assert contents(tmp_path / "run")["cells/0.txt"] == b"0\n"


def test_other_folders_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with Run.opened(folder, KIND, SETTINGS) as one:
        one.note(answer=42)
    assert read_manifest(folder, KIND)["answer"] == 42
    with (
        pytest.raises(InputError, match=r"another test run \(not the same seed\)"),
        Run.opened(folder, KIND, SETTINGS | {"seed": 4}),
    ):
        pass
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("dear")
    for place in (tmp_path / "notes", tmp_path / "notes" / "diary.txt"):
        with pytest.raises(InputError), Run.opened(place, KIND, SETTINGS):
            pass
    assert sorted(one.name for one in (tmp_path / "notes").iterdir()) == ["diary.txt"]
    with pytest.raises(InputError, match=MANIFEST):
        read_manifest(tmp_path / "notes", KIND)
    for text in ("[]", "[{"):
        (folder / MANIFEST).write_text(text)
        with pytest.raises(FileFormatError, match=MANIFEST):
            read_manifest(folder, KIND)


# --- descriptions ---------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    limit_s: float
    values: Any = None


class Talker:
    def describe(self) -> dict[str, Any]:
        return {"kind": "talker", "part": Part(1.0)}


def test_parts_are_described_by_their_fields(grid: RoadNetwork) -> None:
    assert described(Part(float("-inf"), ("a", 1, None))) == {
        "type": "Part", "limit_s": "-inf", "values": ["a", 1, None],
    }  # fmt: skip
    assert described(Talker())["part"] == {"type": "Part", "limit_s": 1.0, "values": None}
    assert described(object()) == {"type": "object"}
    one, same, other = (described(Part(1.0, np.arange(n))) for n in (3, 3, 4))
    assert one == same != other
    assert described(grid) == {"type": "RoadNetwork", "checksum": grid.checksum}
