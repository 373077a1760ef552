"""Calls are admitted or refused at once."""

import pytest

from ideal_dispatch.service.admission import Admission, BusyError, StartingError


def test_beyond_the_slots_the_refusal_is_at_once() -> None:
    admission = Admission(3, lambda: True)
    admission.check("cad")
    slots = [admission.admit("cad") for _ in range(3)]
    for refusing in (admission.admit, admission.check):
        with pytest.raises(BusyError, match="more calls wait than can be answered in time"):
            refusing("cad")
    moved = slots[0].moved()
    slots[0].release()
    assert admission.inside == 3  # whoever moved it away has nothing to give back
    moved.release()
    moved.release()
    assert admission.inside == 2  # once
    admission.admit("cad")


def test_nobody_is_admitted_while_no_solver_is_at_work() -> None:
    with pytest.raises(StartingError, match="no solver is at work; ask again in a moment"):
        Admission(3, lambda: False).admit("cad")


def admitted(admission: Admission, holder: str) -> int:
    """How many calls of a holder who asks again and again are let in."""
    for number in range(100):
        try:
            admission.admit(holder)
        except BusyError:
            return number
    raise AssertionError("there is no limit")


def test_who_storms_leaves_slots_to_others() -> None:
    admission = Admission(16, lambda: True)
    assert admitted(admission, "storm") == 12
    assert admitted(admission, "another storm") == 3
    admission.admit("cad")
    assert admission.inside == 16
