"""Waiting for the start, and telling others of it."""

import asyncio
import os
import socket
import threading

import pytest

from ideal_dispatch.service.http import server
from tests.service_town import PATIENCE_S, Town, launched
from tests.service_town import town as town


def test_who_waits_is_told_that_it_is_not_ready_yet(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "_SAY_EVERY_S", 0.05)
    ready = threading.Event()

    async def wait() -> None:
        waiting = asyncio.create_task(server.ready_or_ended(ready.is_set))
        while caplog.text.count("not ready after") < 2:
            await asyncio.sleep(0.01)
            assert not waiting.done()
        ready.set()
        await waiting

    with caplog.at_level("INFO"):
        asyncio.run(asyncio.wait_for(wait(), 30))
        said = len(caplog.records)
        asyncio.run(server.ready_or_ended(ready.is_set))
    assert len(caplog.records) == said


def test_systemd_is_told_once_the_service_listens(town: Town) -> None:
    """`systemctl restart` of a unit of type notify returns then, and not sooner."""
    name = f"ideal-dispatch-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(f"\0{name}")
        systemd.settimeout(PATIENCE_S)
        with launched(town.config("told.toml"), environment={"NOTIFY_SOCKET": f"@{name}"}) as told:
            assert systemd.recv(1024) == b"READY=1"
            assert told.client.get(f"{told.url}/readyz").status_code == 200
