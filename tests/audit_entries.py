"""Entries for tests of the audit."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ideal_dispatch.service.audit.record import Entry, NotRecordedError, Row
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.audit.writer import AuditWriter

AT = datetime(2025, 1, 1, tzinfo=UTC)


def entry(
    number: int = 0, call_id: str | None = None, *, kind: str = "recommendation", **more: Any
) -> Entry:
    """The entry of a minute: call-7 for number 7, with key "k" unless told otherwise."""
    call_id = f"call-{number}" if call_id is None else call_id
    values: dict[str, Any] = {"key": "k", "at": AT + timedelta(minutes=number), **more}
    body = values.pop("body", {"decision": "send_second", "number": number})
    return Entry(kind, call_id, body, **values)


def takes(*advised: str, sent: str | None = None, count: int = 1, listed: bool = True) -> Any:
    """What an answer says about the units that it takes: one of each of these depots."""
    counts = dict.fromkeys(advised, count)
    return {"advised": list(advised), "sent": sent, "counts": counts, "listed": listed}


def stored(store: AuditStore, entries: Sequence[Entry]) -> list[Row]:
    """Rows of entries, all of which must get one."""
    rows = []
    for outcome in store.append(entries):
        if not isinstance(outcome, Row):
            raise outcome
        rows.append(outcome)
    return rows


class BlockingWriter(AuditWriter):
    """A writer whose callers wait; it closes at the end of a ``with``.

    ``spooled`` counts the entries that the spool took.
    """

    spooled = 0

    def __enter__(self) -> "BlockingWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, entry: Entry, timeout_s: float = 1.0) -> Row | None:
        """The row of an entry, or None where it waits in the spool."""
        try:
            row = self.submit(entry, timeout_s).result(timeout_s)
        except TimeoutError:
            raise NotRecordedError(f"nothing took it within {timeout_s:g} s") from None
        self.spooled += row is None
        return row
