"""What holds after every fault of the database: nothing lost, and the chain is whole."""

from pathlib import Path

from ideal_dispatch.service.audit.record import Row
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.audit.verification import verify
from ideal_dispatch.service.audit.writer import AuditWriter
from tests.waiting import PATIENCE_S as PATIENCE_S
from tests.waiting import wait_for


def wait_for_replay(writer: AuditWriter) -> None:
    """Until the database is back and has taken all that waits."""
    wait_for(lambda: not len(writer.spool) and writer.error is None, lambda: writer.error)


def all_rows(store: AuditStore) -> list[Row]:
    """Every row of a chain that is whole."""
    assert verify(store).fault is None
    return store.rows(0, 1_000_000)


def nothing_waits(spool: Path) -> bool:
    """No file with an entry, whole or damaged, is left in a spool folder."""
    return not list(spool.iterdir())
