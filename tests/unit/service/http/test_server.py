"""Connections on a real socket, waiting for the start, systemd, and a worker that hangs."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ideal_dispatch.service.http import server
from ideal_dispatch.service.settings import (
    AuditTable,
    CityFiles,
    ModelFiles,
    ServiceSettings,
    Token,
    digest,
)
from tests.waiting import PATIENCE_S

SETTINGS = ServiceSettings(
    city=CityFiles("", "", "Asia/Hong_Kong", "HK"),
    model=ModelFiles(""),
    audit=AuditTable("sqlite:///none.db"),
    tokens=(Token("a", "cad", digest("a")),),
)


def test_a_pooled_client_keeps_its_connection() -> None:
    """httpx keeps one for 5 s, nginx for 60 s: the server must not end it sooner."""
    assert server.options(SETTINGS)["timeout_keep_alive"] > 60


def test_an_unready_service_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    ready = threading.Event()

    async def wait() -> None:
        waiting = asyncio.create_task(server.ready_or_ended(ready.is_set))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        ready.set()
        await waiting

    asyncio.run(asyncio.wait_for(wait(), PATIENCE_S))


HANGING = """
import asyncio, ctypes
from ideal_dispatch.service.http import server

async def main():
    server._HANGS_S = 1.0
    asyncio.create_task(server.attend(lambda: None))
    await asyncio.sleep(0.1)
    ctypes.PyDLL(None).sleep(600)  # keeps Python's lock, as a loop in C may

asyncio.run(main())
"""


def test_a_worker_whose_interpreter_hangs_ends(tmp_path: Path) -> None:
    """Its supervisor starts another: no Python thread of it could."""
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, check=False,
        timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 1
    assert "most recent call first" in done.stderr
