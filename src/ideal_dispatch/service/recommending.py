"""From a request to an answer on record: decided on the units of now, recorded under the lock."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection

from ideal_dispatch.service import logs
from ideal_dispatch.service.clock import SECOND, ClockTable, moment, moment_text
from ideal_dispatch.service.deciding.adviser import no_advice
from ideal_dispatch.service.deciding.engine import Engine
from ideal_dispatch.service.errors import ConflictError
from ideal_dispatch.service.messages import Advice, Call, Closed, KnownWeather, Picture
from ideal_dispatch.service.record.chain import canonical
from ideal_dispatch.service.record.database import Database, Job
from ideal_dispatch.service.record.transaction import (
    AdviceRow,
    ClosureRow,
    State,
    Transaction,
    changing,
    released,
)
from ideal_dispatch.service.unit_news import HELD_US, log_lost_promise
from ideal_dispatch.service.units import Unit

_TRIES = 4  # to decide, where other calls get the unit meanwhile

PASSING = frozenset((
    "starting", "late", "not_decided", "internal_error", "call_in_future", "no_unit",
    "last_unit_promised", "units_unknown", "record_unavailable", "unknown_unit",
))  # fmt: skip
"""Why there was no advice, where there may be one a moment later."""

_COLUMNS = (
    "id", "call_id", "revision", "state", "asked_at", "expires_at", "reply",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    """A request: ``content`` is all of it but the key, as it goes on record."""

    call: Call
    content: Mapping[str, Any]
    key: str
    digest: str
    actor: str
    simulated: bool
    id: str
    began: float


class _Taken(Exception):  # noqa: N818
    """Units of an advice that other calls got meanwhile, by unit."""

    def __init__(self, calls: Mapping[str, str]) -> None:
        super().__init__(", ".join(calls))
        self.calls = calls


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
        for turn in range(1, _TRIES + 1):
            picture, before = self.look(question, job)
            if (
                before is not None
                and before.digest == question.digest
                and _stands(before, picture.now)
            ):
                return public(before)
            call = question.call
            if question.content["received_at"] is None:
                call = replace(call, received_at=moment(picture.now))
            with job.doing("deciding"):
                weather = self.weather(picture.now)
                advice = self.engine.adviser.advise(call, picture, weather, decide_by)
            try:
                return self.record(question, advice, picture.now, job)
            except _Taken as taken:
                calls = taken.calls
            if turn == _TRIES or time.monotonic() >= decide_by:
                break
        words = "; ".join(f"{unit} was just taken by {by}" for unit, by in calls.items())
        refused = self.refusal(question, "last_unit_promised", f"{words}; ask again")
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
        return public(row) | {"state": "unrecorded"}

    def look(self, question: Question, job: Job) -> tuple[Picture, AdviceRow | None]:
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
        if same and _stands(same[-1], tx.now):
            return public(same[-1])
        state = "open"
        if any(row.asked_at > asked_at for row in earlier):  # that was asked later
            state = "superseded"
        advice = advice if question.simulated else self._held(tx, units, question, advice)
        row = AdviceRow(
            question.id, call_id, 1 + max((row.revision for row in earlier), default=0),
            question.key, question.digest, self._text(question, advice, asked_at), asked_at,
            asked_at + round(self.expiry_s * SECOND), state,  # type: ignore[arg-type]
        )  # fmt: skip
        lost: list[Unit] = []
        if state == "open":
            for old in earlier:
                if old.state == "open":
                    tx.put_advice(replace(old, state="superseded"))
            if not question.simulated:
                lost = self._promise(tx, units, question, advice, row)
        tx.put_advice(row)
        made = public(row)
        body = {"request": question.content, "actor": question.actor, "answer": made}
        tx.log("recommendation", call_id, body)
        for unit in lost:
            log_lost_promise(tx, unit, "sent", call_id)
        return made

    def _held(
        self, tx: Transaction, units: Mapping[str, Unit], question: Question, advice: Advice
    ) -> Advice:
        """The advice on units that are still free: equals of the same station in their place."""
        call_id = question.call.call_id
        assumed = advice.primary in advice.equals  # the CAD named the depot alone
        chosen = advice.primary if advice.chosen or assumed else None
        needed = [one for one in (chosen, advice.second) if one is not None]
        used, taken = set(needed), dict[str, str]()
        fields = advice.fields
        for id_ in needed:
            if _free(units.get(id_), call_id, tx.now):
                continue
            equals = (one for one in advice.equals.get(id_, ()) if one not in used)
            other = next((one for one in equals if _free(units.get(one), call_id, tx.now)), None)
            if other is None and id_ == chosen and not advice.chosen:
                continue  # it goes all the same
            if other is None:
                unit = units.get(id_)
                by = "nobody: it is gone" if unit is None else unit.promised_to or unit.status
                taken[id_] = f"call {by}" if unit is not None and unit.promised_to else str(by)
                continue
            used.add(other)
            role = "primary" if id_ == chosen else "second"
            headline = str(fields["headline"]).replace(id_, other)
            fields = {**fields, "headline": headline, role: {**fields[role], "unit": other}}
            primary, second = advice.primary, advice.second
            primary, second = (other, second) if role == "primary" else (primary, other)
            advice = replace(advice, fields=fields, primary=primary, second=second)
        if taken:
            raise _Taken(taken)
        return advice

    def _promise(
        self, tx: Transaction, units: dict[str, Unit], question: Question, advice: Advice,
        row: AdviceRow,
    ) -> list[Unit]:  # fmt: skip
        """Hold the units of a new advice, release those of the one before; units others lost."""
        call_id, lost = row.call_id, list[Unit]()
        after: dict[str, Unit] = {}
        for unit in units.values():
            mine = unit.promised_to == call_id and unit.promise in ("advised", "sent")
            if mine and unit.id != (None if advice.chosen else advice.primary):
                after[unit.id] = released(unit)
        first = units.get(advice.primary or "")
        if first is not None and not advice.chosen:  # the CAD sends it, whoever counted on it
            if first.held_by_other(call_id, tx.now):
                lost.append(first)
            if not (first.promised_to == call_id and first.promise in ("accepted", "sent")):
                after[first.id] = replace(
                    first, promised_to=call_id, promise="sent", promised_until=tx.now + HELD_US
                )
        for id_ in (advice.primary if advice.chosen else None, advice.second):
            if id_ is None:
                continue
            unit = after.get(id_, units[id_])
            if not (unit.promised_to == call_id and unit.promise == "accepted"):
                after[id_] = replace(
                    unit, promised_to=call_id, promise="advised", promised_until=row.expires_at
                )
        for unit in after.values():
            if unit != units[unit.id]:
                tx.put_unit(unit)
        return lost

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


def public(row: AdviceRow) -> dict[str, Any]:
    """An advice as the API gives it."""
    return {
        "id": row.id,
        "call_id": row.call_id,
        "revision": row.revision,
        "state": row.state,
        "asked_at": moment_text(row.asked_at),
        "expires_at": moment_text(row.expires_at),
        "reply": None if row.reply is None else json.loads(row.reply),
        **json.loads(row.answer),
    }


def answer_of(recommendation: Mapping[str, Any]) -> dict[str, Any]:
    """What :class:`AdviceRow` keeps as the answer of a recommendation of the API."""
    return {name: value for name, value in recommendation.items() if name not in _COLUMNS}


def new_id() -> str:
    """An id that no other row has."""
    return uuid4().hex


def _free(unit: Unit | None, call_id: str, now: int) -> bool:
    return unit is not None and unit.free and not unit.held_by_other(call_id, now)


def _stands(row: AdviceRow, now: int) -> bool:
    """Whether it is still the answer: not once it expired, nor where its cause may pass."""
    answer = json.loads(row.answer)
    codes = [reason["code"] for reason in answer["degraded"]][:1]
    may_pass = PASSING | {"unreachable"} if answer["made_with"].get("closures") else PASSING
    passing = answer["decision"] == "no_advice" and not may_pass.isdisjoint(codes)
    return not passing and now < row.expires_at
