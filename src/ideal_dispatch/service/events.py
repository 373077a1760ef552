"""Server-sent events: the rows of the log after a number, and where units are.

One task of the worker reads new rows and hands them to all streams. A stream that begins in the
past reads the rows up to that task's by itself: nothing is lost or sent twice.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from ideal_dispatch.service.clock import ClockTable
from ideal_dispatch.service.closures import ClosureLayer
from ideal_dispatch.service.dispatches import INSIDE
from ideal_dispatch.service.errors import RecordUnavailableError
from ideal_dispatch.service.record import tables
from ideal_dispatch.service.record.chain import LogRow
from ideal_dispatch.service.record.transaction import State
from ideal_dispatch.service.units import Unit

log = logging.getLogger(__name__)

PING_S = 5.0
LOOK_S = 0.25
"""Between two looks at what other workers wrote; this worker's own rows wake the task."""

_PAGE = 200
_BEHIND = 500  # messages a stream may be behind
_MOST = 200  # streams
_UNREAD = ("service", "prune", "clock")  # kinds of rows that no read shows


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages of some rows of the log: ``last`` is the number of the last one."""

    last: int
    messages: tuple[bytes, ...]


class EventStreams:
    """The streams of one worker. ``ask`` does work on the database, ``told`` hears of each row."""

    def __init__(
        self,
        ask: Callable[[Callable[[Connection], Any]], Awaitable[Any]],
        clock: ClockTable,
        closures: ClosureLayer,
        stale_s: float,
    ) -> None:
        self._ask, self._clock, self._closures = ask, clock, closures
        self._stale_s = stale_s
        self._streams: set[asyncio.Queue[bytes | None]] = set()
        self._last: int | None = None  # the row that all streams have seen
        self._seen: dict[str, int] = {}  # when each unit was seen, as all streams know it
        self._woken, self._closed = asyncio.Event(), False

    @property
    def listeners(self) -> int:
        return len(self._streams)

    @property
    def full(self) -> bool:
        """Whether another stream would be too many."""
        return self._closed or len(self._streams) >= _MOST

    def wake(self) -> None:
        """Look for new rows now."""
        self._woken.set()

    async def run(self) -> None:
        """Hand out new rows without end."""
        while True:
            try:
                if self._last is None:
                    self._last = await self._ask(lambda c: State(c, self._clock).number)
                batch = await self._ask(lambda c: self._after(c, self._last or 0))
                for message in batch.messages:
                    self._send(message)
                self._last = batch.last
                if self._streams:
                    moved = await self._ask(self._moved)
                    if moved is not None:
                        self._send(moved)
            except RecordUnavailableError as error:
                log.debug("events: %s", error)
            except Exception:  # a row that makes no sense must not end the task
                log.exception("events: unexpected")
                self._last = None
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), LOOK_S)
            self._woken.clear()

    def publish(self, kind: str, data: Any) -> None:
        """Send something that is in no row, such as this worker's health."""
        self._send(_message(kind, data))

    async def listen(self, after: int | None) -> AsyncIterator[bytes]:
        """One stream: rows after a number, or from now on."""
        mine: asyncio.Queue[bytes | None] = asyncio.Queue()
        while self._last is None and not self._closed:
            yield b": waiting for the database\n\n"
            await asyncio.sleep(1.0)
        self._streams.add(mine)
        end = self._last or 0
        try:
            yield b"retry: 2000\n: welcome\n\n"
            while after is not None and after < end:
                batch = await self._ask(partial(self._after, number=after, end=end))
                for message in batch.messages:
                    yield message
                after = max(batch.last, after + 1)
            while True:
                try:
                    message = await asyncio.wait_for(mine.get(), PING_S)
                except TimeoutError:
                    message = b": ping\n\n"
                if message is None:
                    return
                yield message
        except RecordUnavailableError:
            return  # the client connects again, and goes on where it was
        finally:
            self._streams.discard(mine)

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        for queue in list(self._streams):
            queue.put_nowait(None)

    def _send(self, message: bytes) -> None:
        for queue in list(self._streams):
            if queue.qsize() >= _BEHIND:  # its client connects again, and reads what it missed
                self._streams.discard(queue)
                queue.put_nowait(None)
            else:
                queue.put_nowait(message)

    def _after(self, connection: Connection, number: int, end: int | None = None) -> Batch:
        """The messages of the next rows of the log."""
        query = sa.select(tables.log).where(tables.log.c.number > number)
        if end is not None:
            query = query.where(tables.log.c.number <= end)
        query = query.order_by(tables.log.c.number).limit(_PAGE)
        rows = [LogRow(**row._mapping) for row in connection.execute(query)]
        if not rows:
            return Batch(number if end is None else end, ())
        state, messages = State(connection, self._clock), list[bytes]()
        for row in rows:
            messages += self._messages(row, state)
        return Batch(rows[-1].number, tuple(messages))

    def _messages(self, row: LogRow, state: State) -> list[bytes]:
        """What a row says: units that it changed, without a number, and then itself."""
        if row.kind in _UNREAD:
            return []
        body = row.content
        ids = [*body.get("changes", {}).get("unit", {})]
        units = _plain_units(state, ids, self._stale_s) if ids else []
        if row.kind == "units":
            return [_message("units", units, row.number)]
        messages = [_message("units", units)] if units else []
        data: Any
        match row.kind:
            case "recommendation":
                data = body["answer"]
            case "dispatch":
                data = {k: v for k, v in body["dispatch"].items() if k not in INSIDE}
            case "closure":
                known = state.closures()
                data = [self._closures.plain(one, state.now) for one in known]
            case _:
                data = {name: value for name, value in body.items() if name != "changes"}
        kind = {"closure": "closures"}.get(row.kind, row.kind)
        return [*messages, _message(kind, data, row.number)]

    def _moved(self, connection: Connection) -> bytes | None:
        """Units that were seen somewhere else since the last look; all at the first one."""
        table = tables.unit
        found = connection.execute(sa.select(table.c.id, table.c.seen_at))
        seen = {row.id: row.seen_at for row in found if row.seen_at is not None}
        moved = [id_ for id_, at in seen.items() if self._seen.get(id_) != at]
        self._seen = seen
        if not moved:
            return None
        state = State(connection, self._clock)
        return _message("units", _plain_units(state, sorted(moved), self._stale_s))


def _plain_units(state: State, ids: Sequence[str], stale_s: float) -> list[dict[str, Any]]:
    table = tables.unit
    query = sa.select(table).where(table.c.id.in_(ids)).order_by(table.c.id)
    known = {row.id: Unit(**row._mapping) for row in state.connection.execute(query)}
    return [
        known[one].plain(state.now, stale_s) if one in known else {"id": one, "gone": True}
        for one in ids
    ]


def _message(kind: str, data: Any, number: int | None = None) -> bytes:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    where = "" if number is None else f"id: {number}\n"
    return f"{where}event: {kind}\ndata: {text}\n\n".encode()
