"""Revisions of one call made by two workers: in the order in which they were asked for."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from tests.service_town import Local, Town, application, bearer, local

ASK = "/v1/recommendations"


@contextmanager
def workers(town: Town, name: str) -> Iterator[tuple[Local, Local, ThreadPoolExecutor]]:
    """Two services on one audit, and somebody to ask both at once."""
    with ExitStack() as stack:
        one, two = (stack.enter_context(local(application(town.settings(name)))) for _ in range(2))
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
        assert (first["revision"], corrected["revision"]) == (1, 1)
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
