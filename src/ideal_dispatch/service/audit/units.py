"""Counts of free units, as entries tell them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.audit.record import Entry, OutdatedUnits, moment_text

log = logging.getLogger(__name__)

AHEAD = timedelta(seconds=5)
"""What a moment may be ahead of the clock here; one further ahead came from a wrong clock."""


@dataclass(frozen=True, slots=True)
class DepotUnits:
    """How many units of a depot are free, and since when that is known."""

    depot: str
    units: int
    updated_at: datetime

    def __post_init__(self) -> None:
        if self.units < 0:
            raise InputError(f"depot {self.depot}: {self.units} units; 0 or more are needed")
        if self.updated_at.tzinfo is None:
            raise InputError(f"depot {self.depot}: updated_at {self.updated_at} has no zone")

    def replaces(self, known: "DepotUnits | None", now: datetime) -> bool:
        """Whether it is newer than the count that is known, or as new.

        A known one that is ahead of the clock ``now`` was told before the clock went back.
        """
        if known is None or known.updated_at > now + AHEAD:
            return True
        return known.updated_at <= self.updated_at


def units_body(told: Sequence[DepotUnits]) -> dict[str, Any]:
    """The counts for the body of one entry; ``as_of`` has the moments before the newest one."""
    newest = max(one.updated_at for one in told)
    body: dict[str, Any] = {
        "units": {one.depot: one.units for one in told},
        "updated_at": moment_text(newest),
    }
    as_of = {one.depot: moment_text(one.updated_at) for one in told if one.updated_at < newest}
    return {**body, "as_of": as_of} if as_of else body


def told_units(entry: Entry) -> list[DepotUnits]:
    """The counts that an entry tells; one that tells none must not block those behind it."""
    if entry.kind != "units":
        return []
    try:
        newest, as_of = entry.body["updated_at"], entry.body.get("as_of", {})
        return [
            DepotUnits(depot, count, datetime.fromisoformat(as_of.get(depot, newest)))
            for depot, count in entry.body["units"].items()
        ]
    except (InputError, KeyError, TypeError, ValueError, AttributeError) as error:
        log.warning("audit entry %s changes no counts of units (%r)", entry.id, error)
        return []


def outdated(entry: Entry, known: Mapping[str, DepotUnits], now: datetime) -> OutdatedUnits | None:
    """Why the counts of an entry cannot be taken: a newer one is known."""
    for told in told_units(entry):
        newer = known.get(told.depot)
        if newer is not None and not told.replaces(newer, now):
            return OutdatedUnits(
                f"{told.depot}: {newer.units} units are known as of "
                f"{moment_text(newer.updated_at)}, this count is as of "
                f"{moment_text(told.updated_at)}; nothing was changed: send the newest count, or "
                "leave out updated_at to mean now"
            )
    return None
