"""Units one by one: candidates start where they are, and promises are by unit."""

import copy
import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import httpx
import numpy as np
import pytest

from ideal_dispatch.service import clock
from ideal_dispatch.service.audit.record import Row, StoreError
from ideal_dispatch.service.http.answer_schemas import CityOut
from ideal_dispatch.service.http.fleet import UnitOut
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.messages import Call, KnownWeather, Scene, Sent
from ideal_dispatch.service.unit_counts import known_unit
from tests.polylines import encode_polyline
from tests.service_town import (
    EIDO,
    PATIENCE_S,
    PATIENT,
    Local,
    Town,
    application,
    bearer,
    codes,
    later,
    local,
    respond,
)
from tests.unit.dispatch.worlds import depots
from tests.waiting import wait_for

ASK, FLEET = "/v1/recommendations", "/v1/fleet/units"


@pytest.fixture
def settings(town: Town) -> ServiceSettings:
    return town.settings(f"fleet-{time.monotonic_ns()}.toml", server=PATIENT)


def put(client: Local, *news: dict[str, Any], status: int = 200) -> dict[str, Any]:
    answer = client.put(FLEET, json=list(news), headers=bearer("cad"))
    assert answer.status_code == status, answer.text
    taken: dict[str, Any] = answer.json()
    return taken


def at_station(name: str, station: str) -> dict[str, Any]:
    return {"id": name, "station": station, "status": "at_station"}


def fleet(client: Local) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in client.get(FLEET, headers=bearer("auditor")).json()}


def asked(client: Local, town: Town, call_id: str, **more: Any) -> dict[str, Any]:
    """An answer for which a second is worth a lot."""
    values = {"threshold_s": -1000.0, "depots": None, **more}
    answer = client.post(ASK, json=town.call(call_id, **values), headers=bearer("cad"))
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def close(client: Local, edges: list[int]) -> None:
    told = client.post("/v1/closures", json={"edges": edges}, headers=bearer("cad"))
    assert told.status_code == 201, told.text


def test_units_are_told_and_shown(client: Local) -> None:
    assert put(client, at_station("A1", "D0"), at_station("A2", "d1")) == {
        "taken": 2, "ignored": [],
    }  # fmt: skip
    one = client.put(
        f"{FLEET}/A1", json={"lon": 114.1, "lat": 22.3, "heading": 90}, headers=bearer("cad")
    )
    assert one.json()["taken"] == 1
    shown = fleet(client)
    assert (shown["A2"]["station"], shown["A2"]["status"]) == ("D1", "at_station")
    assert shown["A1"]["position"]["heading"] == 90
    assert (shown["A1"]["source"], shown["A1"]["free"], shown["A1"]["promised"]) == (
        "cad", True, None,
    )  # fmt: skip
    city = client.get("/v1/city", headers=bearer("auditor")).json()
    assert (city["units"], city["clock"]["speed"]) == ("fleet", 1.0)
    assert client.get(f"{FLEET}/A9", headers=bearer("auditor")).status_code == 404


@pytest.mark.parametrize(
    ("news", "words"),
    [
        ({"id": "A9"}, "unit A9 is new: give its station and its status"),
        ({"id": "A9", "station": "Nowhere", "status": "available"}, "no depot is called 'Nowhere'"),
        ({"id": "A1", "status": "asleep"}, "asleep"),
        ({"id": "A1", "lon": 114.1}, "give both lon and lat, or neither"),
        ({"id": "A1", "at": later(86_400)}, "ahead of the clock here"),
        ({"id": "D1", "station": "D1", "status": "available"}, "a depot has this name"),
    ],
)
def test_news_that_make_no_sense_change_nothing(
    client: Local, news: dict[str, Any], words: str
) -> None:
    put(client, at_station("A1", "D0"))
    before = fleet(client)
    refused = put(client, {"id": "A1", "status": "out_of_service"}, news, status=422)
    assert words in refused["error"]["message"]
    assert fleet(client) == before


def test_older_news_are_ignored_aloud(client: Local) -> None:
    put(client, at_station("A1", "D0"))
    old = {"id": "A1", "status": "en_route", "at": later(-60)}
    assert put(client, old) == {
        "taken": 0, "ignored": [{"id": "A1", "why": "older than what is known"}],
    }  # fmt: skip
    assert fleet(client)["A1"]["status"] == "at_station"


def test_counts_and_units_do_not_mix(client: Local, town: Town) -> None:
    counts = [{"depot": "D0", "units": 1}]
    assert client.put("/v1/units", json=counts, headers=bearer("cad")).status_code == 200
    put(client, at_station("A1", "D0"), at_station("A2", "D1"))
    refused = client.put("/v1/units", json=counts, headers=bearer("cad"))
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "units_told_one_by_one")
    made = asked(client, town, "c", depots=[{"name": "D2", "units": 5}])
    assert "depots_ignored" in codes(made)
    assert {made["primary"]["unit"], made["second"]["unit"]} == {"A1", "A2"}
    for unit in ("A1", "A2"):
        assert client.delete(f"{FLEET}/{unit}", headers=bearer("cad")).status_code == 204
    assert client.delete(f"{FLEET}/A1", headers=bearer("cad")).status_code == 404
    assert client.put("/v1/units", json=counts, headers=bearer("cad")).status_code == 200


def test_a_unit_on_the_road_starts_where_it_is(client: Local, town: Town) -> None:
    """Beside the scene it is there at once, from its station it would take minutes."""
    network, scene = town.network, 65
    edge = int(np.flatnonzero(network.head == scene)[0])
    tail = int(network.tail[edge])
    middle = (network.polyline(edge)[0] + network.polyline(edge)[-1]) / 2
    east, north = network.polyline(edge)[-1] - network.polyline(edge)[0]
    heading = float(np.degrees(np.arctan2(east, north)) % 360)
    road = {"status": "available", "lon": float(middle[0]), "lat": float(middle[1])}
    put(client, at_station("A1", "D0"), {"id": "A2", "station": "D1", **road, "heading": heading})
    made = asked(client, town, "c", node=scene, primary={"depot": "D0", "unit": "A1"})
    second = made["second"]
    assert (second["unit"], second["depot"], second["start"]["on_road"]) == ("A2", "D1", True)
    assert second["start"]["lon"] == pytest.approx(middle[0], abs=1e-5)
    assert second["route"]["edges"] == []  # half of a road is left, and it leads to the scene
    assert 0.0 < second["route"]["quoted_s"] < 60.0
    assert "A2 on the road, of D1" in made["headline"]
    # in the other direction it must first drive to the other end
    put(client, {"id": "A2", "heading": (heading + 180) % 360, **road})
    turned = asked(client, town, "c", node=scene, primary={"unit": "a1"})
    assert turned["second"]["route"]["edges"][0] in np.flatnonzero(network.tail == tail).tolist()
    assert turned["primary"]["depot"] == "D0"


def test_where_units_on_the_road_were_that_were_not_chosen_is_on_record(
    client: Local, town: Town
) -> None:
    put(client, at_station("A1", "D0"), at_station("A2", "D1"))
    road = {"station": "D2", "status": "available"}
    places = {"A3": town.place(119), "A4": town.place(65)}
    put(client, *({"id": one, **road, **place} for one, place in places.items()))
    made = asked(client, town, "c")
    assert made["primary"]["unit"] == "A4"
    row = client.service.ledger._store.get(made["id"])
    assert row is not None
    weighed = {one.pop("unit"): one for one in row.entry.body["answer"]["considered"]}
    assert set(weighed) == set(places)  # the others are at their depots
    for unit, told in weighed.items():
        assert told["start"].pop("age_s") >= 0.0
        assert told["start"] == {**places[unit], "on_road": True}
    assert weighed["A4"]["quoted_s"] < weighed["A3"]["quoted_s"]


def test_an_old_position_counts_as_the_station(client: Local, town: Town) -> None:
    put(client, at_station("A1", "D0"))
    put(client, {"id": "A2", "station": "D1", "status": "available", **town.place(65),
                 "at": later(-600)})  # fmt: skip
    made = asked(client, town, "c", primary={"unit": "A1"})
    assert (made["second"]["unit"], made["second"]["start"]["on_road"]) == ("A2", False)
    assert "position_stale" in codes(made)
    assert fleet(client)["A2"]["stale"] is True


def test_an_old_position_of_the_primary_is_said_and_counts_for_nothing(
    client: Local, town: Town
) -> None:
    """It is not taken to have driven towards this call since it was last seen."""
    put(client, at_station("A1", "D0"), at_station("A2", "D1"))
    put(
        client,
        {"id": "A1", **town.place(65), "at": later(-600)},
        {"id": "A1", "status": "en_route"},
    )
    made = asked(client, town, "b", primary={"unit": "A1"})
    assert (made["primary"]["unit"], made["primary"]["start"]["on_road"]) == ("A1", False)
    words = [one["words"] for one in made["degraded"] if one["code"] == "position_stale"]
    assert words == ["positions of A1 are up to 10 min old; they count as at their stations"]
    call = Call("b", datetime.now(UTC), Scene(**town.place(65)), Sent(None, "A1"))
    known = client.service.ledger.units.known("b", False, "A1")
    assert client.adviser.reader.read(call, known, KnownWeather(), []).ready.sent_ago_s < 300.0


def test_silence_of_a_unit_of_the_answer_is_said(client: Local, town: Town) -> None:
    put(client, at_station("A1", "D0"), {**at_station("A2", "D1"), **town.place(30)})
    units = client.service.ledger.units
    later = clock.now() + timedelta(minutes=40)
    ages = {name: known_unit(unit, later).silent_s for name, unit in units.fleet.items()}
    assert ages["A1"] == 0.0  # it never tells its place: no news is no change
    assert ages["A2"] >= 2400.0
    call = Call("c", clock.now(), Scene(**town.place(65)), Sent(None, "A1"), threshold_s=-1000.0)
    known = units.known("c", False, "A1")
    silent = [replace(one, silent_s=min(ages[one.id], 2400.0)) for one in known.fleet or ()]
    old = replace(known, fleet=tuple(silent))
    for given, said in ((known, []), (old, ["there has been no news of A2 for 40 min"])):
        made = client.adviser.advise(call, given, KnownWeather(), time.monotonic() + 60.0)
        assert made["second"]["unit"] == "A2"
        words = [one["words"] for one in made["degraded"] if one["code"] == "units_stale"]
        assert words == said


def test_a_unit_off_all_roads_counts_as_at_its_station(client: Local, town: Town) -> None:
    put(client, at_station("A1", "D0"))
    put(client, {"id": "A2", "station": "D1", "status": "available", "lon": 10.0, "lat": 50.0})
    made = asked(client, town, "c", primary={"unit": "A1"})
    assert made["second"]["start"]["on_road"] is False
    assert "position_off_map" in codes(made)


def test_a_unit_is_promised_to_one_call(client: Local, town: Town) -> None:
    put(client, at_station("A1", "D0"), at_station("A2", "D1"), at_station("A3", "D1"))
    first = asked(client, town, "a", primary={"unit": "A1"})
    assert first["second"]["unit"] == "A2"
    shown = fleet(client)
    assert [shown[one]["promised"] and shown[one]["promised"]["kind"] for one in sorted(shown)] == [
        "sent", "advised", None,
    ]  # fmt: skip
    respond(client, first, "accept")
    second = asked(client, town, "b", primary={"depot": "D2", "unit": "X9"})
    assert second["second"]["unit"] == "A3"
    assert "units_assumed" in codes(second)  # X9 is no unit that was told of
    third = asked(client, town, "c", primary={"depot": "D2"})
    assert third["decision"] != "send_second"
    assert "last_unit_promised" in codes(third)


def test_news_of_a_unit_end_its_promise(client: Local, town: Town) -> None:
    put(client, at_station("A1", "D0"), at_station("A2", "D1"))
    respond(client, asked(client, town, "a", primary={"unit": "A1"}), "accept")
    put(client, {"id": "A2", "status": "at_station"})  # the same again is no news of its work
    assert fleet(client)["A2"]["promised"]["kind"] == "accepted"
    put(client, {"id": "A2", "status": "en_route", "call_id": "a"})
    put(client, {"id": "A2", "status": "available", **town.place(30)})
    shown = fleet(client)["A2"]
    assert (shown["promised"], shown["free"], shown["call_id"]) == (None, True, None)
    assert asked(client, town, "b", primary={"unit": "A1"})["second"]["unit"] == "A2"


def test_a_unit_that_nobody_knows_is_said_to_be_unknown(client: Local, town: Town) -> None:
    put(client, at_station("A1", "D0"))
    made = asked(client, town, "c", primary={"unit": "B7"})
    assert (made["decision"], codes(made)[0]) == ("no_advice", "unknown_unit")


def test_the_unit_that_was_sent_is_named_beside_others_of_its_station(
    client: Local, town: Town
) -> None:
    put(client, *(at_station(name, "D0") for name in ("A1", "A2", "A3")))
    made = asked(client, town, "c", primary={"unit": "A2"})
    assert (made["primary"]["unit"], made["primary"]["depot"]) == ("A2", "D0")
    assert made["second"]["unit"] == "A1"
    chosen = asked(client, town, "d")  # by the router: two units of one station are two
    assert chosen["primary"]["unit"] == "A3"
    assert chosen["second"] is None or chosen["second"]["unit"] not in ("A2", "A3")


def test_a_primary_named_by_its_depot_is_a_unit_of_it(client: Local, town: Town) -> None:
    put(client, at_station("A1", "D0"), at_station("A2", "D1"))
    made = asked(client, town, "a", primary={"depot": "D0"})
    assert made["primary"]["unit"] == "A1"
    assert fleet(client)["A1"]["promised"]["kind"] == "sent"


def test_whoever_is_surely_at_the_station_goes_first(client: Local, town: Town) -> None:
    put(client, at_station("A9", "D1"), at_station("B1", "D0"))
    put(client, {"id": "A1", "station": "D1", "status": "available", **town.place(65),
                 "at": later(-3000)})  # fmt: skip
    assert asked(client, town, "c", primary={"unit": "B1"})["second"]["unit"] == "A9"


def test_free_and_still_free_ends_no_promise(client: Local, town: Town) -> None:
    put(client, at_station("A1", "D0"))
    put(client, {"id": "A2", "station": "D1", "status": "available", **town.place(30)})
    respond(client, asked(client, town, "a", primary={"unit": "A1"}), "accept")
    put(client, {"id": "A2", "status": "at_station"})
    assert fleet(client)["A2"]["promised"]["kind"] == "accepted"
    put(client, at_station("A3", "D0"))
    assert asked(client, town, "b", primary={"unit": "A3"})["decision"] != "send_second"


def test_a_unit_that_became_free_for_a_call_that_waited_is_promised_to_it(
    client: Local, town: Town
) -> None:
    put(client, at_station("A3", "D0"), {**at_station("A1", "D1"), "status": "at_hospital"})
    came = later(0.0)
    put(client, {"id": "A1", "status": "at_station"})
    asked(client, town, "a", primary={"unit": "A1"}, received_at=came, threshold_s=1000.0)
    assert fleet(client)["A1"]["promised"]["call_id"] == "a"
    assert asked(client, town, "b", primary={"unit": "A3"})["decision"] != "send_second"
    put(client, {"id": "A1", "status": "on_scene"})
    put(client, {"id": "A1", "status": "available", **town.place(30)})
    asked(client, town, "a", primary={"unit": "A1"}, threshold_s=999.0)  # a later stamp, as of EIDO
    assert fleet(client)["A1"]["promised"] is None  # it has been there


def test_a_status_a_little_ahead_loses_no_later_one(client: Local, town: Town) -> None:
    put(client, at_station("A1", "D0"))
    put(client, {"id": "A1", "status": "en_route", "at": later(4)})
    assert put(client, {"id": "A1", "status": "on_scene"})["taken"] == 1
    assert fleet(client)["A1"]["status"] == "on_scene"


def test_an_id_in_other_capitals_is_refused(client: Local) -> None:
    put(client, at_station("A1", "D0"))
    refused = put(client, at_station("a1", "D1"), status=422)
    assert "A1 is known; write it in the same way" in refused["error"]["message"]


def test_a_unit_has_the_age_of_its_position_by_the_services_clock(
    client: Local, town: Town
) -> None:
    put(client, at_station("A1", "D0"))
    put(client, {**at_station("A2", "D0"), **town.place(30), "at": later(-60)})
    rows = fleet(client)
    for row in rows.values():
        UnitOut.model_validate(row)
    assert rows["A1"]["age_s"] is None
    assert 60.0 <= rows["A2"]["age_s"] < 60.0 + PATIENCE_S
    now = datetime.now(UTC)
    clock.use(clock.ClockTable(now + timedelta(hours=1), now))
    try:
        assert fleet(client)["A2"]["age_s"] >= 3660.0
    finally:
        clock.use(clock.ClockTable())


def test_desks_hear_of_a_unit_again_only_when_it_changes(client: Local, town: Town) -> None:
    """Its age is another one at each look."""
    url = f"{client.base_url}/v1/events"
    with httpx.stream("GET", url, headers=bearer(), timeout=PATIENCE_S) as stream:
        lines = stream.iter_lines()

        def heard() -> list[dict[str, Any]]:
            while next(lines) != "event: fleet":
                pass
            news: list[dict[str, Any]] = json.loads(next(lines).removeprefix("data: "))
            return news

        put(client, {**at_station("A1", "D0"), **town.place(30)})
        (told,) = heard()
        while told["position"] is None:  # heard between its status and its place
            (told,) = heard()
        assert told["id"] == "A1"
        assert "age_s" not in told
        put(client, {**at_station("A2", "D0"), **town.place(30)})
        assert [one["id"] for one in heard()] == ["A2"]


@pytest.mark.parametrize("as_line", [False, True])
def test_the_told_path_of_a_unit_on_the_road_may_begin_with_its_road(
    client: Local, town: Town, as_line: bool
) -> None:
    network, edge = town.network, 40
    path = network.shortest_path(network.free_flow_times_s, int(network.head[edge]), 65)
    whole = network.path([edge, *path.edges])
    (east, north), line = np.ptp(network.polyline(edge), axis=0), network.polyline(edge)
    place = line[0] + 0.25 * (line[-1] - line[0])
    put(client, {
        "id": "A1", "station": "D0", "status": "en_route", "lon": place[0], "lat": place[1],
        "heading": float(np.degrees(np.arctan2(east, north))),
    }, at_station("A2", "D1"))  # fmt: skip
    drawn = encode_polyline([place, *whole.coordinates(network)[1:]])
    told = {"polyline": drawn} if as_line else {"edges": whole.edges.tolist()}
    made = asked(client, town, f"own-{as_line}", primary={"unit": "A1", **told})
    assert "primary_path_unknown" not in codes(made), made["degraded"]
    assert made["primary"]["route"]["edges"] == path.edges.tolist()


def test_how_far_the_next_call_is_from_help(
    client: Local, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ideal_dispatch.service.state._COVER_WAIT_S", PATIENCE_S)

    def cover() -> dict[str, Any] | None:
        client.service._cover_until = 0.0
        answer = client.get("/v1/city", headers=bearer())
        CityOut.model_validate(answer.json())
        found: dict[str, Any] | None = answer.json()["cover"]
        return found

    assert cover() is None
    put(client, at_station("A1", "D0"))
    one = cover()
    assert one is not None
    assert 0.0 < one["median_s"] < one["p90_s"]
    put(client, at_station("A2", "D1"), at_station("A3", "D2"))
    three = cover()
    assert three is not None
    assert three["p90_s"] < one["p90_s"]
    put(client, {"id": "A2", "status": "en_route"}, {"id": "A3", "status": "en_route"})
    last, *others = np.flatnonzero(town.network.tail == depots(3)[0].node).tolist()
    close(client, others)
    around = cover()
    assert around is not None
    assert around["median_s"] > one["median_s"]
    close(client, [last])
    assert cover() == {"median_s": None, "p90_s": None}
    put(client, at_station("A2", "D1"))
    assert None not in (cover() or {}).values()
    outward = town.network.distances(town.network.free_flow_times_s, depots(3)[1])
    far = np.argsort(outward)[-town.network.num_nodes // 5 :]  # a fifth is cut off
    close(client, np.flatnonzero(np.isin(town.network.head, far)).tolist())
    cut = cover()
    assert cut is not None
    assert cut["median_s"] > 0.0
    assert cut["p90_s"] is None


def test_an_eido_names_a_unit_and_tells_of_it(client: Local, town: Town) -> None:
    put(client, at_station("A117", "D0"), at_station("A2", "D1"))
    made, now = copy.deepcopy(EIDO), datetime.now(UTC).isoformat()
    place = town.place(65)
    point = made["locationComponent"][0]["locationByValue"].replace(
        "21.5845 117.2393", f"{place['lat']} {place['lon']}"
    )
    made["locationComponent"][0]["locationByValue"] = point
    made["incidentComponent"]["lastUpdateTimeStamp"] = now
    made["emergencyResourceComponent"][0] |= {
        "primaryUnitStatusRegistryText": "En Route", "lastUpdateTimeStamp": now,
    }  # fmt: skip
    answer = client.post("/v1/incidents/eido", json=made, headers=bearer("cad"))
    assert answer.status_code == 200, answer.text
    primary = answer.json()["primary"]
    assert (primary["unit"], primary["depot"], primary["chosen_by"]) == ("A117", "D0", "cad")
    told = fleet(client)["A117"]
    assert (told["status"], told["call_id"]) == ("en_route", answer.json()["call_id"])


def test_each_step_of_a_unit_is_on_record_and_no_place_is(client: Local, town: Town) -> None:
    put(client, at_station("A1", "D0"))
    put(
        client,
        {"id": "A1", "status": "dispatched", "call_id": "c"},
        {"id": "A1", "status": "en_route", **town.place(30)},
        {"id": "A1", **town.place(31)},
    )
    store = client.service.ledger._store

    def rows() -> list[Row]:
        return [row for row in store.rows(0, 50) if row.kind == "unit"]

    wait_for(lambda: len(rows()) >= 2)
    steps = [one["status"] for row in rows() for one in json.loads(row.body)["units"]]
    assert steps == ["at_station", "dispatched", "en_route"]
    assert not any('"lon"' in row.body for row in rows())


def test_two_workers_know_the_same_units(settings: ServiceSettings, town: Town) -> None:
    with local(application(settings)) as one, local(application(settings)) as two:
        put(one, at_station("A1", "D0"), at_station("A2", "D1"))
        wait_for(lambda: set(fleet(two)) == {"A1", "A2"})
        put(two, {"id": "A2", "status": "available", **town.place(30)})
        wait_for(lambda: fleet(one)["A2"]["position"] is not None)
        assert fleet(one)["A2"]["position"] == fleet(two)["A2"]["position"]
        first = asked(one, town, "a", primary={"unit": "A1"})
        assert first["second"]["unit"] == "A2"
        # the other worker may not know of it yet: the database does
        other = asked(two, town, "b", primary={"depot": "D2", "unit": "A1"})
        assert other["decision"] != "send_second"


def test_a_unit_that_was_deleted_is_not_brought_back_by_the_spool(
    settings: ServiceSettings, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker is cut off: a status waits in its spool while another one deletes the unit."""
    with local(application(settings)) as one, local(application(settings)) as two:
        put(one, at_station("A1", "D0"), at_station("A2", "D1"))
        wait_for(lambda: set(fleet(two)) == {"A1", "A2"})
        ledger = one.service.ledger
        with monkeypatch.context() as cut:
            cut.setattr(ledger._store, "append", _down)
            put(one, {"id": "A1", "status": "en_route"})
            assert len(ledger.writer.spool) == 1
            assert two.delete(f"{FLEET}/A1", headers=bearer("cad")).status_code == 204
        wait_for(lambda: not len(ledger.writer.spool))
        wait_for(lambda: set(fleet(one)) == {"A2"})
        head = ledger._store.last_number()
        wait_for(lambda: two.service.ledger.followed >= head)
        assert set(fleet(two)) == {"A2"}
        assert [unit.id for unit in ledger._store.read_fleet()] == ["A2"]
        old = {**at_station("A1", "D0"), "at": later(-60)}
        assert put(one, old)["ignored"] == [{"id": "A1", "why": "older than what is known"}]
        assert put(one, at_station("A1", "D0"))["taken"] == 1
        wait_for(lambda: set(fleet(two)) == {"A1", "A2"})


def test_a_unit_whose_clock_is_ahead_can_be_deleted_and_told_again(client: Local) -> None:
    put(client, {**at_station("A1", "D0"), "at": later(3)})
    assert client.delete(f"{FLEET}/A1", headers=bearer("cad")).status_code == 204
    assert fleet(client) == {}
    assert put(client, at_station("A1", "D0"))["taken"] == 1
    assert set(fleet(client)) == {"A1"}


def _down(*_: Any, **__: Any) -> None:
    raise StoreError("the database is down")


def test_workers_agree_on_a_status_that_was_taken_back_at_once(
    settings: ServiceSettings,
) -> None:
    """The second worker hears of the first status only after it took the next for a repetition."""
    with local(application(settings)) as one, local(application(settings)) as two:
        put(one, {**at_station("A1", "D0"), "at": later(-30)})
        wait_for(lambda: "A1" in fleet(two))
        put(one, {"id": "A1", "status": "en_route", "at": later(-20)})
        put(two, {"id": "A1", "status": "at_station", "at": later(-10)})
        store = one.service.ledger._store

        def agreed() -> bool:
            known = [fleet(each)["A1"]["status"] for each in (one, two)]
            return {*known, store.read_fleet()[0].status} == {"at_station"}

        wait_for(agreed)
        head = store.last_number()
        wait_for(lambda: min(each.service.ledger.followed for each in (one, two)) >= head)
        assert agreed()


def test_a_status_that_was_taken_back_at_once_is_on_record_before_the_next(
    settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second worker has not heard of the first status when it is told the third."""
    with local(application(settings)) as one, local(application(settings)) as two:
        put(one, {**at_station("A1", "D0"), "at": later(-30)})
        wait_for(lambda: "A1" in fleet(two))
        monkeypatch.setattr(two.service, "_pass_on", lambda row: None)
        monkeypatch.setattr(two.service.ledger.units, "later", lambda recorded: [])
        put(one, {"id": "A1", "status": "en_route", "at": later(-20)})
        put(two, {"id": "A1", "status": "at_station", "at": later(-10)})
        monkeypatch.undo()
        put(two, {"id": "A1", "status": "dispatched", "at": later(-5)})
        rows = one.service.ledger._store.rows(0, 100)
        told = [unit["status"] for row in rows for unit in row.entry.body.get("units", ())]
        each = [status for status, _ in groupby(told)]  # two tasks may have put one on record
        assert each == ["at_station", "en_route", "at_station", "dispatched"]


def test_a_deleted_unit_is_gone_although_another_clock_is_ahead(settings: ServiceSettings) -> None:
    """The worker that deletes it has not heard what the other was told, three seconds ahead."""
    with local(application(settings)) as one, local(application(settings)) as two:
        put(one, {**at_station("A1", "D0"), "at": later(-60)})
        wait_for(lambda: "A1" in fleet(two))
        put(two, {"id": "A1", "status": "available", "at": later(3)})
        assert one.delete(f"{FLEET}/A1", headers=bearer("cad")).status_code == 204
        wait_for(lambda: not fleet(one) and not fleet(two))


def test_a_call_that_a_unit_was_redirected_to_is_known_to_all_workers(
    settings: ServiceSettings,
) -> None:
    """Its status is the same, and the other worker has heard that one since it began."""
    with local(application(settings)) as one, local(application(settings)) as two:
        put(one, {**at_station("A1", "D0"), "status": "en_route", "call_id": "a"})
        wait_for(lambda: "A1" in fleet(two))
        put(two, {"id": "A1", "status": "en_route"})
        put(one, {"id": "A1", "status": "en_route", "call_id": "b"})
        wait_for(lambda: fleet(two)["A1"]["call_id"] == "b")
        assert fleet(one)["A1"]["call_id"] == "b"


def test_what_one_worker_alone_was_told_is_put_on_record_once(settings: ServiceSettings) -> None:
    with local(application(settings)) as one, local(application(settings)) as two:
        put(one, {**at_station("A1", "D0"), "status": "en_route", "at": later(-30)})
        wait_for(lambda: "A1" in fleet(two))
        put(two, {"id": "A1", "status": "en_route", "at": later(-10)})
        put(one, {"id": "A1", "call_id": "b", "at": later(-20)})
        wait_for(lambda: fleet(two)["A1"]["call_id"] == "b")
        store = one.service.ledger._store
        head = store.last_number()
        time.sleep(2.0)  # a few exchanges of places
        assert store.last_number() == head


def test_units_outlive_a_restart(settings: ServiceSettings, town: Town) -> None:
    with local(application(settings)) as one:
        put(one, at_station("A1", "D0"))
        put(one, {"id": "A1", "status": "available", **town.place(30)})
        store = one.service.ledger._store
        wait_for(lambda: store.read_fleet()[0].seen is not None)
        before = fleet(one)["A1"]
    with local(application(settings)) as again:
        wait_for(lambda: "A1" in fleet(again))
        aged = {"stale": False, "age_s": 0.0}
        assert {**fleet(again)["A1"], **aged} == {**before, **aged}
    assert datetime.fromisoformat(before["since"]) <= datetime.now(UTC)
