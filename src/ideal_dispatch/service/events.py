"""Server-sent events: the rows of the log after a number, and where units are.

One task reads new rows for all streams; a stream that begins in the past reads those before.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import sqlalchemy as sa

from ideal_dispatch.service import dispatches
from ideal_dispatch.service.closures import ClosureLayer
from ideal_dispatch.service.errors import RecordUnavailableError
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.database import State
from ideal_dispatch.service.record.rows import LogRow

log = logging.getLogger(__name__)

_PING_S = 5.0
_LOOK_S = 0.25  # between looks at what other workers wrote; this worker's own rows wake the task
_PAGE = 200
_BEHIND = 500  # messages a stream may be behind
_MOST = 200  # streams
_UNREAD = ("service", "prune", "clock")  # kinds of rows that no read shows


class EventStreams:
    """The streams of one worker; ``read`` looks at the state in a thread."""

    def __init__(
        self,
        read: Callable[[Callable[[State], Any]], Awaitable[Any]],
        closures: ClosureLayer,
        stale_s: float,
    ) -> None:
        self._read, self._closures, self._stale_s = read, closures, stale_s
        self.streams: set[asyncio.Queue[bytes | None]] = set()
        self._last: int | None = None  # the row that all streams have seen
        self._seen: dict[str, int | None] = {}  # when each unit was seen, as all streams know it
        self.woken, self._closed = asyncio.Event(), False

    @property
    def full(self) -> bool:
        """Whether another stream would be too many."""
        return self._closed or len(self.streams) >= _MOST

    def is_ahead(self, number: int) -> bool:
        """Whether no stream has seen that row of the log yet: it may be of another database."""
        return self._last is not None and number > self._last

    async def run(self) -> None:
        """Hand out new rows without end."""
        while True:
            try:
                last, messages = await self._read(self._new)
                for message in messages:
                    self._send(message)
                self._last = last  # after that: a stream that begins reads up to here by itself
            except RecordUnavailableError as error:
                log.debug("events: %s", error)
            except Exception:
                log.exception("events: unexpected")
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self.woken.wait()
            self.woken.clear()

    def publish(self, kind: str, data: Any) -> None:
        """Send something that is in no row, such as this worker's health."""
        self._send(_message(kind, data))

    async def listen(self, after: int | None) -> AsyncIterator[bytes]:
        """One stream: rows after a number, or from now on."""
        mine: asyncio.Queue[bytes | None] = asyncio.Queue()
        while self._last is None and not self._closed:
            yield b": waiting for the database\n\n"
            await asyncio.sleep(1.0)
        self.streams.add(mine)
        end = self._last or 0
        number = end if after is None else after
        try:
            yield b"retry: 2000\n: welcome\n\n"
            while number < end:
                number, messages = await self._read(partial(self._after, number=number, end=end))
                for message in messages:
                    yield message
            while True:
                try:
                    async with asyncio.timeout(_PING_S):
                        sent = await mine.get()
                except TimeoutError:
                    sent = b": ping\n\n"
                if sent is None:
                    return
                yield sent
        except RecordUnavailableError:
            return  # the client connects again, and resumes where it was
        finally:
            self.streams.discard(mine)

    def close(self) -> None:
        self._closed = True
        for queue in list(self.streams):
            queue.put_nowait(None)

    def _send(self, message: bytes) -> None:
        for queue in list(self.streams):
            if queue.qsize() >= _BEHIND:  # its client connects again, and reads what it missed
                self.streams.discard(queue)
                queue.put_nowait(None)
            else:
                queue.put_nowait(message)

    def _new(self, state: State) -> tuple[int, list[bytes]]:
        """Messages of new rows, and of units that were seen elsewhere since the last look."""
        number = state.head.number if self._last is None else self._last
        number, messages = self._after(state, number)
        if self.streams:
            units = state.units()
            moved = [
                unit.plain(state.now, self._stale_s) for unit in units
                if unit.seen_at and self._seen.get(unit.id) != unit.seen_at
            ]  # fmt: skip
            self._seen = {unit.id: unit.seen_at for unit in units}
            messages += [_message("units", moved)] if moved else []
        return number, messages

    def _after(self, state: State, number: int, end: int | None = None) -> tuple[int, list[bytes]]:
        """The number of the last of the next rows of the log, and their messages.

        Units that a row changed come before it, without a number.
        """
        table, messages = rows.log, list[bytes]()
        query = sa.select(table).where(table.c.number > number).order_by(table.c.number)
        if end is not None:
            query = query.where(table.c.number <= end)
        found = [LogRow(*row) for row in state.connection.execute(query.limit(_PAGE))]
        if not found:
            return (number if end is None else end), []
        units = {unit.id: unit.plain(state.now, self._stale_s) for unit in state.units()}
        for row in found:
            if row.kind in _UNREAD:
                continue
            try:
                data: Any = row.content
                kind, changed = row.kind, data.pop("changes", {}).get("unit", ())
                plain = [units.get(id_, {"id": id_, "gone": True}) for id_ in changed]
                if kind == "recommendation":
                    data = data["answer"]
                elif kind == "dispatch":
                    data = dispatches.shown_fields(data["dispatch"])
                elif kind == "closure":
                    kind = "closures"
                    data = [self._closures.plain(one, state.now) for one in state.closures()]
            except Exception:  # one damaged row must not hold up those after it
                log.exception("events: row %d of the log is left out", row.number)
                continue
            if kind == "units":
                messages.append(_message("units", plain, row.number))
                continue
            if plain:
                messages.append(_message("units", plain))
            messages.append(_message(kind, data, row.number))
        return found[-1].number, messages


def _message(kind: str, data: Any, number: int | None = None) -> bytes:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    where = "" if number is None else f"id: {number}\n"
    return f"{where}event: {kind}\ndata: {text}\n\n".encode()
