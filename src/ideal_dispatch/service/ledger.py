"""What was answered before, from memory and from the audit: same request, same answer."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from ideal_dispatch.service import clock
from ideal_dispatch.service.audit.closures import Closures
from ideal_dispatch.service.audit.record import (
    DuplicateEntry,
    Entry,
    NotRecordedError,
    Row,
    StoreError,
)
from ideal_dispatch.service.audit.spool import Spool
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.audit.writer import AuditWriter
from ideal_dispatch.service.recorded_answers import KeptAnswer, RecordedAnswer
from ideal_dispatch.service.solver.messages import Closed
from ideal_dispatch.service.unit_counts import UnitCounts

log = logging.getLogger(__name__)

Found = TypeVar("Found")

LOOK_S = 0.3
"""Of a call's time, for looking up what was answered before."""

_CALLS, _ANSWERS, _REVISIONS = 500, 1000, 20  # remembered here, for when the database is slow
_ROWS = 20  # of a call, looked at: a probe may ask about one call for days
_REPLIES = 2000
_TOLD = 500  # entries of a kind in the spool, the last ones
_PENDING = 64
_LEAST_S, _GRACE_S = 0.1, 0.05  # for making an entry durable, however late it is


@dataclass(frozen=True, slots=True)
class Earlier:
    """Answers given for a call so far, oldest first; ``seen`` is the last row looked at.

    Of many answers these are the last ones. ``seen`` is None where the database was not asked.
    """

    answers: list[RecordedAnswer]
    seen: int | None = None

    def to(self, question: str) -> RecordedAnswer | None:
        """The last answer to the question with this key."""
        same = (one for one in self.answers if one.question == question)
        return max(same, key=lambda one: one.attempt, default=None)


class Ledger:
    """Entries of this service: written durably, found again, joined with what people did."""

    def __init__(self, store: AuditStore, writer: AuditWriter) -> None:
        self._store, self.writer = store, writer
        self._calls: OrderedDict[str, tuple[KeptAnswer, ...]] = OrderedDict()
        self._remembered = 0  # answers in there
        self._replies: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self.units = UnitCounts()
        self.closures = Closures()
        self.followed = 0  # the last row that was seen here, whoever wrote it
        self._database = _Questions("database", threads=4)
        self._disk = _Questions("spool", threads=2)

    def close(self) -> None:
        """Write what waits and give up the database."""
        self._database.close()
        self._disk.close()
        self.writer.close()

    # --- calls ------------------------------------------------------------------

    def knows(self, call_id: str) -> bool:
        """Whether a call is remembered here or waits in the spool; the database is not asked."""
        return call_id in self._calls or self.writer.spool.knows(call_id)

    async def earlier(self, call_id: str, question: str = "", timeout_s: float = LOOK_S) -> Earlier:
        """The last answers for a call, those known here if need be.

        Among them is one to the question, however long ago it was asked.
        """
        timeout_s = min(max(timeout_s, _LEAST_S), LOOK_S)
        waiting: list[Entry] = []
        if self.writer.spool.knows(call_id):  # also of a process before this one
            waiting = await self._spooled(lambda spool: spool.of_call(call_id), timeout_s)
        rows: list[Row] = []
        seen = None
        try:
            rows = await self.ask(lambda _: self._of_call(call_id, question), timeout_s)
            seen = rows[-1].number if rows else 0
        except StoreError as error:
            log.warning("call %s: looked up in memory alone (%s)", call_id, error)
        self._take_replies([*waiting, *(row.entry for row in rows)])
        stored = [RecordedAnswer.of(row.entry, row.number) for row in rows if _counts(row)]
        spooled = [RecordedAnswer.of(entry) for entry in waiting if entry.kind == "recommendation"]
        remembered = [one.answered for one in self._calls.get(call_id, ())]
        answers: dict[str, RecordedAnswer] = {}
        for one in (*stored, *spooled, *remembered):
            answers.setdefault(one.key, one)
        return Earlier(list(answers.values()), seen)

    def _of_call(self, call_id: str, question: str) -> list[Row]:
        rows = self._store.of_call(call_id, _ROWS)
        if question and len(rows) == _ROWS and not any(_asked(row) == question for row in rows):
            first = self._store.find("recommendation", call_id, question)
            rows = [*([first] if first else []), *rows]
        return rows

    async def record(self, entry: Entry, timeout_s: float) -> RecordedAnswer:
        """Make an answer durable; the one on record where another worker was first.

        Its units are promised from now on, unless others were quicker: PromisedUnits.
        """
        self.units.check(entry)
        try:
            with self.units.promises.trying(entry):
                timeout_s = max(timeout_s, _LEAST_S)
                await _durable(entry, self.writer.submit(entry, timeout_s), timeout_s)
        except DuplicateEntry as duplicate:
            entry = duplicate.entry
            self.units.promises.take(entry)
        self._remember(entry)
        return RecordedAnswer.of(entry)

    def _remember(self, entry: Entry) -> None:
        before = self._calls.get(entry.call_id, ())
        if any(one.key == entry.key for one in before):
            return
        known = (*before, KeptAnswer(entry.id, entry.key or "", entry.text))[-_REVISIONS:]
        self._calls[entry.call_id] = known
        self._calls.move_to_end(entry.call_id)
        self._remembered += len(known) - len(before)
        while len(self._calls) > _CALLS or self._remembered > _ANSWERS:
            self._remembered -= len(self._calls.popitem(last=False)[1])

    # --- recommendations and what people did with them -----------------------------

    async def get(self, advice_id: str) -> dict[str, Any] | None:
        """A recommendation with the dispatcher's reply to it, or None."""

        def of_spool() -> list[Entry]:
            entry = spool.get(advice_id)
            return [] if entry is None else spool.of_call(entry.call_id)

        def of_store(store: AuditStore) -> list[Row]:
            row = store.get(advice_id)
            return [] if row is None else [row, *store.of_call(row.call_id, _ROWS, "response")]

        spool = self.writer.spool
        found = [
            one.answered.answer
            for known in self._calls.values() for one in known if one.id == advice_id
        ]  # fmt: skip
        entries = await self._disk.ask(of_spool) if len(spool) and not found else []
        try:
            entries += [row.entry for row in await self.ask(of_store)]
        except StoreError:
            if not found and not entries:
                raise
        self._take_replies(entries)
        found += [
            entry.body["answer"] for entry in entries
            if entry.id == advice_id and entry.kind == "recommendation"
        ]  # fmt: skip
        return self.joined(found[-1]) if found else None

    async def recent(self, limit: int) -> list[dict[str, Any]]:
        """The latest recommendations, newest first; of this worker alone without database."""
        kinds = ("recommendation", limit), ("response", 4 * limit)
        rows: list[Row] = []
        try:
            rows = await self.ask(lambda store: [one for k in kinds for one in store.recent(*k)])
        except StoreError as error:
            log.warning("recent calls from memory alone (%s)", error)
        entries = [row.entry for row in rows if row.duplicate_of is None]
        entries += await self._spooled(lambda spool: [e for k in kinds for e in spool.recent(*k)])
        self._take_replies(reversed(entries))
        answers = {one.id: one.body["answer"] for one in entries if one.kind == "recommendation"}
        latest = islice(reversed(self._calls.values()), limit)
        remembered = [one for known in latest for one in known if one.id not in answers]
        answers |= {one.id: one.answered.answer for one in remembered}
        newest = sorted(answers.values(), key=lambda one: one["created_at"], reverse=True)
        return [self.joined(one) for one in newest[:limit]]

    def joined(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """An answer with the last reply to it that is known here."""
        return {**answer, "response": self._replies.get(answer["id"])}

    def _take_replies(self, entries: Iterable[Entry]) -> None:
        """Remember what people did, the last of it for each recommendation."""
        for entry in entries:
            if entry.kind != "response":
                continue
            id_, said = entry.body["recommendation_id"], dict(entry.body["response"])
            known = self._replies.pop(id_, said)
            self._replies[id_] = max(said, known, key=lambda one: str(one["at"]))
        while len(self._replies) > _REPLIES:
            self._replies.popitem(last=False)

    # --- units ----------------------------------------------------------------------

    async def read_units(self, timeout_s: float = 2.5) -> None:
        """Take over the counts and promises that the database knows now."""
        self.units.merge(await self.ask(AuditStore.read_units, timeout_s))

    async def read_spooled_units(self) -> None:
        """Take over what waits in the spool, also of a process before this one."""
        kinds = "units", "unit", "recommendation", "response", "reply", "closure"
        entries = await self._spooled(
            lambda spool: [one for kind in kinds for one in reversed(spool.recent(kind, _TOLD))]
        )
        for entry in entries:
            self.units.take(entry)
            self.closures.take(entry)

    def closed(self, network: str) -> tuple[Closed, ...]:
        """What is closed now, for a solver on this network."""
        active = self.closures.active(clock.now(), network)
        return tuple(Closed(one.id, one.reason, one.edges) for one in active)

    async def read_closures(self) -> None:
        """Take over the closures that the database knows now."""
        for closure in await self.ask(AuditStore.read_closures):
            self.closures.put(closure)

    async def write(self, entry: Entry, timeout_s: float = 1.0) -> None:
        """Make a reply, counts of units or a closure durable, and know them from then on.

        Counts older than what is known are refused: OutdatedUnits.
        """
        self.units.check(entry)
        await _durable(entry, self.writer.submit(entry, timeout_s), timeout_s)
        self._take_replies([entry])
        self.units.take(entry)
        self.closures.take(entry)

    # --- the database and the spool ---------------------------------------------------

    async def ask(self, read: Callable[[AuditStore], Found], timeout_s: float = 2.5) -> Found:
        """What the database says in time; a StoreError otherwise."""
        if (error := self.writer.error) is not None:
            raise StoreError(f"the database does not answer: {error}")
        return await self._database.ask(lambda: read(self._store), timeout_s)

    async def _spooled(
        self, read: Callable[[Spool], list[Entry]], timeout_s: float = 2.5
    ) -> list[Entry]:
        """Entries that wait in the spool; none where its disk fails."""
        spool = self.writer.spool
        if not len(spool):
            return []
        try:
            return await self._disk.ask(lambda: read(spool), timeout_s)
        except StoreError as error:
            log.warning("what waits in the spool is not known now (%s)", error)
            return []


class _Questions:
    """Questions to something that may hang, by threads of their own, each within a time."""

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._pool = ThreadPoolExecutor(threads, name)
        self._pending = 0

    async def ask(self, question: Callable[[], Found], timeout_s: float = 2.5) -> Found:
        """What it says in time; a StoreError otherwise."""
        if self._pending >= _PENDING:
            raise StoreError(f"too many questions to the {self._name} wait")
        self._pending += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, question)
        future.add_done_callback(self._done)
        try:
            async with asyncio.timeout(timeout_s):  # wait_for may swallow that a task is cancelled
                return await asyncio.shield(future)
        except TimeoutError:
            raise StoreError(f"the {self._name} did not answer within {timeout_s:g} s") from None

    def _done(self, future: "asyncio.Future[Any]") -> None:
        self._pending -= 1
        if not future.cancelled():
            future.exception()  # also where nobody waits any more

    def close(self) -> None:
        """Leave unanswered what waits."""
        self._pool.shutdown(wait=False, cancel_futures=True)


async def _durable(entry: Entry, submitted: "Future[Any]", timeout_s: float) -> None:
    """Wait until an entry is in the database or the spool, but not for ever."""
    future = asyncio.wrap_future(submitted)
    done, _ = await asyncio.wait([future], timeout=timeout_s + _GRACE_S)
    if not done:
        future.add_done_callback(lambda late: late.exception())
        raise NotRecordedError(
            f"audit: call {entry.call_id!r} is not on record; nothing took it within "
            f"{timeout_s:.2g} s"
        )
    future.result()


def _asked(row: Row) -> str:
    return RecordedAnswer.of(row.entry).question if _counts(row) else ""


def _counts(row: Row) -> bool:
    return row.kind == "recommendation" and row.duplicate_of is None
