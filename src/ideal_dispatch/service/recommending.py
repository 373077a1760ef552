"""From a request to an answer on record: decided on the units of now, recorded under the lock."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from ideal_dispatch.service import logs
from ideal_dispatch.service.clock import SECOND, moment_text
from ideal_dispatch.service.deciding.assets import Closed
from ideal_dispatch.service.deciding.engine import Advice, Engine, Picture, no_advice
from ideal_dispatch.service.deciding.weather import KnownWeather
from ideal_dispatch.service.errors import ConflictError
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.database import Database, Job, State, Transaction
from ideal_dispatch.service.record.rows import AdviceRow, ClosureRow, canonical
from ideal_dispatch.service.requests import RecommendationRequest
from ideal_dispatch.service.unit_news import log_lost_promise
from ideal_dispatch.service.units import HELD_US, Unit, check_free

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
    """Other calls got units of an advice meanwhile, or they are gone."""


@dataclass(frozen=True, slots=True)
class Recommender:
    """Answers questions in the thread that decides; ``laid`` are the edges of closures here."""

    database: Database
    engine: Engine
    weather: Callable[[int], KnownWeather]
    laid: Callable[[Sequence[ClosureRow]], tuple[Closed, ...]]
    versions: Mapping[str, str]
    expiry_s: float

    def answer(self, question: Question, decide_by: float, job: Job) -> dict[str, Any]:
        """The answer on record: made now, or as it was if the same was asked before.

        Where another call got a unit meanwhile, it is decided once more.
        """
        call = question.call
        logs.call_id.set(call.call_id)

        def look(state: State) -> tuple[Picture, list[AdviceRow]]:
            closed = self.laid(state.closures(active=True))
            return Picture(state.now, tuple(state.units()), closed), state.of_call(call.call_id)

        for _ in range(_TRIES):
            picture, earlier = self.database.read(look, job)
            before = _standing(earlier, question, picture.now)
            if before is not None:
                return before.public()
            with job.doing("deciding"):
                weather = self.weather(picture.now)
                advice = self.engine.adviser.advise(call, picture, weather, decide_by)
            try:
                return self.record(question, advice, picture.now, job)
            except _TakenError as error:
                refused = no_advice(call, [("last_unit_promised", str(error))])
            if time.monotonic() >= decide_by:
                break
        return self.record(question, refused, picture.now, job)

    def record(self, question: Question, advice: Advice, asked_at: int, job: Job) -> dict[str, Any]:
        """Put an advice on record that was decided on the state of ``asked_at``."""
        change = partial(self._record, question=question, advice=advice, asked_at=asked_at)
        return self.database.change(change, job).public()

    def unrecorded(self, question: Question, code: str, words: str) -> dict[str, Any]:
        """No advice, on no record; its moments are the worker's own."""
        advice = no_advice(question.call, [(code, words)])
        now = self.database.clock.at(time.time_ns() // 1000)
        return self._row(question, advice, now, 0).public() | {"state": "unrecorded"}

    def _record(
        self, tx: Transaction, question: Question, advice: Advice, asked_at: int
    ) -> AdviceRow:
        call_id, units = question.call.call_id, {one.id: one for one in tx.units()}
        earlier = tx.of_call(call_id)
        before = _standing(earlier, question, tx.now)
        if before is not None:
            return before
        if not question.simulated:
            try:
                for id_ in advice.needs:
                    check_free(units.get(id_), id_, call_id, tx.now)
            except ConflictError as error:
                raise _TakenError(str(error)) from None
        revision = 1 + max((row.revision for row in earlier), default=0)
        row, lost = self._row(question, advice, asked_at, revision), None
        if any(other.asked_at > asked_at for other in earlier):
            row = replace(row, state="superseded")
        else:
            for old in earlier:
                if old.state == "open":
                    tx.put(replace(old, state="superseded"))
            if not question.simulated:
                lost = _promise(tx, units, advice, row)
        tx.put(row)
        tx.log("recommendation", call_id, {
            "request": question.content, "actor": question.actor, "answer": row.public(),
        })  # fmt: skip
        if lost is not None:
            log_lost_promise(tx, lost, "sent", call_id)
        return row

    def _row(self, question: Question, advice: Advice, asked_at: int, revision: int) -> AdviceRow:
        made_with = {
            **advice.fields["made_with"],
            "versions": dict(self.versions),
            "latency_ms": round(1000 * (time.monotonic() - question.began), 1),
        }
        answer = canonical({
            **advice.fields,
            "made_with": made_with,
            "received_at": question.content["received_at"] or moment_text(asked_at),
            "note": question.content.get("note"),
            "simulated": question.simulated,
        })  # fmt: skip
        expires_at = asked_at + round(self.expiry_s * SECOND)
        return AdviceRow(
            question.id, question.call.call_id, revision, question.key, question.digest, answer,
            asked_at, expires_at,
        )  # fmt: skip


def _standing(earlier: Sequence[AdviceRow], question: Question, now: int) -> AdviceRow | None:
    """The advice on record that answers the request, if one does.

    It does not once it expired, nor where there was none for a cause that may have passed.
    """
    row = next((row for row in reversed(earlier) if row.key == question.key), None)
    if row is None:
        return None
    if row.digest != question.digest:
        raise ConflictError(
            "key_used", f"call {row.call_id!r}: this idempotency key came with another body; use "
            "a new key for a new revision",
        )  # fmt: skip
    answer = json.loads(row.answer)
    codes = [reason["code"] for reason in answer["degraded"]][:1]
    may_pass = PASSING | {"unreachable"} if answer["made_with"].get("closures") else PASSING
    passing = answer["decision"] == "no_advice" and not may_pass.isdisjoint(codes)
    stands = now < row.expires_at and not passing
    return row if stands or row.id == question.id else None


def _promise(
    tx: Transaction, units: Mapping[str, Unit], advice: Advice, row: AdviceRow
) -> Unit | None:
    """Hold the units of a new advice and release those of the one before.

    The CAD's primary goes, whoever counted on it: it is returned where another call loses it.
    """
    call_id = row.call_id
    sent = None if advice.chosen else units.get(advice.primary or "")
    for unit in units.values():
        if unit.promised_to == call_id and unit.promise != "accepted" and unit is not sent:
            tx.put(unit.released)
    if sent is not None and (sent.promised_to != call_id or sent.promise == "advised"):
        tx.put(sent.held(call_id, "sent", tx.now + HELD_US))
    for id_ in (advice.primary if advice.chosen else None, advice.second):
        if id_ is not None and (
            units[id_].promised_to != call_id or units[id_].promise != "accepted"
        ):
            tx.put(units[id_].held(call_id, "advised", row.expires_at))
    return sent if sent is not None and sent.held_by_other(call_id, tx.now) else None


def latest(state: State, limit: int) -> list[AdviceRow]:
    """The latest advice, newest first."""
    asked = rows.advice.c.asked_at.desc(), rows.advice.c.revision.desc()
    return state.rows_of(AdviceRow, sa.select(rows.advice).order_by(*asked).limit(limit))


def new_id() -> str:
    """An id that no other row has."""
    return uuid4().hex
