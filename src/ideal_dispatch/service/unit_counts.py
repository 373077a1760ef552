"""How many units are free where, as last told, and which of them are promised."""

from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ideal_dispatch.service.audit.record import Entry, moment_text
from ideal_dispatch.service.audit.units import AHEAD, UnitState
from ideal_dispatch.service.solver.messages import KnownUnits

_FOLLOWED = 500  # entries; one that is told here is followed within seconds


class UnitCounts(UnitState):
    """What a worker knows: the newest count of every depot that somebody told about, all promises.

    Of counts with the same moment the last row on record counts, in every
    worker as in the database.
    """

    def __init__(self) -> None:
        super().__init__()
        self._followed: deque[str] = deque(maxlen=_FOLLOWED)

    def take(self, entry: Entry) -> None:
        """Know what an entry says, unless its row was followed: later ones may have been since."""
        if entry.id not in self._followed:
            super().take(entry)

    def follow(self, entry: Entry) -> None:
        """Know what the next row on record says, also where its entry was taken before."""
        self._followed.append(entry.id)
        super().take(entry)

    def check(self, entry: Entry) -> None:
        """Refuse what promises units that are gone, or tells counts that are old."""
        if refusal := self.refusal(entry):
            raise refusal

    def moment(self, depots: Iterable[str], now: datetime) -> datetime:
        """The moment of counts that are told ``now``: they replace what is known.

        Where another clock is a little ahead, that is the moment of what it told.
        """
        known = [self.told[depot].updated_at for depot in depots if depot in self.told]
        return max([now, *(at for at in known if at <= now + AHEAD)])

    def known(self, call_id: str, listed: bool) -> KnownUnits:
        """All counts for a call, how old they are, and what is promised to other calls.

        ``listed`` says that the call brings counts of its own. A count that is ahead of the clock
        here is as old as it is ahead: the clock went back.
        """
        told, now = dict(self.told), datetime.now(UTC)
        told_at = {name: one.updated_at for name, one in told.items()}
        ages = [(now - at).total_seconds() for at in told_at.values()]
        ages = [-age if age < -AHEAD.total_seconds() else max(age, 0.0) for age in ages]
        return KnownUnits(
            {name: one.units for name, one in told.items()},
            max(ages, default=None),
            told_at,
            self.promises.held(call_id, told_at, listed, now),
        )

    def rows(self, depots: Iterable[str], default: int) -> list[dict[str, Any]]:
        """Count and promises of every depot for the API, ``default`` where nobody told a count."""
        now, rows = datetime.now(UTC), []
        for depot in depots:
            told = self.told.get(depot)
            told_at = None if told is None else told.updated_at
            promised = [one for one in self.promises if one.depot == depot]
            rows.append({
                "depot": depot,
                "units": default if told is None else told.units,
                "updated_at": None if told_at is None else moment_text(told_at),
                "promised": [
                    {"call_id": one.call_id, "kind": one.kind, "until": moment_text(one.ends_at)}
                    for one in promised if one.holds(now, told_at, listed=False)
                ],
            })  # fmt: skip
        return rows
