"""What a worker knows of units: counts or the units themselves, and who is promised to whom."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ideal_dispatch.service import clock
from ideal_dispatch.service.audit.promises import Promise
from ideal_dispatch.service.audit.record import Entry
from ideal_dispatch.service.audit.units import UnitState
from ideal_dispatch.service.clock import moment_text
from ideal_dispatch.service.solver.messages import KnownUnit, KnownUnits
from ideal_dispatch.service.units.unit import AHEAD, News, Status, Unit, told_now

_DRIVES_KMH = 5.0
_FOLLOWED = 500  # entries; one that is told here is followed within seconds


class UnitCounts(UnitState):
    """The newest count of every depot that somebody told about, or every unit, and all promises.

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
        """The moment of counts of these depots that are told ``now``."""
        known = [self.told[depot].updated_at for depot in depots if depot in self.told]
        return told_now(known, now)

    def known(self, call_id: str, listed: bool, sent: str | None = None) -> KnownUnits:
        """What is known for a call: counts and their age, or units, and what others are promised.

        ``listed`` says that the call brings counts of its own, ``sent`` which unit goes first. A
        count that is ahead of the clock here is as old as it is ahead: the clock went back.
        """
        now, counts = clock.now(), self.counts
        told_at = {name: one.updated_at for name, one in counts.items()}
        if self.fleet:
            held = self.promises.held(call_id, told_at, False, now)
            return self._known_fleet(self.find(sent), held)
        ages = [_age_s(at, now) for at in told_at.values()]
        return KnownUnits(
            {name: one.units for name, one in counts.items()},
            max(ages, default=None),
            told_at,
            self.promises.held(call_id, told_at, listed, now),
        )

    def _known_fleet(self, sent: Unit | None, held: Mapping[str, Sequence[str]]) -> KnownUnits:
        """The units that are free, and the one sent; the age is of the newest news."""
        now = clock.now()
        known = [
            known_unit(one, now, held.get(one.id, ("",))[-1])
            for one in self.fleet.values() if one.free or one is sent
        ]  # fmt: skip
        newest = max(one.told_at for one in self.fleet.values())
        return KnownUnits({}, max((now - newest).total_seconds(), 0.0), fleet=tuple(known))

    def find(self, name: str | None) -> Unit | None:
        """The unit of an id, in capitals or not."""
        if name is None or name in self.fleet:
            return None if name is None else self.fleet[name]
        found = [one for one in self.fleet.values() if one.id.casefold() == name.casefold()]
        return found[0] if len(found) == 1 else None

    def news(self, news: Iterable[News]) -> tuple[list[Unit], list[Unit], list[str]]:
        """Units as the news leave them, one for each news, and the ids of those whose news are old.

        The second list has those that do something else than before: each step goes on record.
        Nothing is known yet after it.
        """
        now, after, old = clock.now(), dict(self.fleet), []
        changed, work = [], []
        for one in news:
            before = after.get(one.id)
            unit = Unit.new(one) if before is None else before.after(one, now)
            if before is None and self._left(unit, now):
                old.append(one.id)
                continue
            if unit is before:
                old.append(one.id)
            if not unit.same_work(before):
                work.append(unit)
            after[one.id] = unit
            changed.append(unit)
        return changed, work, old

    def merge_places(self, units: Iterable[Unit]) -> None:
        """Know where others saw the units that are known here; what they do is followed by rows."""
        now = clock.now()
        for unit in units:
            known = self.fleet.get(unit.id)
            if known is None or unit.seen is None:
                continue
            if (unit.seen, unit.told_at) != (known.seen, known.told_at):  # not from here
                seen = replace(known, seen=unit.seen, told_at=unit.told_at, source=unit.source)
                self.fleet[unit.id] = known.merged(seen, now)

    def later(self, recorded: Iterable[Unit], told: Mapping[str, Unit]) -> list[Unit]:
        """The units on record of which something else was ``told`` here later, as that leaves them.

        What is told from a moment ahead of the clock was told before the clock went back.
        """
        now, found = clock.now(), []
        for one in recorded:
            mine = told.get(one.id)
            if mine is None or not one.status_at < mine.status_at <= now + AHEAD:
                continue
            if _told(mine) != _told(one):
                found.append(
                    one.after(News(one.id, mine.status_at, mine.source, *_told(mine)), now)
                )
        return found

    def fleet_rows(self, stale_s: float) -> list[dict[str, Any]]:
        """Every unit for the API, and which call it is promised to."""
        now, fleet = clock.now(), self.fleet
        promised = {
            one.start: one for one in self.promises
            if one.start in fleet and one.holds(now, fleet[one.start].turned_at, listed=False)
        }  # fmt: skip
        rows = []
        for unit in sorted(fleet.values(), key=lambda one: one.id):
            promise = promised.get(unit.id)
            age_s = None if unit.seen is None else _age_s(unit.seen.at, now)
            rows.append({
                **{name: value for name, value in unit.work.items() if name != "turned_at"},
                "position": None if unit.seen is None else unit.seen.plain(),
                "age_s": None if age_s is None else round(age_s, 1),
                "told_at": moment_text(unit.told_at),
                "source": unit.source,
                "free": unit.free,
                "stale": age_s is not None and age_s > stale_s,
                "promised": None if promise is None else _promise(promise),
            })  # fmt: skip
        return rows

    def rows(self, depots: Iterable[str], default: int) -> list[dict[str, Any]]:
        """Count and promises of every depot for the API, ``default`` where nobody told a count."""
        now, rows = clock.now(), []
        for depot in depots:
            told = self.told.get(depot)
            told_at = None if told is None else told.updated_at
            promised = [one for one in self.promises if one.start == depot]
            rows.append({
                "depot": depot,
                "units": default if told is None else told.units,
                "updated_at": None if told_at is None else moment_text(told_at),
                "promised": [
                    _promise(one) for one in promised if one.holds(now, told_at, listed=False)
                ],
            })  # fmt: skip
        return rows


def _told(unit: Unit) -> tuple[str, str, Status, str | None]:
    """What news may tell of a unit but its place."""
    return unit.station, unit.kind, unit.status, unit.call_id


def known_unit(unit: Unit, now: datetime, promised: str = "") -> KnownUnit:
    """A unit for a solver. The course that a receiver tells while it stands is no direction."""
    seen = unit.seen
    stands = seen is not None and seen.speed_kmh is not None and seen.speed_kmh < _DRIVES_KMH
    heading = None if seen is None or stands else seen.heading
    return KnownUnit(
        unit.id, unit.station, unit.kind,
        None if seen is None or unit.status == "at_station" else (seen.lon, seen.lat, heading),
        None if seen is None else _age_s(seen.at, now),
        unit.status in ("at_station", "dispatched"), unit.free, promised,
        0.0 if seen is None else _age_s(unit.told_at, now), unit.status == "en_route",
    )  # fmt: skip


def _age_s(at: datetime, now: datetime) -> float:
    """How old news are; those ahead of the clock are as old as they are ahead: it went back."""
    age = (now - at).total_seconds()
    return -age if age < -AHEAD.total_seconds() else max(age, 0.0)


def _promise(one: Promise) -> dict[str, Any]:
    return {"call_id": one.call_id, "kind": one.kind, "until": moment_text(one.ends_at)}
