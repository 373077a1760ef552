"""Replies of dispatchers, and running dispatches: both units followed until one has arrived.

A running dispatch is an accepted advice with a view: what is expected of both units, and what is
asked of the dispatcher. A view that changed is a row of the log.
"""

# ruff: noqa: A002 - as the API names an id

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import sqlalchemy as sa

from ideal_dispatch.service.clock import SECOND, from_text, moment_text
from ideal_dispatch.service.deciding.assets import Closed
from ideal_dispatch.service.deciding.engine import Engine
from ideal_dispatch.service.deciding.reassessing import Followed, FollowedUnit, looked_at
from ideal_dispatch.service.deciding.weather import KnownWeather
from ideal_dispatch.service.errors import ConflictError, RecordUnavailableError
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.database import Database, Job, State, Transaction
from ideal_dispatch.service.record.rows import AdviceRow, ClosureRow, canonical
from ideal_dispatch.service.requests import Location
from ideal_dispatch.service.units import HELD_US, THERE, Promise, Unit, check_free

log = logging.getLogger(__name__)

LONGEST_US = 2 * 3600 * SECOND
"""After which nothing is followed any more."""

SHOWN_US = 3600 * SECOND
"""How long a dispatch that ended is shown."""

_MOVED_S = 10.0  # an expected arrival that moved so far is news
_AT_ONCE = 10
_INSIDE = ("said", "second_at", "sent_at")  # of a view: for the next look, not for clients


def begun(tx: Transaction, row: AdviceRow, answer: Mapping[str, Any]) -> AdviceRow:
    """The accepted advice as a dispatch that begins now."""
    waited_s = (tx.now - row.asked_at) / SECOND
    view = {
        "id": row.id, "call_id": row.call_id, "state": "running",
        "started_at": moment_text(tx.now), "ended_at": None, "as_of": moment_text(tx.now),
        "second_first": answer["second_first"], "saves": answer["gain_survival"],
        "cost": (answer["why"]["cost"] or {}).get("lives"), "question": None,
        "reason": "Both units are on their way.",
        "reasons": [{"code": "under_way", "values": {}}], "reply": None,
        "changes": 0, "said": None, "sent_at": row.asked_at, "second_at": tx.now,
    }  # fmt: skip
    for role in ("primary", "second"):
        unit = tx.unit(answer[role]["unit"])
        assert unit is not None
        expected_s = max(answer[role]["arrival"]["expected_s"] - waited_s, 0.0)
        view[role] = unit_in_view(unit, expected_s)
    return replace(row, state="running", view=canonical(view), due_at=tx.now)


def ended(tx: Transaction, row: AdviceRow) -> AdviceRow:
    """The dispatch as one that is over; the log says so."""
    view = _with_status(tx, json.loads(row.view or "{}"))
    view |= {"state": "ended", "ended_at": moment_text(tx.now), "question": None}
    tx.log("dispatch", row.call_id, {"id": row.id, "dispatch": view, "actor": "service"})
    return replace(row, state="ended", view=canonical(view), ended_at=tx.now, due_at=None)


def plain(row: AdviceRow) -> dict[str, Any] | None:
    """A dispatch for the API; None where the advice became none."""
    return None if row.view is None else shown_fields(json.loads(row.view))


def shown_fields(view: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a view that are for clients."""
    return {name: value for name, value in view.items() if name not in _INSIDE}


def shown(state: State) -> list[AdviceRow]:
    """Dispatches that run, and those that ended within the last hour, newest first."""
    table = rows.advice
    running = table.c.due_at.is_not(None)
    query = sa.select(table).where(running | (table.c.ended_at > state.now - SHOWN_US))
    return state.rows_of(AdviceRow, query.order_by(table.c.asked_at.desc()))


@dataclass(frozen=True, slots=True)
class DispatchFollower:
    """Looks at dispatches that are due, in a thread of the worker."""

    database: Database
    engine: Engine
    weather: Callable[[int], KnownWeather]
    laid: Callable[[Sequence[ClosureRow]], tuple[Closed, ...]]

    def look(self, job: Job) -> int:
        """Look at those that are due; how many there were."""
        due = self.database.touch(_claim, job)
        for id_ in due:
            try:
                self._look_at(id_, job)
            except RecordUnavailableError:
                raise
            except Exception:  # one that cannot be followed must not hold up the others
                log.exception("dispatch %s: unexpected", id_)
        return len(due)

    def _look_at(self, id_: str, job: Job) -> None:
        picture = self.database.read(partial(self._picture, advice_id=id_), job)
        if picture is None:
            return
        now, row, followed, closed = picture
        found = None
        if followed is not None:
            with job.doing("deciding"):
                weather = self.weather(now).weather
                found = looked_at(self.engine.assets, followed, closed, weather, now)
        self.database.change(partial(_change, seen=row, followed=followed, found=found), job)

    def _picture(
        self, state: State, advice_id: str
    ) -> tuple[int, AdviceRow, Followed | None, tuple[Closed, ...]] | None:
        row = state.advice(advice_id)
        if row is None or row.state != "running":
            return None
        units = {one.id: one for one in state.units()}
        closed = self.laid(state.closures(active=True))
        return state.now, row, _followed(row, units, state.now), closed


def _claim(state: State) -> list[str]:
    """Dispatches that are due, and that no other worker looks at for now."""
    table = rows.advice
    due = sa.select(table.c.id).where(table.c.due_at <= state.now).order_by(table.c.due_at)
    due = due.limit(_AT_ONCE).with_for_update(skip_locked=True)
    found = list(state.connection.execute(due).scalars())
    if found:
        later = sa.update(table).where(table.c.id.in_(found))
        state.connection.execute(later.values(due_at=state.now + round(state.clock.speed * SECOND)))
    return found


def _followed(row: AdviceRow, units: Mapping[str, Unit], now: int) -> Followed | None:
    """What is known of a dispatch now; None where it is over.

    Where neither unit is on the call any more and the first is free, they were called off, or
    the arrival was not reported.
    """
    answer, view = json.loads(row.answer), json.loads(row.view or "{}")
    first, second = (units.get(view[role]["unit"]) for role in ("primary", "second"))
    started, running = from_text(view["started_at"]), view["state"] == "running"
    if first is None or (second is None and running) or now - started > LONGEST_US:
        return None
    one = progress(first, row.call_id, view["sent_at"], now)
    two = None
    if running and second is not None:
        two = progress(second, row.call_id, view["second_at"], now)
    if two is not None and two.state != "lost":
        if two.state == "arrived":
            return None
    elif one.state == "arrived" or (one.state == "lost" and first.free):
        return None
    else:
        two = None  # another one may have to go
    others = (first.id, "" if two is None else two.unit.id)
    free = tuple(
        unit for unit in units.values()
        if unit.free and not unit.held_by_other(row.call_id, now) and unit.id not in others
    )  # fmt: skip
    place, cost = answer["location"], answer["why"]["cost"] or {}
    traffic = {
        each["unit"]: {"router_s": each["quote_s"], "forecast_s": each["forecast_s"]}
        for each in answer["considered"]
        if each["unit"] in others and each["forecast_s"] is not None
    }  # fmt: skip
    return Followed(
        row.call_id, Location(lon=place["lon"], lat=place["lat"]), one, two, free,
        cost.get("lives"), cost.get("hold_s") or answer["primary"]["arrival"]["expected_s"],
        view["said"], traffic,
    )  # fmt: skip


def progress(unit: Unit, call_id: str, sent_at: int, now: int) -> FollowedUnit:
    """How a unit of a dispatch gets on; one still busy with what it did before has yet to leave."""
    elsewhere = not unit.free and unit.call_id not in (None, call_id)
    off = unit.free and not (unit.promised_to == call_id and unit.promised(now))
    state: Literal["waiting", "en_route", "arrived", "lost"] = "waiting"
    if elsewhere or unit.status == "out_of_service" or off:
        state = "lost"
    elif unit.status == "en_route":
        state = "en_route"
    elif unit.status in THERE and (unit.since > sent_at or unit.call_id == call_id):
        state = "arrived"
    return FollowedUnit(unit, state, max(now - sent_at, 0) / SECOND)


def _change(
    tx: Transaction, seen: AdviceRow, followed: Followed | None, found: Mapping[str, Any] | None
) -> None:
    """Put on record what a look at a dispatch found; a reply meanwhile has it looked at again."""
    row = tx.advice(seen.id)
    if row is None or row.state != "running" or row.view != seen.view:
        return
    before = json.loads(row.view or "{}")
    if followed is None:
        second = tx.unit(before["second"]["unit"])
        if second is not None and second.free and second.promised_to == row.call_id:
            tx.put(second.released)
        tx.put(ended(tx, row))
        return
    after = _view(tx, before, followed, found)
    if _is_news(before, after):
        tx.put(replace(row, view=canonical(after)))
        body: dict[str, Any] = {"id": row.id, "dispatch": after, "actor": "service"}
        if found is not None:
            body["starts"] = found["starts"]
        tx.log("dispatch", row.call_id, body)


def unit_in_view(unit: Unit, expected_s: float | None) -> dict[str, Any]:
    """A unit of a dispatch as its view has it."""
    return {
        "unit": unit.id, "depot": unit.depot, "status": unit.status,
        "expected_s": _rounded(expected_s, 1),
    }  # fmt: skip


def _with_status(tx: Transaction, view: Mapping[str, Any]) -> dict[str, Any]:
    """The view with what both units do now; when they are expected is not known."""
    view = {**view, "as_of": moment_text(tx.now)}
    for role in ("primary", "second"):
        unit = tx.unit(view[role]["unit"])
        status = None if unit is None else unit.status
        view[role] = {**view[role], "status": status, "expected_s": None}
    return view


def _view(
    tx: Transaction, before: dict[str, Any], followed: Followed, found: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The view of a dispatch after a look at it; figures that are not known are None."""
    view = _with_status(tx, before) | {"second_first": None, "saves": None, "cost": None}
    if found is None:
        return view
    said = found["said"]
    view["primary"]["expected_s"] = _rounded(said["first_s"], 1)
    if followed.second is not None:
        view["second"]["expected_s"] = _rounded(said["second_s"], 1)
    view |= {
        "second_first": _rounded(said["second_first"], 3), "saves": _rounded(said["saves"], 9),
        "cost": _rounded(said["cost"], 9), "reason": said["reason"], "reasons": said["reasons"],
    }  # fmt: skip
    last = "keep" if before["said"] is None else before["said"]["advice"]
    asked, free = before["question"], {unit.id for unit in followed.free}
    gone = asked is not None and asked["advice"] == "send_one" and asked["unit"] not in free
    if said["advice"] == last and not (gone and last == "send_one"):
        return view
    view["said"] = {name: said[name] for name in ("advice", "at_s", "changes", "changed_s")}
    view |= {"changes": said["changes"], "reply": None, "question": None}
    if said["advice"] != "keep":
        goes = (said["second"] if said["advice"] == "send_one" else before["second"]) or {}
        view["question"] = {
            "id": f"{before['id']}-{tx.head.number + 1}", "advice": said["advice"],
            "unit": goes.get("unit"), "depot": goes.get("depot"),
            "reason": said["reason"], "reasons": said["reasons"], "asked_at": moment_text(tx.now),
        }  # fmt: skip
    return view


def _is_news(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a view says something else: a status, a question, or an arrival that moved."""
    passed_s = (from_text(after["as_of"]) - from_text(before["as_of"])) / SECOND
    for role in ("primary", "second"):
        old, new = dict(before[role]), dict(after[role])
        was_s, is_s = old.pop("expected_s"), new.pop("expected_s")
        if old != new or (was_s is None) != (is_s is None):
            return True
        if was_s is not None and abs(max(was_s - passed_s, 0) - is_s) > _MOVED_S:
            return True
    return any(before[name] != after[name] for name in ("state", "question", "reply", "said"))


def _rounded(value: Any, digits: int) -> float | None:
    return None if value is None else round(float(value), digits)


# --- replies ----------------------------------------------------------------------------


def reply(tx: Transaction, id: str, said: Mapping[str, Any], actor: str) -> dict[str, Any] | None:
    """The recommendation with the reply to it; None where there is no such recommendation."""
    row = tx.advice(id)
    if row is None:
        return None
    given = {**said, "by": actor, "at": moment_text(tx.now)}
    change = _to_advice if said["action"] in ("accept", "override") else _to_dispatch
    changed = change(tx, row, given)
    if changed is not row:
        tx.put(changed)
        if changed.reply != row.reply:
            tx.log("reply", row.call_id, {
                "id": row.id, "call_id": row.call_id, "state": changed.state, "reply": given,
            })  # fmt: skip
        if changed.view != row.view:
            view = json.loads(changed.view or "{}")
            tx.log("dispatch", row.call_id, {"id": row.id, "dispatch": view, "actor": actor})
    return changed.public()


def _to_advice(tx: Transaction, row: AdviceRow, given: Mapping[str, Any]) -> AdviceRow:
    """Accept or override an advice; the same row where it was said before."""
    before, answer = json.loads(row.reply or "null"), json.loads(row.answer)
    if before is not None:
        if _same(before, given):
            return row
        words = f"{before['by']} answered this advice already: {before['action']}"
        raise ConflictError("answered", words, reply=before)
    if row.state == "superseded":
        raise ConflictError("superseded", f"call {row.call_id!r} has a newer advice; answer that")
    if row.expires_at <= tx.now:
        words = f"the advice for call {row.call_id!r} expired at {moment_text(row.expires_at)}"
        raise ConflictError("expired", f"{words}; let the CAD ask again")
    if answer["decision"] == "no_advice":
        raise ConflictError("no_advice", "there is no advice to answer")

    primary, second = answer["primary"], answer["second"]
    sends_second = answer["decision"] == "send_second"
    used = [primary["unit"]] if primary is not None and primary["chosen_by"] == "router" else []
    used += [second["unit"]] if sends_second else []
    used = [one for one in used if one is not None]
    row = replace(row, reply=canonical(given))
    if given["action"] == "override":
        for id_ in used:  # what an earlier advice on the call sent goes on
            _release(tx, id_, row.call_id, "advised")
        return replace(row, state="overridden")
    row = replace(row, state="accepted")
    if answer["simulated"]:
        return row
    for unit in [check_free(tx.unit(id_), id_, row.call_id, tx.now) for id_ in used]:
        _send(tx, unit, row.call_id)
    both = [tx.unit(one["unit"] or "") for one in (primary, second) if one is not None]
    named = len(both) == 2 and not any(one is None or one.anonymous for one in both)
    if not (sends_second and named):
        return row
    for other in tx.of_call(row.call_id):  # a revision takes the place of the advice before
        if other.state == "running":
            tx.put(ended(tx, other))
            second_before = json.loads(other.view or "{}")["second"]["unit"]
            if second_before not in used:
                _release(tx, second_before, row.call_id)
    return begun(tx, row, answer)


def _to_dispatch(tx: Transaction, row: AdviceRow, given: Mapping[str, Any]) -> AdviceRow:
    """Change a running dispatch: stand the second down, keep it, or send the proposed unit."""
    if row.view is None:
        raise ConflictError("ended", f"call {row.call_id!r} has no running dispatch")
    view = json.loads(row.view)
    before, question = view["reply"], view["question"]
    if before is not None and question is None and _same(before, given):
        return row
    if row.state != "running":
        raise ConflictError("ended", f"the dispatch of call {row.call_id!r} has ended")
    action, asked = given["action"], given.get("question")
    if asked is not None and (question is None or question["id"] != asked):
        if before is not None and before.get("question") == asked:
            raise ConflictError("answered", f"{before['by']} answered this already", reply=before)
        raise ConflictError("superseded", f"call {row.call_id!r} is asked something else now")
    if question is None and action != "stand_down":
        raise ConflictError("answered", "nothing is asked about this dispatch", reply=before)
    if action == "stand_down":
        if view["state"] != "running":
            raise ConflictError("ended", "the second unit was stood down already")
        _release(tx, view["second"]["unit"], row.call_id)
        view |= {"state": "stood_down", "second_first": None, "reason": "", "reasons": []}
        view["second"] = {**view["second"], "expected_s": None}
    elif action == "send_one":
        if question["advice"] != "send_one" or question["unit"] is None:
            raise ConflictError("superseded", "no unit is proposed; the CAD may ask again")
        id_ = question["unit"]
        unit = check_free(tx.unit(id_), id_, row.call_id, tx.now)
        _send(tx, unit, row.call_id)
        view |= {"state": "running", "second": unit_in_view(unit, None), "second_at": tx.now}
    view |= {"reply": given, "question": None, "as_of": moment_text(tx.now)}
    return replace(row, view=canonical(view), due_at=tx.now)


def _same(before: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    return {**before, "at": None} == {**given, "at": None}


def _send(tx: Transaction, unit: Unit, call_id: str) -> None:
    """Promise an accepted unit; one of a count leaves, for nothing else will report it."""
    unit = unit.held(call_id, "accepted", tx.now + HELD_US)
    if unit.anonymous:
        unit = replace(unit, status="dispatched", call_id=call_id, since=tx.now, status_at=tx.now)
    tx.put(unit)


def _release(tx: Transaction, id_: str, call_id: str, promise: Promise | None = None) -> None:
    unit = tx.unit(id_)
    if unit is not None and unit.promised_to == call_id and promise in (None, unit.promise):
        tx.put(unit.released)
