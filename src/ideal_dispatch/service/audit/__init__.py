"""Who was advised what, when and why: append-only rows, chained by hashes, never lost."""

from ideal_dispatch.service.audit.database import migrate
from ideal_dispatch.service.audit.record import (
    AuditError,
    DuplicateEntry,
    Entry,
    NoTablesError,
    NotRecordedError,
    OutdatedUnits,
    OvertakenEntry,
    PromisedUnits,
    Row,
    StoreError,
    UncheckedPromises,
)
from ideal_dispatch.service.audit.spool import Spool
from ideal_dispatch.service.audit.store import AuditStore, open_store
from ideal_dispatch.service.audit.units import DepotUnits
from ideal_dispatch.service.audit.verification import verify
from ideal_dispatch.service.audit.writer import AuditWriter

__all__ = [
    "AuditError",
    "AuditStore",
    "AuditWriter",
    "DepotUnits",
    "DuplicateEntry",
    "Entry",
    "NoTablesError",
    "NotRecordedError",
    "OutdatedUnits",
    "OvertakenEntry",
    "PromisedUnits",
    "Row",
    "Spool",
    "StoreError",
    "UncheckedPromises",
    "migrate",
    "open_store",
    "verify",
]
