"""Letting go of rows that are older than they must be kept."""

import time
from functools import partial
from itertools import takewhile

import sqlalchemy as sa

from ideal_dispatch.service.clock import SECOND, ClockTable, moment_text
from ideal_dispatch.service.errors import RecordUnavailableError
from ideal_dispatch.service.record.database import Database, Job
from ideal_dispatch.service.record.rows import AdviceRow, ClosureRow, advice, closure, head, log
from ideal_dispatch.service.record.transaction import Transaction, changing

_AT_ONCE = 2_000  # rows; the head is locked meanwhile
_PATIENCE_S = 600.0


def prune(database: Database, clock: ClockTable, keep_days: int) -> int:
    """Remove rows of the log and advice older than so many days; how many rows of the log went."""
    job, gone = Job(time.monotonic() + _PATIENCE_S), 0
    change = partial(_prune_some, keep_days=keep_days)
    while True:
        removed = database.write(partial(changing, clock=clock, change=change), job)
        gone += removed
        if removed < _AT_ONCE:
            return gone


def _prune_some(tx: Transaction, keep_days: int) -> int:
    """Move the anchor over some of the oldest rows, say so in the log, and remove them.

    Rows of the state whose last change is among them are written again, so that the rest of the
    log still says what they are.
    """
    before, anchor = tx.now - keep_days * 86_400 * SECOND, tx.head.anchor
    oldest = sa.select(log.c.number, log.c.at, log.c.hash).where(log.c.number > anchor)
    oldest = oldest.order_by(log.c.number).limit(_AT_ONCE)
    old = list(takewhile(lambda row: row.at < before, tx.connection.execute(oldest)))
    if not old:
        return 0
    last = old[-1]
    if last.number != anchor + len(old):
        raise RecordUnavailableError(
            f"the log lacks rows before row {last.number}, nothing is pruned; "
            "run `ideal audit verify`"
        )
    asked = advice.c.asked_at <= max(row.at for row in old)
    for answered in tx.rows_of(AdviceRow, sa.select(advice).where(asked)):
        tx.delete(answered)
    for closed in tx.rows_of(ClosureRow, sa.select(closure)):
        change = tx.delete if closed.over(before) else tx.put
        change(closed)
    for unit in tx.units():
        tx.put(unit)
    tx.log("prune", "", {
        "before": moment_text(before), "number": last.number, "hash": last.hash,
    })  # fmt: skip
    tx.connection.execute(sa.update(head).values(anchor=last.number, anchor_hash=last.hash))
    tx.connection.execute(sa.delete(log).where(log.c.number <= last.number))
    return len(old)
