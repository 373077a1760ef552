"""From a request to an answer on record: made once, revised in turn, always in time."""

import asyncio
import logging
import time
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

from ideal_dispatch import __version__
from ideal_dispatch.dispatch.answer import Remark, rank
from ideal_dispatch.errors import IdealError
from ideal_dispatch.service import clock, logs
from ideal_dispatch.service.admission import Admission, BusyError, Slot, StartingError
from ideal_dispatch.service.audit.record import (
    Entry,
    OvertakenEntry,
    PromisedUnits,
    StoreError,
    UncheckedPromises,
)
from ideal_dispatch.service.clock import moment_text
from ideal_dispatch.service.desk.events import Hub
from ideal_dispatch.service.ledger import Earlier, Ledger
from ideal_dispatch.service.observations import Observations
from ideal_dispatch.service.polling import WeatherPoll
from ideal_dispatch.service.recorded_answers import RecordedAnswer, asked_at, digest, order
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.api_answer import no_advice
from ideal_dispatch.service.solver.depot_names import DepotNames
from ideal_dispatch.service.solver.messages import Call
from ideal_dispatch.service.solver.pool import LateError, SolverPool
from ideal_dispatch.service.solver.process import SolverLostError

log = logging.getLogger(__name__)

AUDIT_S = 0.4
"""Of the deadline, kept for making the answer durable."""

_NEW = Earlier([], 0)
"""Of a call that nothing is remembered of: most are new, and the audit says where one is not."""

_LOOK_SHARE = 0.3  # of the time left, for another look at what other workers promised
_TRIES = 4  # to get a revision's number, or units, before others do


class KeyUsedError(IdealError):
    """An idempotency key that came with another body before."""


@dataclass(frozen=True, slots=True)
class _Question:
    """A call with what identifies its request, who asks, and when that began and must end.

    ``content`` is the request as it goes on record. Revisions go by ``asked_at``, and by
    ``followed``, the last row that was known then, for clocks may differ.
    """

    call: Call
    content: Mapping[str, Any]
    digest: str
    key: str
    actor: str
    simulated: bool
    asked_at: str
    followed: int
    began: float
    until: float


@dataclass(eq=False)
class Recommender:
    """Answers requests."""

    settings: ServiceSettings
    admission: Admission
    solver: SolverPool
    weather: WeatherPoll
    ledger: Ledger
    hub: Hub
    observations: Observations

    def __post_init__(self) -> None:
        self.limits, self._configuration = self.settings.server, self.settings.checksum
        self._answering: dict[tuple[str, str], asyncio.Task[RecordedAnswer]] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by call

    @property
    def versions(self) -> dict[str, str]:
        """Of all that decides; a solver that is started again reads its files again."""
        checksums = self.solver.facts.checksums
        return {"software": __version__, **checksums, "configuration": self._configuration}

    @property
    def names(self) -> DepotNames:
        """Depots by what callers call them."""
        return DepotNames(self.solver.facts.depots, self.settings.city.aliases)

    async def recommend(
        self,
        call: Call,
        content: Mapping[str, Any],
        key: str | None,
        actor: str,
        slot: Slot,
        simulated: bool = False,
    ) -> dict[str, Any]:
        """The answer on record for a call, made now if it is new.

        ``content`` is the whole request without its key, as values of JSON.
        """
        logs.call_id.set(call.call_id)
        sum_ = digest(content)
        same = call.call_id, f"key:{key}" if key else f"body:{sum_}"
        running = self._answering.get(same)
        if running is None:
            asked_at = moment_text(clock.now())
            question = _Question(
                call, content, sum_, same[1], actor, simulated, asked_at, self.ledger.followed,
                slot.began, slot.began + self.limits.deadline_s,
            )  # fmt: skip
            running = asyncio.create_task(self._answer(question, slot.moved()))
            self._answering[same] = running
            running.add_done_callback(lambda _: self._answering.pop(same, None))
        else:
            slot.release()
            self.observations.repeated.inc()
        answered = await asyncio.shield(running)
        if answered.digest != sum_:
            raise KeyUsedError(
                f"idempotency key {key!r} came with another body for call {call.call_id!r}; "
                "use a new key for a new revision"
            )
        return self.ledger.joined(answered.answer)

    async def _answer(self, question: _Question, slot: Slot) -> RecordedAnswer:
        """The answer that stands, or a new one; revisions of a call are made one after another."""
        call_id = question.call.call_id
        due = question.until - min(AUDIT_S, 0.2 * self.limits.deadline_s)
        lock = self._locks.setdefault(call_id, asyncio.Lock())
        locked, earlier = False, _NEW
        try:
            with suppress(TimeoutError):  # an answer that is late is still an answer
                async with asyncio.timeout(due - time.monotonic()):
                    locked = await lock.acquire()
            if self.ledger.knows(call_id):
                earlier = await self.ledger.earlier(call_id, question.key, due - time.monotonic())
            same = earlier.to(question.key)
            if same and (same.digest != question.digest or same.stands(clock.now())):
                self.observations.repeated.inc()
                return same
            closed = self.ledger.closed(self.solver.facts.checksums["network"])
            question = replace(question, call=replace(question.call, closures=closed))
            advice = await self._advice(question.call, due, slot)
            if same:
                question = replace(question, key=same.next_key)
            return await self._made(question, advice, earlier, due)
        finally:
            slot.release()
            if locked:
                lock.release()

    async def _advice(self, call: Call, due: float, slot: Slot) -> dict[str, Any]:
        """The solver's advice by the moment ``due``, or none that says why."""
        sent = None if call.primary is None else call.primary.unit
        units = self.ledger.units.known(call.call_id, call.depots is not None, sent)
        try:
            return await self.solver.advise(call, units, self.weather.known(), due, slot)
        except SolverLostError as error:
            return no_advice(call, [("solver_lost", f"{error}; ask again in a moment")])
        except LateError:
            words = f"no answer within the {self.limits.deadline_s:g} s there are"
            return no_advice(call, [("late", words)])
        except IdealError as error:
            log.error("no advice: %s", error)
            return no_advice(call, [("internal_error", str(error))])

    async def _made(
        self, question: _Question, advice: Mapping[str, Any], earlier: Earlier, due: float
    ) -> RecordedAnswer:
        """A new answer, once it is on record."""
        known, id_ = {one.key for one in earlier.answers}, uuid4().hex
        looks, decisions, checked = _TRIES, _TRIES, True
        while True:
            before = [
                one.answer for one in earlier.answers
                if one.key in known or asked_at(one.answer) <= question.asked_at
                or (one.number is not None and one.number <= question.followed)
            ]  # fmt: skip
            body = self._body(id_, question, advice, before, earlier, checked)
            entry = Entry(
                "recommendation", question.call.call_id, body, at=clock.now(),
                key=question.key, id=id_,
                seen=(earlier.seen or 0) if looks else None,
                promising=checked and "takes" in body and advice["decision"] != "no_advice",
            )  # fmt: skip
            try:
                answered = await self.ledger.record(entry, question.until - time.monotonic())
            except OvertakenEntry:  # by another worker's answer to another question
                looks -= 1
                left_s = question.until - time.monotonic()
                earlier = await self.ledger.earlier(question.call.call_id, timeout_s=left_s)
                continue
            except PromisedUnits as lost:
                decisions -= 1
                advice = await self._decided_again(question, lost, due, decisions)
                continue
            except UncheckedPromises:  # it may come on record yet: the next has its id
                checked = False
                continue
            if answered.answer["id"] == id_:
                break
            left_s = question.until - time.monotonic()
            earlier = await self.ledger.earlier(entry.call_id, answered.question, left_s)
            last = earlier.to(answered.question)
            same = last if last and last.attempt > answered.attempt else answered
            if same.digest != question.digest or same.stands(clock.now()):
                self.observations.repeated.inc()
                return same
            question = replace(question, key=same.next_key)  # that one is of long ago
        self._observe(answered.answer, time.monotonic() - question.began)
        made = self.ledger.joined(answered.answer)
        self.hub.publish("recommendation", made, made["id"])
        return answered

    async def _decided_again(
        self, question: _Question, lost: PromisedUnits, due: float, tries: int
    ) -> dict[str, Any]:
        """Another advice, for other calls got units of the first; none where that is too late."""
        with suppress(StoreError):
            await self.ledger.read_units(_LOOK_SHARE * (due - time.monotonic()))
        if tries and time.monotonic() < due:
            with suppress(BusyError, StartingError):
                slot = self.admission.admit(question.actor)
                return await self._advice(question.call, due, slot)
        fleet = self.ledger.units.fleet
        words = "; ".join(
            _gone(start, calls, start in fleet) for start, calls in lost.calls.items()
        )
        return no_advice(question.call, [("last_unit_promised", f"{words}; ask again")])

    def _body(
        self,
        id: str,  # noqa: A002
        question: _Question,
        advice: Mapping[str, Any],
        before: Sequence[Mapping[str, Any]],
        earlier: Earlier,
        checked: bool,
    ) -> dict[str, Any]:
        """What goes on record: the request, and the answer as a revision of the one before.

        Numbers of revisions follow the record, ``revision_of`` and standing the order of asking.
        """
        now, last = clock.now(), max(before, key=order, default=None)
        if not checked and advice["decision"] != "no_advice":
            words = (
                "no unit is promised to this call: the database is not reached, so other workers "
                "may advise the same units; check before you send"
            )
            said = [*advice["degraded"], asdict(Remark("promises_unknown", words))]
            said.sort(key=lambda one: rank(one["code"]))
            advice = {**advice, "degraded": said}
        made = {
            "id": id,
            "call_id": question.call.call_id,
            "revision": 1 + max((one.answer["revision"] for one in earlier.answers), default=0),
            "revision_of": None if last is None else last["id"],
            **advice,
            "asked_at": max(question.asked_at, "" if last is None else asked_at(last)),
            "created_at": moment_text(now),
            "expires_at": moment_text(now + timedelta(seconds=self.limits.expiry_s)),
            "received_at": question.content["received_at"],
            "note": question.content["note"],
            "simulated": question.simulated,
            "versions": {**self.versions, **advice.get("versions", {})},
            "latency_ms": round(1000 * (time.monotonic() - question.began), 1),
        }
        body = {
            "request": question.content, "request_sha256": question.digest,
            "answer": made, "actor": question.actor,
        }  # fmt: skip
        superseded = len(before) < len(earlier.answers)  # by answers to what was asked later
        if not question.simulated and not superseded:
            body["takes"] = self._takes(question.call, advice)
        return body

    def _takes(self, call: Call, advice: Mapping[str, Any]) -> dict[str, Any]:
        """The units of an advice as the audit keeps them: see :func:`claims`."""
        names, advised, fleet = self.names, [], self.ledger.units.fleet
        if advice["primary"] is not None and advice["primary"]["chosen_by"] == "router":
            advised.append(_start(advice["primary"], fleet))
        if advice["decision"] == "send_second":
            advised.append(_start(advice["second"], fleet))
        sent, primary = None, call.primary
        going = None if advice["primary"] is None else advice["primary"]["unit"]
        if primary is not None and (unit := self.ledger.units.find(primary.unit)) is not None:
            sent = unit.id
        elif primary is not None and going in fleet:
            sent = going  # no unit was named: this one is taken to go
        elif primary is not None and primary.depot is not None and names.knows(primary.depot):
            sent = names.find(primary.depot)
        if fleet:
            ones = dict.fromkeys(advised, 1)
            return {
                "advised": advised, "sent": sent, "counts": ones, "listed": False, "by_unit": True,
            }  # fmt: skip
        listed = call.depots is not None
        counts = dict.fromkeys(advised, 0 if listed else self.settings.units.default)
        for name, units in call.depots or ():
            if names.knows(name) and (depot := names.find(name)) in counts:
                counts[depot] += units
        return {"advised": advised, "sent": sent, "counts": counts, "listed": listed}

    def _observe(self, made: Mapping[str, Any], seconds: float) -> None:
        self.observations.recommendations.labels(made["decision"]).inc()
        self.observations.latency.observe(seconds)
        codes = [code for one in made["degraded"] for code in (one["code"], *one["also"])]
        for code in codes:
            self.observations.degraded.labels(code).inc()
        told = {name: made[name] for name in ("call_id", "decision", "revision")}
        log.info("answered", extra={**told, "ms": made["latency_ms"], "codes": codes})


def _start(goes: Mapping[str, Any], fleet: Container[str]) -> str:
    """What an ambulance of an answer is promised as: the unit, where it is known, or its depot."""
    start: str = goes["unit"] if goes["unit"] in fleet else goes["depot"]
    return start


def _gone(start: str, calls: Sequence[str], single: bool) -> str:
    """Why a unit cannot be promised any more: a ``single`` one, or any of its depot."""
    if calls:
        who = start if single else f"the last unit of {start}"
        return f"{who} was just promised to call {calls[-1]}"
    return f"{start} is just not free any more" if single else f"{start} has just no free unit"
