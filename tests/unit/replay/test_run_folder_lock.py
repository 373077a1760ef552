"""A folder of results belongs to one process at a time, and to nobody after its death."""

import subprocess
import sys
from pathlib import Path

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.replay.run_folder import LOCK, locked

HOLDER = """
import sys, time
from pathlib import Path
from ideal_dispatch.replay.run_folder import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_told_who_is_there(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(InputError, match=rf"at work there \(process {holder.pid} on .*wait for"),
            locked(tmp_path),
        ):
            pass
    finally:
        holder.kill()
        holder.communicate()
    assert (tmp_path / LOCK).exists()  # left behind, and no hindrance
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_it_is_let_go_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(KeyError), locked(tmp_path / "new"):
        raise KeyError
    with (
        locked(tmp_path / "new"),
        pytest.raises(InputError, match="another process is at work"),
        locked(tmp_path / "new"),
    ):
        pass
    assert not (tmp_path / "new" / LOCK).exists()


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    with pytest.raises(InputError, match="is a file; name a folder"), locked(tmp_path / "f"):
        pass
