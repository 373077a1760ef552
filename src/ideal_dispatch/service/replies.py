"""What a dispatcher answers: accept or override an advice, or change a running dispatch.

The first reply to an advice is final. What no longer holds is refused, and changes nothing.
"""

# ruff: noqa: A002 - as the API names an id

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ideal_dispatch.service.clock import moment_text
from ideal_dispatch.service.dispatches import begun, ended, unit_in_view
from ideal_dispatch.service.errors import ConflictError
from ideal_dispatch.service.record.rows import AdviceRow, canonical
from ideal_dispatch.service.record.transaction import Transaction
from ideal_dispatch.service.units import HELD_US, Promise, Unit


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
    for unit in [_still_free(tx, id_, row.call_id) for id_ in used]:
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
        unit = _still_free(tx, question["unit"], row.call_id)
        _send(tx, unit, row.call_id)
        view |= {"state": "running", "second": unit_in_view(unit, None), "second_at": tx.now}
    view |= {"reply": given, "question": None, "as_of": moment_text(tx.now)}
    return replace(row, view=canonical(view), due_at=tx.now)


def _same(before: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    return {**before, "at": None} == {**given, "at": None}


def _still_free(tx: Transaction, id: str, call_id: str) -> Unit:
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
    unit = unit.held(call_id, "accepted", tx.now + HELD_US)
    if unit.anonymous:
        unit = replace(unit, status="dispatched", call_id=call_id, since=tx.now, status_at=tx.now)
    tx.put(unit)


def _release(tx: Transaction, id_: str, call_id: str, promise: Promise | None = None) -> None:
    unit = tx.unit(id_)
    if unit is not None and unit.promised_to == call_id and promise in (None, unit.promise):
        tx.put(unit.released)
