"""Calls are admitted or refused at once."""

from contextlib import ExitStack

import pytest

from ideal_dispatch.service.decider import Admission
from ideal_dispatch.service.errors import BusyError, StartingError


def test_beyond_the_places_the_refusal_is_at_once() -> None:
    admission = Admission(3, lambda: True)
    with ExitStack() as held:
        for _ in range(3):
            held.enter_context(admission.admit("cad"))
        assert admission.inside == 3
        with pytest.raises(BusyError):
            admission.check("cad")
        with pytest.raises(BusyError), admission.admit("cad"):
            pass
    assert admission.inside == 0
    admission.check("cad")


def test_nobody_is_admitted_while_the_worker_starts() -> None:
    with pytest.raises(StartingError):
        Admission(3, lambda: False).check("cad")


def admitted(admission: Admission, client: str, held: ExitStack) -> int:
    """How many calls of a client that asks again and again are let in."""
    for number in range(100):
        try:
            held.enter_context(admission.admit(client))
        except BusyError:
            return number
    raise AssertionError("there is no limit")


def test_a_client_that_storms_leaves_places_to_others() -> None:
    admission = Admission(16, lambda: True)
    with ExitStack() as held:
        assert admitted(admission, "storm", held) == 12
        assert admitted(admission, "another storm", held) == 3
        held.enter_context(admission.admit("cad"))
        assert admission.inside == 16
