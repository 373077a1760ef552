"""A unit is promised to one call or to none, whoever asks, answers, reports or deletes.

Each test ends with a look at the whole record: the log is whole, and the rows are what it says.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest

from ideal_dispatch.service.clock import moment
from ideal_dispatch.service.deciding.engine import Advice, Picture, no_advice
from ideal_dispatch.service.deciding.reassessing import looked_at
from ideal_dispatch.service.recommending import Question, new_id
from ideal_dispatch.service.record.audit import log_rows, verify
from ideal_dispatch.service.record.database import Job
from ideal_dispatch.service.record.rows import LogRow
from ideal_dispatch.service.requests import Location, RecommendationRequest
from tests.postgres import Postgres
from tests.service_town import PATIENT, Local, Town, application, bearer, codes, counts, local
from tests.waiting import wait_for

NOON = datetime.fromisoformat("2025-03-19T12:00:00+08:00")
MINUTE_S, EXPIRY_S = 60, 120


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def client(town: Town, request: pytest.FixtureRequest) -> Iterator[Local]:
    """The service on a clock that the tests step, with a database of either kind."""
    audit = {}
    if request.param == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        audit = {"url": postgres.new_database()}
    settings = town.settings(
        f"promises-{request.param}.toml",
        server={**PATIENT, "expiry_s": EXPIRY_S}, audit=audit,
        clock={"origin": NOON, "started": datetime.now(UTC)},
        units={"stale_s": 86_400.0},
    )  # fmt: skip
    with local(application(settings)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def city(client: Local) -> Iterator[None]:
    """Two units of D0 and one of D1; the record is whole afterwards."""
    for unit in client.read("/v1/units"):
        client.delete(f"/v1/units/{quote(unit['id'])}", headers=bearer("cad"))
    client.report(
        {"id": "A1", "depot": "D0", "status": "at_station"},
        {"id": "A2", "depot": "D0", "status": "at_station"},
        {"id": "B1", "depot": "D1", "status": "at_station"},
    )  # fmt: skip
    yield
    assert verify(client.service.database).fault is None


numbers = iter(range(10_000))


def ask(client: Local, town: Town, primary: str | None = "A1", **changes: Any) -> dict[str, Any]:
    """A call for which a second is worth a lot, received now."""
    call = town.call(f"call-{next(numbers)}") | {"threshold_s": -1000.0, "received_at": None}
    sent = None if primary is None else {"unit": primary}
    return client.advice({**call, "primary": sent, **changes})


def step(client: Local, seconds: float) -> None:
    answer = client.post("/v1/clock", json={"step_s": seconds}, headers=bearer("admin"))
    assert answer.status_code == 200, answer.text


def refused(client: Local, made: dict[str, Any], action: str = "accept", **more: Any) -> str:
    """The code of a refusal that changed nothing."""

    def held() -> tuple[list[dict[str, Any]], int]:
        return [unit | {"age_s": None} for unit in client.read("/v1/units")], len(log(client))

    before = held()
    answer = client.reply(made, action, **more)
    assert answer.status_code == 409, answer.text
    assert before == held()
    code: str = answer.json()["error"]["code"]
    return code


def log(client: Local) -> list[LogRow]:
    """All rows of the log but those of running dispatches, which come at any moment."""
    with client.service.database.snapshot(Job(time.monotonic() + 60)) as connection:
        return [row for row in log_rows(connection) if row.kind != "dispatch"]


def lost(client: Local) -> list[dict[str, Any]]:
    """What rows of the log say of lost promises."""
    return [row.content for row in log(client) if row.kind == "promise_lost"]


def test_an_advised_unit_is_not_advised_again_until_the_advice_expires(
    client: Local, town: Town
) -> None:
    first = ask(client, town)
    second = first["second"]["unit"]
    assert client.unit(second)["promised"]["call_id"] == first["call_id"]
    others = [ask(client, town, None) for _ in range(2)]
    used = [one[role]["unit"] for one in others for role in ("primary", "second")
            if one[role] is not None and one["decision"] == "send_second"]  # fmt: skip
    assert second not in used
    assert "A1" not in used  # the CAD sent it
    step(client, EXPIRY_S + 1)
    assert client.unit(second)["promised"] is None
    assert second in {row["unit"] for row in ask(client, town)["considered"]}


def test_a_second_that_was_stood_down_is_on_its_way_no_more(client: Local, town: Town) -> None:
    made = ask(client, town)
    assert client.reply(made).status_code == 200
    assert client.reply(made, "stand_down").status_code == 200
    found = client.read(f"/v1/dispatches/{made['id']}")
    assert found["state"] == "stood_down"
    assert "under_way" not in [one["code"] for one in found["reasons"]]
    assert (found["second"]["expected_s"], found["second_first"]) == (None, None)
    assert client.unit(made["second"]["unit"])["promised"] is None
    assert refused(client, made, "stand_down", question="1-1") == "superseded"


def test_an_answered_advice_is_not_answered_again(client: Local, town: Town) -> None:
    """Override, let another call have the unit, and accept again: that was two promises once."""
    client.report({"id": "A2", "status": "out_of_service"})
    first = ask(client, town)
    assert client.reply(first, "override").status_code == 200
    assert client.unit("B1")["promised"] is None
    client.report({"id": "C1", "depot": "D2", "status": "at_station"})
    other = ask(client, town, "C1")
    assert other["second"]["unit"] == "B1"
    assert client.reply(other).status_code == 200
    assert refused(client, first) == "answered"
    assert client.unit("B1")["promised"]["call_id"] == other["call_id"]


def test_a_unit_keeps_its_call_until_its_work_ends(client: Local) -> None:
    calls = []
    for status in ("en_route", "on_scene", "out_of_service"):
        given = {"call_id": "C7"} if status == "en_route" else {}
        client.report({"id": "A1", "status": status} | given)
        calls.append(client.unit("A1")["call_id"])
    assert calls == ["C7", "C7", None]


def test_the_first_reply_is_in_the_refusal_of_the_second(client: Local, town: Town) -> None:
    made = ask(client, town)
    said = client.reply(made).json()["reply"]
    again = client.reply(made)
    assert again.status_code == 200
    assert again.json()["reply"] == said
    other = client.reply(made, "override", role="admin")
    assert other.json()["error"]["reply"] == said


def test_an_expired_advice_is_not_accepted(client: Local, town: Town) -> None:
    client.report({"id": "A2", "status": "out_of_service"})
    made = ask(client, town)
    step(client, EXPIRY_S + 1)
    other = ask(client, town)
    assert other["second"]["unit"] == made["second"]["unit"]
    assert refused(client, made) == "expired"


def test_a_newer_advice_takes_the_place_of_the_older(client: Local, town: Town) -> None:
    made = ask(client, town)
    newer = client.advice(
        town.call(made["call_id"], node=30) | {"threshold_s": 9999.0, "primary": {"unit": "A1"}}
        | {"received_at": None}
    )  # fmt: skip
    assert newer["revision"] == 2
    assert client.unit(made["second"]["unit"])["promised"] is None
    assert refused(client, made) == "superseded"


@pytest.mark.parametrize(
    ("news", "why"),
    [
        ({"status": "out_of_service"}, "out_of_service"),
        ({"status": "en_route", "call_id": "elsewhere"}, "on_call"),
        ({"status": "on_scene"}, "on_call"),
        (None, "gone"),
    ],
)
def test_a_unit_that_went_elsewhere_is_not_accepted(
    client: Local, town: Town, news: dict[str, Any] | None, why: str
) -> None:
    made = ask(client, town)
    gone = made["second"]["unit"]
    if news is None:
        answer = client.delete(f"/v1/units/{gone}", headers=bearer("cad"))
        assert answer.status_code == 204
    else:
        client.report({"id": gone, **news})
    assert refused(client, made) == "unit_gone"
    said = lost(client)[-1]
    assert (said["unit"], said["call_id"], said["id"]) == (gone, made["call_id"], made["id"])
    assert (said["why"], said["by_call"]) == (why, (news or {}).get("call_id"))


def test_a_unit_that_the_cad_sends_elsewhere_is_lost_to_its_call(client: Local, town: Town) -> None:
    made = ask(client, town)
    taken = made["second"]["unit"]
    other = ask(client, town, taken)
    assert "unit_promised" in codes(other)
    assert client.unit(taken)["promised"]["call_id"] == other["call_id"]
    assert refused(client, made) == "unit_promised"
    said = lost(client)[-1]
    assert (said["call_id"], said["why"], said["by_call"]) == (
        made["call_id"], "sent", other["call_id"],
    )  # fmt: skip


def test_an_accepted_unit_is_free_again_when_its_work_is_done(client: Local, town: Town) -> None:
    made = ask(client, town)
    second = made["second"]["unit"]
    client.reply(made)
    step(client, EXPIRY_S + 1)
    assert client.unit(second)["promised"]["kind"] == "accepted"
    for status in ("en_route", "on_scene"):
        client.report({"id": second, "status": status, "call_id": made["call_id"]})
        assert client.unit(second)["promised"] is not None
    client.report({"id": second, "status": "available"})
    assert client.unit(second)["promised"] is None
    assert lost(client)[-1:] != [second]


def test_a_unit_of_a_count_leaves_when_it_is_accepted(client: Local, town: Town) -> None:
    client.report(*counts(D2=1))
    client.report(
        {"id": "A2", "status": "out_of_service"}, {"id": "B1", "status": "out_of_service"}
    )
    made = ask(client, town)
    assert made["second"]["unit"] == "D2 #1"
    assert client.reply(made).json()["state"] == "accepted"  # nothing reports where it is
    assert client.unit("D2 #1")["free"] is False
    client.report(*counts(D2=1))  # told before it left, perhaps
    assert [one["free"] for one in client.read("/v1/units") if one["depot"] == "D2"] == [False]
    step(client, 2 * MINUTE_S)
    before = lost(client)
    client.report(*counts(D2=1))
    assert [one["free"] for one in client.read("/v1/units") if one["depot"] == "D2"] == [True]
    assert lost(client) == before, "it goes to its call, and no count will show it there"


def test_a_dispatch_that_cannot_be_followed_does_not_hold_up_others(
    client: Local, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd: list[str] = []

    def failing(assets: Any, followed: Any, *rest: Any) -> Any:
        if followed.call_id in odd:
            raise ZeroDivisionError
        return looked_at(assets, followed, *rest)

    monkeypatch.setattr("ideal_dispatch.service.dispatches.looked_at", failing)
    made = [ask(client, town)]
    client.report(*({"id": id_, "depot": "D2", "status": "at_station"} for id_ in ("C1", "C2")))
    made.append(ask(client, town, "C1"))
    odd.append(made[0]["call_id"])
    for one in made:
        assert client.reply(one).json()["state"] == "running"
    news = {"id": "C1", "status": "en_route", "call_id": made[1]["call_id"]}
    client.report(news)
    where = f"/v1/dispatches/{made[1]['id']}"
    for _ in range(3):
        step(client, 2)
    wait_for(lambda: client.read(where)["primary"]["status"] == "en_route")


def test_a_second_that_is_stood_down_is_free_at_once(client: Local, town: Town) -> None:
    made = ask(client, town)
    assert refused(client, made, "stand_down") == "ended", "nothing runs yet"
    second = client.reply(made).json()["second"]["unit"]
    where = f"/v1/dispatches/{made['id']}"
    assert refused(client, made, "keep") == "answered", "nothing is asked"
    assert client.reply(made, "stand_down").status_code == 200
    assert (client.read(where)["state"], client.unit(second)["promised"]) == ("stood_down", None)
    assert client.reply(made, "stand_down").status_code == 200, "the same reply again"
    assert refused(client, made, "stand_down", text="again") == "ended"
    client.report({"id": "A1", "status": "on_scene", "call_id": made["call_id"]})
    step(client, 2)
    wait_for(lambda: client.read(where)["state"] == "ended")
    assert refused(client, made, "stand_down", text="late") == "ended"


def test_another_unit_is_proposed_and_sent_where_the_second_is_lost(
    client: Local, town: Town
) -> None:
    made = ask(client, town)
    second = client.reply(made).json()["second"]["unit"]
    where = f"/v1/dispatches/{made['id']}"
    near = {"id": "C1", "depot": "D2", "status": "available", **town.place(64)}
    client.report(near, {"id": second, "status": "out_of_service"})
    step(client, 2)
    asked = wait_for(lambda: client.read(where)["question"])
    assert (asked["advice"], asked["unit"]) == ("send_one", "C1")
    assert refused(client, made, "send_one", question="another") == "superseded"
    assert client.reply(made, "send_one", question=asked["id"]).status_code == 200
    assert client.unit("C1")["promised"]["kind"] == "accepted"
    shown = client.read(where)
    assert (shown["state"], shown["question"]) == ("running", None)
    assert shown["second"]["unit"] == "C1"
    late = client.reply(made, "keep", role="admin", question=asked["id"])
    assert (late.status_code, late.json()["error"]["code"]) == (409, "answered")
    assert late.json()["error"]["reply"]["action"] == "send_one"


def test_a_look_at_a_dispatch_that_finds_nothing_new_is_not_logged(
    client: Local, town: Town
) -> None:
    made = ask(client, town)
    assert client.reply(made).json()["state"] == "running"

    def looked() -> int:
        for _ in range(4):
            step(client, 1.5)  # which makes it due
        with client.service.database.snapshot(Job(time.monotonic() + 60)) as connection:
            return [row.call_id for row in log_rows(connection)].count(made["call_id"])

    before = looked()
    assert looked() == before
    running = client.read(f"/v1/dispatches/{made['id']}")
    assert all(running[role]["expected_s"] > 0.0 for role in ("primary", "second"))
    news = {"status": "en_route", "call_id": made["call_id"]}
    client.report({"id": "A1", **news})
    assert looked() > before


def question(client: Local, town: Town, call_id: str) -> Question:
    """A question that is recorded by hand."""
    place = town.place(65)
    location = Location(lon=place["lon"], lat=place["lat"])
    call = RecommendationRequest(call_id=call_id, location=location, threshold_s=-1000.0)
    content = {"received_at": None, "note": None}
    return Question(call, content, "key:1", "digest", "test", False, new_id(), time.monotonic())


def decided(client: Local, one: Question) -> tuple[Advice, int]:
    """Advice on a question by the units of now, which is not on record yet."""
    service = client.service
    job = Job(time.monotonic() + 60)
    picture = service.database.read(lambda state: Picture(state.now, tuple(state.units())), job)
    call = one.call.model_copy(update={"received_at": moment(picture.now)})
    weather = service.weather.known(picture.now)
    advice = service.engine.adviser.advise(call, picture, weather, job.due)
    assert advice.decision == "send_second"
    return advice, picture.now


def test_an_advice_that_lost_its_unit_is_decided_again(
    client: Local, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another call gets the unit after the decision and before its record."""
    more = {"B2": "D1", "B3": "D1", "C1": "D2", "C2": "D2"}
    client.report(*({"id": k, "depot": v, "status": "at_station"} for k, v in more.items()))
    other, adviser = (
        question(client, town, f"quicker-{next(numbers)}"),
        client.service.engine.adviser,
    )
    advise, taken, tries = adviser.advise, list[str](), list[Advice]()

    def late(*given: Any) -> Advice:
        tries.append(advise(*given))
        if len(tries) == 1:
            monkeypatch.setattr(adviser, "advise", advise)
            advice, now = decided(client, other)
            made = client.service.recommender.record(other, advice, now, Job(given[-1]))
            taken.extend(made[role]["unit"] for role in ("primary", "second"))
            monkeypatch.setattr(adviser, "advise", late)
        return tries[-1]

    monkeypatch.setattr(adviser, "advise", late)
    made = ask(client, town, None)
    used = [made[role]["unit"] for role in ("primary", "second")]
    assert len(tries) == 2
    assert {*tries[0].needs} & {*taken}
    assert len({*used, *taken}) == 4


def test_an_answer_that_is_recorded_again_is_the_same(client: Local, town: Town) -> None:
    """The answer of the database to the first commit was lost; also where there is no advice."""
    one, recommender = question(client, town, f"again-{next(numbers)}"), client.service.recommender
    refused = no_advice(one.call, [("late", "no decision in time")])
    job = Job(time.monotonic() + 60)
    _, now = decided(client, one)
    made = [recommender.record(one, refused, now, job) for _ in range(2)]
    assert made[0] == made[1]
    assert made[0]["revision"] == 1
    assert [row.call_id for row in log(client)].count(one.call.call_id) == 1


def test_what_was_asked_earlier_does_not_replace_what_was_asked_later(
    client: Local, town: Town
) -> None:
    """The clocks and the luck of two workers do not decide: the moment of asking does."""
    early = question(client, town, f"order-{next(numbers)}")
    advice, asked_at = decided(client, early)
    later = client.advice(
        town.call(early.call.call_id) | {"threshold_s": -1000.0, "received_at": None}
    )
    made = client.service.recommender.record(early, advice, asked_at, Job(time.monotonic() + 60))
    assert made["state"] == "superseded"
    assert client.read(f"/v1/recommendations/{later['id']}")["state"] == "open"
    held = client.unit(later["second"]["unit"])["promised"]
    assert held["call_id"] == later["call_id"]


def test_invented_calls_promise_nothing(client: Local, town: Town) -> None:
    one = replace(question(client, town, f"SIM-{next(numbers)}"), simulated=True)
    advice, now = decided(client, one)
    made = client.service.recommender.record(one, advice, now, Job(time.monotonic() + 60))
    assert made["simulated"]
    assert [one["promised"] for one in client.read("/v1/units")] == [None] * 3


def test_the_log_keeps_what_an_advice_was_decided_on(client: Local, town: Town) -> None:
    """Every unit that could go, where it started, quote, forecast and expected arrival."""
    client.report({"id": "A2", "status": "available", **town.place(20)})
    made = ask(client, town)
    row = [one for one in log(client) if one.kind == "recommendation"][-1]
    answer = row.content["answer"]
    assert answer == json.loads(json.dumps(made))
    considered = {one["unit"]: one for one in answer["considered"]}
    assert {"A1", "A2", "B1"} <= considered.keys()
    assert considered["A2"]["start"]["on_road"]
    assert considered["A2"]["start"]["age_s"] is not None
    for one in considered.values():
        assert one["quote_s"] > 0.0
        assert one["arrival"]["expected_s"] > 0.0
