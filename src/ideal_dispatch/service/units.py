"""A unit: what it does, where it was seen, and which call it is promised to."""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from ideal_dispatch.service.clock import SECOND, moment_text
from ideal_dispatch.service.errors import ConflictError

Status = Literal[
    "at_station", "available", "dispatched", "en_route", "on_scene", "transporting",
    "at_hospital", "out_of_service",
]  # fmt: skip
"""What a unit does. One that is available is free on the road; one dispatched has yet to leave."""

STATUSES: tuple[Status, ...] = get_args(Status)
FREE: tuple[Status, ...] = ("at_station", "available")
THERE: tuple[Status, ...] = ("on_scene", "transporting", "at_hospital")

Promise = Literal["advised", "accepted", "sent"]
"""Why a unit is promised: an advice that was not answered yet, an accepted one, or the CAD."""

HELD_US = 2 * 3600 * SECOND
"""After which a unit that was sent is free for others, also where no report of it came."""


AHEAD_US = 5 * SECOND
"""What a moment may be ahead of the clock here; one further ahead came from a wrong clock."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One row of the table of units. Moments are microseconds since 1970 by the service's clock.

    ``since`` is when its status began, ``status_at`` when that was last confirmed, ``told_at``
    when it was last heard of at all. An ``anonymous`` unit stands for one of a depot's count: it
    has no position and reports nothing. ``promised_to`` is the call that the unit is promised to
    until ``promised_until``: one or none.
    """

    id: str
    depot: str
    status: Status
    since: int
    status_at: int
    told_at: int
    kind: str = ""
    anonymous: bool = False
    call_id: str | None = None
    promised_to: str | None = None
    promise: Promise | None = None
    promised_until: int | None = None
    lon: float | None = None
    lat: float | None = None
    heading: float | None = None
    speed_kmh: float | None = None
    seen_at: int | None = None

    @property
    def free(self) -> bool:
        """Whether its status allows it to be sent; a promise may forbid it."""
        return self.status in FREE

    def promised(self, now: int) -> bool:
        """Whether a call holds it now."""
        return self.promised_until is not None and self.promised_until > now

    def held_by_other(self, call_id: str, now: int) -> bool:
        """Whether another call holds it now."""
        return self.promised(now) and self.promised_to != call_id

    @property
    def released(self) -> "Unit":
        return replace(self, promised_to=None, promise=None, promised_until=None)

    def held(self, call_id: str, promise: Promise, until: int) -> "Unit":
        return replace(self, promised_to=call_id, promise=promise, promised_until=until)

    def age_s(self, now: int) -> float | None:
        """How old its position is; None where it has none."""
        return None if self.seen_at is None else max(now - self.seen_at, 0) / 1e6

    def plain(self, now: int, stale_s: float) -> dict[str, Any]:
        plain: dict[str, Any] = {
            "id": self.id, "depot": self.depot, "kind": self.kind, "status": self.status,
            "since": moment_text(self.since), "call_id": self.call_id, "free": self.free,
            "anonymous": self.anonymous, "position": None, "age_s": None, "stale": False,
            "told_at": moment_text(self.told_at), "promised": None,
        }  # fmt: skip
        age_s = self.age_s(now)
        if self.seen_at is not None and age_s is not None:
            plain |= {"age_s": round(age_s, 1), "stale": age_s > stale_s, "position": {
                "lon": self.lon, "lat": self.lat, "heading": self.heading,
                "speed_kmh": self.speed_kmh, "at": moment_text(self.seen_at),
            }}  # fmt: skip
        if self.promised_until is not None and self.promised_until > now:
            plain["promised"] = {
                "call_id": self.promised_to, "kind": self.promise,
                "until": moment_text(self.promised_until),
            }  # fmt: skip
        return plain


def check_free(unit: Unit | None, id: str, call_id: str, now: int) -> Unit:  # noqa: A002
    """The unit, if it can still be sent to the call, or is on it already."""
    if unit is None:
        raise ConflictError("unit_gone", f"{id} is no longer reported; ask again")
    if unit.held_by_other(call_id, now):
        words = f"{id} is promised to call {unit.promised_to}; ask again"
        raise ConflictError("unit_promised", words)
    if not unit.free and unit.call_id != call_id:
        raise ConflictError("unit_gone", f"{id} is {unit.status.replace('_', ' ')}; ask again")
    return unit
