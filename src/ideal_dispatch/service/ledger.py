"""What was answered before, from memory and from the audit: same request, same answer."""

import asyncio
import hashlib
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
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
from ideal_dispatch.service.audit.store import told_units

log = logging.getLogger(__name__)

Found = TypeVar("Found")

PASSING = frozenset(
    {"starting", "late", "not_decided", "internal_error", "call_in_future", "no_unit"}
)
"""Why there was no advice, where there may be one a moment later."""

LOOK_S = 0.3
"""Of a call's time, for looking up what was answered before."""

_CALLS, _ANSWERS, _REVISIONS = 500, 1000, 20  # remembered here, for when the database is slow
_RESPONSES = 2000
_TOLD = 500  # entries about units; what was told before is in the table
_PENDING = 64
_LEAST_S, _GRACE_S = 0.1, 0.05  # for making an entry durable, however late it is


_AGAIN = re.compile(r"^again-(\d+):")  # callers' keys begin otherwise


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer on record, the key it was asked with, and a hash of the request.

    A question may be answered anew where its answer did not stand: the keys of
    such answers have the number of the attempt before the question's own key.
    """

    key: str
    digest: str
    answer: Mapping[str, Any]

    @property
    def question(self) -> str:
        """The key that the first answer to the same question has."""
        return _AGAIN.sub("", self.key)

    @property
    def next_key(self) -> str:
        """The key of another attempt after this one."""
        again = _AGAIN.match(self.key)
        return f"again-{int(again[1]) + 1 if again else 2}:{self.question}"

    def stands(self, now: datetime) -> bool:
        """Whether it is still the answer: not once it expired, nor where its cause may pass."""
        codes = [reason["code"] for reason in self.answer["degraded"]]
        passing = self.answer["decision"] == "no_advice" and codes[:1] and codes[0] in PASSING
        return not passing and now < datetime.fromisoformat(self.answer["expires_at"])

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
        known = await self._here(call_id)
        try:
            rows = await self._ask(lambda: self._store.of_call(call_id), LOOK_S)
        except StoreError as error:
            log.warning("call %s: looked up in memory alone (%s)", call_id, error)
            return known
        self._take_responses([row.entry for row in rows])
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

    async def _here(self, call_id: str) -> list[Answered]:
        """Answers that wait in the spool, also of a process before this one, or are remembered."""
        entries = await asyncio.to_thread(self.writer.spool.of_call, call_id)
        self._take_responses(entries)
        waiting = [Answered.of(entry) for entry in entries if entry.kind == "recommendation"]
        keys = {one.key for one in waiting}
        return waiting + [one for one in self._calls.get(call_id, ()) if one.key not in keys]

    def _remember(self, call_id: str, answered: Answered) -> None:
        known = self._calls.pop(call_id, [])
        if all(one.key != answered.key for one in known):
            known.append(answered)
        self._calls[call_id] = known[-_REVISIONS:]
        while len(self._calls) > _CALLS or sum(map(len, self._calls.values())) > _ANSWERS:
            self._calls.popitem(last=False)

    # --- recommendations and what people did with them -----------------------------

    async def get(self, id: str) -> dict[str, Any] | None:  # noqa: A002
        """A recommendation with the response to it, or None."""
        here = await self._find_here(id)
        try:
            row = await self._ask(lambda: self._store.get(id))
        except StoreError:
            if here is None:
                raise
            return self.joined(here)
        if row is None or row.entry.kind != "recommendation":
            return None if here is None else self.joined(here)
        call_id = row.entry.call_id
        rows = await self._ask(lambda: self._store.of_call(call_id))
        self._take_responses([row.entry for row in rows])
        return self.joined(Answered.of(row.entry).answer)

    async def _find_here(self, id: str) -> Mapping[str, Any] | None:  # noqa: A002
        """A recommendation that is remembered or waits in the spool."""
        for known in self._calls.values():
            for one in known:
                if one.answer["id"] == id:
                    return one.answer
        entry = await asyncio.to_thread(self.writer.spool.get, id)
        if entry is None or entry.kind != "recommendation":
            return None
        self._take_responses(await asyncio.to_thread(self.writer.spool.of_call, entry.call_id))
        return Answered.of(entry).answer

    async def recent(self, limit: int) -> list[dict[str, Any]]:
        """The latest recommendations, newest first; of this worker alone without database."""
        try:
            rows = await self._ask(lambda: self._store.recent("recommendation", limit))
            said = await self._ask(lambda: self._store.recent("response", 4 * limit))
        except StoreError as error:
            log.warning("recent calls from memory alone (%s)", error)
            rows, said = [], []
        waiting = await asyncio.to_thread(self.writer.spool.recent, "recommendation", limit)
        spooled = await asyncio.to_thread(self.writer.spool.recent, "response", 4 * limit)
        self._take_responses([row.entry for row in said[::-1]] + spooled[::-1])
        answers = {row.entry.id: Answered.of(row.entry).answer for row in rows if _counts(row)}
        answers |= {entry.id: entry.body["answer"] for entry in waiting}
        remembered = [one.answer for known in self._calls.values() for one in known]
        answers |= {answer["id"]: answer for answer in remembered}
        newest = sorted(answers.values(), key=lambda one: one["created_at"], reverse=True)
        return [self.joined(one) for one in newest[:limit]]

    async def respond(self, entry: Entry, timeout_s: float) -> None:
        """Make a human response durable."""
        await self._durable(entry, timeout_s)
        self._take_responses([entry])

    def joined(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """An answer with the last response to it that is known here."""
        return {**answer, "response": self._responses.get(answer["id"])}

    def _take_responses(self, entries: Iterable[Entry]) -> None:
        """Remember what people did, the last of it for each recommendation."""
        for entry in entries:
            if entry.kind != "response":
                continue
            id_, said = entry.body["recommendation_id"], dict(entry.body["response"])
            known = self._responses.pop(id_, said)
            self._responses[id_] = max(said, known, key=lambda one: str(one["at"]))
        while len(self._responses) > _RESPONSES:
            self._responses.popitem(last=False)

    # --- units ----------------------------------------------------------------------

    @property
    def units(self) -> Mapping[str, DepotUnits]:
        """What is known about every depot, without asking anybody."""
        return self._units

    async def read_units(self) -> None:
        """Take over what is in the database; its rows come first, the table may lack some."""
        for row in await self._ask(partial(self._store.recent, "units", _TOLD)):
            self.take_units(row.entry)
        for known in await self._ask(self._store.read_units):
            self._put(known)

    async def read_spooled_units(self) -> None:
        """Take over what waits in the spool, also of a process before this one."""
        try:
            entries = await asyncio.to_thread(self.writer.spool.recent, "units", _TOLD)
        except (OSError, ValueError) as error:  # the service starts all the same
            log.warning("units in the spool are not known yet (%s)", error)
            return
        for entry in entries:
            self.take_units(entry)

    async def write_units(self, entry: Entry) -> None:
        """Take new counts, once they are durable; the database has them with the entry's row."""
        await self._durable(entry, 1.0)
        self.take_units(entry)

    def take_units(self, entry: Entry) -> None:
        """Know what an entry says about units, unless something newer is known."""
        for told in told_units(entry):
            self._put(told)

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
