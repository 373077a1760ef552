"""From a call to a verdict, and from a verdict to a dispatcher's reply."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import Service, Turn, shoot, show, show_open

pytestmark = pytest.mark.slow

LISTED = "**/v1/recommendations?*"
COUNT_TONES = """() => {
  window.tones = 0;
  const made = AudioContext.prototype.createOscillator;
  AudioContext.prototype.createOscillator = function () {
    window.tones += 1;
    return made.call(this);
  };
}"""

LATE_NEWS = """
  const fetched = window.fetch;
  const coming = new Promise((resolve) => (window.bring = resolve));
  window.fetch = async (path, options) => {
    const answer = await fetched(path, options);
    if (path !== "v1/events") return answer;
    const body = new ReadableStream({
      async start(stream) {
        coming.then((old) => {
          const text = `event: recommendation\\ndata: ${JSON.stringify(old)}\\n\\n`;
          stream.enqueue(new TextEncoder().encode(text));
        });
        for await (const chunk of answer.body) stream.enqueue(chunk);
        stream.close();
      },
    });
    return new Response(body);
  };
"""
"""The stream of events brings one more advice, when the test says so."""


def row(page: Page, made: dict[str, Any]) -> Any:
    return page.locator(f".call-row[data-id='{made['id']}']")


def aged(**changes: Any) -> Any:
    """The service's own list of advice with some fields changed."""

    def fulfil(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=[one | changes for one in answer.json()])

    return fulfil


def seconds(text: str) -> int:
    minutes, rest = text.split(":")
    return 60 * int(minutes) + int(rest)


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        ("send_second", "Send a second ambulance"),
        ("primary_only", "Primary is enough"),
        ("no_advice", "No advice: off the map"),
    ],
)
def test_a_call_becomes_a_verdict(desk: Page, service: Service, decision: str, words: str) -> None:
    """And no number on the page contradicts another."""
    made = service.call(decision)
    show(desk, made)
    expect(desk.locator("#verdict-words")).to_have_text(words)
    expect(desk.locator("#verdict-shape")).to_have_attribute("href", f"#shape-{decision}")
    expect(desk.locator("#note")).to_have_text("12 Lantern Street, 3rd floor")
    expect(desk.locator("#said")).to_contain_text(words)
    expect(desk.locator("#advice")).to_have_attribute("data-standing", "open")
    shoot(desk, f"verdict_{decision}")
    if decision == "no_advice":
        expect(desk.locator("#facts")).to_contain_text(made["degraded"][0]["words"])
        expect(desk.locator("#reply-buttons")).to_be_hidden()
        expect(desk.locator("#expiry")).to_be_hidden()
        return
    role = "second" if decision == "send_second" else "primary"
    main = desk.locator(".who.main")
    expect(main.locator(".depot")).to_contain_text(made[role]["depot"])
    for road in made[role]["route"]["roads"][:3]:
        expect(main.locator(".way")).to_contain_text(road)
    arrives = {
        one: seconds(desk.locator(f".who.{one} .arrives strong").inner_text())
        for one in ("primary", "second")
    }
    for one, shown in arrives.items():
        assert abs(shown - made[one]["arrival"]["expected_s"]) < 1.0
        turnout, drive = re.findall(r"\d+:\d\d", desk.locator(f".who.{one} .parts").inner_text())
        assert seconds(turnout) + seconds(drive) == shown
    ahead_s = made["primary"]["arrival"]["expected_s"] - made["second"]["arrival"]["expected_s"]
    assert (arrives["primary"] - arrives["second"]) * ahead_s >= 0.0  # in the same order
    gain_s = float(desk.locator(".gain .number").inner_text().split()[0])
    assert gain_s == pytest.approx(made["gain_s"], abs=0.5)
    assert gain_s >= arrives["primary"] - arrives["second"] - 0.5
    threshold_s = made["why"]["threshold"]["seconds"]
    bar = desk.locator(".bar-of-gain")
    expect(bar).to_have_attribute("aria-label", re.compile(f"{abs(threshold_s):.0f}"))
    side = "above" if decision == "send_second" else "below"
    expect(desk.locator(".sure")).to_contain_text(side)
    expect(desk.locator("#countdown")).to_have_text(re.compile(r"^[12]:\d\d$"))
    expect(desk.locator("#ages")).to_contain_text("Traffic")


def test_why_and_what_if(desk: Page, service: Service) -> None:
    made = service.call("send_second")
    show(desk, made)
    why = desk.locator("#why")
    expect(why).to_contain_text(made["why"]["roads"][0]["name"])
    assert made["why"]["seconds_from"] == "router"
    expect(why).to_contain_text("Seconds by road, traffic now")
    for key in ("survival", "gap"):
        expect(why.locator(f"[data-why={key}]")).to_be_visible()
    expect(desk.locator("#facts")).not_to_contain_text("gap")
    desk.locator("#why summary").click()
    words = desk.locator("#what-if-words")
    expect(words).to_contain_text("send a second")
    desk.locator("#what-if-value").focus()
    desk.keyboard.press("End")
    expect(words).to_contain_text("primary is enough")
    expect(desk.locator("#verdict-words")).to_have_text("Send a second ambulance")
    desk.get_by_role("button", name="Back").click()
    expect(words).to_contain_text("send a second")
    assert len(made["considered"]) == desk.locator("#details li").count()
    desk.locator("#why summary").click()


def test_an_open_call_is_not_taken_away_nor_its_row_replaced(desk: Page, service: Service) -> None:
    """A click or the focus is not lost because another call comes in."""
    first = service.call("send_second")
    show(desk, first)
    row(desk, first).focus()
    handle = row(desk, first).element_handle()
    second = service.call("primary_only")
    expect(desk.locator("#next")).to_be_visible()
    expect(desk.locator("#call")).to_contain_text(first["call_id"])
    assert handle.evaluate("node => node.isConnected")
    expect(row(desk, first)).to_be_focused()
    desk.keyboard.press("n")
    expect(desk.locator("#call")).to_contain_text(second["call_id"])
    expect(desk.locator("#next")).to_be_hidden()


def test_a_key_right_after_the_desk_moved_on_is_void(desk: Page, service: Service) -> None:
    """A key pressed for the call before must not answer the one that took its place."""
    show(desk, service.call("no_advice"))
    desk.evaluate(
        """const changes = new MutationObserver(() => {
             changes.disconnect();
             const key = {key: "a", code: "KeyA", bubbles: true};
             document.body.dispatchEvent(new KeyboardEvent("keydown", key));
             window.pressed = true;
           });
           changes.observe(document.getElementById("call"), {childList: true})"""
    )
    second = service.call("send_second")
    expect(desk.locator("#call")).to_contain_text(second["call_id"])
    desk.wait_for_function("window.pressed === true")
    expect(desk.locator("#accept")).to_be_enabled()
    assert service.advice(second)["reply"] is None


def test_an_accepted_advice_looks_answered_on_every_desk(
    browser: Browser, service: Service, desk: Page, open_desk: Turn
) -> None:
    made = service.call("send_second")
    other = open_desk(browser, service)
    show(other, made)
    show_open(desk, made)
    desk.keyboard.press("a")
    for page in (desk, other):
        expect(page.locator("#verdict-words")).to_contain_text("Accepted by demo")
        expect(page.locator("#standing")).to_contain_text("Advice was: Send a second ambulance")
        expect(page.locator("#expiry")).to_be_hidden()
        expect(page.locator("#reply-buttons")).to_be_hidden()
        expect(row(page, made).locator(".state")).to_have_text("accepted")
    desk.keyboard.press("o")  # the first reply is final
    expect(desk.locator("#override-dialog")).to_be_hidden()
    assert service.advice(made)["reply"]["action"] == "accept"
    shoot(desk, "accepted")


def test_override_needs_a_coded_reason(desk: Page, service: Service) -> None:
    made = service.call("primary_only")
    show_open(desk, made)
    desk.keyboard.press("o")
    desk.get_by_role("button", name="Record override").click()
    expect(desk.locator("#override-dialog")).to_be_visible()
    desk.keyboard.press("Escape")
    expect(desk.locator("#override-dialog")).to_be_hidden()
    expect(desk.locator("#override")).to_be_focused()
    assert service.advice(made)["reply"] is None
    desk.keyboard.press("o")
    shoot(desk, "override")
    for key in ("2", "Tab"):
        desk.keyboard.press(key)
    desk.keyboard.type("parade on 2 roads")
    for key in ("Tab", "Enter"):
        desk.keyboard.press(key)
    expect(desk.locator("#verdict-words")).to_contain_text("Overridden by demo")
    expect(desk.locator("#standing")).to_contain_text("I know the roads better today: parade")
    reply = service.advice(made)["reply"]
    said = (reply["action"], reply["reason_code"], reply["text"])
    assert said == ("override", "road_knowledge", "parade on 2 roads")


def test_of_two_desks_the_second_sees_the_reply_of_the_first(desk: Page, service: Service) -> None:
    made = service.call("send_second")
    show_open(desk, made)
    body = {"action": "override", "reason_code": "capacity"}

    def outrun(route: Route) -> None:
        """As if another desk replied while the key was pressed here."""
        service.ask("POST", f"/v1/recommendations/{made['id']}/reply", body)
        route.continue_()

    desk.route("**/reply", outrun, times=1)
    with desk.expect_response("**/reply") as answered:
        desk.keyboard.press("a")
    assert answered.value.status == 409
    expect(desk.locator("#verdict-words")).to_contain_text("Overridden by demo")
    expect(desk.locator("#reply-words")).to_have_text("Not recorded: it was answered before")
    assert service.advice(made)["reply"]["action"] == "override"


def test_a_newer_revision_greys_the_one_before(desk: Page, service: Service) -> None:
    first = service.call("primary_only")
    show(desk, first)
    second = service.call("send_second", call_id=first["call_id"])
    assert second["revision"] >= 2
    expect(desk.locator("#call")).to_contain_text(f"revision {second['revision']}")
    show(desk, first)
    expect(desk.locator("#advice")).to_have_attribute("data-standing", "superseded")
    expect(desk.locator("#verdict-words")).to_have_text("Replaced by newer advice")
    expect(desk.locator("#reply-buttons")).to_be_hidden()
    for key in "ao":
        desk.keyboard.press(key)
    expect(desk.locator("#override-dialog")).to_be_hidden()
    shoot(desk, "superseded")
    assert service.advice(first)["reply"] is None


STANDING = """async ([changes, dispatch, unit, newer]) => {
  const files = ["/advice.js", "/store.js"].map((file) => import(file));
  const [{ standing }, { Store }] = await Promise.all(files);
  const [store, at] = [new Store(), (seconds) => new Date(1e12 + 1000 * seconds).toISOString()];
  const made = {
    id: "made", call_id: "c", revision: 1, decision: "send_second", state: "open",
    asked_at: at(-5), expires_at: at(60), second: { unit: "B1" }, ...changes,
  };
  store.online = true;
  if (dispatch) store.dispatches.set("made", { call_id: "c", started_at: at(0), state: dispatch });
  const idle = { id: "B1", depot: "D", status: "at_station", call_id: null, promised: null };
  const promised = unit?.promised && { call_id: unit.promised, until: at(60) };
  if (unit) store.fleet.replaceAll([{ ...idle, ...unit, promised }]);
  store.put(made);
  if (newer) store.put({ ...made, id: "newer", ...newer });
  return standing(made, store, 1e12);
}"""
PAST = {"expires_at": "2001-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("standing", "changes", "dispatch", "unit", "newer"),
    [
        ("open", {}, None, None, None),
        ("open", {}, None, {"promised": "c"}, None),
        ("open", {"simulated": True}, None, {"promised": "d"}, None),
        ("expired", PAST, None, None, None),
        ("accepted", PAST | {"state": "accepted"}, None, None, None),
        ("overridden", PAST | {"state": "overridden"}, None, {"promised": "d"}, None),
        ("running", PAST | {"state": "accepted"}, "running", None, None),
        ("running", {"state": "running"}, "stood_down", {"promised": "d"}, None),
        ("ended", {"state": "running"}, "ended", None, None),
        ("lost", {}, None, {"promised": "d"}, None),
        ("lost", {}, None, {"status": "en_route", "call_id": "d"}, None),
        ("lost", {}, None, {"status": "out_of_service"}, None),
        ("lost", {}, None, {"id": "B2"}, None),
        ("superseded", {"state": "superseded"}, None, None, None),
        ("superseded", {}, None, None, {"asked_at": "2001-09-09T01:46:39Z"}),
        ("superseded", {}, None, None, {"revision": 2}),
        ("open", {"revision": 3}, None, None, {"revision": 2}),
        ("open", {"revision": 2}, None, None, {"asked_at": "2001-09-09T01:46:30Z", "revision": 3}),
    ],
)  # fmt: skip
def test_what_an_advice_is_good_for(
    desk: Page, standing: str, changes: Any, dispatch: Any, unit: Any, newer: Any
) -> None:
    assert desk.evaluate(STANDING, [changes, dispatch, unit, newer]) == standing


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("chance(0.991)", "over 99 %"), ("chance(0.99)", "99 %"), ("chance(0.004)", "under 1 %"),
        ("figure(9.94)", "9.9"), ("figure(9.96)", "10"), ("figure(-0.04)", "0"),
        ("figure(-3.2)", "−3.2"), ("countdown(64_001)", "1:05"), ("countdown(-5)", "0:00"),
        ("age(119)", "119 s"), ("age(120)", "2 min"), ("age(7200)", "2 h"),
        ("lives(1e-7)", "< 0.005"), ("lives(0.00123)", "12"), ("kilometres(1849)", "1.8 km"),
    ],
)  # fmt: skip
def test_numbers_are_no_more_certain_than_they_are(desk: Page, call: str, words: str) -> None:
    assert desk.evaluate(f"import('/format.js').then((format) => format.{call})") == words


@pytest.mark.parametrize(
    ("decision", "headline"),
    [("send_second", "Expired: do not use"), ("no_advice", "No advice: off the map")],
)
def test_an_expired_advice_is_greyed(
    browser: Browser, service: Service, open_desk: Turn, decision: str, headline: str
) -> None:
    """It does not shout any more; that there was no advice stays true."""
    made = service.call(decision)
    soon = (datetime.now(UTC) + timedelta(seconds=3)).isoformat()
    page = open_desk(browser, service, meddle=(LISTED, aged(expires_at=soon)))
    show(page, made)
    expect(page.locator("#advice")).to_have_attribute("data-standing", "expired")
    expect(page.locator("#verdict-words")).to_have_text(headline)
    expect(page.locator("#expiry")).to_be_hidden()
    expect(page.locator("#reply-buttons")).to_be_hidden()
    expect(row(page, made)).to_have_attribute("data-standing", "old")
    page.keyboard.press("a")
    shoot(page, f"expired_{decision}")
    assert service.advice(made)["reply"] is None


def test_an_advice_that_has_expired_when_it_comes_only_joins_the_list(
    browser: Browser, service: Service, open_desk: Turn
) -> None:
    """As one does that a stream brings after the connection was lost."""
    shown, made = service.call("no_advice"), service.call("send_second")
    past = (datetime.now(UTC) - timedelta(minutes=5)).isoformat()
    old = made | {"id": "0" * 32, "call_id": f"late-{made['call_id']}", "expires_at": past}
    page = open_desk(browser, service)
    page.add_init_script(LATE_NEWS)
    page.reload()
    show(page, shown)
    page.locator("#follow").set_checked(True)
    page.keyboard.press("s")
    expect(page.locator("#sound")).to_have_attribute("aria-pressed", "true")
    page.evaluate(COUNT_TONES)
    page.evaluate("(old) => window.bring(old)", old)
    expect(row(page, old)).to_have_attribute("data-standing", "old")
    expect(row(page, old).locator(".state")).to_have_text("expired")
    assert row(page, old).get_attribute("data-new") is None
    expect(page.locator("#next")).to_be_hidden()
    assert page.evaluate("window.tones") == 0
    news = service.call("send_second")
    expect(page.locator("#call")).to_contain_text(news["call_id"])
    assert page.evaluate("window.tones") == 2


@pytest.mark.parametrize("locale", ["en-GB", "zh-HK"])
def test_every_remark_is_in_sight(
    browser: Browser, service: Service, open_desk: Turn, locale: str
) -> None:
    page = open_desk(browser, service, (1366, 768), locale=locale)
    city = service.ask("GET", "/v1/city")
    lon, lat = city["centre"]
    made = service.call(
        "primary_only",
        location={"lon": lon, "lat": lat, "accuracy_m": 900.0},
        primary={"depot": city["depots"][0]["name"]},
        context={"weather": {"temperature_c": -40.0, "rainfall_mm": 300.0}},
    )
    assert made["degraded"][0]["code"] == "unusual_context"
    show(page, made)
    shoot(page, f"remarks_{locale}")
    lines = page.locator("#doubts li")
    expect(lines.first).to_contain_text(made["degraded"][0]["words"])
    expect(lines).to_have_count(len(made["degraded"]) - 1)
    expect(page.locator("#standing-doubts li")).to_have_count(1)
    seen = [*lines.all(), page.locator("#standing-doubts li")]
    if made["sooner_unit"] is not None:
        seen.append(page.locator("#sooner"))
    for line in seen:
        expect(line).to_be_in_viewport(ratio=1)
    above = [page.locator(name).bounding_box() for name in ("#verdict", "#doubts", "#facts")]
    tops = [box["y"] for box in above if box is not None]
    assert tops == sorted(tops), "between the verdict and what it rests on"


def test_a_sooner_ambulance_than_the_primary_is_one_line(desk: Page, service: Service) -> None:
    near, far = service.ask("GET", "/v1/city")["depots"]
    place = {"lon": far["lon"], "lat": far["lat"]}
    made = service.call("send_second", location=place, primary={"depot": near["name"]})
    show(desk, made)
    line = desk.locator("#sooner")
    for word in (near["name"], far["name"], f"{made['sooner_unit']['seconds']:.0f}"):
        expect(line).to_contain_text(word)
    show(desk, service.call("send_second", location=place, primary={"depot": far["name"]}))
    expect(line).to_be_hidden()
