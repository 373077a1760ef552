"""Answers of one or two workers to one call: repeated, revised, in the order of asking."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ideal_dispatch.service import clock
from ideal_dispatch.service.clock import ClockTable, moment_text
from tests.service_town import Local, Town, application, bearer, local
from tests.waiting import wait_for

ASK = "/v1/recommendations"


@contextmanager
def workers(
    town: Town, name: str, **changes: Any
) -> Iterator[tuple[Local, Local, ThreadPoolExecutor]]:
    """Two services on one audit, and somebody to ask both at once."""
    settings = town.settings(name, **changes)
    with ExitStack() as stack:
        one, two = (stack.enter_context(local(application(settings))) for _ in range(2))
        yield one, two, stack.enter_context(ThreadPoolExecutor(2))


@contextmanager
def held(client: Local, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A worker whose adviser is slow: it says when it has begun, and ends with the block."""
    adviser = client.adviser
    begun, go_on, advise = threading.Event(), threading.Event(), adviser.advise

    def slow(*given: Any) -> dict[str, Any]:
        made = advise(*given)
        begun.set()
        go_on.wait(30)
        return made

    monkeypatch.setattr(adviser, "advise", slow)
    yield begun
    go_on.set()


def asked(client: Local, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(ASK, json=body, headers=bearer("cad"))
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def accepted(client: Local, made: dict[str, Any]) -> int:
    url = f"{ASK}/{made['id']}/response"
    return client.post(url, json={"action": "accept"}, headers=bearer()).status_code


def test_who_asked_later_and_was_quicker_stands(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    with workers(town, "overtaking.toml") as (one, two, pool):
        with held(one, monkeypatch) as begun:
            slow: Future[dict[str, Any]] = pool.submit(asked, one, town.call("c", node=65))
            assert begun.wait(30)
            corrected = asked(two, town.call("c", node=30))
        first = slow.result()
        assert (first["revision"], corrected["revision"]) == (2, 1)  # as they came on record
        assert (first["revision_of"], corrected["revision_of"]) == (None, None)
        assert first["asked_at"] < corrected["asked_at"] < first["created_at"]
        assert accepted(one, first) == 409
        assert accepted(one, corrected) == 200


def test_who_asked_later_and_was_slower_is_the_next_revision(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker had looked the call up before the other's answer was on record."""
    with workers(town, "overtaken.toml") as (one, two, pool):
        with held(two, monkeypatch) as second_begun:
            with held(one, monkeypatch) as first_begun:
                asking = pool.submit(asked, one, town.call("c", node=65))
                assert first_begun.wait(30)
                slower = pool.submit(asked, two, town.call("c", node=30))
                assert second_begun.wait(30)
            first = asking.result()
        second = slower.result()
        assert (first["revision"], first["revision_of"]) == (1, None)
        assert (second["revision"], second["revision_of"]) == (2, first["id"])
        assert accepted(one, first) == 409
        assert accepted(two, second) == 200


def test_an_answer_of_long_ago_is_made_anew(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind many other rows of the call, and after attempts that nobody sees any more."""
    monkeypatch.setattr("ideal_dispatch.service.ledger._ROWS", 3)
    settings = town.settings("long-ago.toml", server={"expiry_s": 0.001})
    with local(application(settings)) as client:
        body = town.call("c")
        made = [asked(client, body) for _ in range(4)]
        for node in (30, 31, 32, 33):
            asked(client, town.call("c", node=node))
        client.service.ledger._calls.clear()
        made.append(asked(client, body))
        assert [one["revision"] for one in made] == [1, 2, 3, 4, 9]
        assert len({one["id"] for one in made}) == 5


def test_a_new_call_is_not_looked_up_and_a_forgotten_one_is_revised(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a call that is not remembered here, the audit itself says whether it is new."""
    with local(application(town.settings("not-looked-up.toml"))) as client:
        ledger, looked = client.service.ledger, []
        look = ledger._of_call

        def counted(call_id: str, question: str) -> Any:
            looked.append(call_id)
            return look(call_id, question)

        monkeypatch.setattr(ledger, "_of_call", counted)
        first = asked(client, town.call("c", node=65))
        assert (first["revision"], looked) == (1, [])
        ledger._calls.clear()
        second = asked(client, town.call("c", node=30))
        assert (second["revision"], second["revision_of"]) == (2, first["id"])
        assert looked == ["c"]


def test_a_repeat_gets_the_answer_on_record(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remembered: nobody is asked. Known to the database alone: asked, but not told."""
    with local(application(town.settings("repeat.toml"))) as client:
        advise, count = client.adviser.advise, [0]

        def counted(*given: Any) -> dict[str, Any]:
            count[0] += 1
            return advise(*given)

        monkeypatch.setattr(client.adviser, "advise", counted)
        body = town.call("c")
        first = asked(client, body)
        assert (asked(client, body)["id"], count) == (first["id"], [1])
        client.service.ledger._calls.clear()
        assert asked(client, body)["id"] == first["id"]
        assert count == [2]
        assert client.get(f"{ASK}?limit=9", headers=bearer()).json()[0]["revision"] == 1
        assert client.service.recommender.admission.inside == 0


def test_a_question_asked_for_ever_goes_on_from_its_last_answer(town: Town) -> None:
    """Its first answers are remembered here, the last ones on record with other rows between."""
    with workers(town, "for-ever.toml") as (one, two, _):
        body = town.call("c")
        first = asked(one, body)
        assert accepted(one, first) == 200
        made, now = [first], datetime.now(UTC)
        try:
            for number in range(24):  # each time the answer before has expired
                clock.use(ClockTable(now + (number + 1) * timedelta(minutes=3), now))
                made.append(asked((one, two)[number % 2], body))
        finally:
            clock.use(ClockTable())
        assert [each["revision"] for each in made] == list(range(1, 26))


def test_a_clock_that_is_behind_loses_no_link(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was on record when a question came is before it, whatever the other clock said."""
    with workers(town, "behind.toml") as (one, two, _):
        first = asked(one, town.call("c", node=65))
        followed = two.service.ledger
        wait_for(lambda: followed.followed >= 3)  # two starts, and the answer
        real = moment_text
        monkeypatch.setattr(
            "ideal_dispatch.service.recommender.moment_text",
            lambda at: real(at - timedelta(seconds=3)),
        )
        second = asked(two, town.call("c", node=30))
        assert second["asked_at"] == first["asked_at"]
        assert (second["revision"], second["revision_of"]) == (2, first["id"])
        assert (accepted(one, first), accepted(two, second)) == (409, 200)
