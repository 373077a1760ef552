"""Waiting for the start."""

import asyncio
import threading

import pytest

from ideal_dispatch.service import server


def test_who_waits_is_told_that_it_is_not_ready_yet(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "_SAY_EVERY_S", 0.05)
    ready = threading.Event()

    async def wait() -> None:
        waiting = asyncio.create_task(server.ready_or_ended(ready))
        while caplog.text.count("not ready after") < 2:
            await asyncio.sleep(0.01)
            assert not waiting.done()
        ready.set()
        await waiting

    with caplog.at_level("INFO"):
        asyncio.run(asyncio.wait_for(wait(), 30))
        said = len(caplog.records)
        asyncio.run(server.ready_or_ended(ready))
    assert len(caplog.records) == said
