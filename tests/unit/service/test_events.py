"""Streams of events: they end when they are ended, and go on behind damaged rows."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.service.events import EventStreams
from ideal_dispatch.service.record.database import Database, Job


@pytest.mark.parametrize("passes", range(6))
def test_a_task_that_is_woken_and_cancelled_at_once_ends(passes: int) -> None:
    """As a worker is that is ended just after an answer: `asyncio.wait_for` went on then."""

    async def read(look: Callable[[Any], Any]) -> Any:
        return 0, []

    async def run() -> None:
        streams: Any = EventStreams(read, None, 60.0)  # type: ignore[arg-type]
        task = asyncio.create_task(streams.run())
        await asyncio.sleep(0.05)
        streams.woken.set()
        for _ in range(passes):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=10)
        assert done
        assert task.cancelled()

    asyncio.run(run())


def test_a_damaged_row_holds_up_no_row_behind_it(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/record.db")

    def write(number: int) -> None:
        job = Job(time.monotonic() + 60)
        database.change(lambda tx: tx.log("reply", "", {"id": str(number)}), job)

    async def read(look: Callable[[Any], Any]) -> Any:
        return database.read(look, Job(time.monotonic() + 60))

    async def run() -> None:
        streams: Any = EventStreams(read, None, 60.0)  # type: ignore[arg-type]
        for number in (1, 2, 3):
            write(number)
        with sqlite3.connect(tmp_path / "record.db") as connection:
            connection.execute("DROP TRIGGER log_no_update")
            connection.execute("UPDATE log SET body = '[' WHERE number = 2")
        task, said = asyncio.create_task(streams.run()), list[bytes]()
        async with asyncio.timeout(60):
            async for message in streams.listen(0):
                said += [message] if b"event: reply" in message else []
                if len(said) == 2:
                    write(4)  # live
                if len(said) == 3:
                    break
        task.cancel()
        assert [message.split(b"\n")[0] for message in said] == [b"id: 1", b"id: 3", b"id: 4"]

    asyncio.run(run())
    database.close()
