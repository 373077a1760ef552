"""The service at work: everything that requests share, started and stopped together."""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

from ideal_dispatch import __version__
from ideal_dispatch.errors import IdealError
from ideal_dispatch.service import answer, logs
from ideal_dispatch.service.adviser import Adviser, KnownUnits
from ideal_dispatch.service.assets import Assets
from ideal_dispatch.service.audit import AuditWriter, Entry, Spool, open_store
from ideal_dispatch.service.auth import Doorkeeper
from ideal_dispatch.service.engine import Engine, Late
from ideal_dispatch.service.events import Hub
from ideal_dispatch.service.following import follow, retain
from ideal_dispatch.service.ledger import Answered, Ledger, digest
from ideal_dispatch.service.live_traffic import PREPARE_S
from ideal_dispatch.service.observations import Observations
from ideal_dispatch.service.polling import Repeated, WeatherPoll, seconds_since, weather_provider
from ideal_dispatch.service.schemas import HumanResponse, RecommendationRequest
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.standing import check_standing

log = logging.getLogger(__name__)

AUDIT_S = 0.4
"""Of the deadline, kept for making the answer durable."""


class KeyUsedError(IdealError):
    """An idempotency key that came with another body before."""


@dataclass(frozen=True, slots=True)
class _Question:
    """A request with what identifies it, who asks, and when that began and must end."""

    request: RecommendationRequest
    content: Mapping[str, Any]
    digest: str
    key: str
    actor: str
    simulated: bool
    began: float
    until: float


class Service:
    """One worker's state."""

    def __init__(self, settings: ServiceSettings, assets: Assets) -> None:
        self.settings, self.assets = settings, assets
        self.observations, self.hub = Observations(), Hub()
        self.doorkeeper = Doorkeeper(settings.tokens)
        self.engine = Engine(settings.server.solvers, settings.server.queue)
        network = assets.network
        self.weather = WeatherPoll(
            weather_provider(settings), float(network.lon.mean()), float(network.lat.mean()),
            settings.weather.stale_s,
        )  # fmt: skip
        self.adviser = Adviser(assets, settings, self.weather.known)
        self.versions = {
            "software": __version__,
            "model": assets.model.checksum,
            "network": network.checksum,
            "configuration": settings.checksum,
        }
        self.warm = threading.Event()
        self.ledger: Ledger
        self._answering: dict[tuple[str, str], asyncio.Task[Answered]] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by call
        self._tasks: list[asyncio.Task[None]] = []
        self._polls = [
            Repeated("weather", settings.weather.every_s, self.weather.refresh),
            Repeated("traffic", PREPARE_S, self._prepare),
        ]

    async def start(self) -> None:
        """Open the audit and begin everything that runs in the background."""
        store = open_store(self.settings.database_url)
        spool = Spool(self.settings.file(self.settings.audit.spool))
        self.ledger = Ledger(store, AuditWriter(store, spool))
        await self.ledger.read_spooled_units()
        for poll in self._polls:
            poll.start()
        self._tasks.append(asyncio.create_task(follow(self)))
        if self.settings.audit.retention_days:
            self._tasks.append(asyncio.create_task(retain(self)))
        self._note("started")

    async def stop(self) -> None:
        """End the streams and write what waits."""
        self.hub.close()
        for task in self._tasks:
            task.cancel()
        for ended in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                log.error("a task in the background had failed", exc_info=ended)
        self._note("stopped")
        for poll in self._polls:
            poll.stop(0.1)
        self.engine.close()
        self.assets.traffic.close()
        await asyncio.to_thread(self.ledger.close)

    def _note(self, what: str) -> None:
        """That the service began or ended is on record too."""
        body = {"event": what, "versions": self.versions}
        try:
            self.ledger.writer.submit(Entry.new("service", "", body, at=datetime.now(UTC)), 2.0)
        except IdealError as error:
            log.warning("%s: %s", what, error)

    def _prepare(self) -> None:
        """Kernels and traffic: what takes long is done before the first call."""
        from ideal_dispatch.gap.warm_up import warm_up

        if not self.warm.is_set():
            warm_up()
            self._rehearse()
            self.warm.set()
            log.info("ready for calls")
        before = self.assets.traffic.status
        self.assets.traffic.prepare()
        if before != self.assets.traffic.status:
            self._rehearse()

    def _rehearse(self) -> None:
        """Advise on a call that never was, so that the first one finds everything loaded."""
        network, depots = self.assets.network, self.assets.depots
        node = depots[1].node
        place = {"lon": float(network.lon[node]), "lat": float(network.lat[node])}
        request = RecommendationRequest.model_validate({
            "call_id": "rehearsal", "received_at": datetime.now(UTC), "location": place,
            "depots": [{"name": depot.name, "units": 1} for depot in depots[:2]],
            "primary": {"depot": depots[0].name},
        })  # fmt: skip
        self.adviser.advise(request, KnownUnits({}, None), time.monotonic() + 60.0)

    # --- advice -----------------------------------------------------------------

    async def recommend(
        self, request: RecommendationRequest, key: str | None, actor: str, simulated: bool = False
    ) -> dict[str, Any]:
        """The answer on record for this request, made now if it is new."""
        began = time.monotonic()
        logs.call_id.set(request.call_id)
        content = request.model_dump(mode="json", exclude={"idempotency_key"})
        sum_ = digest(content)
        slot = request.call_id, f"key:{key}" if key else f"body:{sum_}"
        running = self._answering.get(slot)
        if running is None:
            until = began + self.settings.server.deadline_s
            question = _Question(request, content, sum_, slot[1], actor, simulated, began, until)
            running = asyncio.create_task(self._answer(question))
            self._answering[slot] = running
            running.add_done_callback(lambda _: self._answering.pop(slot, None))
        else:
            self.observations.repeated.inc()
        answered = await asyncio.shield(running)
        if answered.digest != sum_:
            raise KeyUsedError(
                f"idempotency key {key!r} came with another body for call {request.call_id!r}; "
                "use a new key for a new revision"
            )
        return self.ledger.joined(answered.answer)

    async def _answer(self, question: _Question) -> Answered:
        """The answer that stands, or a new one; revisions of a call are made one after another."""
        call_id, until = question.request.call_id, question.until
        due = until - min(AUDIT_S, 0.2 * (until - question.began))
        turn = self._turns.setdefault(call_id, asyncio.Lock())
        self.engine.admit()
        admitted, locked = True, False
        try:
            with suppress(TimeoutError):  # an answer that is late is still an answer
                locked = await asyncio.wait_for(turn.acquire(), due - time.monotonic())
            earlier = await self.ledger.earlier(call_id)
            same = [one for one in earlier if one.question == question.key]
            if same and (same[-1].digest != question.digest or same[-1].stands(datetime.now(UTC))):
                self.observations.repeated.inc()
                return same[-1]
            admitted = False  # the engine gives the place back
            advice = await self._advice(question.request, due)
            key = same[-1].next_key if same else question.key
            return await self._made(replace(question, key=key), advice, earlier)
        finally:
            if admitted:
                self.engine.leave()
            if locked:
                turn.release()

    async def _made(
        self, question: _Question, advice: Mapping[str, Any], earlier: Sequence[Answered]
    ) -> Answered:
        """A new answer, once it is on record."""
        request, now = question.request, datetime.now(UTC)
        answers = [one.answer for one in earlier]
        before = max(answers, key=lambda one: (one["revision"], one["created_at"]), default=None)
        outcome = {
            "id": uuid4().hex,
            "call_id": request.call_id,
            "revision": 1 if before is None else before["revision"] + 1,
            "revision_of": None if before is None else before["id"],
            **advice,
            "created_at": _text(now),
            "expires_at": _text(now + timedelta(seconds=self.settings.server.expiry_s)),
            "received_at": question.content["received_at"],
            "note": request.note,
            "simulated": question.simulated,
            "versions": self.versions,
            "latency_ms": round(1000 * (time.monotonic() - question.began), 1),
        }
        body = {
            "request": question.content, "request_sha256": question.digest,
            "answer": outcome, "actor": question.actor,
        }  # fmt: skip
        entry = Entry.new(
            "recommendation", request.call_id, body, at=now, key=question.key, id=outcome["id"]
        )
        answered = await self.ledger.record(entry, question.until - time.monotonic())
        self._observe(answered.answer, time.monotonic() - question.began)
        made = self.ledger.joined(answered.answer)
        self.hub.publish("recommendation", made, made["id"])
        return answered

    async def _advice(self, request: RecommendationRequest, until: float) -> dict[str, Any]:
        if not self.warm.is_set():
            self.engine.leave()
            return answer.no_advice(request, [("starting", "the service is still starting")])
        known = self.known_units()
        found = await self.engine.run(lambda due: self.adviser.advise(request, known, due), until)
        if isinstance(found, Late):
            words = f"no answer within the {self.settings.server.deadline_s:g} s there are"
            return answer.no_advice(request, [("late", words)])
        return found

    def known_units(self) -> KnownUnits:
        """Free units as last told, and how old the oldest of that is."""
        known, now = self.ledger.units, datetime.now(UTC)
        ages = [seconds_since(one.updated_at, now) or 0.0 for one in known.values()]
        counts = {name: one.units for name, one in known.items()}
        told_at = {name: one.updated_at for name, one in known.items()}
        return KnownUnits(counts, max(ages) if ages else None, told_at)

    def _observe(self, made: Mapping[str, Any], seconds: float) -> None:
        self.observations.recommendations.labels(made["decision"]).inc()
        self.observations.latency.observe(seconds)
        codes = [reason["code"] for reason in made["degraded"]]
        for code in codes:
            self.observations.degraded.labels(code).inc()
        log.info(
            "answered", extra={"call_id": made["call_id"], "decision": made["decision"],
                               "revision": made["revision"], "ms": made["latency_ms"],
                               "codes": codes},
        )  # fmt: skip

    # --- people and units -------------------------------------------------------

    async def respond(self, id: str, response: HumanResponse, actor: str) -> dict[str, Any] | None:  # noqa: A002
        """The recommendation with what a dispatcher did with it; None where there is none."""
        found = await self.ledger.get(id)
        if found is None:
            return None
        logs.call_id.set(found["call_id"])
        said = {**response.model_dump(), "by": actor}
        before = found["response"]
        if before is not None and {k: v for k, v in before.items() if k != "at"} == said:
            return found  # told twice
        now = datetime.now(UTC)
        earlier = await self.ledger.earlier(found["call_id"])
        check_standing(found, (one.answer for one in earlier), now)
        said["at"] = _text(now)
        body = {"recommendation_id": id, "response": said, "actor": actor}
        entry = Entry.new("response", found["call_id"], body, at=now)
        await self.ledger.respond(entry, 1.0)
        self.observations.responses.labels(response.action).inc()
        log.info("response", extra={"decision": response.action, "actor": actor})
        self.tell_response(entry)
        return {**found, "response": said}

    async def set_units(self, units: Mapping[str, int], at: datetime, actor: str) -> None:
        """Take new counts of free units."""
        body = {"units": dict(units), "updated_at": _text(at), "actor": actor}
        entry = Entry.new("units", "", body, at=datetime.now(UTC))
        await self.ledger.write_units(entry)
        self.hub.publish("units", self.units(), entry.id)

    def units(self) -> list[dict[str, Any]]:
        """Free units of every depot, as last told."""
        known, default = self.ledger.units, self.settings.units.default
        rows = []
        for depot in self.assets.depots:
            told = known.get(depot.name)
            rows.append({
                "depot": depot.name,
                "units": default if told is None else told.units,
                "updated_at": None if told is None else _text(told.updated_at),
            })  # fmt: skip
        return rows

    def tell_response(self, entry: Entry) -> None:
        """Let the desks know what a dispatcher did."""
        data = {
            "recommendation_id": entry.body["recommendation_id"],
            "call_id": entry.call_id,
            "response": entry.body["response"],
        }
        self.hub.publish("response", data, entry.id)

    # --- how it is --------------------------------------------------------------

    def health(self) -> tuple[str, dict[str, str]]:
        """Whether advice can be given now, and the state of every part."""
        audit = self.ledger.writer.status
        weather = self.weather.known()
        parts = {
            "solver": "ready" if self.warm.is_set() else "starting",
            "traffic": self.assets.traffic.status,
            "weather": weather.problem or "ready",
            "audit": "ready" if audit.store_up else f"spooling ({audit.waiting} waiting)",
        }
        if not self.warm.is_set():
            return "starting", parts
        return "ready" if all(one == "ready" for one in parts.values()) else "degraded", parts

    def measure(self) -> bytes:
        """The page of metrics."""
        seen, audit, weather = self.observations, self.ledger.writer.status, self.weather.known()
        seen.inside.set(self.engine.inside)
        seen.listeners.set(self.hub.listeners)
        seen.spooled.set(audit.waiting)
        seen.store_up.set(1 if audit.store_up else 0)
        seen.weather_age.set(math.nan if weather.age_s is None else weather.age_s)
        return seen.text()


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
