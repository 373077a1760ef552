"""Streams of events: they end when they are ended."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ideal_dispatch.service.events import EventStreams


@pytest.mark.parametrize("passes", range(6))
def test_a_task_that_is_woken_and_cancelled_at_once_ends(passes: int) -> None:
    """As a worker is that is ended just after an answer: `asyncio.wait_for` went on then."""

    async def read(look: Callable[[Any], Any]) -> Any:
        return 0, []

    async def run() -> None:
        streams: Any = EventStreams(read, None, 60.0)  # type: ignore[arg-type]
        task = asyncio.create_task(streams.run())
        await asyncio.sleep(0.05)
        streams.wake()
        for _ in range(passes):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=10)
        assert done
        assert task.cancelled()

    asyncio.run(run())
