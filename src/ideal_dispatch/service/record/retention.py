"""Letting go of rows that are older than they must be kept."""

import time
from functools import partial

import sqlalchemy as sa
from sqlalchemy import Connection

from ideal_dispatch.service.clock import SECOND, ClockTable, moment_text
from ideal_dispatch.service.errors import RecordUnavailableError
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.database import Database, Job
from ideal_dispatch.service.record.rows import AdviceRow, ClosureRow
from ideal_dispatch.service.record.transaction import Transaction

_AT_ONCE = 2_000  # rows; the head is locked meanwhile
_PATIENCE_S = 600.0


def prune(database: Database, clock: ClockTable, keep_days: int) -> int:
    """Remove rows of the log and advice older than so many days; how many rows of the log went."""
    job, gone = Job(time.monotonic() + _PATIENCE_S), 0
    while True:
        removed = database.write(partial(_some, clock=clock, keep_days=keep_days), job)
        gone += removed
        if removed < _AT_ONCE:
            return gone


def _some(connection: Connection, clock: ClockTable, keep_days: int) -> int:
    """Move the anchor over some of the oldest rows, say so in the log, and remove them.

    Rows of the state whose last change is among them are written again, so that the rest of the
    log still says what they are.
    """
    tx, log, head = Transaction(connection, clock), rows.log, rows.head
    before = tx.now - keep_days * 86_400 * SECOND
    anchor = connection.execute(sa.select(head.c.anchor)).scalar_one()
    young = sa.select(sa.func.min(log.c.number)).where(log.c.at >= before)
    first_kept = connection.execute(young).scalar() or tx.number + 1
    last = min(first_kept - 1, anchor + _AT_ONCE)
    if last <= anchor:
        return 0
    hashed = connection.execute(sa.select(log.c.hash).where(log.c.number == last)).scalar()
    if hashed is None:
        raise RecordUnavailableError(
            f"row {last} of the log is missing, nothing is pruned; run `ideal audit verify`"
        )
    old = sa.select(rows.advice).where(rows.advice.c.asked_at < before)
    for found in connection.execute(old).all():
        tx.delete(AdviceRow(**found._mapping))
    for found in connection.execute(sa.select(rows.closure)).all():
        closure = ClosureRow(**found._mapping)
        if closure.over(before):
            tx.delete(closure)
        else:
            tx.put(closure)
    for unit in tx.units():
        tx.put(unit)
    tx.log("prune", "", {"before": moment_text(before), "number": last, "hash": hashed})
    tx.finish()
    connection.execute(sa.update(head).values(anchor=last, anchor_hash=hashed))
    connection.execute(sa.delete(log).where(log.c.number <= last))
    return int(last - anchor)
