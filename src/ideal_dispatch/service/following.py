"""What goes on beside the calls: news of other workers, and the end of old rows."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ideal_dispatch.service.audit import AuditError, Row, StoreError

if TYPE_CHECKING:
    from ideal_dispatch.service.state import Service

log = logging.getLogger(__name__)

_FOLLOW_S, _RETAIN_S = 1.0, 3600.0


async def follow(service: "Service") -> None:
    """Pass on what other workers wrote, and changes of this one's health, to the desks here."""
    number: int | None = None
    health = ""
    units: list[dict[str, Any]] = []  # as last told
    while True:
        try:
            if number is None:
                last = await service.ledger.last_number()  # first, so that no news falls between
                await service.ledger.read_units()
                number = service.ledger.followed = last
            for row in await service.ledger.rows_after(number):
                number = service.ledger.followed = row.number
                _pass_on(service, row)
                if row.kind == "units":
                    units = _tell_units(service, units)
        except StoreError as error:
            log.debug("not followed: %s", error)
        except Exception:  # a row that makes no sense must not end the stream
            log.exception("not followed")
        service.ledger.units.promises.forget(datetime.now(UTC))
        units = _tell_units(service, units)
        status, parts = service.health()
        if (seen := f"{status} {parts}") != health:
            service.hub.publish("health", {"status": status, "parts": parts})
            health = seen
        await asyncio.sleep(_FOLLOW_S)


def _pass_on(service: "Service", row: Row) -> None:
    if row.kind == "units":  # in their order, this worker's own too: all end with the same
        service.ledger.units.follow(row.entry)
        return
    if service.hub.knows(row.id) or row.duplicate_of is not None or row.kind == "service":
        return
    entry = row.entry
    service.ledger.units.take(entry)
    if entry.kind == "recommendation":
        service.hub.publish(entry.kind, {**entry.body["answer"], "response": None}, entry.id)
    elif entry.kind == "response":
        service.tell_response(entry)


def _tell_units(service: "Service", told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Let the desks know counts and promises, unless they do; what they know then."""
    known = service.units()
    if known != told:
        service.hub.publish("units", known)
    return known


async def retain(service: "Service") -> None:
    """Let go of rows older than the settings say, now and then."""
    while True:
        before = datetime.now(UTC) - timedelta(days=service.settings.audit.retention_days)
        try:
            await service.ledger.prune(before)
        except AuditError as error:
            log.warning("nothing pruned: %s", error)
        await asyncio.sleep(_RETAIN_S)
