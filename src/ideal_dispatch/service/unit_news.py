"""What a report changes: units one by one, and counts of a depot's free units."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.clock import SECOND
from ideal_dispatch.service.deciding.depot_names import DepotNames
from ideal_dispatch.service.record.transaction import (
    AdviceRow,
    Transaction,
    released,
    unit_image,
)
from ideal_dispatch.service.units import FREE, STATUSES, Status, Unit

AHEAD_US = 5 * SECOND
"""What a moment may be ahead of the clock here; one further ahead came from a wrong clock."""

SETTLES_US = 60 * SECOND
"""How long after a unit of a count was sent a count may still include it."""

HELD_US = 2 * 3600 * SECOND
"""After which a unit that was sent is free for others, also where no report of it came."""

_OLDEST_US = 30 * 86_400 * SECOND
_OLD = "older than what is known"


@dataclass(frozen=True, slots=True)
class UnitNews:
    """A report on one unit; what is None stays as it was, and ``at`` None means now."""

    id: str
    at: int | None = None
    depot: str | None = None
    kind: str | None = None
    status: str | None = None
    call_id: str | None = None
    lon: float | None = None
    lat: float | None = None
    heading: float | None = None
    speed_kmh: float | None = None


@dataclass(frozen=True, slots=True)
class DepotCount:
    """How many units are free at a depot; ``at`` None means now."""

    depot: str
    free: int
    at: int | None = None


@dataclass(slots=True)
class UpdateResult:
    """Units as a report leaves them, those that are gone, and what was ignored."""

    after: dict[str, Unit] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    ignored: list[dict[str, str]] = field(default_factory=list)

    def changed(self, before: Mapping[str, Unit]) -> list[Unit]:
        """Units that do something else than before: the log says so."""
        return [
            one for one in self.after.values()
            if one.id not in before or unit_image(before[one.id]) != unit_image(one)
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class UnitReader:
    """Reads reports by the depots and the status codes of one centre."""

    depots: DepotNames
    codes: Mapping[str, str]

    def update(
        self, before: Mapping[str, Unit], news: Iterable[UnitNews | DepotCount], now: int
    ) -> UpdateResult:
        """The units after these reports; all of them are refused where one makes no sense."""
        result, known = UpdateResult(), dict(before)
        for one in news:
            if isinstance(one, DepotCount):
                self._count(one, known, result, now)
            else:
                self._news(one, known, result, now)
        return result

    def _news(self, one: UnitNews, known: dict[str, Unit], result: UpdateResult, now: int) -> None:
        unit = known.get(one.id)
        at = _moment(f"unit {one.id}", one.at, now)
        if one.at is None and unit is not None:  # it replaces what is known, also from a fast clock
            at = max(
                [now, *(t for t in (unit.status_at, unit.seen_at or 0) if t <= now + AHEAD_US)]
            )
        depot = None if one.depot is None else self.depots.find(one.depot)
        status = None if one.status is None else status_of(one.status, self.codes)
        if (one.lon is None) != (one.lat is None):
            raise InputError(f"unit {one.id}: give both lon and lat, or neither")
        if unit is None:
            self._check_new(one, known)
            if depot is None or status is None:
                raise InputError(f"unit {one.id} is new: give its depot and its status")
            unit = Unit(one.id, depot, status, at, at, at, one.kind or "", call_id=one.call_id)
        elif unit.anonymous:
            raise InputError(f"unit {one.id} is one of a count; give the unit an id of the CAD")
        elif {status, depot, one.kind, one.call_id} != {None}:
            if at < unit.status_at <= now + AHEAD_US:
                result.ignored.append({"id": one.id, "why": _OLD})
            else:
                unit = _worked(unit, one, depot, status, at)
        if one.lon is not None:
            if unit.seen_at is None or at >= unit.seen_at or unit.seen_at > now + AHEAD_US:
                unit = replace(
                    unit, lon=one.lon, lat=one.lat, heading=one.heading, speed_kmh=one.speed_kmh,
                    seen_at=at,
                )  # fmt: skip
            else:
                result.ignored.append({"id": one.id, "why": _OLD})
        known[one.id] = result.after[one.id] = replace(unit, told_at=max(unit.told_at, at))

    def _check_new(self, one: UnitNews, known: Mapping[str, Unit]) -> None:
        if self.depots.knows(one.id):
            raise InputError(f"unit {one.id}: a depot has this name; give the unit another id")
        folded = one.id.casefold()
        alike = next((other for other in known if other.casefold() == folded), None)
        if alike is not None:
            raise InputError(f"unit {one.id}: {alike} is known; write it in the same way")

    def _count(
        self, one: DepotCount, known: dict[str, Unit], result: UpdateResult, now: int
    ) -> None:
        """Make or remove anonymous units of the depot, so that as many are free as it says."""
        depot, at = self.depots.find(one.depot), _moment(f"count of {one.depot}", one.at, now)
        mine = [unit for unit in known.values() if unit.anonymous and unit.depot == depot]
        if any(at < unit.told_at <= now + AHEAD_US for unit in mine):
            result.ignored.append({"id": depot, "why": _OLD})
            return
        leaving = [unit for unit in mine if not unit.free and unit.since > at - SETTLES_US]
        waiting = [unit for unit in mine if unit.free]
        waiting.sort(key=lambda unit: (not unit.promised(now), _number(unit)))  # promised ones stay
        wanted = max(one.free - len(leaving), 0)
        taken = {*known}
        kept = [replace(unit, told_at=at) for unit in [*waiting[:wanted], *leaving]]
        while len(kept) < wanted + len(leaving):
            number = next(n for n in range(1, len(taken) + 2) if f"{depot} #{n}" not in taken)
            taken.add(f"{depot} #{number}")
            kept.append(Unit(f"{depot} #{number}", depot, "at_station", at, at, at, anonymous=True))
        for unit in mine:
            if unit.id not in {one.id for one in kept}:
                del known[unit.id]
                result.after.pop(unit.id, None)
                result.gone.append(unit.id)
        for unit in kept:
            known[unit.id] = result.after[unit.id] = unit


def apply(transaction: Transaction, result: UpdateResult, before: Mapping[str, Unit]) -> None:
    """Change the units, and say to calls that lost one which and why."""
    lost: list[tuple[Unit, str]] = []
    changed = []
    for unit in result.changed(before):
        settled, why = _settled(before.get(unit.id), unit, transaction.now)
        if why:
            lost.append((unit, why))
        transaction.put_unit(settled)
        changed.append(unit.id)
    for id_ in result.gone:
        unit = before[id_]
        if unit.promised(transaction.now):
            lost.append((unit, "gone"))
        transaction.delete_unit(id_)
        changed.append(id_)
    for unit, why in lost:
        by_call = unit.call_id if why == "on_call" else None
        log_lost_promise(transaction, unit, why, by_call)


def log_lost_promise(
    transaction: Transaction, unit: Unit, why: str, by_call: str | None = None
) -> None:
    """Say in the log that a call lost a unit that was promised to it."""
    call_id = unit.promised_to
    assert call_id is not None
    concerned: Sequence[AdviceRow] = [
        row for row in transaction.of_call(call_id) if row.state in ("open", "accepted", "running")
    ]
    body = {
        "unit": unit.id, "call_id": call_id, "id": concerned[-1].id if concerned else None,
        "why": why, "by_call": by_call,
    }  # fmt: skip
    transaction.log("promise_lost", call_id, body)


def status_of(text: str, codes: Mapping[str, str]) -> Status | None:
    """What a status code says, by the centre's own codes first; None where it says nothing."""
    word = codes.get(text.strip(), text.strip())
    if not word:
        return None
    folded = word.casefold().replace(" ", "_").replace("-", "_")
    for status in STATUSES:
        if folded == status:
            return status
    known = ", ".join([*codes, *STATUSES])
    raise InputError(
        f"status {text[:60]!r} is not known; add it to [units] codes, or send one of {known}"
    )


def _worked(unit: Unit, one: UnitNews, depot: str | None, status: Status | None, at: int) -> Unit:
    """The unit as news of its work leave it."""
    now_is = status or unit.status
    call_id = one.call_id
    if call_id is None and now_is not in FREE:
        call_id = unit.call_id if unit.status not in FREE else None
    return replace(
        unit, status=now_is, call_id=call_id, status_at=at,
        since=unit.since if now_is == unit.status else at,
        depot=unit.depot if depot is None else depot,
        kind=unit.kind if one.kind is None else one.kind,
    )  # fmt: skip


def _settled(before: Unit | None, unit: Unit, now: int) -> tuple[Unit, str]:
    """The unit with its promise as its new work leaves it, and why a call lost it, if one did."""
    if before is None or not unit.promised(now):
        return unit, ""
    if unit.status == "out_of_service":
        return released(unit), "out_of_service"
    if unit.free:  # its work is done, unless it was sent after it became free
        assert unit.promised_until is not None
        sent_since = unit.promise != "advised" and unit.promised_until - HELD_US >= unit.since
        return (unit, "") if before.free or sent_since else (released(unit), "")
    if unit.call_id not in (None, unit.promised_to):
        return released(unit), "on_call"
    if unit.promise == "advised" and unit.call_id is None:
        return released(unit), "on_call"
    return unit, ""


def _moment(what: str, at: int | None, now: int) -> int:
    if at is None:
        return now
    if at > now + AHEAD_US:
        raise InputError(
            f"{what}: at is {(at - now) / SECOND:.0f} s ahead of the clock here; check both "
            "clocks, or leave it out"
        )
    if at < now - _OLDEST_US:
        raise InputError(f"{what}: at is over 30 days ago; check it")
    return at


def _number(unit: Unit) -> int:
    return int(unit.id.rpartition("#")[2])


def plain(news: UnitNews | DepotCount) -> dict[str, Any]:
    """What was reported, without what was left out."""
    return {
        name: value for name in news.__slots__ if (value := getattr(news, name)) is not None
    }  # fmt: skip
