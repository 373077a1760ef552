"""What was answered before, from memory and from the audit: same request, same answer."""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from ideal_dispatch.service.audit import (
    AuditStore,
    AuditWriter,
    DepotUnits,
    DuplicateEntry,
    Entry,
    NotRecordedError,
    Row,
    StoreError,
)
from ideal_dispatch.service.audit.record import canonical

log = logging.getLogger(__name__)

Found = TypeVar("Found")

LOOK_S = 0.3
"""Of a call's time, for looking up what was answered before."""

_CALLS = 5000  # remembered here, for when the database is down
_PENDING = 64
_LEAST_S, _GRACE_S = 0.1, 0.05  # for making an entry durable, however late it is


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer on record, the key it was asked with, and a hash of the request."""

    key: str
    digest: str
    answer: Mapping[str, Any]

    @classmethod
    def of(cls, entry: Entry) -> "Answered":
        """What a recommendation's entry says."""
        return cls(entry.key or "", entry.body["request_sha256"], entry.body["answer"])


def digest(request: Mapping[str, Any]) -> str:
    """A hash of a request; the same content, the same hash."""
    return hashlib.sha256(canonical(request).encode()).hexdigest()


class Ledger:
    """Entries of this service: written durably, found again, joined with what people did."""

    def __init__(self, store: AuditStore, writer: AuditWriter) -> None:
        self._store, self.writer = store, writer
        self._calls: OrderedDict[str, list[Answered]] = OrderedDict()
        self._responses: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._units: dict[str, DepotUnits] = {}
        self._pool = ThreadPoolExecutor(4, "ledger")
        self._pending = 0

    def close(self) -> None:
        """Write what waits and give up the database."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.writer.close()

    # --- calls ------------------------------------------------------------------

    async def earlier(self, call_id: str) -> list[Answered]:
        """Answers given for a call so far, oldest first; those known here if need be."""
        known = self._here(call_id)
        try:
            rows = await self._ask(lambda: self._store.of_call(call_id), LOOK_S)
        except StoreError as error:
            log.warning("call %s: looked up in memory alone (%s)", call_id, error)
            return known
        stored = [Answered.of(row.entry) for row in rows if _counts(row)]
        keys = {one.key for one in stored}
        return stored + [one for one in known if one.key not in keys]

    async def record(self, entry: Entry, timeout_s: float) -> Answered:
        """Make an answer durable; the one on record where another worker was first."""
        try:
            await self._durable(entry, max(timeout_s, _LEAST_S))
            answered = Answered.of(entry)
        except DuplicateEntry as duplicate:
            answered = Answered.of(duplicate.entry)
        self._remember(entry.call_id, answered)
        return answered

    async def _durable(self, entry: Entry, timeout_s: float) -> None:
        """Wait until an entry is in the database or the spool, but not for ever."""
        future = asyncio.wrap_future(self.writer.submit(entry, timeout_s))
        try:
            await asyncio.wait_for(asyncio.shield(future), timeout_s + _GRACE_S)
        except TimeoutError:
            future.add_done_callback(lambda done: done.exception())
            raise NotRecordedError(
                f"audit: call {entry.call_id!r} is not on record; nothing took it within "
                f"{timeout_s:.2g} s"
            ) from None

    def _here(self, call_id: str) -> list[Answered]:
        """Answers that wait in the spool, also of a process before this one, or are remembered."""
        waiting = [
            Answered.of(entry)
            for entry in self.writer.spool.of_call(call_id)
            if entry.kind == "recommendation"
        ]
        keys = {one.key for one in waiting}
        return waiting + [one for one in self._calls.get(call_id, ()) if one.key not in keys]

    def _remember(self, call_id: str, answered: Answered) -> None:
        known = self._calls.pop(call_id, [])
        if all(one.key != answered.key for one in known):
            known.append(answered)
        self._calls[call_id] = known
        while len(self._calls) > _CALLS:
            self._calls.popitem(last=False)

    # --- recommendations and what people did with them -----------------------------

    async def get(self, id: str) -> dict[str, Any] | None:  # noqa: A002
        """A recommendation with the response to it, or None."""
        here = next((one for one in self._known(_CALLS) if one.answer["id"] == id), None)
        try:
            row = await self._ask(lambda: self._store.get(id))
        except StoreError:
            if here is None:
                raise
            return self._joined(here.answer, None)
        if row is None or row.entry.kind != "recommendation":
            return None if here is None else self._joined(here.answer, None)
        call_id = row.entry.call_id
        rows = await self._ask(lambda: self._store.of_call(call_id))
        return self._joined(Answered.of(row.entry).answer, _last_response(rows, id))

    async def recent(self, limit: int) -> list[dict[str, Any]]:
        """The latest recommendations, newest first; of this worker alone without database."""
        try:
            rows = await self._ask(lambda: self._store.recent("recommendation", limit))
            said = await self._ask(lambda: self._store.recent("response", 4 * limit))
        except StoreError as error:
            log.warning("recent calls from memory alone (%s)", error)
            rows, said = [], []
        answers = {row.entry.id: Answered.of(row.entry).answer for row in rows if _counts(row)}
        for one in self._known(limit):
            answers.setdefault(one.answer["id"], one.answer)
        newest = sorted(answers.values(), key=lambda one: one["created_at"], reverse=True)
        oldest_first = said[::-1]
        return [
            self._joined(one, _last_response(oldest_first, one["id"])) for one in newest[:limit]
        ]

    async def respond(self, entry: Entry, timeout_s: float) -> None:
        """Make a human response durable."""
        await self._durable(entry, timeout_s)
        self._responses[entry.body["recommendation_id"]] = dict(entry.body["response"])
        while len(self._responses) > _CALLS:
            self._responses.popitem(last=False)

    def _known(self, limit: int) -> Iterator[Answered]:
        """What this worker remembers, and the latest that wait in the spool."""
        yield from map(Answered.of, self.writer.spool.recent("recommendation", limit))
        yield from (one for known in list(self._calls.values()) for one in known)

    def _joined(self, answer: Mapping[str, Any], response: Any) -> dict[str, Any]:
        return {**answer, "response": response or self._responses.get(answer["id"])}

    # --- units ----------------------------------------------------------------------

    @property
    def units(self) -> Mapping[str, DepotUnits]:
        """What is known about every depot, without asking anybody."""
        return self._units

    async def read_units(self) -> None:
        """Take over what other workers were told."""
        for known in await self._ask(self._store.read_units):
            self._put(known)

    async def write_units(self, entry: Entry, units: Mapping[str, int], at: datetime) -> None:
        """Take new counts, durably as an entry, and in the table where the database is up."""
        await self._durable(entry, 1.0)
        for depot, count in units.items():
            self._put(DepotUnits(depot, count, at))
        try:
            await self._ask(lambda: self._store.write_units(units, at))
        except StoreError as error:
            log.warning("units are known to this worker alone (%s)", error)

    def _put(self, told: DepotUnits) -> None:
        known = self._units.get(told.depot)
        if known is None or known.updated_at <= told.updated_at:
            self._units[told.depot] = told

    # --- other workers --------------------------------------------------------------

    async def rows_after(self, number: int) -> list[Row]:
        """Rows that were written since, by anybody."""
        return await self._ask(lambda: self._store.rows(number, 200))

    async def last_number(self) -> int:
        """The number of the last row."""
        numbers = [0]
        for kind in ("recommendation", "response", "units"):
            rows = await self._ask(partial(self._store.recent, kind, 1))
            numbers += [row.number for row in rows]
        return max(numbers)

    async def prune(self, before: datetime) -> int:
        """Let go of old rows; how many."""
        return await self._ask(lambda: self._store.prune(before), 600.0)

    async def _ask(self, question: Callable[[], Found], timeout_s: float = 2.5) -> Found:
        """What the database says in time; a StoreError otherwise."""
        status = self.writer.status
        if not status.store_up:
            raise StoreError(f"the database does not answer: {status.error}")
        if self._pending >= _PENDING:
            raise StoreError("too many questions to the database wait")
        self._pending += 1
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._pool, question)
        future.add_done_callback(self._asked)
        try:
            return await asyncio.wait_for(asyncio.shield(future), timeout_s)
        except TimeoutError:
            raise StoreError(f"the database did not answer within {timeout_s:g} s") from None

    def _asked(self, future: "asyncio.Future[Any]") -> None:
        self._pending -= 1
        if not future.cancelled():
            future.exception()  # seen, also where nobody waits any more


def _counts(row: Row) -> bool:
    return row.entry.kind == "recommendation" and row.duplicate_of is None


def _last_response(rows: list[Row], id: str) -> Any:  # noqa: A002
    for row in reversed(rows):
        if row.entry.kind == "response" and row.entry.body["recommendation_id"] == id:
            return row.entry.body["response"]
    return None
