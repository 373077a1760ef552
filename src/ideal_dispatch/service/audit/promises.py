"""Which units are promised to which calls, as the entries on record say.

One fold over entries serves a worker's memory and the table in the database.
The table is an index: all that it holds is in the entries.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from ideal_dispatch.service.audit.record import Entry

if TYPE_CHECKING:
    from ideal_dispatch.service.audit.units import DepotUnits

log = logging.getLogger(__name__)

LONGEST = timedelta(hours=2)
"""After which a unit counts as free again, also where no news of it came."""

DIFFER = timedelta(minutes=1)
"""How far clocks of workers may differ. A promise further ahead is older: a clock was set back."""

SETTLES = timedelta(minutes=5)
"""How long after an acceptance a CAD may still count the unit in its requests."""

_MOST = 5000  # calls in a worker's memory; the table knows all

Kind = Literal["advised", "accepted", "refused", "sent"]


@dataclass(frozen=True, slots=True)
class Promise:
    """A unit of ``start`` for call ``call_id``: a depot, or the unit itself where it is known.

    It is ``advised``, then ``accepted`` or ``refused`` by a dispatcher, or ``sent``
    by the CAD as the call's primary. ``at`` is when that was.
    ``advice`` is the answer's id, ``asked_at`` when that answer was asked for.
    """

    call_id: str
    start: str
    kind: Kind
    advice: str
    asked_at: datetime
    at: datetime
    expires_at: datetime

    def holds(self, now: datetime, told_at: datetime | None, listed: bool) -> bool:
        """Whether the unit must be taken off its depot's count.

        The count was told at ``told_at`` (None: it is assumed), or is ``listed`` in a request.
        """
        if self.at > now + DIFFER:
            return False  # the clock went back since
        if self.kind == "advised":
            return now < self.expires_at
        if self.kind == "refused" or (told_at is not None and told_at >= self.at):
            return False  # there is news of the depot since
        if self.kind == "accepted":
            return now < (max(self.expires_at, self.at + SETTLES) if listed else self.ends_at)
        return not listed and now < (self.expires_at if told_at is None else self.ends_at)

    @property
    def ends_at(self) -> datetime:
        """When it ends at the latest."""
        return self.at + LONGEST if self.kind in ("accepted", "sent") else self.expires_at


class Promises:
    """All promises that are known, by call."""

    def __init__(self, known: Iterable[Promise] = ()) -> None:
        self._of: dict[str, tuple[Promise, ...]] = {}
        self._tried: dict[str, Entry] = {}  # by id: these may come on record yet
        for one in known:
            self._of[one.call_id] = (*self.of(one.call_id), one)

    def __iter__(self) -> Iterator[Promise]:
        tried = dict.fromkeys(entry.call_id for entry in self._tried.values())
        for call_id in tried:
            yield from self.of(call_id)
        for call_id, promises in self._of.items():  # last: answers name the last one
            if call_id not in tried:
                yield from promises

    def of(self, call_id: str) -> tuple[Promise, ...]:
        """Those of a call."""
        promises = self._of.get(call_id, ())
        for entry in self._tried.values():
            if entry.call_id == call_id:
                promises = _after(promises, entry)
        return promises

    def merge(self, others: "Promises") -> None:
        """Know what others know of their calls, unless it is older."""
        for call_id, promises in others._of.items():
            if _newest(promises) >= _newest(self.of(call_id)):
                self._of[call_id] = promises

    def forget(self, now: datetime) -> None:
        """Let go of calls whose promises ended, and of the oldest where there are too many."""
        ended = [
            call_id for call_id, promises in self._of.items()
            if all(one.ends_at <= now for one in promises)
        ]  # fmt: skip
        for call_id in ended or [*self._of][:-_MOST]:
            del self._of[call_id]

    def take(self, entry: Entry) -> None:
        """Know what an entry promises or settles."""
        if after := _after(self._of.pop(entry.call_id, ()), entry):
            self._of[entry.call_id] = after  # the last

    @contextmanager
    def trying(self, entry: Entry) -> Iterator[None]:
        """Know what an entry promises while the block runs, and after it unless it fails."""
        self._tried[entry.id] = entry
        try:
            yield
            known = self._of.get(entry.call_id, ())
            if all(one.advice != entry.id for one in known):  # else its row was read meanwhile
                self.take(entry)
        finally:
            del self._tried[entry.id]

    def held(
        self, call_id: str, told_at: Mapping[str, datetime], listed: bool, now: datetime
    ) -> dict[str, list[str]]:
        """By depot, the other calls that units of it are promised to, one for each unit."""
        found: dict[str, list[str]] = {}
        for one in self:
            if one.call_id != call_id and one.holds(now, told_at.get(one.start), listed):
                found.setdefault(one.start, []).append(one.call_id)
        return found

    def short(
        self, entry: Entry, told: "Mapping[str, DepotUnits]", now: datetime
    ) -> dict[str, list[str]]:
        """Depots with fewer units than would be promised with this entry, and to which calls."""
        takes = claims(entry)
        if not takes.get("advised"):
            return {}
        listed, own = takes["listed"], _after(self.of(entry.call_id), entry)
        told_at = {depot: one.updated_at for depot, one in told.items()}
        taken = Promises(one for one in own if one.advice == entry.id)  # the others are under way
        mine = taken.held("", told_at, listed, now)
        others = self.held(entry.call_id, told_at, listed, now)
        missing = {}
        for depot in dict.fromkeys(takes["advised"]):
            count = takes["counts"][depot]
            if not listed and depot in told:
                count = told[depot].units
            calls = others.get(depot, [])
            if len(calls) + len(mine.get(depot, ())) > count:
                missing[depot] = calls
        return missing


def claims(entry: Entry) -> Mapping[str, Any]:
    """What an entry says about the units that it takes; empty where it takes none.

    ``advised`` are depots, one for each unit; ``sent`` is that of the CAD's own primary.
    ``counts`` are free units of these depots: those ``listed`` in the request, or those assumed
    where nobody told any. Where units are known, all of it is ``by_unit`` and not by depot.
    """
    takes = entry.body.get("takes") if entry.kind in ("recommendation", "reply") else None
    return takes if isinstance(takes, Mapping) else {}


def _after(before: tuple[Promise, ...], entry: Entry) -> tuple[Promise, ...]:
    """A call's promises after one more of its entries; one that makes no sense changes nothing."""
    try:
        return _changed(before, entry)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        log.warning("audit entry %s changes no promises (%r)", entry.id, error)
        return before


def _changed(before: tuple[Promise, ...], entry: Entry) -> tuple[Promise, ...]:
    if entry.kind == "response":
        return tuple(_settled(one, entry) for one in before)
    takes = claims(entry)
    if not takes:
        return before
    if entry.kind == "reply":
        return _replied(before, entry, takes)
    answer = entry.body["answer"]
    asked_at = datetime.fromisoformat(answer["asked_at"])
    if any(one.asked_at > asked_at for one in before):
        return before  # a newer advice stands
    new = Promise(
        entry.call_id, "", "advised", entry.id, asked_at, entry.at,
        datetime.fromisoformat(answer["expires_at"]),
    )  # fmt: skip
    kept = [one for one in before if one.kind == "accepted"]  # it is under way
    after = []
    if (start := takes["sent"]) is not None:
        sent_at = entry.at  # a unit may have become free since the call came in
        if not takes.get("by_unit"):  # a count may be without it since the call came in
            sent_at = min(datetime.fromisoformat(answer["received_at"]), sent_at)
        sent = next((one for one in before if (one.start, one.kind) == (start, "sent")), None)
        going = sent or next((one for one in kept if one.start == start), None)
        if going is not None:  # the same unit
            kept = [one for one in kept if one is not going]
            sent_at = going.at
        after.append(replace(new, start=start, kind="sent", at=sent_at))
    for start in takes["advised"]:
        going = next((one for one in kept if one.start == start), None)
        if going is None:
            after.append(replace(new, start=start))
        else:
            kept.remove(going)
            after.append(replace(going, advice=entry.id, asked_at=asked_at))
    return (*kept, *after)


def _replied(
    before: tuple[Promise, ...], entry: Entry, takes: Mapping[str, Any]
) -> tuple[Promise, ...]:
    """A call's promises after a dispatcher took the advice on its running dispatch.

    Units that it ``releases`` are stood down; those that it takes go now.
    """
    kept = tuple(
        replace(one, kind="refused", at=entry.at) if one.start in takes["releases"] else one
        for one in before
    )
    new = (
        Promise(entry.call_id, unit, "accepted", entry.id, entry.at, entry.at, entry.at + LONGEST)
        for unit in takes["advised"]
    )
    return (*kept, *new)


def _settled(promise: Promise, reply: Entry) -> Promise:
    """A promise after what a dispatcher did with its advice."""
    if promise.advice != reply.body["recommendation_id"] or promise.kind == "sent":
        return promise
    kind: Kind = "accepted" if reply.body["response"]["action"] == "accept" else "refused"
    if promise.kind == kind or (promise.kind != "advised" and reply.at < promise.at):
        return promise  # it is so already, or a later reply says otherwise
    return replace(promise, kind=kind, at=reply.at)


def _newest(promises: Iterable[Promise]) -> tuple[datetime, datetime]:
    """When the last advice of a call was asked for, and when the last thing was done with it."""
    never = datetime.min.replace(tzinfo=UTC)
    return max(((one.asked_at, one.at) for one in promises), default=(never, never))
