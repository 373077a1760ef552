"""A dispatch with a second is followed until somebody arrives, and looked at again meanwhile."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.service import clock
from ideal_dispatch.service import dispatches as module
from ideal_dispatch.service.audit.record import Entry, Row, StoreError
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.audit.verification import verify
from ideal_dispatch.service.dispatches import Dispatches
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.assets import load_assets
from tests.service_town import PATIENCE_S, PATIENT, Local, Town, application, bearer, local, respond
from tests.unit.service.solver.test_reassessing import with_router
from tests.unit.service.test_fleet_units import asked, at_station, close, fleet, put
from tests.waiting import wait_for

DISPATCHES = "/v1/dispatches"


@pytest.fixture
def settings(town: Town) -> ServiceSettings:
    return town.settings(f"dispatches-{time.monotonic_ns()}.toml", server=PATIENT)


def dispatch(client: Local, made: dict[str, Any]) -> dict[str, Any] | None:
    answer = client.get(f"{DISPATCHES}/{made['id']}", headers=bearer("auditor"))
    found: dict[str, Any] | None = answer.json() if answer.status_code == 200 else None
    return found


def wait(client: Local, made: dict[str, Any], wanted: Callable[[Any], bool]) -> dict[str, Any]:
    """The dispatch, once it is as wanted."""

    def found() -> dict[str, Any] | None:
        one = dispatch(client, made)
        return one if one is not None and wanted(one) else None

    one = wait_for(found, lambda: dispatch(client, made))
    assert one is not None
    return one


def looked_again(client: Local, before: dict[str, Any]) -> dict[str, Any]:
    return wait(client, before, lambda one: one["updated_at"] > before["updated_at"])


def begun(client: Local, town: Town, call_id: str = "c") -> dict[str, Any]:
    """A dispatch with both units on their way: A1 from D0, A2 from D1."""
    put(client, at_station("A1", "D0"), at_station("A2", "D1"))
    made = asked(client, town, call_id, primary={"unit": "A1"})
    assert (made["decision"], made["second"]["unit"]) == ("send_second", "A2")
    respond(client, made, "accept")
    going = {"status": "en_route", "call_id": call_id}
    put(client, {"id": "A1", **going}, {"id": "A2", **going})
    return made


def reply(client: Local, found: dict[str, Any], action: str = "accept", **more: Any) -> Any:
    body = {
        "advice_id": found["advice_id"], "action": action,
        "reason_code": "other" if action == "override" else None, **more,
    }  # fmt: skip
    return client.post(f"{DISPATCHES}/{found['id']}/response", json=body, headers=bearer())


def loop_of(client: Local) -> asyncio.AbstractEventLoop:
    return client.service._tasks[0].get_loop()


def test_both_units_are_followed(client: Local, town: Town) -> None:
    made = begun(client, town)
    found = wait(client, made, lambda one: one["primary"]["expected_s"] is not None)
    assert (found["state"], found["advice"], found["advice_id"]) == ("running", "keep", None)
    assert (found["primary"]["unit"], found["primary"]["status"]) == ("A1", "en_route")
    assert (found["second"]["unit"], found["second"]["depot"]) == ("A2", "D1")
    assert 0.0 <= found["second_first"] <= 1.0
    assert found["second"]["expected_s"] > 0.0
    listed = client.get(DISPATCHES, headers=bearer("auditor")).json()
    assert [one["id"] for one in listed] == [made["id"]]


def test_the_way_that_is_left_gets_shorter(client: Local, town: Town) -> None:
    made = begun(client, town)
    far = wait(client, made, lambda one: one["second"]["expected_s"] is not None)
    put(client, {"id": "A2", **town.place(65)})
    near = wait(
        client, made, lambda one: one["second"]["expected_s"] < 0.5 * far["second"]["expected_s"]
    )
    assert near["second_first"] > far["second_first"]


def test_the_second_stands_down_when_the_first_arrives(client: Local, town: Town) -> None:
    made = begun(client, town)
    put(client, {"id": "A1", "status": "on_scene"})
    found = wait(client, made, lambda one: one["advice"] == "stand_down")
    assert (found["changes"], found["second_first"], found["response"]) == (1, 0.0, None)
    assert found["reason"] == "The first unit is at the scene."
    answer = reply(client, found)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["state"], answer.json()["response"]["action"]) == ("stood_down", "accept")
    assert reply(client, found).status_code == 200  # told twice
    assert fleet(client)["A2"]["promised"] is None
    put(client, {"id": "A2", "status": "available", **town.place(30)})
    wait(client, made, lambda one: one["state"] == "ended")
    assert client.get(DISPATCHES, headers=bearer("auditor")).json() == []


def test_a_second_that_arrives_ends_it(client: Local, town: Town) -> None:
    made = begun(client, town)
    put(client, {"id": "A2", "status": "on_scene"})
    found = wait(client, made, lambda one: one["state"] == "ended")
    assert found["advice"] == "keep"


def test_a_first_that_breaks_down_needs_the_second(client: Local, town: Town) -> None:
    made = begun(client, town)
    put(client, {"id": "A1", "status": "out_of_service"})
    found = wait(client, made, lambda one: one["primary"]["status"] == "out_of_service")
    assert (found["state"], found["advice"]) == ("running", "keep")


def test_one_is_sent_if_the_first_breaks_down_after_a_stand_down(client: Local, town: Town) -> None:
    made = begun(client, town)
    put(client, at_station("A3", "D2"))
    put(client, {"id": "A1", **town.place(65)})  # surely first: it is there in a moment
    found = wait(client, made, lambda one: one["advice"] == "stand_down")
    assert reply(client, found).json()["state"] == "stood_down"
    put(client, {"id": "A1", "status": "out_of_service"})
    again = wait(client, made, lambda one: one["advice"] == "send_one")
    assert "no other is coming" in again["reason"]
    assert reply(client, found).status_code == 409  # that advice was replaced
    sent = reply(client, again).json()
    assert sent["state"] == "running"
    goes = sent["second"]["unit"]
    assert goes in ("A2", "A3")
    assert fleet(client)[goes]["promised"]["kind"] == "accepted"


def test_a_first_that_is_still_at_a_hospital_has_not_arrived(client: Local, town: Town) -> None:
    """Feeds of radio codes tell no call: what a unit did before it was sent says nothing."""
    put(client, {"id": "A1", "station": "D0", "status": "at_hospital"}, at_station("A2", "D1"))
    made = asked(client, town, "c", primary={"unit": "A1"})
    respond(client, made, "accept")
    put(client, {"id": "A2", "status": "en_route"})
    found = wait(client, made, lambda one: one["primary"]["expected_s"] is not None)
    assert (found["advice"], found["state"]) == ("keep", "running")
    put(client, {"id": "A1", "status": "en_route"}, {"id": "A1", "status": "on_scene"})
    wait(client, made, lambda one: one["advice"] == "stand_down")


def test_a_first_that_was_lost_sight_of_is_not_at_its_station(
    town: Town, settings: ServiceSettings
) -> None:
    short = town.settings(
        f"sight-{time.monotonic_ns()}.toml", server=PATIENT, units={"position_stale_s": 3.0}
    )
    with local(application(short)) as client:
        made = begun(client, town)
        put(client, {"id": "A1", **town.place(0)})
        far = wait(client, made, lambda one: one["primary"]["expected_s"] is not None)
        lost = wait(client, made, lambda one: "was last seen" in one["reason"])
        assert lost["primary"]["expected_s"] > 0.5 * far["primary"]["expected_s"]


def test_another_is_proposed_where_both_broke_down(client: Local, town: Town) -> None:
    made = begun(client, town)
    put(client, at_station("A3", "D2"))
    put(client, {"id": "A1", "status": "out_of_service"})
    put(client, {"id": "A2", "status": "out_of_service"})
    found = wait(client, made, lambda one: one["advice"] == "send_one")
    assert found["proposed"] == {"unit": "A3", "depot": "D2"}
    sent = reply(client, found).json()
    assert (sent["second"]["unit"], sent["proposed"]) == ("A3", None)
    assert sent["second"]["status"] != "out_of_service"  # that was the one before
    assert sent["second"]["expected_s"] is not None


def test_a_second_that_gets_to_its_station_before_it_turns_round_is_still_coming(
    client: Local, town: Town
) -> None:
    put(client, at_station("A1", "D0"), at_station("A3", "D2"))
    put(client, {"id": "A2", "station": "D1", "status": "available", **town.place(30)})
    made = asked(client, town, "c", primary={"unit": "A1"})
    assert made["second"]["unit"] == "A2"
    respond(client, made, "accept")
    put(client, {"id": "A1", "status": "en_route"}, {"id": "A2", "status": "at_station"})
    found = wait(client, made, lambda one: one["second"]["status"] == "at_station")
    found = looked_again(client, found)
    assert found["advice"] == "keep"
    assert found["reasons"][0]["code"] == "may_be_first"  # not that no other is needed


def test_a_second_that_was_called_off_is_not_expected_although_it_could_go(
    client: Local, town: Town
) -> None:
    made = begun(client, town)
    put(client, {"id": "A2", "status": "available", **town.place(30)})
    could_go = ("send_another", "no_other_needed")
    found = wait(client, made, lambda one: one["reasons"][0]["code"] in could_go)
    assert (found["second"]["unit"], found["second"]["expected_s"]) == ("A2", None)


def test_a_stand_down_that_is_done_is_not_overridden(client: Local, town: Town) -> None:
    made = begun(client, town)
    put(client, {"id": "A1", "status": "on_scene"})
    found = wait(client, made, lambda one: one["advice"] == "stand_down")
    assert reply(client, found).status_code == 200
    assert reply(client, found, "override").status_code == 409


def test_a_first_on_its_way_is_known_after_a_stand_down(client: Local, town: Town) -> None:
    made = begun(client, town)
    put(client, {"id": "A1", **town.place(65)})
    found = wait(client, made, lambda one: one["advice"] == "stand_down")
    reply(client, found)
    before = wait(client, made, lambda one: one["state"] == "stood_down")["updated_at"]
    later = wait(client, made, lambda one: one["updated_at"] > before)
    assert (later["advice"], later["primary"]["status"]) == ("stand_down", "en_route")
    assert later["second"]["expected_s"] is None


def test_an_override_keeps_the_second(client: Local, town: Town) -> None:
    made = begun(client, town)
    put(client, {"id": "A1", "status": "on_scene"})
    found = wait(client, made, lambda one: one["advice"] == "stand_down")
    kept = reply(client, found, "override", text="two patients").json()
    assert (kept["state"], kept["response"]["text"]) == ("running", "two patients")
    assert reply(client, {**found, "advice_id": "0"}).status_code == 409
    assert reply(client, {**found, "id": "0"}).status_code == 404


def test_all_of_it_is_in_the_chain_and_outlives_a_restart(
    settings: ServiceSettings, town: Town
) -> None:
    place = town.place(11)
    with local(application(settings)) as one:
        made = begun(one, town)
        told = one.post("/v1/closures", json={"edges": [0]}, headers=bearer("cad"))
        closure = told.json()["id"]
        put(one, {"id": "A2", **place})
        put(one, {"id": "A1", "status": "on_scene"})
        before = wait(one, made, lambda found: found["advice"] == "stand_down")
    with local(application(settings)) as again:
        found = wait(again, made, lambda found: found["advice"] == "stand_down")
        assert found["advice_id"] == before["advice_id"]
        assert reply(again, found).json()["state"] == "stood_down"
    store = AuditStore(settings.database_url)
    rows = [row for row in store.rows(0, 100) if row.call_id == "c"]
    assert [row.kind for row in rows] == ["recommendation", "response", "reassessment", "reply"]
    assert verify(store).fault is None
    store.close()
    body = rows[2].entry.body
    assert body["versions"] == made["versions"]
    assert body["closures"] == [closure]
    first, second = body["starts"]
    assert (first["unit"], first["state"]) == ("A1", "arrived")
    assert second["start"]["on_road"]
    assert (second["unit"], second["start"]["lon"]) == ("A2", pytest.approx(place["lon"]))
    assert 0.0 <= second["start"]["age_s"] < 120.0
    assert "starts" not in body["said"]


def test_what_is_closed_is_known_although_old_dispatches_cannot_be_read(
    settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that starts follows what others write all the same."""

    def too_slow(*_: Any) -> list[Row]:
        raise StoreError("it takes too long")

    with local(application(settings)) as one:
        close(one, [0])
        monkeypatch.setattr(AuditStore, "since", too_slow)
        with local(application(settings)) as two:
            put(one, at_station("A1", "D0"))
            wait_for(lambda: two.get("/v1/closures", headers=bearer()).json() and fleet(two))


def test_what_was_over_before_a_restart_is_over(settings: ServiceSettings, town: Town) -> None:
    """Nobody is sent to a call whose units went home long ago."""
    with local(application(settings)) as one:
        made = begun(one, town)
        wait(one, made, lambda found: found["primary"]["expected_s"] is not None)
        for status in ("on_scene", "available"):
            put(one, {"id": "A1", "status": status}, {"id": "A2", "status": status})
    with local(application(settings)) as again:
        wait(again, made, lambda found: found["state"] == "ended")
        store = again.service.ledger._store
        rows = [row for row in store.rows(0, 100) if row.kind == "reassessment"]
        assert not any(row.entry.body["said"]["advice"] == "send_one" for row in rows)


def test_two_workers_give_one_advice(settings: ServiceSettings, town: Town) -> None:
    with local(application(settings)) as one, local(application(settings)) as two:
        made = begun(one, town)
        put(one, {"id": "A1", "status": "on_scene"})
        first = wait(one, made, lambda found: found["advice"] == "stand_down")
        second = wait(two, made, lambda found: found["advice"] == "stand_down")
        assert first["advice_id"] == second["advice_id"]
        store = one.service.ledger._store
        assert sum(row.kind == "reassessment" for row in store.rows(0, 100)) == 1


def test_an_advice_that_nobody_accepted_is_not_followed(client: Local, town: Town) -> None:
    put(client, at_station("A1", "D0"), at_station("A2", "D1"))
    made = asked(client, town, "c", primary={"unit": "A1"})
    respond(client, made, "override")
    other = begun(client, town, "d")
    wait(client, other, lambda one: one["state"] == "running")
    assert dispatch(client, made) is None


def test_another_unit_is_proposed_where_the_first_choice_has_gone(
    client: Local, town: Town
) -> None:
    made = begun(client, town)
    put(client, at_station("A3", "D2"), at_station("A4", "D2"))
    put(client, *({"id": one, "status": "out_of_service"} for one in ("A1", "A2")))
    found = wait(client, made, lambda one: one["advice"] == "send_one")
    put(client, {"id": found["proposed"]["unit"], "status": "dispatched", "call_id": "other"})
    again = wait(client, made, lambda one: one["advice_id"] != found["advice_id"])
    assert {found["proposed"]["unit"], again["proposed"]["unit"]} == {"A3", "A4"}
    assert reply(client, found).status_code == 409
    assert reply(client, again).json()["second"]["unit"] == again["proposed"]["unit"]


def test_nobody_is_sent_to_a_call_that_was_called_off(client: Local, town: Town) -> None:
    made = begun(client, town)
    put(client, at_station("A3", "D2"))
    wait(client, made, lambda one: one["primary"]["expected_s"] is not None)
    put(client, *({"id": one, "status": "available", **town.place(30)} for one in ("A1", "A2")))
    found = wait(client, made, lambda one: one["state"] == "ended")
    assert (found["advice"], found["primary"]["expected_s"]) == ("keep", None)


def test_a_reply_and_a_new_advice_in_one_moment_do_not_contradict_each_other(
    settings: ServiceSettings, town: Town
) -> None:
    """One worker accepts that the second stands down while another advises to keep it."""
    with local(application(settings)) as one, local(application(settings)) as two:
        made = begun(one, town)
        put(one, {"id": "A1", "status": "on_scene"})
        found = wait(one, made, lambda found: found["advice"] == "stand_down")
        wait(two, made, lambda found: found["advice"] == "stand_down")
        both = [each.service.dispatches for each in (one, two)]
        behind = one.service.ledger.followed
        assert reply(two, found).json()["state"] == "stood_down"
        said = both[0]._known[made["id"]].said or {}
        late = {"said": {**said, "advice": "keep", "changes": 2}, "versions": {}}
        later = asyncio.run_coroutine_threadsafe(
            both[0]._advise(both[0]._known[made["id"]], late, behind), loop_of(one)
        )
        later.result(PATIENCE_S)
        for each in (one, two):
            wait(each, made, lambda found: found["state"] != "running")
        store = one.service.ledger._store
        kinds = [row.kind for row in store.rows(0, 100) if row.call_id == "c"]
        assert kinds == ["recommendation", "response", "reassessment", "reply"]


def test_a_reply_to_a_worker_that_has_not_heard_of_the_advice_yet_is_taken(
    settings: ServiceSettings, town: Town
) -> None:
    with local(application(settings)) as one:
        made = begun(one, town)
        with local(application(settings)) as two:
            wait(two, made, lambda found: found["state"] == "running")
            for task in two.service._tasks:  # it hears nothing more
                loop_of(two).call_soon_threadsafe(task.cancel)
            wait_for(lambda: all(task.done() for task in two.service._tasks))
            put(one, {"id": "A1", "status": "on_scene"})
            found = wait(one, made, lambda found: found["advice"] == "stand_down")
            assert (dispatch(two, made) or {})["advice"] == "keep"
            assert reply(two, found).json()["state"] == "stood_down"


def on_record(now: datetime) -> dict[str, Entry]:
    """A dispatch of A1 and A2: accepted, A2 to stand down, then to be kept, and a reply."""
    who = {"unit": "A1", "depot": "D0"}, {"unit": "A2", "depot": "D1"}
    answer = {
        "id": "r", "call_id": "c", "decision": "send_second", "simulated": False,
        "primary": who[0], "second": who[1],
    }  # fmt: skip
    said = {"reason": "", "reasons": [], "at_s": 0.0, "changed_s": 0.0, "second": who[1]}
    down, keep = {"advice": "stand_down", "changes": 1}, {"advice": "keep", "changes": 2}
    accepts = {"recommendation_id": "r", "response": {"action": "accept"}}
    reply = {
        "dispatch_id": "r", "advice_id": "down", "response": {"action": "accept"},
        "takes": {"advised": [], "releases": ["A2"]},
    }  # fmt: skip
    return {
        "advice": Entry("recommendation", "c", {"answer": answer}, now, id="r"),
        "accepted": Entry("response", "c", accepts, now),
        "down": Entry(
            "reassessment", "c", {"dispatch_id": "r", "said": said | down}, now, id="down"
        ),
        "keep": Entry("reassessment", "c", {"dispatch_id": "r", "said": said | keep}, now),
        "reply": Entry("reply", "c", reply, now),
    }


def test_what_a_reply_did_is_done_whatever_was_advised_since() -> None:
    """A reply that waited in a spool comes on record after another advice."""
    told = on_record(datetime.now(UTC))
    ends = []
    for last in (("reply", "keep"), ("keep", "reply")):
        known = Dispatches(*(None,) * 5)  # type: ignore[arg-type]
        for one in ("advice", "accepted", "down", *last):
            known.take(told[one])
        found = known.get("r")
        assert found is not None
        ends.append({**found, "updated_at": None})
    assert ends[0] == ends[1]
    assert (ends[0]["state"], ends[0]["advice"]) == ("stood_down", "keep")


def test_a_dispatch_of_two_hours_is_known_again_after_many_other_calls(tmp_path: Path) -> None:
    """A worker that starts reads by time, however many answers came since."""
    now, store = clock.now(), AuditStore(f"sqlite:///{tmp_path}/audit.db")
    told = on_record(now - timedelta(minutes=115))
    before = replace(told["advice"], at=now - timedelta(minutes=125))
    others = [Entry("recommendation", f"o{n}", {"answer": {}}, now) for n in range(900)]
    store.append([before, told["accepted"], told["down"], *others])

    class Asked:
        async def ask(self, read: Callable[[AuditStore], Any], timeout_s: float = 1.0) -> Any:
            return read(store)

    known = Dispatches(Asked(), *(None,) * 4)  # type: ignore[arg-type]
    asyncio.run(known.read())
    store.close()
    found = known.get("r")
    assert found is not None
    assert (found["state"], found["advice"]) == ("running", "stand_down")


def test_desks_hear_that_an_accepted_advice_was_overridden_after_all(
    client: Local, town: Town
) -> None:
    made, hub = begun(client, town), client.service.hub
    wait(client, made, lambda one: one["primary"]["expected_s"] is not None)
    told: list[Any] = []
    hub.publish = lambda event, data, key=None: told.append((event, data))  # type: ignore[method-assign]
    respond(client, made, "override")
    wait_for(lambda: any(e == "dispatch" and one["state"] == "ended" for e, one in told))


def test_news_of_a_unit_is_looked_at_without_waiting(
    client: Local, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = begun(client, town)
    wait(client, made, lambda one: one["primary"]["expected_s"] is not None)
    monkeypatch.setattr(module, "_LOOK_S", 1e6)
    time.sleep(1.5)  # the looks that were due before
    put(client, {"id": "A1", "status": "on_scene"})
    wait(client, made, lambda one: one["advice"] == "stand_down")


def test_it_ends_though_news_comes_in_that_moment() -> None:
    async def stop() -> bool:
        known = Dispatches(*(None,) * 5)  # type: ignore[arg-type]
        task = asyncio.create_task(known.run())
        await asyncio.sleep(0.3)
        known._wake("any")
        task.cancel()
        await asyncio.wait([task], timeout=5.0)
        return task.cancelled()

    assert asyncio.run(stop())


def test_closed_roads_make_the_way_that_is_left_longer(client: Local, town: Town) -> None:
    made = begun(client, town)
    put(client, {"id": "A2", **town.place(11)})
    before = wait(client, made, lambda one: one["second"]["expected_s"] is not None)
    into = np.flatnonzero((town.network.head == 65) & (town.network.tail != 64))  # all but one
    close(client, into.tolist())
    longer_s = 1.05 * before["second"]["expected_s"]
    wait(client, made, lambda one: one["second"]["expected_s"] > longer_s)


def test_only_closed_roads_lead_there(client: Local, town: Town) -> None:
    """Units drive them; but one that need not do so is sent."""
    made = begun(client, town)
    put(client, at_station("A3", "D2"))
    before = wait(client, made, lambda one: one["second"]["expected_s"] is not None)
    into = np.flatnonzero(town.network.head == 65).tolist()
    close(client, into)

    def codes(one: dict[str, Any]) -> list[str]:
        return [each["code"] for each in one["reasons"]]

    found = wait(client, made, lambda one: "behind_closed_roads" in codes(one))
    assert found["advice"] == before["advice"] == "keep"
    for who in ("primary", "second"):
        assert found[who]["expected_s"] == pytest.approx(before[who]["expected_s"], abs=60.0)
    put(client, {"id": "A4", "station": "D2", "status": "available", **town.place(65)})
    again = wait(client, made, lambda one: one["proposed"] is not None)
    assert (again["advice"], again["proposed"]["unit"]) == ("send_one", "A4")
    assert again["primary"]["expected_s"] is again["second"]["expected_s"] is None
    assert reply(client, again).json()["second"]["unit"] == "A4"


def test_figures_that_nobody_knows_any_more_are_not_shown_as_those_of_now(
    client: Local, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = begun(client, town)
    put(client, {"id": "A1", "status": "on_scene"})
    before = wait(client, made, lambda one: one["advice"] == "stand_down")
    assert before["second"]["expected_s"] is not None
    monkeypatch.setattr(client.solver.reassesser, "_stations", {})  # nobody knows where to start
    found = wait(client, made, lambda one: one["second"]["expected_s"] is None)
    assert found["updated_at"] > before["updated_at"]
    assert found["second_first"] is found["saves"] is found["cost"] is None
    assert (found["advice"], found["reason"]) == ("stand_down", before["reason"])


def test_a_live_router_is_asked_about_the_call_and_not_while_it_is_followed(
    settings: ServiceSettings, town: Town
) -> None:
    assets, router = with_router(load_assets(settings))
    with local(application(settings, assets)) as client:
        made = begun(client, town)
        asked = router.asked
        for who in (made["primary"], made["second"]):
            told = who["traffic"]
            assert told["router_s"] == pytest.approx(router.times * told["forecast_s"], abs=0.2)
        found = wait(client, made, lambda one: one["second"]["expected_s"] is not None)
        for node in (11, 24, 37):
            put(client, {"id": "A2", **town.place(node)})
            found = looked_again(client, found)
        into = np.flatnonzero(town.network.head == 65)[:1].tolist()
        close(client, into)
        put(client, {"id": "A1", "status": "out_of_service"})
        wait(client, made, lambda one: one["primary"]["status"] == "out_of_service")
        put(client, {"id": "A2", "status": "out_of_service"})
        wait(client, made, lambda one: one["advice"] == "send_one")
        assert router.asked == asked


def test_a_second_that_broke_down_is_not_expected_although_nobody_else_is_free(
    client: Local, town: Town
) -> None:
    made = begun(client, town)
    wait(client, made, lambda one: one["second"]["expected_s"] is not None)
    put(client, {"id": "A2", "status": "out_of_service"})
    found = wait(client, made, lambda one: one["second"]["expected_s"] is None)
    assert (found["advice"], found["second_first"]) == ("keep", None)
    assert [one["code"] for one in found["reasons"]] == ["second_lost"]
    assert found["primary"]["expected_s"] > 0.0


def test_somebody_must_be_sent_although_nobody_is_free(client: Local, town: Town) -> None:
    """Once a unit is free, it is proposed."""
    made = begun(client, town)
    put(client, *({"id": one, "status": "out_of_service"} for one in ("A1", "A2")))
    found = wait(client, made, lambda one: one["advice"] == "send_one")
    assert (found["proposed"], found["reasons"][0]["code"]) == (None, "nobody_coming")
    put(client, at_station("A3", "D2"))
    found = wait(client, made, lambda one: one["proposed"] is not None)
    assert found["proposed"]["unit"] == "A3"
    assert reply(client, found).json()["second"]["unit"] == "A3"


def test_a_dispatch_that_is_accepted_again_begins_anew(
    client: Local, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told the advice of the first time."""
    made = begun(client, town)
    put(client, {"id": "A1", "status": "on_scene"})
    before = wait(client, made, lambda one: one["advice"] == "stand_down")
    respond(client, made, "override")
    told: list[Any] = []
    monkeypatch.setattr(client.service.hub, "publish", lambda _, data, key=None: told.append(data))
    put(client, *({"id": one, "status": "out_of_service"} for one in ("A1", "A2")))
    respond(client, made, "accept")
    wait(client, made, lambda one: one["advice"] == "send_one")
    began = before["started_at"]
    again = [
        one["advice_id"] for one in told
        if isinstance(one, dict) and one.get("started_at", began) > began
    ]  # fmt: skip
    assert again
    assert before["advice_id"] not in again


def test_nothing_is_advised_after_the_dispatch_was_overridden(
    client: Local, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The advice was being made when somebody overrode the second."""
    made = begun(client, town)
    wait(client, made, lambda one: one["primary"]["expected_s"] is not None)
    dispatches, solver, loop = client.service.dispatches, client.service.solver, loop_of(client)
    begins, goes_on, ends = asyncio.Event(), asyncio.Event(), asyncio.Event()
    ask, look = solver.ask, dispatches._look

    async def late(name: str, *given: Any) -> Any:
        found = await ask(name, *given)
        if name == "reassess" and found["said"]["advice"] == "stand_down":
            begins.set()
            await goes_on.wait()
        return found

    async def looked(given: Any) -> None:
        await look(given)
        if begins.is_set():
            ends.set()

    monkeypatch.setattr(solver, "ask", late)
    monkeypatch.setattr(dispatches, "_look", looked)
    put(client, {"id": "A1", "status": "on_scene"})
    asyncio.run_coroutine_threadsafe(begins.wait(), loop).result(PATIENCE_S)
    respond(client, made, "override")
    loop.call_soon_threadsafe(goes_on.set)
    asyncio.run_coroutine_threadsafe(ends.wait(), loop).result(PATIENCE_S)
    rows = client.service.ledger._store.rows(0, 100)
    assert "reassessment" not in {row.kind for row in rows if row.call_id == "c"}
