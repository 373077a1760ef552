"""Answers to advice that no longer stands are refused, and nothing is recorded of them."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from ideal_dispatch.service.recorded_answers import ExpiredError, SupersededError, check_holds
from tests.service_town import Local, Town, application, bearer, local

NOW = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
ASK = "/v1/recommendations"


def advice(
    revision: int = 1, second: int = 0, expires: datetime = NOW, **more: str
) -> dict[str, Any]:
    return {
        **more,
        "call_id": "c-1",
        "revision": revision,
        "created_at": f"2026-03-01T07:59:{second:02}.000Z",
        "expires_at": expires.isoformat(),
    }


def test_an_advice_stands_until_it_expires() -> None:
    made = advice()
    check_holds(made, [made], NOW - timedelta(milliseconds=1))
    check_holds(made, [], NOW - timedelta(milliseconds=1))
    with pytest.raises(ExpiredError, match="call 'c-1' expired at 2026.*; let the CAD ask again"):
        check_holds(made, [made], NOW)


@pytest.mark.parametrize("newer", [advice(2), advice(10), advice(1, second=1)])
def test_a_newer_advice_takes_its_place(newer: dict[str, Any]) -> None:
    made, before = advice(), NOW - timedelta(seconds=1)
    words = f"has a newer advice, revision {newer['revision']}; answer that one"
    with pytest.raises(SupersededError, match=words):
        check_holds(made, [newer, made], before)
    check_holds(newer, [newer, made], before)


def test_the_one_asked_for_later_counts() -> None:
    """However long each took to answer; those of older versions do not say when."""
    late = advice(2, second=30, asked_at="2026-03-01T07:59:10.000Z")
    quick = advice(second=20, asked_at="2026-03-01T07:59:15.000Z")
    check_holds(quick, [quick, late], NOW - timedelta(seconds=1))
    with pytest.raises(SupersededError):
        check_holds(late, [quick, late], NOW - timedelta(seconds=1))
    check_holds(advice(second=31), [quick, late], NOW - timedelta(seconds=1))


def asked(client: Local, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(ASK, json=body, headers=bearer("cad"))
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def respond(client: Local, made: dict[str, Any], action: str = "accept") -> httpx.Response:
    body = {"action": action, "reason_code": "other" if action == "override" else None}
    return client.post(f"{ASK}/{made['id']}/response", json=body, headers=bearer())


def responses(client: Local, call_id: str) -> int:
    rows = client.service.ledger._store.of_call(call_id, 99)
    return sum(row.entry.kind == "response" for row in rows)


def test_a_replaced_advice_is_not_answered(town: Town) -> None:
    with local(application(town.settings("replaced.toml"))) as client:
        first = asked(client, town.call("again"))
        assert respond(client, first).status_code == 200
        second = asked(client, town.call("again", node=5))
        assert respond(client, first).json()["response"]["action"] == "accept"  # told twice
        refused = respond(client, first, "override")
        assert refused.status_code == 409
        assert refused.json()["error"]["code"] == "advice_superseded"
        assert "revision 2; answer that one" in refused.json()["error"]["message"]
        assert responses(client, "again") == 1
        assert respond(client, second, "override").status_code == 200
        assert responses(client, "again") == 2


def test_an_expired_advice_is_not_answered(town: Town) -> None:
    settings = town.settings("expired.toml", server={"expiry_s": 0.01})
    with local(application(settings)) as client:
        made = asked(client, town.call("late"))
        while datetime.now(UTC) <= datetime.fromisoformat(made["expires_at"]):
            time.sleep(0.01)
        refused = respond(client, made)
        assert refused.status_code == 409
        assert refused.json()["error"]["code"] == "advice_expired"
        assert "let the CAD ask again" in refused.json()["error"]["message"]
        assert responses(client, "late") == 0
