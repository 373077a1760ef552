"""The API over HTTP, in this process: answers, idempotency, roles, headers."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from ideal_dispatch.service.audit.record import Entry
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.audit.units import DepotUnits
from ideal_dispatch.service.http.answer_schemas import CityOut, Recommendation, UnitsOut
from ideal_dispatch.service.http.schemas import RecommendationRequest
from ideal_dispatch.service.solver.api_answer import no_advice
from ideal_dispatch.service.solver.messages import Call
from tests.faults.service_faults import record_patiently
from tests.service_town import (
    EIDO,
    ENOUGH,
    PATIENCE_S,
    Local,
    Town,
    application,
    bearer,
    later,
    local,
    token,
)
from tests.waiting import wait_for

ASK = "/v1/recommendations"


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    with local(application(town.settings("app.toml", units={"default": ENOUGH}))) as opened:
        yield opened


def rows(client: Local, call_id: str) -> list[Any]:
    """All audit rows of a call."""
    return client.service.ledger._store.of_call(call_id, 99)


def asked(client: Local, body: Any, role: str = "cad", **headers: str) -> dict[str, Any]:
    answer = client.post(ASK, json=body, headers={**bearer(role), **headers})
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


# --- recommendations ----------------------------------------------------------------


def test_an_answer_keeps_the_documented_form(client: Local, town: Town) -> None:
    made = Recommendation.model_validate(asked(client, town.call("form", note="5 Main Street")))
    assert made.decision in ("send_second", "primary_only")
    assert (made.call_id, made.revision, made.revision_of) == ("form", 1, None)
    assert made.note == "5 Main Street"
    assert made.response is None
    assert (made.expires_at - made.created_at).total_seconds() == 120.0
    assert made.versions.network == town.network.checksum
    assert not made.simulated
    again = client.get(f"{ASK}/{made.id}", headers=bearer("auditor")).json()
    assert Recommendation.model_validate(again) == made


def test_same_call_key_and_body_give_the_same_answer_and_one_row(client: Local, town: Town) -> None:
    body = town.call("same")
    answers = [asked(client, body, **{"Idempotency-Key": "k1"}) for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert asked(client, {**body, "idempotency_key": "k1"}) == answers[0]
    assert len(rows(client, "same")) == 1


def test_without_a_key_the_body_is_the_key(client: Local, town: Town) -> None:
    body = town.call("bare")
    first, second = asked(client, body), asked(client, body)
    assert first == second
    assert len(rows(client, "bare")) == 1


def test_a_new_body_is_a_linked_revision(client: Local, town: Town) -> None:
    first = asked(client, town.call("rev", idempotency_key="1"))
    second = asked(client, town.call("rev", node=30, idempotency_key="2"))
    third = asked(client, town.call("rev", node=31))
    assert (second["revision"], second["revision_of"]) == (2, first["id"])
    assert (third["revision"], third["revision_of"]) == (3, second["id"])
    assert len(rows(client, "rev")) == 3


def test_a_key_with_another_body_is_refused(client: Local, town: Town) -> None:
    asked(client, town.call("409", idempotency_key="k"))
    answer = client.post(
        ASK, json=town.call("409", node=30, idempotency_key="k"), headers=bearer("cad")
    )
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "key_used"
    assert "use a new key" in answer.json()["error"]["message"]
    assert asked(client, town.call("another", node=30, idempotency_key="k"))["revision"] == 1


def test_keys_that_differ_or_are_odd_are_refused(client: Local, town: Town) -> None:
    body = town.call("odd", idempotency_key="a")
    answer = client.post(ASK, json=body, headers={**bearer("cad"), "Idempotency-Key": "b"})
    assert answer.status_code == 422
    assert "differ" in answer.json()["error"]["message"]
    odd = client.post(ASK, json=town.call("odd", idempotency_key="a\nb"), headers=bearer("cad"))
    assert odd.status_code == 422


def test_duplicates_in_flight_join(client: Local, town: Town) -> None:
    advise, count = client.adviser.advise, []

    def slowly(*given: Any) -> Any:
        count.append(threading.current_thread().name)
        time.sleep(0.3)
        return advise(*given)

    setattr(client.adviser, "advise", slowly)  # noqa: B010
    try:
        body = town.call("join")
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda _: asked(client, body), range(6)))
    finally:
        setattr(client.adviser, "advise", advise)  # noqa: B010
    assert len(count) == 1
    assert all(answer == answers[0] for answer in answers)
    assert len(rows(client, "join")) == 1


def test_revisions_of_a_call_take_turns(client: Local, town: Town) -> None:
    advise = client.adviser.advise

    def slowly(*given: Any) -> Any:
        time.sleep(0.1)
        return advise(*given)

    setattr(client.adviser, "advise", slowly)  # noqa: B010
    try:
        bodies = [town.call("turns", node=node) for node in (30, 31, 40, 65)]
        with ThreadPoolExecutor(4) as pool:
            made = sorted(
                pool.map(lambda body: asked(client, body), bodies), key=lambda one: one["revision"]
            )
    finally:
        setattr(client.adviser, "advise", advise)  # noqa: B010
    assert [one["revision"] for one in made] == [1, 2, 3, 4]
    assert [one["revision_of"] for one in made] == [None, *(one["id"] for one in made[:3])]


def test_who_waits_too_long_for_its_turn_is_told_in_time(town: Town) -> None:
    """Both are answered while the solver still hangs."""
    began, answered = threading.Event(), threading.Event()

    def hanging(*given: Any) -> Any:
        began.set()
        answered.wait(PATIENCE_S)
        return advise(*given)

    settings = town.settings("jam.toml", server={"deadline_s": 3.0})
    with local(application(settings)) as client, ThreadPoolExecutor(2) as pool:
        record_patiently(client)
        advise = client.adviser.advise
        setattr(client.adviser, "advise", hanging)  # noqa: B010
        try:
            first = pool.submit(asked, client, town.call("jam", node=30))
            assert began.wait(PATIENCE_S)
            second = asked(client, town.call("jam", node=31))
            assert first.result()["decision"] == second["decision"] == "no_advice"
        finally:
            answered.set()
    assert second["degraded"][0]["code"] == "late"


@pytest.mark.parametrize("code", ["late", "starting", "internal_error", "no_unit"])
def test_what_may_pass_is_asked_again(client: Local, town: Town, code: str) -> None:
    """The failure stays on record; the same question gets a new revision."""
    advise, body = client.adviser.advise, town.call(f"again-{code}", idempotency_key="k")

    def failing(call: Call, *_: Any) -> Any:
        return no_advice(call, [(code, "not now")])

    setattr(client.adviser, "advise", failing)  # noqa: B010
    try:
        failed = [asked(client, body) for _ in range(2)]
    finally:
        setattr(client.adviser, "advise", advise)  # noqa: B010
    good = asked(client, body)
    assert good["decision"] != "no_advice"
    assert [one["revision"] for one in (*failed, good)] == [1, 2, 3]
    assert good["revision_of"] == failed[1]["id"]
    assert asked(client, body) == good
    assert [row.entry.id for row in rows(client, f"again-{code}")] == [
        failed[0]["id"], failed[1]["id"], good["id"],
    ]  # fmt: skip
    other = {**body, "threshold_s": 1.0}
    assert client.post(ASK, json=other, headers=bearer("cad")).status_code == 409


def test_what_cannot_pass_is_answered_once(client: Local, town: Town) -> None:
    body = town.call("lost", location={"lon": 0.0, "lat": 0.0})
    first = asked(client, body)
    assert first["degraded"][0]["code"] == "off_map"
    assert asked(client, body) == first


def test_an_expired_answer_is_made_anew(town: Town) -> None:
    settings = town.settings("expiry.toml", server={"expiry_s": 1.0})
    with local(application(settings)) as client:
        body = town.call("expired")
        first = asked(client, body)
        time.sleep(1.1)
        second = asked(client, body)
    assert (second["revision"], second["revision_of"]) == (2, first["id"])
    assert second["expires_at"] > first["expires_at"]


def test_recent_calls_come_newest_first(client: Local, town: Town) -> None:
    for number in range(3):
        asked(client, town.call(f"recent-{number}"))
    listed = client.get(f"{ASK}?limit=3", headers=bearer("dispatcher")).json()
    assert [one["call_id"] for one in listed] == ["recent-2", "recent-1", "recent-0"]
    for limit in ("0", "501", "x"):
        assert client.get(f"{ASK}?limit={limit}", headers=bearer()).status_code == 422


def test_what_does_not_exist(client: Local) -> None:
    for path in ("0" * 32, "zzz"):
        answer = client.get(f"{ASK}/{path}", headers=bearer())
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "not_found"
    answer = client.post(f"{ASK}/{'0' * 32}/response", json={"action": "accept"}, headers=bearer())
    assert answer.status_code == 404
    assert client.delete("/v1/units", headers=bearer()).status_code == 405


# --- what dispatchers do --------------------------------------------------------------


def test_a_response_is_kept_with_its_recommendation(client: Local, town: Town) -> None:
    body = town.call("human")
    made = asked(client, body)
    where = f"{ASK}/{made['id']}/response"
    override = {"action": "override", "reason_code": "road_knowledge", "text": "<b>parade</b>"}
    for _ in range(2):  # told twice is told once
        answer = client.post(where, json=override, headers=bearer("dispatcher"))
        assert answer.status_code == 200
    response = answer.json()["response"]
    assert response["by"] == "dispatcher"
    assert {key: response[key] for key in override} == override
    assert len(rows(client, "human")) == 2
    accepted = client.post(where, json={"action": "accept"}, headers=bearer("admin")).json()
    assert accepted["response"]["action"] == "accept"
    kept = client.get(f"{ASK}/{made['id']}", headers=bearer()).json()
    assert kept["response"]["by"] == "admin"
    listed = client.get(f"{ASK}?limit=1", headers=bearer()).json()
    assert listed[0]["response"]["action"] == "accept"
    # the answer itself stays as it left
    again = asked(client, body)
    assert again == kept
    assert rows(client, "human")[0].entry.body["answer"]["id"] == made["id"]


@pytest.mark.parametrize(
    "body",
    [{"action": "override"}, {"action": "ignore"}, {}, {"action": "accept", "more": 1},
     {"action": "override", "reason_code": "whim"}, {"action": "accept", "text": "x" * 2001}],
)  # fmt: skip
def test_responses_that_make_no_sense(client: Local, town: Town, body: Any) -> None:
    made = asked(client, town.call("nonsense"))
    answer = client.post(f"{ASK}/{made['id']}/response", json=body, headers=bearer())
    assert answer.status_code == 422
    assert len([row for row in rows(client, "nonsense") if row.entry.kind == "response"]) == 0


def test_routes_are_built_before_the_first_request(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The framework would do it in the time of the first call."""
    app = application(town.settings("built.toml"))
    monkeypatch.delattr("fastapi.routing.get_dependant")
    with local(app) as fresh:
        assert fresh.get("/v1/units", headers=bearer()).status_code == 200


# --- units ------------------------------------------------------------------------------


def test_units_are_told_and_used(client: Local, town: Town) -> None:
    before = client.get("/v1/units", headers=bearer("auditor")).json()
    assert [UnitsOut.model_validate(row).units for row in before] == [ENOUGH] * 3
    told = [{"depot": "d0", "units": 0}, {"depot": "D1", "units": 400}, {"depot": "D2", "units": 0}]
    after = client.put("/v1/units", json=told, headers=bearer("cad")).json()
    assert [row["units"] for row in after] == [0, 400, 0]
    assert all(row["updated_at"] for row in after)
    body = town.call("units", depots=None, primary={"depot": "D0"}, threshold_s=-1.0)
    made = asked(client, body)
    assert made["second"]["depot"] == "D1"
    old = [{"depot": "D0", "units": 9, "updated_at": later(-600)}]
    refused = client.put("/v1/units", json=old, headers=bearer("cad"))
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "count_outdated")
    assert "D0: 0 units are known as of 20" in refused.json()["error"]["message"]
    city = client.get("/v1/city", headers=bearer()).json()
    assert [depot["units"] for depot in city["depots"]] == [0, 400, 0]
    reset = [{"depot": name, "units": ENOUGH} for name in ("D0", "D1", "D2")]
    client.put("/v1/units", json=reset, headers=bearer("cad"))


def test_counts_of_several_moments_are_taken_together_or_not_at_all(client: Local) -> None:
    def told(**moments: str) -> httpx.Response:
        body = [{"depot": one, "units": 1, "updated_at": at} for one, at in moments.items()]
        return client.put("/v1/units", json=body, headers=bearer("cad"))

    def known() -> list[tuple[int, str]]:
        rows = client.get("/v1/units", headers=bearer("auditor")).json()
        return [(row["units"], row["updated_at"]) for row in rows]

    both = [{"depot": name, "units": ENOUGH} for name in ("D0", "D1")]
    client.put("/v1/units", json=both, headers=bearer("cad"))
    before = known()
    assert told(D0=later(1), D1=later(-3600)).status_code == 409
    assert known() == before
    rows = told(D1=later(1), D0=later(2)).json()
    assert [row["units"] for row in rows[:2]] == [1, 1]
    assert rows[1]["updated_at"] < rows[0]["updated_at"]
    client.put("/v1/units", json=both, headers=bearer("cad"))


def test_a_clock_that_was_ahead_keeps_no_count_out(client: Local) -> None:
    """Counts told now replace what is known, whatever its moment; others are refused aloud."""

    def told(units: int, depot: str = "D2", **more: str) -> httpx.Response:
        body = [{"depot": depot, "units": units, **more}]
        return client.put("/v1/units", json=body, headers=bearer("cad"))

    assert told(0, "D1", updated_at=later(4)).json()[1]["units"] == 0
    assert told(3, "D1", updated_at=later(0)).status_code == 409
    assert told(ENOUGH, "D1").json()[1]["units"] == ENOUGH
    refused = told(0, updated_at=later(50))
    assert refused.status_code == 422
    assert "s ahead of the clock here; check both clocks" in refused.json()["error"]["message"]
    ahead = DepotUnits("D2", 0, datetime.now(UTC) + timedelta(hours=1))  # before it went back
    client.service.ledger.units.told["D2"] = ahead
    assert (client.service.ledger.units.known("c", listed=False).age_s or 0.0) > 3000
    assert told(5, updated_at=later(0)).json()[2]["units"] == 5
    client.service.ledger.units.told["D2"] = ahead
    assert told(ENOUGH).json()[2]["units"] == ENOUGH


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ([{"depot": "D9", "units": 1}], "no depot is called 'D9'; there are D0, D1, D2"),
        ([{"depot": "D0", "units": -1}], "greater than or equal to 0"),
        ([{"depot": "D0", "units": 1, "updated_at": later(86400)}], "s ahead of the clock"),
        ([{"depot": "D0", "units": 1, "updated_at": "0001-01-01T00:00:00+14:00"}], "30 days ago"),
        ([{"depot": "D0", "units": 1, "updated_at": "9999-12-31T23:59:59-14:00"}], "ahead of"),
        ([{"depot": "D0", "units": 1}, {"depot": "d0", "units": 2}], "D0 is told twice; give one"),
        ([], "at least 1 item"),
        ({"D0": 1}, "valid list"),
    ],
)
def test_units_that_make_no_sense(client: Local, told: Any, words: str) -> None:
    answer = client.put("/v1/units", json=told, headers=bearer("cad"))
    assert answer.status_code == 422
    assert words in answer.json()["error"]["message"]


# --- who may what -----------------------------------------------------------------------

READ = ("/v1/recommendations", "/v1/units", "/v1/city", "/v1/network.geojson", "/v1/model-card",
        "/v1/session", "/v1/simulated-calls")  # fmt: skip


@pytest.mark.parametrize("path", READ)
def test_reading_needs_a_token_of_any_role(client: Local, path: str) -> None:
    refused = client.get(path)
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert refused.json()["error"]["code"] == "unauthorized"
    for role in ("cad", "dispatcher", "auditor", "admin"):
        assert client.get(path, headers=bearer(role)).status_code == 200


def test_writing_needs_the_right_role(client: Local, town: Town) -> None:
    assert client.post(ASK, json=town.call(), headers=bearer("auditor")).status_code == 403
    assert client.put("/v1/units", json=[], headers=bearer("auditor")).status_code == 403
    made = asked(client, town.call("role"), "dispatcher")
    where = f"{ASK}/{made['id']}/response"
    for role in ("cad", "auditor"):
        refused = client.post(where, json={"action": "accept"}, headers=bearer(role))
        assert refused.status_code == 403
        assert f"role {role} may not do this" in refused.json()["error"]["message"]
    simulated = client.post("/v1/simulated-calls", json={"count": 0}, headers=bearer("dispatcher"))
    assert simulated.status_code == 403
    for role, status in (("cad", 403), ("dispatcher", 403), ("auditor", 200), ("admin", 200)):
        assert client.get("/metrics", headers=bearer(role)).status_code == status


def test_a_browser_keeps_its_token_in_a_cookie_no_script_can_read(town: Town) -> None:
    app = application(town.settings("cookie.toml"))
    with local(app) as browser:
        assert browser.post("/v1/session", json={"token": "wrong"}).status_code == 401
        answer = browser.post("/v1/session", json={"token": token("dispatcher")})
        assert answer.json() == {"name": "dispatcher", "role": "dispatcher"}
        cookie = answer.headers["set-cookie"]
        for word in ("HttpOnly", "SameSite=strict", "Path=/"):
            assert word in cookie
        assert browser.get("/v1/city").status_code == 200
        # another site's page may not use it to write
        foreign = {"Sec-Fetch-Site": "cross-site"}
        told = [{"depot": "D0", "units": 1}]
        assert browser.put("/v1/units", json=told, headers=foreign).status_code == 401
        own = {"Sec-Fetch-Site": "same-origin"}
        assert browser.put("/v1/units", json=told, headers=own).status_code == 200
        assert browser.delete("/v1/session").status_code == 204
        assert browser.get("/v1/city").status_code == 401


# --- the rest -----------------------------------------------------------------------------


def test_the_city_and_its_roads(client: Local, town: Town) -> None:
    city = CityOut.model_validate(client.get("/v1/city", headers=bearer()).json())
    assert (city.name, city.time_zone, city.simulated) == ("Gridtown", "Asia/Hong_Kong", False)
    west, south, east, north = city.bounds
    assert west < city.centre[0] < east
    assert south < city.centre[1] < north
    answer = client.get("/v1/network.geojson", headers=bearer())
    assert answer.headers["content-type"] == "application/geo+json"
    features = answer.json()["features"]
    edges = [edge for feature in features for edge in feature["properties"]["edges"]]
    assert sorted(edges) == list(range(town.network.num_edges))
    assert len(features) == town.network.num_edges // 2  # two directions are one street
    again = client.get(
        "/v1/network.geojson", headers={**bearer(), "If-None-Match": answer.headers["etag"]}
    )
    assert again.status_code == 304
    plain = client.get("/v1/network.geojson", headers={**bearer(), "Accept-Encoding": "identity"})
    assert plain.json() == answer.json()


def test_anybody_may_know_the_languages_of_the_desk(town: Town) -> None:
    app = application(town.settings("languages.toml", city={"languages": ["zh-Hant"]}))
    with local(app) as client:
        assert client.get("/v1/languages").json() == ["zh-Hant"]


def test_the_model_card(client: Local) -> None:
    answer = client.get("/v1/model-card", headers=bearer("auditor"))
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.text.startswith("# Model card")


def test_every_answer_has_security_headers(client: Local) -> None:
    for path in ("/", "/v1/city", "/nothing", "/healthz"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "worker-src 'self' blob:" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "x-request-id" in headers
    assert client.get("/healthz", headers={"X-Request-Id": "a-1"}).headers["x-request-id"] == "a-1"
    odd = client.get("/healthz", headers={"X-Request-Id": "a/b"}).headers["x-request-id"]
    assert odd != "a/b"


def test_modules_are_served_as_javascript(client: Local) -> None:
    answer = client.get("/server.js")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    assert client.get("/").headers["content-type"].startswith("text/html")


def test_openapi_documents_every_route_with_examples(client: Local) -> None:
    document = client.get("/v1/openapi.json").json()  # without a token, as it says
    assert (
        "`Authorization: Bearer TOKEN`, except this\ndescription" in document["info"]["description"]
    )
    paths = document["paths"]
    for path in ("/v1/recommendations", "/v1/units", "/v1/events", "/v1/incidents/eido",
                 "/healthz", "/readyz", "/metrics"):  # fmt: skip
        assert path in paths
    post = paths["/v1/recommendations"]["post"]
    assert set(post["responses"]) >= {"200", "401", "403", "409", "413", "422", "429", "503"}
    schema = document["components"]["schemas"]["RecommendationRequest"]
    example = schema["examples"][0]
    assert RecommendationRequest.model_validate(example).call_id == example["call_id"]
    for status, answer in post["responses"].items():
        if status != "200":
            assert answer["content"]["application/json"]["schema"]["$ref"].endswith("ErrorAnswer")


def test_metrics_count_what_happened(client: Local, town: Town) -> None:
    asked(client, town.call("counted"))
    text = client.get("/metrics", headers=bearer("admin")).text
    assert "ideal_recommendations_total{decision=" in text
    assert "ideal_latency_seconds_bucket" in text
    assert "ideal_audit_database_up 1.0" in text
    refused = client.post(ASK, json={}, headers=bearer("cad"))
    assert refused.status_code == 422
    text = client.get("/metrics", headers=bearer("admin")).text
    assert 'ideal_refused_total{why="invalid"}' in text


def test_rows_of_the_audit_say_all(client: Local, town: Town) -> None:
    made = asked(client, town.call("audited", note="somewhere"), "cad")
    row = rows(client, "audited")[0]
    body = row.entry.body
    assert body["actor"] == "cad"
    assert body["request"]["note"] == "somewhere"
    assert body["answer"]["versions"] == made["versions"]
    assert body["answer"]["latency_ms"] == made["latency_ms"]
    assert row.entry.id == made["id"]
    assert json.dumps(body).count(token("cad")) == 0


def test_simulated_calls_are_marked_as_such(client: Local) -> None:
    answer = client.post(
        "/v1/simulated-calls", json={"count": 2, "every_s": 0.5}, headers=bearer("admin")
    )
    assert answer.json() == {"running": True, "left": 2, "every_s": 0.5}
    wait_for(lambda: not client.get("/v1/simulated-calls", headers=bearer()).json()["left"])

    def listed() -> list[Any]:
        found = client.get(f"{ASK}?limit=10", headers=bearer()).json()
        return [one for one in found if one["simulated"]]

    wait_for(lambda: len(listed()) >= 2)
    simulated = listed()
    assert all(one["call_id"].startswith("SIM-") for one in simulated)
    silent = [one["degraded"][0]["code"] for one in simulated if one["decision"] == "no_advice"]
    assert set(silent) <= {"no_unit", "last_unit_promised"}, "units promised by other tests here"


def test_an_incident_of_another_cad(client: Local, town: Town) -> None:
    place = town.place(65)
    text = json.dumps(EIDO).replace("21.5845 117.2393", f"{place['lat']} {place['lon']}")
    document = json.loads(text)
    document["incidentComponent"]["lastUpdateTimeStamp"] = later(0)
    answer = client.post("/v1/incidents/eido", json=document, headers=bearer("cad"))
    assert answer.status_code == 200, answer.text
    made = Recommendation.model_validate(answer.json())
    assert made.call_id.startswith("urn:emergency:uid:incidentid:")
    assert made.location.node == 65
    assert made.note == "Cardiac arrest"
    assert made.primary is not None
    assert made.primary.chosen_by == "router", "Kelp Point is no depot of this town"
    sent = json.loads(json.dumps(document).replace("Kelp Point", "d1").replace("000123", "000124"))
    other = client.post("/v1/incidents/eido", json=sent, headers=bearer("cad"))
    primary = Recommendation.model_validate(other.json()).primary
    assert primary is not None
    assert (primary.depot, primary.unit, primary.chosen_by) == ("D1", "A117", "cad")
    again = client.post("/v1/incidents/eido", json=document, headers=bearer("cad")).json()
    assert again["id"] == made.id
    assert client.post("/v1/incidents/eido", json={}, headers=bearer("cad")).status_code == 422


def test_rows_older_than_the_retention_are_let_go(town: Town) -> None:
    settings = town.settings("retention.toml", audit={"retention_days": 200})
    store = AuditStore(settings.database_url)
    ages = {"older": 201, "younger": 199}
    for call_id, days in ages.items():
        at = datetime.now(UTC) - timedelta(days=days)
        store.append([Entry("recommendation", call_id, {}, at=at)])
    with local(application(settings)):
        wait_for(lambda: not store.of_call("older", 9))
        assert len(store.of_call("younger", 9)) == 1
    store.close()


def test_a_call_is_json_whatever_it_says_of_itself(client: Local, town: Town) -> None:
    text = json.dumps(town.call("read", idempotency_key="k"))
    kinds = {"application/json": 200, "application/vnd.cad+json": 200, "text/plain": 422}
    for kind, status in kinds.items():
        headers = bearer("cad") | {"Content-Type": kind}
        assert client.post(ASK, content=text, headers=headers).status_code == status
    auditor = bearer("auditor") | {"Content-Type": "application/json"}
    assert client.post(ASK, content=text, headers=auditor).status_code == 403
    assert client.post(ASK, content="{", headers=bearer("cad")).status_code == 422


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("OPTIONS", "/v1/units", "GET, PUT"),
        ("DELETE", "/v1/recommendations", "GET, POST"),
        ("PATCH", "/v1/recommendations/abc", "GET"),
        ("PUT", "/v1/session", "DELETE, GET, POST"),
        ("PUT", "/healthz", "GET"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(
    client: Local, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path, headers=bearer("admin"))
    assert answer.status_code == 405
    assert answer.headers["Allow"] == allowed
    assert answer.json()["error"]["code"] == "method_not_allowed"
    nothing = client.request(method, "/v1/nothing", headers=bearer("admin"))
    assert (nothing.status_code, nothing.json()["error"]["code"]) == (404, "not_found")


def test_refusals_are_documented_as_json(client: Local) -> None:
    paths = client.get("/v1/openapi.json").json()["paths"]
    refusals = {
        kind
        for methods in paths.values()
        for operation in methods.values()
        for status, answer in operation["responses"].items()
        if status >= "400"
        for kind in answer["content"]
    }
    assert refusals == {"application/json"}
    assert list(paths["/v1/model-card"]["get"]["responses"]["200"]["content"]) == ["text/markdown"]


def test_a_session_takes_bearer_alone(client: Local) -> None:
    for scheme, status in (("Basic", 401), ("bearer", 200), ("Bearer", 200)):
        headers = {"Authorization": f"{scheme} {token('cad')}"}
        assert client.post("/v1/session", headers=headers).status_code == status
    client.cookies.clear()
