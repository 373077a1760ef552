"""Ten times the load: a bounded queue, quick refusals, and answers for those admitted."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.faults.test_database import recorded
from tests.service_town import ASK, PATIENCE_S, Local, Town, application, bearer, codes, local
from tests.waiting import wait_for


class Held:
    """A decision that waits: calls pile up behind it until ``go_on``."""

    def __init__(self, client: Local, monkeypatch: pytest.MonkeyPatch) -> None:
        adviser = client.service.engine.adviser
        self.begun, self._go_on, self._advise = threading.Event(), threading.Event(), adviser.advise
        monkeypatch.setattr(adviser, "advise", self._held)

    def _held(self, *given: Any) -> Any:
        self.begun.set()
        assert self._go_on.wait(PATIENCE_S)
        return self._advise(*given)

    def go_on(self) -> None:
        self._go_on.set()


def asking(client: Local, body: dict[str, Any], role: str = "cad") -> httpx.Response:
    """Over a connection of this call alone."""
    with httpx.Client(timeout=PATIENCE_S, base_url=client.base_url) as own:
        return own.post(ASK, json=body, headers=bearer(role))


def test_ten_times_the_load(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is refused knows it while the others still wait; who is admitted has an answer."""
    settings = town.settings("load.toml", server={"queue": 3, "deadline_s": 60.0})
    with local(application(settings)) as client, ThreadPoolExecutor(40) as callers:
        client.report()
        held = Held(client, monkeypatch)
        calls = [callers.submit(asking, client, town.call(f"load-{n}")) for n in range(40)]
        wait_for(lambda: sum(call.done() for call in calls) == 37)  # three slots for one token
        held.go_on()
        answers = [call.result() for call in calls]
        refused = [one for one in answers if one.status_code == 503]
        assert {one.headers["Retry-After"] for one in refused} == {"1"}
        assert Counter(one.json()["error"]["code"] for one in refused) == {"busy": 37}
        made = [one.json() for one in answers if one.status_code == 200]
        assert all(one["decision"] != "no_advice" for one in made)
        after = client.advice(town.call("afterwards"))
        wait_for(lambda: client.service.admission.inside == 0)
    assert recorded(settings.database_url) == {one["id"] for one in (*made, after)}


def test_who_storms_leaves_places_to_others(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = town.settings("storm.toml", server={"queue": 7, "deadline_s": 60.0})
    with local(application(settings)) as client, ThreadPoolExecutor(10) as callers:
        client.report()
        held = Held(client, monkeypatch)
        storm = [callers.submit(asking, client, town.call(f"storm-{n}")) for n in range(9)]
        wait_for(lambda: sum(one.done() for one in storm) == 3)  # refused at once
        other = callers.submit(asking, client, town.call("other"), "dispatcher")
        wait_for(lambda: client.service.admission.inside == 7)
        held.go_on()
        assert sorted(one.result().status_code for one in storm) == [200] * 6 + [503] * 3
        assert other.result().status_code == 200


def test_calls_behind_one_that_hangs_are_answered(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Late or advised, while it still hangs; nothing is held afterwards."""
    settings = town.settings("late.toml", server={"deadline_s": 1.0})
    with local(application(settings)) as client, ThreadPoolExecutor(3) as callers:
        client.report()
        held = Held(client, monkeypatch)
        calls = [callers.submit(client.advice, town.call("hangs"))]
        assert held.begun.wait(PATIENCE_S)
        monkeypatch.undo()
        calls += [callers.submit(client.advice, town.call(f"behind-{n}")) for n in range(2)]
        assert [codes(call.result())[0] for call in calls[:1]] == ["late"]
        for call in calls[1:]:
            made = call.result()
            assert made["decision"] != "no_advice" or codes(made)[0] == "late"
        held.go_on()
        wait_for(lambda: client.advice(town.call("next"))["decision"] != "no_advice")
        assert client.service.admission.inside == 0
