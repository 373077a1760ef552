"""What a report changes: units one by one, and counts of a depot's free units."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from ideal_dispatch.errors import InputError
from ideal_dispatch.network.depot import DepotNames
from ideal_dispatch.service.clock import SECOND, micros
from ideal_dispatch.service.record.database import Transaction
from ideal_dispatch.service.record.rows import image
from ideal_dispatch.service.requests import CountIn, UnitInList
from ideal_dispatch.service.units import AHEAD_US, FREE, HELD_US, STATUSES, Status, Unit

SETTLES_US = 60 * SECOND
"""How long after a unit of a count was sent a count may still include it."""

_OLDEST_US = 30 * 86_400 * SECOND


@dataclass(slots=True)
class UpdateResult:
    """Units as reports leave them, those that are gone, and what was ignored."""

    after: dict[str, Unit] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    ignored: list[dict[str, str]] = field(default_factory=list)

    def changed(self, before: Mapping[str, Unit]) -> list[Unit]:
        """Units that do something else than before: the log says so."""
        return [
            one for one in self.after.values()
            if one.id not in before or image(before[one.id]) != image(one)
        ]  # fmt: skip

    def ignore(self, id: str) -> None:  # noqa: A002
        self.ignored.append({"id": id, "why": "older than what is known"})


@dataclass(frozen=True, slots=True)
class UnitReader:
    """Reads reports by the depots and the status codes of one centre."""

    depots: DepotNames
    codes: Mapping[str, str]

    def update(
        self, before: Mapping[str, Unit], news: Iterable[UnitInList | CountIn], now: int
    ) -> UpdateResult:
        """The units after these reports; all of them are refused where one makes no sense."""
        result, known, counted = UpdateResult(), dict(before), set[str]()
        for one in news:
            if isinstance(one, UnitInList):
                self._report(one, known, result, now)
                continue
            depot = self.depots.find(one.depot)
            if depot in counted:
                raise InputError(f"{depot} is counted twice; give one count of each depot")
            counted.add(depot)
            _count(depot, one, known, result, now)
        return result

    def _report(
        self, one: UnitInList, known: dict[str, Unit], result: UpdateResult, now: int
    ) -> None:
        unit, at = known.get(one.id), _moment(f"unit {one.id}", one.at, now)
        try:
            depot = None if one.depot is None else self.depots.find(one.depot)
        except InputError as error:
            raise InputError(f"unit {one.id}: {error}") from None
        status = None if one.status is None else status_of(one.status, self.codes)
        if (one.lon is None) != (one.lat is None):
            raise InputError(f"unit {one.id}: give both lon and lat, or neither")
        if unit is None:
            depot_name, _, number = one.id.rpartition(" #")
            if self.depots.knows(one.id) or (number.isdecimal() and self.depots.knows(depot_name)):
                words = "a depot, or one of its count, has this name; give the unit another id"
                raise InputError(f"unit {one.id}: {words}")
            folded = one.id.casefold()
            alike = next((other for other in known if other.casefold() == folded), None)
            if alike is not None:
                raise InputError(f"unit {one.id}: {alike} is known; write it in the same way")
            if depot is None or status is None:
                raise InputError(f"unit {one.id} is new: give its depot and its status")
            unit = Unit(one.id, depot, status, at, at, at, one.kind or "", call_id=one.call_id)
        elif unit.anonymous:
            raise InputError(f"unit {one.id} is one of a count; give the unit an id of the CAD")
        else:
            if one.at is None:  # it replaces what is known, also from a clock a little ahead
                moments = (unit.status_at, unit.seen_at or 0)
                at = max([now, *(each for each in moments if each <= now + AHEAD_US)])
            if {status, depot, one.kind, one.call_id} != {None}:
                if at < unit.status_at <= now + AHEAD_US:
                    result.ignore(one.id)
                else:
                    unit = _worked(unit, one, depot, status, at)
        if one.lon is not None:
            if unit.seen_at is not None and at < unit.seen_at <= now + AHEAD_US:
                result.ignore(one.id)
            else:
                unit = replace(
                    unit, lon=one.lon, lat=one.lat, heading=one.heading, speed_kmh=one.speed_kmh,
                    seen_at=at,
                )  # fmt: skip
        known[one.id] = result.after[one.id] = replace(unit, told_at=max(unit.told_at, at))


def report(
    tx: Transaction, reader: UnitReader, news: Iterable[UnitInList | CountIn], actor: str
) -> UpdateResult:
    """Put on record what reports change, and which calls lost a unit by them."""
    before = {unit.id: unit for unit in tx.units()}
    result = reader.update(before, news, tx.now)
    changed = result.changed(before)
    if not changed and not result.gone:
        return result
    tx.log("units", "", {"actor": actor})
    for unit in changed:
        why = _loses(before.get(unit.id), unit, tx.now)
        tx.put(unit.released if why else unit)
        if why and why != "done":
            log_lost_promise(tx, unit, why, unit.call_id if why == "on_call" else None)
    for id_ in result.gone:
        _remove(tx, before[id_])
    return result


def remove(tx: Transaction, id: str, actor: str) -> bool:  # noqa: A002
    """Let go of a unit that is no longer of the fleet; whether it was known."""
    unit = tx.unit(id)
    if unit is None:
        return False
    tx.log("units", "", {"actor": actor})
    _remove(tx, unit)
    return True


def _remove(tx: Transaction, unit: Unit) -> None:
    tx.delete(unit)
    if unit.promised(tx.now) and (unit.free or not unit.anonymous):  # else it went, as promised
        log_lost_promise(tx, unit, "gone")


def log_lost_promise(tx: Transaction, unit: Unit, why: str, by_call: str | None = None) -> None:
    """Put on record that a call lost a unit that was promised to it."""
    call_id = unit.promised_to or ""
    concerned = [
        row.id for row in tx.of_call(call_id) if row.state in ("open", "accepted", "running")
    ]
    tx.log("promise_lost", call_id, {
        "unit": unit.id, "call_id": call_id, "id": concerned[-1] if concerned else None,
        "why": why, "by_call": by_call,
    })  # fmt: skip


def status_of(text: str, codes: Mapping[str, str]) -> Status | None:
    """What a status code says, by the centre's own codes first; None where it says nothing."""
    word = codes.get(text.strip(), text.strip())
    if not word:
        return None
    folded = word.casefold().replace(" ", "_").replace("-", "_")
    for status in STATUSES:
        if status == folded:
            return status
    known = ", ".join([*codes, *STATUSES])
    raise InputError(
        f"unknown status {text[:60]!r}; add it to [units] codes, or send one of {known}"
    )


def _count(
    depot: str, count: CountIn, known: dict[str, Unit], result: UpdateResult, now: int
) -> None:
    """Make or remove anonymous units of a depot, so that as many are free as its count says."""
    at = _moment(f"count of {depot}", count.at, now)
    mine = [unit for unit in known.values() if unit.anonymous and unit.depot == depot]
    if any(at < unit.told_at <= now + AHEAD_US for unit in mine):
        result.ignore(depot)
        return
    leaving = [unit for unit in mine if not unit.free and unit.since > at - SETTLES_US]
    waiting = [unit for unit in mine if unit.free]
    waiting.sort(key=lambda unit: (not unit.promised(now), int(unit.id.rpartition("#")[2])))
    wanted = max(count.free - len(leaving), 0)
    kept = [replace(unit, told_at=at) for unit in [*waiting[:wanted], *leaving]]
    numbers = (f"{depot} #{number}" for number in range(1, len(known) + wanted + 1))
    new = [id_ for id_ in numbers if id_ not in known][: wanted + len(leaving) - len(kept)]
    kept += [Unit(id_, depot, "at_station", at, at, at, anonymous=True) for id_ in new]
    for unit in mine:
        del known[unit.id]
    known |= {unit.id: unit for unit in kept}
    result.after |= {unit.id: unit for unit in kept}
    result.gone += [unit.id for unit in mine if unit.id not in known]


def _worked(unit: Unit, one: UnitInList, depot: str | None, status: Status | None, at: int) -> Unit:
    """The unit as a report of its work leaves it."""
    now_is, call_id = status or unit.status, one.call_id
    working = now_is not in FREE and now_is != "out_of_service"
    if call_id is None and working and unit.status not in FREE:
        call_id = unit.call_id
    return replace(
        unit, status=now_is, call_id=call_id, status_at=at, depot=depot or unit.depot,
        since=unit.since if now_is == unit.status else at,
        kind=unit.kind if one.kind is None else one.kind,
    )  # fmt: skip


def _loses(before: Unit | None, unit: Unit, now: int) -> str:
    """Why the new work of a unit ends its promise, or nothing; "done" is no loss for its call."""
    if before is None or not unit.promised(now):
        return ""
    if unit.status == "out_of_service":
        return "out_of_service"
    if unit.free:  # its work is done, unless it was sent after it became free
        sent_at = (unit.promised_until or 0) - HELD_US
        stays = before.free or (unit.promise != "advised" and sent_at >= unit.since)
        return "" if stays else "done"
    elsewhere = unit.call_id not in (None, unit.promised_to)
    return "on_call" if elsewhere or (unit.promise == "advised" and unit.call_id is None) else ""


def _moment(what: str, given: datetime | None, now: int) -> int:
    at = now if given is None else micros(given)
    if at > now + AHEAD_US:
        raise InputError(
            f"{what}: at is {(at - now) / SECOND:.0f} s ahead of the clock here; check both "
            "clocks, or leave it out"
        )
    if at < now - _OLDEST_US:
        raise InputError(f"{what}: at is over 30 days ago; check it")
    return at
