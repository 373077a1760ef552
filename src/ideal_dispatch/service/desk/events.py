"""Server-sent events: what happens here and in other workers, to every desk that listens."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Any

PING_S = 5.0
_WAITING = 200  # events a listener may be behind
_REMEMBERED = 5000


class Hub:
    """Hands every event to every listener once, whichever way it came.

    Lives on one event loop. A listener that falls too far behind is let go:
    its desk connects again and asks for what it missed.
    """

    def __init__(self, most: int = 200) -> None:
        self._listeners: set[asyncio.Queue[bytes | None]] = set()
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._most, self._closed = most, False

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    @property
    def full(self) -> bool:
        """Whether another listener would be too many."""
        return self._closed or len(self._listeners) >= self._most

    def publish(self, event: str, data: Any, key: str | None = None) -> None:
        """Tell all listeners, unless an event of this key was told before."""
        if key is not None:
            if key in self._seen:
                return
            self._seen[key] = None
            while len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
        if not self._listeners:
            return
        text = json.dumps(data, ensure_ascii=False, allow_nan=False)
        message = f"event: {event}\ndata: {text}\n\n".encode()
        for queue in list(self._listeners):
            if queue.qsize() >= _WAITING:
                self._listeners.discard(queue)
                _end(queue)
            else:
                queue.put_nowait(message)

    def knows(self, key: str) -> bool:
        """Whether an event of this key was told."""
        return key in self._seen

    async def listen(self, ping_s: float = PING_S) -> AsyncIterator[bytes]:
        """The stream of one listener: events as they come, and a ping when there are none."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._listeners.add(queue)
        try:
            yield b"retry: 2000\n: welcome\n\n"
            while True:
                try:
                    async with asyncio.timeout(ping_s):
                        message = await queue.get()
                except TimeoutError:
                    message = b": ping\n\n"
                if message is None:
                    return
                yield message
        finally:
            self._listeners.discard(queue)

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        for queue in list(self._listeners):
            _end(queue)


def _end(queue: asyncio.Queue[bytes | None]) -> None:
    while not queue.empty():
        queue.get_nowait()
    queue.put_nowait(None)
