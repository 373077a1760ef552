"""The API over HTTP, in this process: every route, its answers, roles and refusals."""

import json
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from ideal_dispatch.service.demo import demo
from ideal_dispatch.service.http import access
from ideal_dispatch.service.http import answer_schemas as out
from ideal_dispatch.service.service import CityNow, Health
from ideal_dispatch.service.settings import authenticate
from tests.service_town import (
    ASK,
    EIDO,
    PATIENCE_S,
    Client,
    Local,
    Town,
    application,
    bearer,
    codes,
    local,
    token,
)
from tests.waiting import wait_for

UNITS, CLOSURES, SIMULATED = "/v1/units", "/v1/closures", "/v1/simulated-calls"
SEND: dict[str, Any] = {"primary": {"depot": "D0"}, "threshold_s": -1000.0}
"""A call for which a second is worth sending, wherever it comes from."""


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    with local(application(town.settings("app.toml"))) as opened:
        opened.report()
        yield opened


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The embedded city as ``ideal serve`` shows it, signed in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        settings, its_token = demo()
        with local(application(settings)) as opened:
            opened.headers["Authorization"] = f"Bearer {its_token}"
            yield opened


def refused(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal, which has the usual form."""
    error = answer.json()["error"]
    assert set(error) >= {"code", "message", "where"}
    return answer.status_code, error["code"]


def whole(model: type[Any], given: Any) -> Any:
    """The answer as documented: nothing is missing, and nothing in it is undocumented."""
    documented: TypeAdapter[Any] = TypeAdapter(model)
    made = documented.validate_python(given)
    shown = json.loads(documented.dump_json(made, by_alias=True))

    def compare(there: Any, documented: Any, at: str) -> None:
        if isinstance(there, dict) and isinstance(documented, dict):
            assert set(there) <= set(documented), at
            for name in there:
                compare(there[name], documented[name], f"{at}.{name}")
        elif isinstance(there, list) and isinstance(documented, list):
            for number, (one, other) in enumerate(zip(there, documented, strict=True)):
                compare(one, other, f"{at}.{number}")

    compare(given, shown, model.__name__)
    return made


# --- recommendations ----------------------------------------------------------------


def test_an_answer_is_as_documented_and_can_be_looked_up(client: Local, town: Town) -> None:
    given = client.advice(town.call("form", note="5 Main Street", **SEND))
    made = whole(out.Recommendation, given)
    assert (made.call_id, made.revision, made.state, made.note) == (
        "form",
        1,
        "open",
        "5 Main Street",
    )
    assert made.decision == "send_second"
    assert made.primary.chosen_by == "cad"
    assert made.made_with["versions"]["network"] == town.network.checksum
    assert client.read(f"{ASK}/{made.id}") == given
    assert given in client.read(f"{ASK}?limit=500")
    assert refused(client.get(f"{ASK}/{'0' * 32}", headers=bearer())) == (404, "not_found")
    assert refused(client.get(f"{ASK}?limit=0", headers=bearer())) == (422, "invalid")


def test_a_brief_answer_has_no_geometry_and_no_explanation(client: Local, town: Town) -> None:
    body = town.call("brief", **SEND)
    given = client.advice(body, params={"brief": 1})
    made = whole(out.Recommendation, given)
    assert {"why", "considered", "made_with"}.isdisjoint(given)
    assert made.second.route.length_m > 0
    assert {"edges", "geojson"}.isdisjoint(
        given["primary"]["route"].keys() | given["second"]["route"]
    )
    assert client.read(f"{ASK}/{made.id}?brief=1") == given
    assert given in client.read(f"{ASK}?limit=500&brief=1")
    assert client.advice(body)["why"]["text"]


def test_the_same_call_key_and_body_give_the_same_answer(client: Local, town: Town) -> None:
    body = town.call("same")
    one = client.advice(body, headers={"Idempotency-Key": "k1"})
    assert client.advice(body, headers={"Idempotency-Key": "k1"}) == one
    assert client.advice({**body, "idempotency_key": "k1"}) == one
    assert client.advice(body)["revision"] == 2  # the body is its own key
    changed = {**body, "note": "other", "idempotency_key": "k1"}
    assert refused(client.ask(changed)) == (409, "key_used")


def test_two_keys_must_be_one(client: Local, town: Town) -> None:
    body = {**town.call("two keys"), "idempotency_key": "a"}
    assert refused(client.ask(body, headers={"Idempotency-Key": "b"})) == (422, "invalid")


def test_a_call_that_cannot_be_understood_names_its_field(client: Local, town: Town) -> None:
    answer = client.ask({**town.call(), "location": {"lon": 22.0, "lat": 114.0}})
    assert refused(answer) == (422, "invalid")
    assert answer.json()["error"]["where"] == "body.location"


def test_a_call_is_json_whatever_it_says_of_itself(client: Local, town: Town) -> None:
    text = json.dumps(town.call("read", idempotency_key="k"))
    kinds = {"application/json": 200, "application/vnd.cad+json": 200, "text/plain": 422}
    for kind, status in kinds.items():
        headers = bearer("cad") | {"Content-Type": kind}
        assert client.post(ASK, content=text, headers=headers).status_code == status
    auditor = bearer("auditor") | {"Content-Type": "application/json"}
    assert client.post(ASK, content=text, headers=auditor).status_code == 403
    assert client.post(ASK, content="{", headers=bearer("cad")).status_code == 422


def test_an_incident_of_another_cad(client: Local, town: Town) -> None:
    place = town.place(65)
    text = json.dumps(EIDO).replace("21.5845 117.2393", f"{place['lat']} {place['lon']}")
    document = json.loads(text)
    document["incidentComponent"].pop("lastUpdateTimeStamp", None)

    def sent(document: Any, **options: Any) -> Any:
        answer = client.post("/v1/incidents/eido", json=document, headers=bearer("cad"), **options)
        assert answer.status_code == 200, answer.text
        return whole(out.Recommendation, answer.json())

    made = sent(document)
    assert (made.location.node, made.note) == (65, "Cardiac arrest")
    assert made.primary.chosen_by == "router", "Kelp Point is no depot of this town"
    assert sent(document, params={"brief": 1}).id == made.id
    other = json.loads(json.dumps(document).replace("Kelp Point", "d1").replace("000123", "000124"))
    primary = sent(other).primary
    assert (primary.depot, primary.chosen_by) == ("D1", "cad")
    empty = client.post("/v1/incidents/eido", json={}, headers=bearer("cad"))
    assert refused(empty) == (422, "invalid")


def test_an_incident_brings_news_of_units(client: Local, town: Town) -> None:
    client.report({"id": "E1", "depot": "D0", "status": "at_station"})
    place = town.place(65)
    document = json.loads(
        json.dumps(EIDO).replace("21.5845 117.2393", f"{place['lat']} {place['lon']}")
    )
    at = client.read("/v1/city")["clock"]["now"]
    document["incidentComponent"] |= {
        "incidentTrackingIdentifier": "news",
        "lastUpdateTimeStamp": at,
    }
    document["emergencyResourceComponent"] = [{
        "$id": "resource-1", "emergencyResourceName": "E1", "lastUpdateTimeStamp": at,
        "primaryUnitStatusRegistryText": "En Route",
    }]  # fmt: skip
    answer = client.post("/v1/incidents/eido", json=document, headers=bearer("cad"))
    assert answer.json()["primary"]["unit"] == "E1"
    unit = client.read(f"{UNITS}/E1")
    assert (unit["status"], unit["call_id"]) == ("en_route", "news")


# --- replies ------------------------------------------------------------------------


def test_replies_that_make_no_sense(client: Local, town: Town) -> None:
    made = client.advice(town.call("no sense", **SEND))
    where = f"{ASK}/{made['id']}/reply"
    for body in ({"action": "override"}, {"action": "shrug"}, {}, {"action": "accept", "by": "me"}):
        assert refused(client.post(where, json=body, headers=bearer())) == (422, "invalid")
    assert refused(client.reply(made, "stand_down")) == (409, "ended")
    assert refused(client.reply({"id": "0" * 32})) == (404, "not_found")


def test_dispatches_are_listed(client: Local, town: Town) -> None:
    client.report(town.unit("R1"), town.unit("R2"))
    made = client.advice(town.call("runs", primary={"unit": "R1"}, threshold_s=-1000.0))
    if made["second"]["unit"] != "R2":  # one of a count
        client.report({"id": "R2", "status": "out_of_service"})
    assert client.reply(made).status_code == 200
    for given in client.read("/v1/dispatches"):
        whole(out.DispatchOut, given)
        assert client.read(f"/v1/dispatches/{given['id']}")["call_id"] == given["call_id"]
    nothing = client.get(f"/v1/dispatches/{'0' * 32}", headers=bearer())
    assert refused(nothing) == (404, "not_found")


# --- units --------------------------------------------------------------------------


@pytest.mark.parametrize("id_", ["1/83-1", "Medic 9", "ÄRZT/1", "救1"])
def test_a_unit_by_itself_whatever_its_name(client: Local, id_: str) -> None:
    path = f"{UNITS}/{httpx.URL('http://x', path='/' + id_).raw_path.decode()[1:]}"
    client.report({"id": id_, "depot": "D0", "status": "at_station"})
    assert whole(out.UnitOut, client.read(path)).id == id_
    told = client.put(path, json={"status": "out_of_service"}, headers=bearer("cad"))
    assert whole(out.UpdateOut, told.json()).taken == 1
    assert client.read(path)["status"] == "out_of_service"
    assert client.delete(path, headers=bearer("cad")).status_code == 204
    assert refused(client.delete(path, headers=bearer("cad"))) == (404, "not_found")
    assert refused(client.get(path, headers=bearer())) == (404, "not_found")


def test_units_and_counts_in_one_list(client: Local) -> None:
    news = [{"id": "L1", "depot": "d1", "status": "available", "lon": 114.002, "lat": 22.001,
             "heading": 90.0, "speed_kmh": 30.0}, {"depot": "D2", "free": 3}]  # fmt: skip
    assert client.report(*news) == {"taken": 2, "ignored": []}
    known = {one["id"]: whole(out.UnitOut, one) for one in client.read(UNITS)}
    assert (known["L1"].depot, known["L1"].position.lon) == ("D1", 114.002)
    assert sum(one.depot == "D2" and one.anonymous for one in known.values()) >= 3
    client.report()  # enough again
    client.delete(f"{UNITS}/L1", headers=bearer("cad"))


@pytest.mark.parametrize(
    "news",
    [
        [{"depot": "D9", "free": 1}],
        [{"depot": "D0", "free": -1}],
        [{"depot": "D0", "free": 1}, {"depot": "D0", "free": 2}],
        [{"id": "N1"}],
        [{"id": "N1", "depot": "D9", "status": "available"}],
        [{"id": "N1", "depot": "D0", "status": "driving"}],
        [{"id": "N1", "depot": "D0", "status": "available", "lon": 114.0}],
        [{"id": "D0", "depot": "D0", "status": "available"}],
        [{"id": "D1 #1", "depot": "D0", "status": "available"}],
        [{"id": "..", "depot": "D0", "status": "available"}],
        [{"id": "1/./2", "depot": "D0", "status": "available"}],
        [{"id": "1//2", "depot": "D0", "status": "available"}],
        [{"id": " ", "depot": "D0", "status": "available"}],
        [{"id": "A\u202e7", "depot": "D0", "status": "available"}],
        [{"id": "N1", "depot": "D0", "status": "available", "at": "9999-12-31T23:59:59-14:00"}],
        [],
        {"D0": 1},
    ],
)
def test_news_that_make_no_sense_change_nothing(client: Local, news: Any) -> None:
    before = client.read(UNITS)
    good = {"id": "N2", "depot": "D0", "status": "available"}
    body = [good, *news] if isinstance(news, list) and news else news
    answer = client.put(UNITS, json=body, headers=bearer("cad"))
    assert refused(answer) == (422, "invalid")
    assert [one["id"] for one in client.read(UNITS)] == [one["id"] for one in before]


# --- closures -----------------------------------------------------------------------


def test_a_road_is_closed_and_opened_again(client: Local, town: Town) -> None:
    line = [[round(x, 6) for x in point] for point in town.network.polyline(3).tolist()]
    told = {"reason": "parade", "line": line, "from": "2026-01-01T00:00:00.123456Z"}
    answer = client.post(CLOSURES, json=told, headers=bearer("cad"))
    assert answer.status_code == 201
    made = whole(out.ClosureOut, answer.json())
    assert (made.reason, made.by, made.active) == ("parade", "cad", True)
    assert 3 in made.edges
    assert client.read(CLOSURES) == [answer.json()]
    assert client.advice(town.call("around"))["made_with"]["closures"] == [made.id]
    where = f"{CLOSURES}/{made.id}"
    assert client.delete(where, headers=bearer("cad")).status_code == 204
    assert client.read(CLOSURES) == []
    assert refused(client.delete(where, headers=bearer("cad"))) == (404, "not_found")


def test_the_whole_city_is_closed_only_on_purpose(client: Local) -> None:
    body = {"polygon": [[113.0, 21.0], [115.0, 21.0], [115.0, 23.0], [113.0, 23.0]]}
    answer = client.post(CLOSURES, json=body, headers=bearer())
    assert refused(answer) == (422, "closes_too_much")
    answer = client.post(CLOSURES, json={**body, "whole_city": True}, headers=bearer())
    assert answer.status_code == 201
    client.delete(f"{CLOSURES}/{answer.json()['id']}", headers=bearer())


@pytest.mark.parametrize(
    "closure", [{}, {"edges": [99_999]}, {"edges": [1], "until": "2026-03-01T08:00:00Z"}]
)
def test_closures_that_make_no_sense(client: Local, closure: dict[str, Any]) -> None:
    answer = client.post(CLOSURES, json=closure, headers=bearer())
    assert refused(answer) == (422, "invalid")


# --- who may what -------------------------------------------------------------------

READ = (ASK, UNITS, CLOSURES, "/v1/dispatches", "/v1/city", "/v1/network.geojson",
        "/v1/model-card", "/v1/session", SIMULATED)  # fmt: skip


@pytest.mark.parametrize("path", READ)
def test_reading_needs_a_token_of_any_role(client: Local, path: str) -> None:
    stranger = client.get(path)
    assert refused(stranger) == (401, "unauthorized")
    assert stranger.headers["WWW-Authenticate"] == "Bearer"
    for role in ("cad", "dispatcher", "auditor", "admin"):
        assert client.get(path, headers=bearer(role)).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "roles"),
    [
        ("POST", ASK, "cad dispatcher admin"),
        ("POST", "/v1/incidents/eido", "cad dispatcher admin"),
        ("POST", f"{ASK}/abc/reply", "dispatcher admin"),
        ("PUT", UNITS, "cad dispatcher admin"),
        ("PUT", f"{UNITS}/A1", "cad dispatcher admin"),
        ("DELETE", f"{UNITS}/nothing", "cad dispatcher admin"),
        ("POST", CLOSURES, "cad dispatcher admin"),
        ("DELETE", f"{CLOSURES}/abc", "cad dispatcher admin"),
        ("POST", SIMULATED, "admin"),
        ("POST", "/v1/clock", "admin"),
        ("GET", "/metrics", "auditor admin"),
    ],
)
def test_what_roles_may_do(client: Local, method: str, path: str, roles: str) -> None:
    """A role that may is refused for what it sent, one that may not before that."""
    for role in ("cad", "dispatcher", "auditor", "admin"):
        body = None if method in ("GET", "DELETE") else {"nonsense": 1}
        answer = client.request(method, path, json=body, headers=bearer(role))
        assert (answer.status_code != 403) == (role in roles.split()), role


def test_a_browser_keeps_its_token_in_a_cookie_no_script_can_read(client: Local) -> None:
    with httpx.Client(base_url=client.base_url, trust_env=False) as browser:
        wrong = browser.post("/v1/session", json={"token": "wrong"})
        assert refused(wrong) == (401, "unauthorized")
        answer = browser.post("/v1/session", json={"token": token("dispatcher")})
        assert answer.json() == {"name": "dispatcher", "role": "dispatcher"}
        cookie = answer.headers["set-cookie"].split("; ")
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie)
        assert browser.get("/v1/city").status_code == 200
        # another site's page may not use it to write
        news = [{"depot": "D0", "free": 100}]
        for site, status in (("cross-site", 401), ("same-origin", 200)):
            headers = {"Sec-Fetch-Site": site}
            assert browser.put(UNITS, json=news, headers=headers).status_code == status
        assert browser.delete("/v1/session").status_code == 204
        assert browser.get("/v1/city").status_code == 401


# --- what a desk needs, and health ----------------------------------------------------


def test_the_city_and_its_roads(client: Local, town: Town) -> None:
    city = whole(CityNow, client.read("/v1/city"))
    assert (city.name, city.simulated, city.units_known) == ("Gridtown", False, True)
    west, south, east, north = city.bounds
    assert west < city.centre[0] < east
    assert south < city.centre[1] < north
    answer = client.get("/v1/network.geojson", headers=bearer())
    assert answer.headers["content-type"] == "application/geo+json"
    edges = [edge for one in answer.json()["features"] for edge in one["properties"]["edges"]]
    assert sorted(edges) == list(range(town.network.num_edges))
    known = {**bearer(), "If-None-Match": answer.headers["etag"]}
    assert client.get("/v1/network.geojson", headers=known).status_code == 304
    plain = client.get("/v1/network.geojson", headers={**bearer(), "Accept-Encoding": "identity"})
    assert plain.json() == answer.json()


def test_the_model_card_and_the_languages(client: Local) -> None:
    answer = client.get("/v1/model-card", headers=bearer("auditor"))
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert client.get("/v1/languages").json() == ["en", "zh-Hant"]  # the sign-in page has them


def heard(client: Client, **options: Any) -> Iterator[tuple[str, str, Any]]:
    """Number, kind and content of events."""
    with client.stream("GET", "/v1/events", timeout=PATIENCE_S, **options) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        number = kind = ""
        for line in stream.iter_lines():
            name, _, text = line.partition(": ")
            match name:
                case "retry":
                    yield "", "welcome", None
                case "id":
                    number = text
                case "event":
                    kind = text
                case "data":
                    yield number, kind, json.loads(text)
                    number = kind = ""


def test_events_can_be_resumed_by_either_way(client: Local, town: Town) -> None:
    listening = threading.Event()

    def listen() -> tuple[str, Any]:
        for number, kind, data in heard(client, headers=bearer("auditor")):
            listening.set()
            if kind == "recommendation" and data["call_id"] == "heard":
                return number, data
        raise AssertionError("the stream ended")

    with ThreadPoolExecutor(1) as pool:
        desk = pool.submit(listen)
        assert listening.wait(PATIENCE_S)
        made = client.advice(town.call("heard"))
        number, data = desk.result(PATIENCE_S)
    assert data == made
    before = str(int(number) - 1)
    ways: list[dict[str, Any]] = [
        {"params": {"after": before}, "headers": bearer()},
        {"params": {"after": 0}, "headers": {**bearer(), "Last-Event-ID": before}},
    ]
    for options in ways:
        again = (one for one in heard(client, **options) if one[1] == "recommendation")
        assert next(again) == (number, "recommendation", made)
    odd = client.get("/v1/events?after=-1", headers=bearer())
    assert refused(odd) == (422, "invalid")
    for after, last in ((10**9, {}), (0, {"Last-Event-ID": str(10**9)})):
        headers = {**bearer(), **last}
        other = client.get("/v1/events", headers=headers, params={"after": after})
        assert refused(other) == (409, "not_in_log"), "as of the database before this one"


def test_simulated_calls_are_marked_as_such(client: Local) -> None:
    asked = client.post(SIMULATED, json={"count": 2, "every_s": 0.5}, headers=bearer("admin"))
    assert asked.json() == {"running": True, "left": 2, "every_s": 0.5}
    wait_for(lambda: not client.read(SIMULATED)["left"])
    found = [one for one in client.read(f"{ASK}?limit=10") if one["simulated"]]
    assert len(found) == 2
    assert all(one["call_id"].startswith("SIM-") for one in found)


def test_a_clock_of_the_wall_is_not_stepped(client: Local) -> None:
    answer = client.post("/v1/clock", json={"step_s": 5.0}, headers=bearer("admin"))
    assert refused(answer) == (422, "invalid")


def test_health_is_for_all(client: Local) -> None:
    for path in ("/healthz", "/readyz"):
        answer = client.get(path)
        assert answer.status_code == 200
        made = whole(Health, answer.json())
        assert made.status == "ready"
        assert set(made.parts) == {"decisions", "database", "traffic", "weather"}


def test_metrics_count_what_happened(client: Local, town: Town) -> None:
    def counted(name: str) -> float:
        lines = client.get("/metrics", headers=bearer("auditor")).text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    names = ("ideal_recommendations_total", "ideal_latency_seconds_count", "ideal_refused_total",
             "ideal_replies_total")  # fmt: skip
    before = [counted(name) for name in names]
    made = client.advice(town.call("counted", **SEND))
    client.reply(made)
    client.ask({})
    assert [counted(name) for name in names] == [one + 1 for one in before]
    assert counted("ideal_database_up") == 1.0


# --- all answers ----------------------------------------------------------------------


def test_every_answer_has_security_headers(client: Local) -> None:
    for path in ("/", "/v1/city", "/nothing", "/healthz"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == ("no-store" if path.startswith("/v1/") else "no-cache")
    assert client.get("/healthz", headers={"X-Request-Id": "a-1"}).headers["x-request-id"] == "a-1"
    odd = client.get("/healthz", headers={"X-Request-Id": "a/b"}).headers["x-request-id"]
    assert odd != "a/b"


def test_the_desk_is_served(client: Local) -> None:
    assert client.get("/").headers["content-type"].startswith("text/html")
    assert client.get("/server.js").headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("OPTIONS", UNITS, "GET, PUT"),
        ("POST", f"{UNITS}/1/83-1", "DELETE, GET, PUT"),
        ("DELETE", ASK, "GET, POST"),
        ("PATCH", f"{ASK}/abc", "GET"),
        ("PUT", "/v1/session", "DELETE, GET, POST"),
        ("PUT", "/healthz", "GET"),
    ],
)
def test_a_wrong_method_learns_the_right_ones(
    client: Local, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path, headers=bearer("admin"))
    assert refused(answer) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == allowed
    nothing = client.request(method, "/v1/nothing", headers=bearer("admin"))
    assert refused(nothing) == (404, "not_found")


def test_a_client_that_hung_up_changes_nothing(client: Local, town: Town) -> None:
    """A worker that was frozen must not apply what its client has long given up."""
    loop_is_free = threading.Event()
    plain = authenticate

    def slow(given: str | None, configured: Any) -> Any:
        assert loop_is_free.wait(PATIENCE_S)  # the event loop stands still meanwhile
        return plain(given, configured)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access, "authenticate", slow)
        with httpx.Client(base_url=client.base_url, timeout=0.3, trust_env=False) as hasty:
            news = [{"id": "H1", "depot": "D0", "status": "available"}]
            with pytest.raises(httpx.ReadTimeout):
                hasty.put(UNITS, json=news, headers=bearer("cad"))
        loop_is_free.set()
    assert refused(client.get(f"{UNITS}/H1", headers=bearer())) == (404, "not_found")


def test_a_broken_database_is_no_advice_and_503(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    settings = town.settings("broken.toml")
    (town.folder / "broken.toml.db").write_bytes(b"no database" * 1000)
    with local(application(settings)) as client, caplog.at_level(logging.WARNING):
        made = client.advice(town.call("unrecorded"))
        assert made["decision"] == "no_advice"
        assert "record_unavailable" in codes(made)
        for answer in (
            client.get(UNITS, headers=bearer()),
            client.put(UNITS, json=[{"depot": "D0", "free": 1}], headers=bearer()),
        ):
            assert refused(answer) == (503, "record_unavailable")
            assert answer.headers["Retry-After"]
            assert "broken" not in answer.text
        assert client.get("/readyz").json()["status"] == "degraded"


# --- the description ------------------------------------------------------------------


def test_every_operation_documents_its_refusals(client: Local) -> None:
    paths = client.get("/v1/openapi.json").json()["paths"]  # without a token
    for path, methods in paths.items():
        for operation in methods.values():
            statuses = {status for status in operation["responses"] if status >= "400"}
            if path.startswith("/v1/"):
                assert statuses >= {"401", "403", "404", "409", "413", "422", "503"}
            for status in statuses - {"503"}:
                (kind,) = operation["responses"][status]["content"]
                assert kind == "application/json"


def test_the_examples_work_as_copied(harbour: Client) -> None:
    """On the embedded city, which is what a newcomer tries them on."""
    document = harbour.get("/v1/openapi.json").json()
    schemas = document["components"]["schemas"]
    units = document["paths"][UNITS]["put"]["requestBody"]["content"]["application/json"]
    for example in units["schema"]["examples"]:
        assert harbour.put(UNITS, json=example).json()["ignored"] == []
    for example in schemas["RecommendationRequest"]["examples"]:
        answer = harbour.post(ASK, json=example)
        assert answer.json()["decision"] != "no_advice"
        for reply in schemas["ReplyIn"]["examples"]:
            where = f"{ASK}/{answer.json()['id']}/reply"
            assert harbour.post(where, json=reply).status_code == 200
    for example in schemas["ClosureIn"]["examples"]:
        assert harbour.post(CLOSURES, json=example).status_code == 201
    answer = harbour.post("/v1/incidents/eido", json=EIDO)
    assert answer.json()["decision"] != "no_advice"


def test_the_embedded_city_reports_its_units_and_invents_calls(harbour: Client) -> None:
    units = harbour.get(UNITS).json()
    for depot in harbour.get("/v1/city").json()["depots"]:
        assert sum(one["depot"] == depot["name"] for one in units) >= 2
    assert harbour.get(SIMULATED).json()["running"]
