"""A running dispatch: what is known of it, and what follows from what its units do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ideal_dispatch.service import clock
from ideal_dispatch.service.clock import moment_text
from ideal_dispatch.service.solver.messages import Followed, FollowedUnit
from ideal_dispatch.service.unit_counts import known_unit
from ideal_dispatch.service.units.unit import Unit

BEGUN: Mapping[str, Any] = {
    "advice": "keep", "reason": "Both units are on their way.",
    "reasons": [{"code": "under_way", "values": {}}],
}  # fmt: skip

_THERE = ("on_scene", "transporting", "at_hospital")

State = Literal["running", "stood_down", "ended"]


@dataclass(eq=False)
class Dispatch:
    """Two units on their way to one call, or one of them where the second was stood down.

    ``said`` is the reassessment on record, as the solver tells it; ``seen`` the figures of now,
    empty where nobody knows them. The second is not ``coming`` where it was called off or broke
    down. One that is ``restored`` was read from the record: what its units
    did meanwhile is not known.
    """

    answer: Mapping[str, Any]
    started_at: datetime
    second: Mapping[str, Any]
    second_at: datetime
    state: State = "running"
    said: Mapping[str, Any] | None = None
    advice_id: str | None = None
    advised_at: datetime | None = None
    response: Mapping[str, Any] | None = None
    seen: Mapping[str, Any] = field(default_factory=dict)
    restored: bool = False
    statuses: tuple[str | None, str | None] = (None, None)
    coming: bool = True
    updated_at: datetime = field(default_factory=clock.now)

    @property
    def id(self) -> str:
        found: str = self.answer["id"]
        return found

    @property
    def call_id(self) -> str:
        found: str = self.answer["call_id"]
        return found

    @property
    def primary(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.answer["primary"]
        return found

    def plain(self) -> dict[str, Any]:
        """The dispatch for the API."""
        said = self.said or BEGUN
        why = self.seen if self.seen.get("advice") == said["advice"] else said
        now = {} if self.state == "ended" else self.seen  # nobody is expected any more
        asked = said["advice"] == "send_one" and self.response is None
        first, second = self.statuses
        other = now.get("second") or self.second  # the figures may be of one that could go
        coming = self.state == "running" and self.coming and other["unit"] == self.second["unit"]
        return {
            "id": self.id,
            "call_id": self.call_id,
            "started_at": moment_text(self.started_at),
            "state": self.state,
            "primary": {
                "unit": self.primary["unit"], "depot": self.primary["depot"], "status": first,
                "expected_s": _rounded(now.get("first_s"), 1),
            },
            "second": {
                "unit": self.second["unit"], "depot": self.second["depot"], "status": second,
                "expected_s": _rounded(now.get("second_s"), 1) if coming else None,
            },
            "proposed": said["second"] if asked else None,
            "second_first": _rounded(now.get("second_first"), 3),
            "saves": _rounded(now.get("saves"), 9),
            "cost": _rounded(now.get("cost"), 9),
            "advice": said["advice"],
            "advice_id": self.advice_id,
            "reason": why["reason"],
            "reasons": why["reasons"],
            "advised_at": None if self.advised_at is None else moment_text(self.advised_at),
            "changes": said.get("changes", 0),
            "response": self.response,
            "updated_at": moment_text(self.updated_at),
        }  # fmt: skip


def followed_unit(unit: Unit, call_id: str, sent_at: datetime, now: datetime) -> FollowedUnit:
    """What a unit of a dispatch does.

    It is lost where it is out of service or free again, or drives to another call. One that is
    still busy with what it did when it was sent has yet to leave, and so has one that was free on
    the road and is at its station now.
    """
    since_s = max((now - unit.since).total_seconds(), 0.0)
    sent_ago_s = max((now - sent_at).total_seconds(), 0.0)
    changed = unit.since > sent_at
    elsewhere = unit.call_id is not None and unit.call_id != call_id
    state: Literal["waiting", "en_route", "arrived", "lost"] = "waiting"
    if elsewhere or unit.status == "out_of_service" or (unit.free and unit.turned_at > sent_at):
        state = "lost"
    elif unit.status == "en_route":
        state = "en_route"
    elif unit.status in _THERE and (changed or unit.call_id == call_id):
        state = "arrived"
    return FollowedUnit(known_unit(unit, now), state, since_s, sent_ago_s)


def has_left(followed: Followed | None, first: Unit | None) -> bool:
    """Whether the first is free again or at another call: it has been there, or was called off."""
    if followed is None or first is None:
        return True
    return followed.first.state == "lost" and first.status != "out_of_service"


def is_over(followed: Followed) -> bool:
    """Whether nothing is left to decide: the second is there, or the first is and it is free.

    Where neither is on the call any more and the first is free, somebody called them off, or its
    arrival was not told.
    """
    first, second = followed.first, followed.second
    if second is not None and second.state != "lost":
        return second.state == "arrived"
    return first.state == "arrived" or (first.state == "lost" and first.unit.free)


def is_news(seen: Mapping[str, Any], dispatch: Dispatch, followed: Followed) -> bool:
    """Whether it is another advice than the last, or another unit is to be sent.

    Another one is, where the unit to be sent is not free any more, or where nobody was.
    """
    said = dispatch.said or BEGUN
    if seen["advice"] != said["advice"]:
        return True
    if seen["advice"] != "send_one" or dispatch.response is not None:
        return False
    free = {one.id for one in followed.fleet}
    gone = said["second"] is None or said["second"]["unit"] not in free
    return gone and seen["second"] != said["second"]


def advice_before(said: Mapping[str, Any]) -> dict[str, Any]:
    """What counts of the advice before."""
    return {name: said[name] for name in ("advice", "at_s", "changes", "changed_s")}


def _rounded(value: Any, digits: int) -> float | None:
    return None if value is None else round(float(value), digits)
