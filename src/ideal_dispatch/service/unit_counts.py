"""How many units are free where, as last told."""

from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ideal_dispatch.service.audit import DepotUnits, Entry
from ideal_dispatch.service.audit.store import told_units
from ideal_dispatch.service.known import KnownUnits
from ideal_dispatch.service.moments import moment_text

_FOLLOWED = 500  # entries; one that is told here is followed within seconds


class UnitCounts:
    """The newest count of every depot that somebody told about.

    Of counts with the same moment the last row on record counts, in every
    worker as in the database.
    """

    def __init__(self) -> None:
        self._told: dict[str, DepotUnits] = {}
        self._followed: deque[str] = deque(maxlen=_FOLLOWED)

    def take(self, entry: Entry) -> None:
        """Know what an entry says, unless something newer is known or it was followed."""
        if entry.id not in self._followed:  # later rows may have been followed since
            self._put_all(entry)

    def follow(self, entry: Entry) -> None:
        """Know what the next row on record says, also where its entry was taken before."""
        self._followed.append(entry.id)
        self._put_all(entry)

    def _put_all(self, entry: Entry) -> None:
        for told in told_units(entry):
            self.put(told)

    def put(self, told: DepotUnits) -> None:
        """Know one count, unless a newer one is known."""
        known = self._told.get(told.depot)
        if known is None or known.updated_at <= told.updated_at:
            self._told[told.depot] = told

    def known(self) -> KnownUnits:
        """All counts, and how old the oldest is; clocks of senders may be ahead of ours."""
        told, now = dict(self._told), datetime.now(UTC)
        ages = [(now - one.updated_at.astimezone(UTC)).total_seconds() for one in told.values()]
        return KnownUnits(
            {name: one.units for name, one in told.items()},
            max(0.0, *ages) if ages else None,
            {name: one.updated_at for name, one in told.items()},
        )

    def rows(self, depots: Iterable[str], default: int) -> list[dict[str, Any]]:
        """The count of every depot for the API, ``default`` where nobody told one."""
        rows = []
        for depot in depots:
            told = self._told.get(depot)
            rows.append({
                "depot": depot,
                "units": default if told is None else told.units,
                "updated_at": None if told is None else moment_text(told.updated_at),
            })  # fmt: skip
        return rows
