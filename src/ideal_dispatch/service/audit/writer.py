"""Entries become durable, in the database or the spool, while the caller waits a bounded time."""

import logging
import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from ideal_dispatch.service.audit.record import (
    AuditError,
    DuplicateEntry,
    Entry,
    NotRecordedError,
    Row,
    StoreError,
    UncheckedPromises,
)
from ideal_dispatch.service.audit.spool import Spool
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.repeated import Repeated

log = logging.getLogger(__name__)

_BATCH = 256
_MOST_OPEN = 4096
_FIRST_RETRY_S = 0.5
_LAST_RETRY_S = 5.0
_PROBE_S = 5.0
_TIDY_S = 5.0
_STALLED_S = 0.5  # after which a database that says nothing is not waited for
_SPOOL_SHARE_S = 0.25  # of the caller's time, for the disk; at most half of it


@dataclass(eq=False, slots=True)
class _Ticket:
    entry: Entry
    spool_at: float  # when it goes to the spool if the database has not taken it
    future: "Future[Row | None]" = field(default_factory=Future)
    taken: bool = False
    spooling: bool = False


class AuditWriter:
    """Writes entries for many callers: one thread to the database, one to the spool.

    Entries that come while a commit is under way share the next one. An entry that the database
    has not taken in its time goes to the spool. When the database is back, spooled entries enter
    first, in their order. An entry that went both ways is one row: rows are looked up by id. A
    third thread looks for files that other workers left in the spool, however busy the others are.
    ``error`` says why the database takes nothing now, None while it is up.
    """

    def __init__(self, store: AuditStore, spool: Spool) -> None:
        self._store, self.spool = store, spool
        lock = threading.RLock()
        self._changed = threading.Condition(lock)  # notified whenever a thread may have to go on
        self._overdue = threading.Condition(lock)  # for the spool's thread: most calls need none
        self._spool_waits_until = -math.inf
        self._open: dict[_Ticket, None] = {}  # in the order of arrival
        self._closing = self._stopped = False
        self.error: str | None = None
        self._next_at = -math.inf  # of a look at the database without need
        self._retry_s = _FIRST_RETRY_S
        self._asked_at = math.inf  # since when the database owes an answer
        self._threads = [
            threading.Thread(target=target, name=name, daemon=True)
            for target, name in ((self._keep_storing, "audit"), (self._keep_spooling, "spool"))
        ]
        self._tidying = Repeated("tidying", _TIDY_S, self._tidy)
        self._tidying.start()
        for thread in self._threads:
            thread.start()

    def submit(self, entry: Entry, timeout_s: float) -> "Future[Row | None]":
        """The row of an entry, None where it is durable in the spool; within ``timeout_s``.

        The future raises :class:`DuplicateEntry`, :class:`UncheckedPromises` where the entry is
        ``promising`` and the database did not take it, or :class:`NotRecordedError`. Where database
        and disk hang, it never ends: its caller must not wait for longer than ``timeout_s``.
        """
        share_s = timeout_s - min(_SPOOL_SHARE_S, timeout_s / 2)
        with self._changed:
            if self._closing:
                raise _not_recorded(entry, "the audit is closed")
            if len(self._open) >= _MOST_OPEN:
                raise _not_recorded(entry, f"{_MOST_OPEN} entries wait already")
            now = time.monotonic()
            straight = self.error is not None or len(self.spool) > _BATCH
            ticket = _Ticket(entry, now if straight else now + share_s)
            ticket.future.set_running_or_notify_cancel()  # and cannot be cancelled
            self._open[ticket] = None
            self._changed.notify_all()
            if ticket.spool_at < self._spool_waits_until:
                self._overdue.notify()
        return ticket.future

    def close(self, timeout_s: float = 5.0) -> None:
        """Write what waits, to the spool what the database does not take in time.

        The store and the spool are closed, too.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify_all()
            self._changed.wait_for(self._done, max(0.0, timeout_s - _SPOOL_SHARE_S))
            for ticket in self._open:
                ticket.spool_at = -math.inf
            self._overdue.notify()
            self._changed.wait_for(lambda: not self._open, max(0.1, deadline - time.monotonic()))
            self._stopped = True
            self._changed.notify_all()
            self._overdue.notify()
        for thread in self._threads:
            thread.join(max(0.1, deadline - time.monotonic()))
        self._tidying.stop(max(0.1, deadline - time.monotonic()))
        self.spool.close()
        self._store.close()

    def _done(self) -> bool:
        return not self._open and (self.error is not None or not len(self.spool))

    # the thread of the database

    def _keep_storing(self) -> None:
        while True:
            with self._changed:
                while not self._stopped:
                    wait_s = self._next_at - time.monotonic()
                    needed = self.error is None and (len(self.spool) or self._storable())
                    if needed or wait_s <= 0:
                        break
                    self._changed.wait(wait_s)
                if self._stopped:
                    return
                replaying = len(self.spool) > 0
                tickets = [] if replaying else self._storable()[:_BATCH]
                for ticket in tickets:
                    ticket.taken = True
                self._asked_at = time.monotonic()
            try:
                if replaying:
                    self.spool.replay(_BATCH, partial(self._store.append, keep_duplicates=True))
                elif tickets:
                    outcomes = self._store.append([ticket.entry for ticket in tickets])
                    with self._changed:
                        for ticket, outcome in zip(tickets, outcomes, strict=True):
                            self._settle(ticket, outcome)
                else:  # nothing to do: is it there?
                    self._store.find("service", "", "")
            except Exception as error:  # whatever it is, the entries go to the spool
                self._failed(error, tickets)
            else:
                self._succeeded()

    def _storable(self) -> list[_Ticket]:
        return [ticket for ticket in self._open if not ticket.taken and not ticket.spooling]

    def _failed(self, error: Exception, tickets: Sequence[_Ticket]) -> None:
        known = self.error is not None
        with self._changed:
            self._asked_at = math.inf
            self._next_at = time.monotonic() + self._retry_s
            self._retry_s = min(2 * self._retry_s, _LAST_RETRY_S)
            for ticket in tickets:
                ticket.taken = False
            self._divert(str(error))
        if not isinstance(error, StoreError):
            log.error("audit: unexpected; entries go to the spool", exc_info=error)
        elif not known:
            log.warning("%s; entries go to the spool", error)

    def _divert(self, error: str) -> None:
        """Let the spool take what is open, and all that comes; the lock is held."""
        self.error = error
        for ticket in self._open:
            ticket.spool_at = -math.inf
        self._overdue.notify()

    def _succeeded(self) -> None:
        with self._changed:
            if self.error is not None:
                log.warning("the audit's database is back; %d entries wait", len(self.spool))
            self.error = None
            self._asked_at = math.inf
            self._next_at = time.monotonic() + _PROBE_S
            self._retry_s = _FIRST_RETRY_S
            self._changed.notify_all()

    # the thread that looks for files of other workers

    def _tidy(self) -> None:
        self.spool.tidy()
        with self._changed:
            self._changed.notify_all()

    # the thread of the spool

    def _keep_spooling(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                tickets = [t for t in self._open if t.spool_at <= now and not t.spooling]
                if not tickets:
                    if self._stopped:
                        return
                    due = min((t.spool_at for t in self._open if not t.spooling), default=math.inf)
                    self._spool_waits_until = due
                    self._overdue.wait(min(due - now, threading.TIMEOUT_MAX))
                    self._spool_waits_until = -math.inf
                    continue
                if self.error is None and now - self._asked_at > _STALLED_S:
                    log.warning("the audit's database says nothing; entries go to the spool")
                    self._divert("audit database: no answer yet")
                    continue
                for ticket in tickets:
                    ticket.spooling = True
            self._spool_all(tickets)

    def _spool_all(self, tickets: Sequence[_Ticket]) -> None:
        try:
            fresh = self._spoolable(tickets)
            if fresh:
                self.spool.write([ticket.entry for ticket in fresh])
        except Exception as error:  # whatever it is, the callers must hear
            log.error("not spooled: %s", error)
            if len(tickets) > 1:  # some may still fit
                for ticket in tickets:
                    self._spool_all([ticket])
                return
            with self._changed:
                if self.error is None and not self._closing:  # the database may still take it
                    tickets[0].spooling, tickets[0].spool_at = False, math.inf
                    self._changed.notify_all()
                else:
                    self._settle(tickets[0], _not_recorded(tickets[0].entry, str(error)))
            return
        with self._changed:
            for ticket in fresh:
                self._settle(ticket, None)
            self._changed.notify_all()

    def _spoolable(self, tickets: Sequence[_Ticket]) -> list[_Ticket]:
        """The tickets to spool; the others hear why not, or which entry was first."""
        fresh: list[_Ticket] = []
        firsts: dict[tuple[str, str, str], Entry] = {}
        for ticket in tickets:
            entry = ticket.entry
            refusal: AuditError | None = None
            if entry.promising:
                refusal = UncheckedPromises(f"call {entry.call_id!r}: say so in the entry")
            elif entry.slot is not None:
                first = firsts.get(entry.slot) or self.spool.find(*entry.slot) or entry
                firsts[entry.slot] = first
                refusal = DuplicateEntry(first) if first.id != entry.id else None
            if refusal is None:
                fresh.append(ticket)
            else:
                with self._changed:
                    self._settle(ticket, refusal)
        return fresh

    def _settle(self, ticket: _Ticket, outcome: Row | Exception | None) -> None:
        """Tell the caller, the first time; the lock is held."""
        if self._open.pop(ticket, ticket) is None:
            if isinstance(outcome, Exception):
                ticket.future.set_exception(outcome)
            else:
                ticket.future.set_result(outcome)
        if not self._open:
            self._changed.notify_all()


def _not_recorded(entry: Entry, why: str) -> NotRecordedError:
    return NotRecordedError(
        f"audit: {entry.kind} of call {entry.call_id!r} is not on record ({why}); "
        "check the database and the spool's disk"
    )
