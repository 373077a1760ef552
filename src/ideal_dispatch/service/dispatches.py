"""Running dispatches: both units followed until somebody arrives, and looked at again meanwhile.

All that a dispatch is follows from entries on record: the advice, its acceptance, what was
advised of it since, and what people did. Every worker folds them and works out the figures of
the moment for its desks. One of them, which holds the lease, records a new advice.
"""

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service import clock
from ideal_dispatch.service.audit.record import (
    DuplicateEntry,
    Entry,
    OvertakenEntry,
    Row,
    StoreError,
    UncheckedPromises,
)
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.clock import moment_text
from ideal_dispatch.service.desk.events import Hub
from ideal_dispatch.service.ledger import Ledger
from ideal_dispatch.service.polling import WeatherPoll
from ideal_dispatch.service.recorded_answers import ExpiredError, SupersededError
from ideal_dispatch.service.running_dispatch import (
    Dispatch,
    advice_before,
    followed_unit,
    has_left,
    is_news,
    is_over,
)
from ideal_dispatch.service.solver.messages import Followed, Scene
from ideal_dispatch.service.solver.pool import SolverPool
from ideal_dispatch.service.units.unit import Unit

log = logging.getLogger(__name__)

LONGEST = timedelta(hours=2)
"""After which nothing is followed any more."""

_LOOK_S, _REST_S, _LEASE_S = 1.0, 0.1, 5.0  # real time
_KEPT = 500  # advices that may become dispatches, and dispatches
_AT_ONCE = 50  # dispatches at a look
_OLDEST = timedelta(hours=1)  # of an advice when it is accepted
_MOST_ROWS, _READ_S = 5000, 20.0  # of each kind, at the start, and for how long they are read
_ROWS = 200  # of a call


class Dispatches:
    """The dispatches that a worker knows."""

    def __init__(
        self,
        ledger: Ledger,
        solver: SolverPool,
        weather: WeatherPoll,
        hub: Hub,
        versions: Callable[[], Mapping[str, str]],
    ) -> None:
        self._ledger, self._solver, self._weather, self._hub = ledger, solver, weather, hub
        self._versions = versions
        self._advised: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
        self._known: OrderedDict[str, Dispatch] = OrderedDict()
        self._numbers: OrderedDict[str, int] = OrderedDict()  # rows of reassessments
        self._told: dict[str, dict[str, Any]] = {}  # to the desks, last
        self._due: set[str] = set()  # dispatches with news of their units
        self._woken = asyncio.Event()
        self._holder, self._lease_until = uuid4().hex, 0.0

    # --- what is on record ----------------------------------------------------------

    def take(self, entry: Entry, number: int | None = None) -> None:
        """Know what an entry says of a dispatch; one that makes no sense changes nothing.

        ``number`` is that of its row, where that is known.
        """
        takes = {
            "recommendation": self._take_recommendation, "response": self._take_response,
            "reassessment": self._take_reassessment, "reply": self._take_reply,
        }  # fmt: skip
        try:
            if entry.kind in takes:
                takes[entry.kind](entry)
            if number is not None and entry.kind == "reassessment":
                self._numbers[entry.id] = number
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            log.warning("audit entry %s changes no dispatch (%r)", entry.id, error)
        for known in (self._advised, self._known, self._numbers):
            while len(known) > _KEPT:
                known.popitem(last=False)

    def _take_recommendation(self, entry: Entry) -> None:
        answer = entry.body["answer"]
        units = [who and who.get("unit") for who in (answer["primary"], answer["second"])]
        if answer["decision"] == "send_second" and all(units) and not answer["simulated"]:
            self._advised[entry.id] = answer

    def _take_response(self, entry: Entry) -> None:
        id_ = entry.body["recommendation_id"]
        if entry.body["response"]["action"] != "accept":
            self._known.pop(id_, None)  # it is not sent; another acceptance begins anew
            return
        answer = self._advised.get(id_)
        if answer is None or id_ in self._known:
            return
        for other in self._known.values():  # a revision takes the place of the one before
            if other.call_id == entry.call_id:
                other.state = "ended"
        self._known[id_] = Dispatch(answer, entry.at, answer["second"], entry.at)
        self._wake(id_)

    def _take_reassessment(self, entry: Entry) -> None:
        dispatch = self._known.get(entry.body["dispatch_id"])
        if dispatch is not None and dispatch.advice_id != entry.id:
            dispatch.said, dispatch.advice_id = entry.body["said"], entry.id
            dispatch.advised_at, dispatch.response = entry.at, None

    def _take_reply(self, entry: Entry) -> None:
        dispatch = self._known.get(entry.body["dispatch_id"])
        if dispatch is None:
            return
        if dispatch.advice_id == entry.body["advice_id"]:
            dispatch.response = entry.body["response"]
        if dispatch.state == "ended":
            return
        # what was accepted is done, also where another advice was given in that moment
        if dispatch.second["unit"] in entry.body.get("takes", {}).get("releases", ()):
            dispatch.state = "stood_down"
        elif (sent := entry.body.get("sent")) is not None:
            dispatch.state, dispatch.second, dispatch.second_at = "running", sent, entry.at
            dispatch.statuses, dispatch.coming = (dispatch.statuses[0], None), True
            self._wake(dispatch.id)

    async def read(self) -> None:
        """Know the dispatches of the last hours, as they are on record."""
        since = clock.now() - LONGEST
        kinds = dict.fromkeys(("response", "reassessment", "reply"), since)
        kinds["recommendation"] = since - _OLDEST

        def rows(store: AuditStore) -> list[Row]:
            """Of recommendations, which are many and long, those with a second alone."""
            return [
                row for kind in kinds.items() for row in store.since(*kind, _MOST_ROWS)
                if row.duplicate_of is None
                and (row.kind != "recommendation" or '"decision":"send_second"' in row.body)
            ]  # fmt: skip

        found = await self._ledger.ask(rows, _READ_S)
        for row in sorted(found, key=lambda one: one.number):
            try:
                self.take(row.entry, row.number)
            except StoreError as error:  # damaged: the others count
                log.error("row %d is not followed: %s", row.number, error)
        for one in self._known.values():
            one.restored = not one.seen

    # --- what people see and do -----------------------------------------------------

    def running(self) -> list[dict[str, Any]]:
        """Those that are not over, newest first."""
        return [one.plain() for one in reversed(self._known.values()) if one.state != "ended"]

    def get(self, id: str) -> dict[str, Any] | None:  # noqa: A002
        """One of them, also where it is over."""
        return self._known[id].plain() if id in self._known else None

    async def respond(
        self,
        id: str,  # noqa: A002
        advice_id: str,
        reply: Mapping[str, Any],
        actor: str,
    ) -> dict[str, Any] | None:
        """The dispatch with what a dispatcher did with the advice on it; None if there is none."""
        dispatch = self._known.get(id)
        if dispatch is None or dispatch.advice_id != advice_id:
            await self._catch_up(advice_id)
            dispatch = self._known.get(id)
        if dispatch is None:
            return None
        if dispatch.advice_id != advice_id:
            raise SupersededError(f"dispatch of call {dispatch.call_id!r} has a newer advice")
        before = dispatch.response
        if before is not None and {**before, "at": None} == {**reply, "by": actor, "at": None}:
            return dispatch.plain()  # told twice
        if dispatch.state == "ended":
            raise ExpiredError(f"the dispatch of call {dispatch.call_id!r} is over")
        if before is not None and before["action"] == "accept":
            raise SupersededError(f"call {dispatch.call_id!r}: this advice was accepted already")
        now, said = clock.now(), dispatch.said or {}
        taken = reply["action"] == "accept"
        proposed = said.get("second") if said.get("advice") == "send_one" else None
        goes = [proposed["unit"]] if taken and proposed else []
        body: dict[str, Any] = {
            "dispatch_id": id, "advice_id": advice_id, "actor": actor,
            "response": {**reply, "by": actor, "at": moment_text(now)},
        }  # fmt: skip
        if taken:
            stays = [dispatch.second["unit"]] if said["advice"] == "stand_down" else []
            body["takes"] = {
                "advised": goes, "sent": None, "counts": dict.fromkeys(goes, 1), "listed": False,
                "releases": stays,
            }  # fmt: skip
        if goes:
            body["sent"] = proposed
        seen = self._numbers.get(advice_id)
        entry = Entry("reply", dispatch.call_id, body, at=now, promising=bool(goes), seen=seen)
        try:
            await self._ledger.write(entry)
        except OvertakenEntry:  # another worker advised something else meanwhile
            raise SupersededError(
                f"dispatch of call {dispatch.call_id!r} has a newer advice"
            ) from None
        self.take(entry)
        self._tell(dispatch, entry.id)
        return dispatch.plain()

    async def _catch_up(self, advice_id: str) -> None:
        """Know an advice of another worker that is on record, though not followed here yet."""

        def rows(store: AuditStore) -> list[Row]:
            advice = store.get(advice_id)
            return [] if advice is None else store.of_call(advice.call_id, _ROWS)

        with suppress(StoreError):
            for row in await self._ledger.ask(rows):
                if row.number > self._ledger.followed and row.duplicate_of is None:
                    self.take(row.entry, row.number)

    # --- looking at them again ------------------------------------------------------

    def news(self, units: Collection[str]) -> None:
        """Look at dispatches of these units at once: they do something else now."""
        for one in self._known.values() if units else ():
            if one.primary["unit"] in units or one.second["unit"] in units:
                self._wake(one.id)

    def _wake(self, id: str) -> None:  # noqa: A002
        self._due.add(id)
        self._woken.set()

    async def run(self) -> None:
        """Look at running dispatches again and again, at those with news at once."""
        all_at = 0.0
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(all_at - time.monotonic()):
                    await self._woken.wait()
            self._woken.clear()
            due, self._due = self._due, set()
            everything = time.monotonic() >= all_at
            if everything:
                all_at = time.monotonic() + _LOOK_S
            for dispatch in self._waiting():
                if not everything and dispatch.id not in due:
                    continue
                try:
                    await self._look(dispatch)
                except (IdealError, TimeoutError) as error:
                    log.warning("dispatch of call %s: %s", dispatch.call_id, error)
                except Exception:  # one that makes no sense must not end the others
                    log.exception("dispatch of call %s: unexpected", dispatch.call_id)
            self._tell_rest()
            await asyncio.sleep(_REST_S)

    def _waiting(self) -> list[Dispatch]:
        """Those to look at now: of many the ones that were looked at longest ago."""
        now = clock.now()
        for one in self._known.values():
            if now - one.started_at > LONGEST:
                one.state = "ended"
        running = [one for one in self._known.values() if one.state != "ended"]
        return sorted(running, key=lambda one: one.updated_at)[:_AT_ONCE]

    async def _look(self, dispatch: Dispatch) -> None:
        now, units, known = clock.now(), self._ledger.units, self._ledger.followed
        first = units.fleet.get(dispatch.primary["unit"])
        second = units.fleet.get(dispatch.second["unit"])
        dispatch.statuses = (
            None if first is None else first.status, None if second is None else second.status,
        )  # fmt: skip
        followed = self._followed(dispatch, first, second, now)
        done = dispatch.restored and has_left(followed, first)
        if followed is None or done or is_over(followed):
            dispatch.state = "ended"
        else:
            before = dispatch.state, dispatch.advice_id, dispatch.response
            found = await self._solver.ask("reassess", followed, self._weather.known().weather)
            now_is = dispatch.state, dispatch.advice_id, dispatch.response
            if before != now_is or self._known.get(dispatch.id) is not dispatch:
                self._wake(dispatch.id)  # somebody replied meanwhile
                return
            seen = {} if found is None else found["said"]
            dispatch.seen, dispatch.restored = seen, False
            dispatch.coming = followed.second is not None
            if seen and is_news(seen, dispatch, followed) and await self._is_mine():
                await self._advise(dispatch, found, known)
        dispatch.updated_at = now
        self._tell(dispatch)

    async def _advise(self, dispatch: Dispatch, found: Mapping[str, Any], seen: int) -> None:
        """Put a new advice on record, and know it then; none where somebody replied meanwhile.

        ``found`` is what a solver says, and from what. ``seen`` is the last row that was known when
        it was made. It is never spooled: it would come on record when it is not true any more. Each
        advice replaces one other, so that no two workers give it.
        """
        versions = {**self._versions(), **found["versions"]}
        body = {**found, "dispatch_id": dispatch.id, "versions": versions, "actor": "service"}
        key = f"{dispatch.id}/{dispatch.advice_id or moment_text(dispatch.started_at)}"
        entry = Entry(
            "reassessment", dispatch.call_id, body, clock.now(), key, promising=True, seen=seen
        )
        try:
            await self._ledger.write(entry)
        except DuplicateEntry as first:
            entry = first.entry
        except (OvertakenEntry, UncheckedPromises) as error:
            log.debug("dispatch of call %s: %s", dispatch.call_id, error)
            return
        self.take(entry)
        decision = found["said"]["advice"]
        log.info("reassessed", extra={"call_id": dispatch.call_id, "decision": decision})

    async def _is_mine(self) -> bool:
        """Whether this worker records advice; one that cannot ask the database does not."""
        if time.monotonic() < self._lease_until:
            return True
        began = time.monotonic()
        with suppress(StoreError):
            if await self._ledger.ask(
                lambda store: store.take_lease("reassessment", self._holder, _LEASE_S)
            ):
                self._lease_until = began + _LEASE_S / 2
                return True
        return False

    def _followed(
        self, dispatch: Dispatch, first: Unit | None, second: Unit | None, now: datetime
    ) -> Followed | None:
        """What a solver is asked; None where a unit is not known any more."""
        if first is None or (second is None and dispatch.state == "running"):
            return None
        units, answer = self._ledger.units, dispatch.answer
        advised_at = datetime.fromisoformat(answer["created_at"])
        one = followed_unit(first, dispatch.call_id, advised_at, now)
        two = None
        if dispatch.state == "running" and second is not None:
            two = followed_unit(second, dispatch.call_id, dispatch.second_at, now)
            if two.state == "lost" and one.state != "arrived":
                two = None  # another one may have to go
        known = units.known(dispatch.call_id, listed=False).fleet or ()
        others = tuple(each for each in known if each.free and not each.promised)
        free = Counter(each.station for each in others)
        cost, place = answer.get("cost") or {}, answer["location"]
        both = answer["primary"], answer["second"]
        return Followed(
            dispatch.call_id, Scene(place["lon"], place["lat"]), one.sent_ago_s, one, two, free,
            others, cost.get("lives"), cost.get("hold_s") or answer["nominal"]["primary_s"],
            None if dispatch.said is None else advice_before(dispatch.said),
            self._ledger.closed(self._solver.facts.checksums["network"]),
            {each["unit"]: told for each in both if (told := each.get("traffic")) is not None},
        )  # fmt: skip

    def _tell(self, dispatch: Dispatch, key: str | None = None) -> None:
        """Let the desks know a dispatch, unless they do."""
        plain, told = dispatch.plain(), self._told.get(dispatch.id, {})
        if {**plain, "updated_at": told.get("updated_at")} != told:
            self._hub.publish("dispatch", plain, key)
            self._told[dispatch.id] = plain

    def _tell_rest(self) -> None:
        """Let the desks know what came from other workers, and what is not followed any more."""
        for one in self._known.values():
            if one.state != "ended" or self._told.get(one.id, {}).get("state") != "ended":
                self._tell(one)
        for id_ in self._told.keys() - self._known.keys():
            if (told := self._told.pop(id_))["state"] != "ended":
                self._hub.publish("dispatch", {**told, "state": "ended"})
