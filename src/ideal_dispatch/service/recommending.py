"""From a request to an answer on record: decided on the units of now, recorded under the lock."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy import Connection

from ideal_dispatch.service import logs
from ideal_dispatch.service.clock import SECOND, ClockTable, moment_text
from ideal_dispatch.service.deciding.adviser import no_advice
from ideal_dispatch.service.deciding.engine import Engine
from ideal_dispatch.service.errors import ConflictError
from ideal_dispatch.service.messages import Advice, Closed, KnownWeather, Picture
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.database import Database, Job
from ideal_dispatch.service.record.rows import AdviceRow, ClosureRow, canonical
from ideal_dispatch.service.record.transaction import State, Transaction, changing
from ideal_dispatch.service.requests import RecommendationRequest
from ideal_dispatch.service.unit_news import log_lost_promise
from ideal_dispatch.service.units import HELD_US, Unit

_TRIES = 4  # to decide, where other calls get the unit meanwhile

PASSING = frozenset((
    "starting", "late", "not_decided", "internal_error", "call_in_future", "no_unit",
    "last_unit_promised", "units_unknown", "record_unavailable", "unknown_unit",
))  # fmt: skip
"""Why there was no advice, where there may be one a moment later."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request: ``content`` is all of it but the key, as it goes on record."""

    call: RecommendationRequest
    content: Mapping[str, Any]
    key: str
    digest: str
    actor: str
    simulated: bool
    id: str
    began: float


class _TakenError(Exception):
    """Units of an advice that other calls got meanwhile; None for those that are gone."""

    def __init__(self, units: Mapping[str, Unit | None]) -> None:
        each = (
            f"{id_} is {'gone' if unit is None else unit.status.replace('_', ' ')}"
            if unit is None or unit.promised_to is None
            else f"{id_} was just promised to call {unit.promised_to}"
            for id_, unit in units.items()
        )
        super().__init__("; ".join(each))


@dataclass(frozen=True, slots=True)
class Recommender:
    """Answers questions in the thread that decides; ``laid`` are the edges of closures here."""

    database: Database
    clock: ClockTable
    engine: Engine
    weather: Callable[[int], KnownWeather]
    laid: Callable[[Sequence[ClosureRow]], tuple[Closed, ...]]
    versions: Mapping[str, str]
    expiry_s: float

    def answer(self, question: Question, decide_by: float, job: Job) -> dict[str, Any]:
        """The answer on record: made now, or as it was if the same was asked before.

        Units are read, the call is decided on, and what came out is recorded in one transaction,
        which looks at the units again. Where another call got one, it is decided once more.
        """
        logs.call_id.set(question.call.call_id)
        for _ in range(_TRIES):
            picture, before = self._look(question, job)
            if before is not None and _stands(before, question, picture.now):
                return before.public()
            with job.doing("deciding"):
                weather = self.weather(picture.now)
                advice = self.engine.adviser.advise(question.call, picture, weather, decide_by)
            try:
                return self.record(question, advice, picture.now, job)
            except _TakenError as error:
                words = f"{error}; ask again"
            if time.monotonic() >= decide_by:
                break
        refused = self.refusal(question, "last_unit_promised", words)
        return self.record(question, refused, picture.now, job)

    def record(self, question: Question, advice: Advice, asked_at: int, job: Job) -> dict[str, Any]:
        """Put an advice on record that was decided on the state of ``asked_at``."""

        def change(transaction: Transaction) -> dict[str, Any]:
            return self._recorded(transaction, question, advice, asked_at)

        found: dict[str, Any] = self.database.write(
            lambda connection: changing(connection, self.clock, change), job
        )
        return found

    def refusal(self, question: Question, code: str, words: str) -> Advice:
        """No advice, decided on nothing."""
        return no_advice(question.call, [(code, words)])

    def unrecorded(self, question: Question, advice: Advice) -> dict[str, Any]:
        """An answer that is on no record; its moments are the worker's own."""
        now = self.clock.at(time.time_ns() // 1000)
        row = AdviceRow(
            question.id, question.call.call_id, 0, question.key, question.digest,
            self._text(question, advice, now), now, now + round(self.expiry_s * SECOND),
        )  # fmt: skip
        return row.public() | {"state": "unrecorded"}

    def _look(self, question: Question, job: Job) -> tuple[Picture, AdviceRow | None]:
        """The state to decide on, and the last answer to the same request."""

        def read(connection: Connection) -> tuple[Picture, AdviceRow | None]:
            state = State(connection, self.clock)
            same = [row for row in state.of_call(question.call.call_id) if row.key == question.key]
            closed = [one for one in state.closures() if one.active(state.now)]
            picture = Picture(state.now, tuple(state.units()), self.laid(closed))
            return picture, same[-1] if same else None

        return self.database.read(read, job)

    def _recorded(
        self, tx: Transaction, question: Question, advice: Advice, asked_at: int
    ) -> dict[str, Any]:
        call_id, units = question.call.call_id, {one.id: one for one in tx.units()}
        earlier = tx.of_call(call_id)
        same = [row for row in earlier if row.key == question.key]
        if same and same[-1].digest != question.digest:
            raise ConflictError(
                "key_used", f"call {call_id!r}: this idempotency key came with another body; use "
                "a new key for a new revision",
            )  # fmt: skip
        if same and _stands(same[-1], question, tx.now):
            return same[-1].public()
        taken = {id_: units.get(id_) for id_ in advice.needs}
        taken = {id_: unit for id_, unit in taken.items() if not _free(unit, call_id, tx.now)}
        if taken and not question.simulated:
            raise _TakenError(taken)
        last = all(row.asked_at <= asked_at for row in earlier)
        row = AdviceRow(
            question.id, call_id, 1 + max((row.revision for row in earlier), default=0),
            question.key, question.digest, self._text(question, advice, asked_at), asked_at,
            asked_at + round(self.expiry_s * SECOND), "open" if last else "superseded",
        )  # fmt: skip
        lost = None
        if last:
            for old in earlier:
                if old.state == "open":
                    tx.put(replace(old, state="superseded"))
            if not question.simulated:
                lost = _promise(tx, units, advice, row)
        tx.put(row)
        made = row.public()
        body = {"request": question.content, "actor": question.actor, "answer": made}
        tx.log("recommendation", call_id, body)
        if lost is not None:
            log_lost_promise(tx, lost, "sent", call_id)
        return made

    def _text(self, question: Question, advice: Advice, asked_at: int) -> str:
        """The answer as it is kept: all but what columns say."""
        made_with = {
            **advice.fields["made_with"],
            "versions": dict(self.versions),
            "latency_ms": round(1000 * (time.monotonic() - question.began), 1),
        }
        return canonical({
            **advice.fields,
            "made_with": made_with,
            "received_at": question.content["received_at"] or moment_text(asked_at),
            "note": question.content.get("note"),
            "simulated": question.simulated,
        })  # fmt: skip


def _promise(
    tx: Transaction, units: Mapping[str, Unit], advice: Advice, row: AdviceRow
) -> Unit | None:
    """Hold the units of a new advice and release those of the one before.

    The CAD's primary goes, whoever counted on it: it is returned where another call loses it.
    """
    call_id, lost = row.call_id, None
    first = None if advice.chosen else units.get(advice.primary or "")
    after = {
        unit.id: unit.released for unit in units.values()
        if unit.promised_to == call_id and unit.promise != "accepted" and unit is not first
    }  # fmt: skip
    if first is not None:
        lost = first if first.held_by_other(call_id, tx.now) else None
        if not (first.promised_to == call_id and first.promise in ("accepted", "sent")):
            until = tx.now + HELD_US
            after[first.id] = replace(
                first, promised_to=call_id, promise="sent", promised_until=until
            )
    for id_ in (advice.primary if advice.chosen else None, advice.second):
        unit = None if id_ is None else units[id_]
        if unit is not None and not (unit.promised_to == call_id and unit.promise == "accepted"):
            until = row.expires_at
            after[unit.id] = replace(
                unit, promised_to=call_id, promise="advised", promised_until=until
            )
    for unit in after.values():
        if unit != units[unit.id]:
            tx.put(unit)
    return lost


def latest(state: State, limit: int) -> list[AdviceRow]:
    """The latest advice, newest first."""
    table = rows.advice
    query = sa.select(table).order_by(table.c.asked_at.desc(), table.c.revision.desc())
    found = state.connection.execute(query.limit(limit))
    return [AdviceRow(**row._mapping) for row in found]


def new_id() -> str:
    """An id that no other row has."""
    return uuid4().hex


def _free(unit: Unit | None, call_id: str, now: int) -> bool:
    return unit is not None and unit.free and not unit.held_by_other(call_id, now)


def _stands(row: AdviceRow, question: Question, now: int) -> bool:
    """Whether it still answers the request: not once it expired, nor where its cause may pass."""
    answer = json.loads(row.answer)
    codes = [reason["code"] for reason in answer["degraded"]][:1]
    may_pass = PASSING | {"unreachable"} if answer["made_with"].get("closures") else PASSING
    passing = answer["decision"] == "no_advice" and not may_pass.isdisjoint(codes)
    return row.digest == question.digest and now < row.expires_at and not passing
