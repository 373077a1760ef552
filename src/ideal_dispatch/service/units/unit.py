"""A unit as the centre tells of it, and what news change."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Literal, get_args

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.clock import moment_text

Status = Literal[
    "at_station", "available", "dispatched", "en_route", "on_scene", "transporting",
    "at_hospital", "out_of_service",
]  # fmt: skip
"""What a unit does. One that is available is free on the road; one dispatched has yet to leave."""

STATUSES: tuple[Status, ...] = get_args(Status)
FREE: tuple[Status, ...] = ("at_station", "available")

NEVER = datetime.min.replace(tzinfo=UTC)

AHEAD = timedelta(seconds=5)
"""What a moment may be ahead of the clock here; one further ahead came from a wrong clock."""

_OLDEST = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Seen:
    """Where a unit was at a moment, and in which direction (degrees from north) it drove."""

    lon: float
    lat: float
    at: datetime
    heading: float | None = None
    speed_kmh: float | None = None

    def plain(self) -> dict[str, Any]:
        """As values of JSON."""
        return {
            "lon": self.lon, "lat": self.lat, "heading": self.heading,
            "speed_kmh": self.speed_kmh, "at": moment_text(self.at),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class News:
    """What somebody tells of a unit; what is None stays as it was."""

    id: str
    at: datetime
    source: str
    station: str | None = None
    kind: str | None = None
    status: Status | None = None
    call_id: str | None = None
    seen: Seen | None = None


@dataclass(frozen=True, slots=True)
class Unit:
    """One ambulance: its station and kind, what it does since when, and where it was seen last.

    ``call_id`` is the call that it is on, where that is told. ``told_at`` is when the last news
    of it came, and ``source`` who told it. ``status_at`` is when its status was last confirmed,
    ``turned_at`` when it last became free, or ceased to be.
    """

    id: str
    station: str
    status: Status
    since: datetime
    told_at: datetime
    source: str
    kind: str = ""
    call_id: str | None = None
    seen: Seen | None = None
    status_at: datetime = NEVER
    turned_at: datetime = NEVER

    def __post_init__(self) -> None:
        object.__setattr__(self, "status_at", max(self.status_at, self.since))
        if self.turned_at == NEVER:
            object.__setattr__(self, "turned_at", self.since)

    @property
    def free(self) -> bool:
        """Whether it can be sent."""
        return self.status in FREE

    @classmethod
    def new(cls, news: News) -> "Unit":
        """A unit that was not known before."""
        if news.station is None or news.status is None:
            raise InputError(f"unit {news.id} is new: give its station and its status")
        return cls(
            news.id, news.station, news.status, news.at, news.at, news.source, news.kind or "",
            news.call_id, news.seen,
        )  # fmt: skip

    def after(self, news: News, now: datetime) -> "Unit":
        """The unit once the news is known; older news than what is known of it change nothing.

        What is known from a moment ahead of the clock ``now`` was told before the clock went back.
        """
        changed = self
        if news.seen is not None and newer(
            news.seen.at, None if self.seen is None else self.seen.at, now
        ):
            changed = replace(changed, seen=news.seen)
        told = (news.status, news.station, news.kind, news.call_id)
        if any(one is not None for one in told) and newer(news.at, self.status_at, now):
            status, call_id = news.status or self.status, news.call_id
            if call_id is None and status not in FREE:
                call_id = self.call_id
            turned = (status in FREE) != self.free
            changed = replace(
                changed, status=status, call_id=call_id, status_at=news.at,
                since=self.since if status == self.status else news.at,
                turned_at=min(news.at, now) if turned else min(self.turned_at, now),
                station=self.station if news.station is None else news.station,
                kind=self.kind if news.kind is None else news.kind,
            )  # fmt: skip
        if changed is self and not newer(news.at, self.told_at, now):
            return self
        told_at = news.at if newer(news.at, self.told_at, now) else self.told_at
        return replace(changed, told_at=told_at, source=news.source)

    @property
    def work(self) -> dict[str, Any]:
        """What it does, without when that was told."""
        return {
            "id": self.id, "station": self.station, "kind": self.kind, "status": self.status,
            "since": moment_text(self.since), "call_id": self.call_id,
            "turned_at": moment_text(self.turned_at),
        }  # fmt: skip

    @property
    def record(self) -> dict[str, Any]:
        """All that goes on record of it: what it does, and when that was told."""
        return {**self.work, "status_at": moment_text(self.status_at)}

    @classmethod
    def recorded(cls, work: Mapping[str, Any], told_at: datetime, source: str) -> "Unit":
        """A unit as the record tells of it."""
        if work["status"] not in STATUSES:
            raise InputError(f"unit {work['id']}: status {work['status']!r} is none")
        since = datetime.fromisoformat(work["since"])
        return cls(
            work["id"], work["station"], work["status"], since, max(told_at, since), source,
            work["kind"], work["call_id"],
            status_at=datetime.fromisoformat(work["status_at"]),
            turned_at=datetime.fromisoformat(work["turned_at"]),
        )  # fmt: skip

    def merged(self, other: "Unit | None", now: datetime) -> "Unit":
        """The newer work of the two, the newer place, and the newer news."""
        if other is None:
            return self
        work = self if newer(self.status_at, other.status_at, now) else other
        seen = self.seen or other.seen
        if self.seen is not None and other.seen is not None:
            seen = self.seen if newer(self.seen.at, other.seen.at, now) else other.seen
        last = self if newer(self.told_at, other.told_at, now) else other
        return replace(work, seen=seen, told_at=last.told_at, source=last.source)

    def same_work(self, other: "Unit | None") -> bool:
        """Whether it does the same: nothing changed but where it is, and when that was told."""
        return other is not None and _work(self) == _work(other)


_work = attrgetter("id", "station", "kind", "status", "since", "call_id", "turned_at")


def newer(at: datetime, known: datetime | None, now: datetime) -> bool:
    """Whether a moment is not before what is known, or that is ahead of the clock."""
    return known is None or known > now + AHEAD or known <= at


def told_now(known: Iterable[datetime], now: datetime) -> datetime:
    """The moment of what is told ``now``: it replaces what was told at the ``known`` moments.

    Where another clock is a little ahead, that is the moment of what it told.
    """
    return max([now, *(at for at in known if at <= now + AHEAD)])


def check_told_at(name: str, at: datetime, now: datetime) -> None:
    """Refuse a moment that is ahead of the clock here, or long ago; ``name`` says which it is."""
    if at > now + AHEAD:
        raise InputError(
            f"{name} is {(at - now).total_seconds():.0f} s ahead of the clock here; "
            "check both clocks, or leave it out"
        )
    if at < now - _OLDEST:
        raise InputError(f"{name} is over {_OLDEST.days} days ago; check it")
