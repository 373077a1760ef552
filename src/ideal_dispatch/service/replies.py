"""What a dispatcher answers: accept or override an advice, or change a running dispatch."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ideal_dispatch.service.clock import moment_text
from ideal_dispatch.service.dispatches import begun, ended
from ideal_dispatch.service.errors import ConflictError
from ideal_dispatch.service.recommending import public
from ideal_dispatch.service.record.chain import canonical
from ideal_dispatch.service.record.transaction import AdviceRow, Transaction, released
from ideal_dispatch.service.unit_news import HELD_US
from ideal_dispatch.service.units import Promise, Unit


def reply(
    tx: Transaction,
    id: str,  # noqa: A002
    said: Mapping[str, Any],
    actor: str,
) -> dict[str, Any] | None:
    """The recommendation with the reply to it; None where there is no such recommendation.

    The first reply to an advice is final. What no longer holds is refused, and changes nothing.
    """
    row = tx.advice(id)
    if row is None:
        return None
    given = {**said, "by": actor, "at": moment_text(tx.now)}
    if said["action"] in ("accept", "override"):
        return _first(tx, row, given)
    return _later(tx, row, given)


def _first(tx: Transaction, row: AdviceRow, given: dict[str, Any]) -> dict[str, Any]:
    """Accept or override an advice."""
    if row.reply is not None:
        before = json.loads(row.reply)
        if _same(before, given):
            return public(row)
        words = f"{before['by']} answered this advice already: {before['action']}"
        raise ConflictError("answered", words, reply=before)
    answer = json.loads(row.answer)
    if row.state == "superseded":
        raise ConflictError("superseded", f"call {row.call_id!r} has a newer advice; answer that")
    if row.expires_at <= tx.now:
        raise ConflictError(
            "expired",
            f"the advice for call {row.call_id!r} expired at {moment_text(row.expires_at)}; let "
            "the CAD ask again",
        )
    if answer["decision"] == "no_advice":
        raise ConflictError("no_advice", "there is no advice to answer")
    accepted = given["action"] == "accept"
    used = _used(answer)
    if accepted and not answer["simulated"]:
        row = _accept(tx, row, answer, used, given)
    else:
        state = "accepted" if accepted else "overridden"
        row = replace(row, reply=canonical(given), state=state)  # type: ignore[arg-type]
        if not accepted:  # what an earlier advice on the call sent goes on
            _release(tx, [one for one in used if one is not None], row.call_id, "advised")
    tx.put_advice(row)
    _log(tx, row)
    return public(row)


def _accept(
    tx: Transaction,
    row: AdviceRow,
    answer: Mapping[str, Any],
    used: Sequence[str | None],
    given: Mapping[str, Any],
) -> AdviceRow:
    """Promise the units, and begin to follow the dispatch where both are known by name."""
    units = [_still_free(tx, id_, row.call_id) for id_ in used if id_ is not None]
    for unit in units:
        _send(tx, unit, row.call_id)
    row = replace(row, reply=canonical(given), state="accepted")
    primary, second = answer["primary"], answer["second"]
    if answer["decision"] != "send_second":
        return row
    both = [tx.unit(one["unit"]) if one["unit"] else None for one in (primary, second)]
    if any(one is None or one.anonymous for one in both):
        return row
    for other in tx.of_call(row.call_id):  # a revision takes the place of the one before
        if other.state == "running" and other.id != row.id:
            over = ended(tx, other, tx.now)
            if other.second_unit not in used:
                _release(tx, [other.second_unit or ""], row.call_id)
            tx.put_advice(over)
    return begun(tx, row, answer)


def _later(tx: Transaction, row: AdviceRow, given: dict[str, Any]) -> dict[str, Any]:
    """Change a running dispatch: stand the second down, keep it, or send the proposed unit."""
    if row.view is None:
        raise ConflictError("ended", f"call {row.call_id!r} has no running dispatch")
    view = json.loads(row.view)
    before, question = view["reply"], view["question"]
    if before is not None and question is None and _same(before, given):
        return public(row)
    if row.state != "running":
        raise ConflictError("ended", f"the dispatch of call {row.call_id!r} has ended")
    action, asked = given["action"], given.get("question")
    if asked is not None and (question is None or question["id"] != asked):
        if before is not None and before.get("question") == asked:
            raise ConflictError("answered", f"{before['by']} answered this already", reply=before)
        raise ConflictError("superseded", f"call {row.call_id!r} is asked something else now")
    if question is None and action != "stand_down":
        raise ConflictError("answered", "nothing is asked about this dispatch", reply=before)
    second = row.second_unit
    if action == "stand_down":
        if view["state"] != "running":
            raise ConflictError("ended", "the second unit was stood down already")
        _release(tx, [second or ""], row.call_id)
        view["state"] = "stood_down"
    elif action == "send_one":
        if question["advice"] != "send_one" or question["unit"] is None:
            raise ConflictError("superseded", "no unit is proposed; the CAD may ask again")
        unit = _still_free(tx, question["unit"], row.call_id)
        _send(tx, unit, row.call_id)
        second, view["state"] = unit.id, "running"
        view["second"] = {
            "unit": unit.id, "depot": unit.depot, "status": unit.status, "expected_s": None,
        }  # fmt: skip
        view["second_at"] = tx.now
    view["reply"], view["question"], view["as_of"] = given, None, moment_text(tx.now)
    row = replace(row, view=canonical(view), second_unit=second, due_at=tx.now)
    tx.put_advice(row)
    tx.log("dispatch", row.call_id, {"id": row.id, "dispatch": view, "actor": given["by"]})
    return public(row)


def _log(tx: Transaction, row: AdviceRow) -> None:
    said = json.loads(row.reply or "null")
    body = {"id": row.id, "call_id": row.call_id, "state": row.state, "reply": said}
    tx.log("reply", row.call_id, body)
    if row.view is not None:
        view = json.loads(row.view)
        tx.log("dispatch", row.call_id, {"id": row.id, "dispatch": view, "actor": said["by"]})


def _used(answer: Mapping[str, Any]) -> list[str | None]:
    """The units that an advice sends: the second, and the primary where we chose it."""
    used: list[str | None] = []
    primary = answer["primary"]
    if primary is not None and primary["chosen_by"] == "router":
        used.append(primary["unit"])
    if answer["decision"] == "send_second":
        used.append(answer["second"]["unit"])
    return used


def _same(before: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    return {**before, "at": None} == {**given, "at": None}


def _still_free(tx: Transaction, id: str, call_id: str) -> Unit:  # noqa: A002
    """The unit, if it can still be sent to the call, or is on it already."""
    unit = tx.unit(id)
    if unit is None:
        raise ConflictError("unit_gone", f"{id} is no longer reported; let the CAD ask again")
    if unit.held_by_other(call_id, tx.now):
        words = f"{id} is promised to call {unit.promised_to}; let the CAD ask again"
        raise ConflictError("unit_promised", words)
    if not unit.free and unit.call_id != call_id:
        status = unit.status.replace("_", " ")
        raise ConflictError("unit_gone", f"{id} is {status}; let the CAD ask again")
    return unit


def _send(tx: Transaction, unit: Unit, call_id: str) -> None:
    """Promise an accepted unit; one of a count leaves, for nothing else will report it."""
    unit = replace(unit, promised_to=call_id, promise="accepted", promised_until=tx.now + HELD_US)
    if unit.anonymous:
        unit = replace(unit, status="dispatched", call_id=call_id, since=tx.now, status_at=tx.now)
    tx.put_unit(unit)


def _release(
    tx: Transaction, ids: Sequence[str], call_id: str, kind: Promise | None = None
) -> None:
    for id_ in ids:
        unit = tx.unit(id_)
        if unit is not None and unit.promised_to == call_id and kind in (None, unit.promise):
            tx.put_unit(released(unit))
