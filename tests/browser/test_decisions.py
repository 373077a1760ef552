"""From a call to a verdict, and from a verdict to a dispatcher's answer."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import Service, Turn, shoot, show, show_open

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        ("send_second", "Send a second ambulance"),
        ("primary_only", "Primary is enough"),
        ("no_advice", "No advice"),
    ],
)
def test_a_call_becomes_a_verdict(desk: Page, service: Service, decision: str, words: str) -> None:
    made = service.call(decision)
    show(desk, made)
    expect(desk.locator("#verdict-words")).to_have_text(words)
    expect(desk.locator("#verdict-shape")).to_have_attribute("href", f"#shape-{decision}")
    expect(desk.locator("#note")).to_have_text("12 Lantern Street, 3rd floor")
    expect(desk.locator("#said")).to_contain_text(words)
    expect(desk.locator("#advice")).to_have_attribute("data-standing", "current")
    shoot(desk, f"verdict_{decision}")
    if decision == "no_advice":
        expect(desk.locator("#facts")).to_contain_text(made["degraded"][0]["words"])
        expect(desk.locator("#answer-buttons")).to_be_hidden()
        return
    role = "second" if decision == "send_second" else "primary"
    main = desk.locator(".who.main")
    expect(main.locator(".depot")).to_contain_text(made[role]["depot"])
    for road in made[role]["route"]["roads"]:
        expect(main.locator(".way")).to_contain_text(road)
    gain_s = made["gain_s"]
    shown = re.match(r"[\d.]+", desk.locator(".gain .number").inner_text())
    assert shown is not None
    assert float(shown[0]) == pytest.approx(gain_s, abs=0.5)
    expect(desk.locator(".interval")).to_have_attribute("aria-label", re.compile("threshold"))
    expect(desk.locator("#countdown")).to_have_text(re.compile(r"^[12]:\d\d$"))
    expect(desk.locator("#ages")).to_contain_text("Traffic")


def test_a_new_call_appears_by_itself(desk: Page, service: Service) -> None:
    first = service.call("no_advice")
    expect(desk.locator(f".call-row[data-id='{first['id']}']")).to_be_visible()
    desk.keyboard.press("n")
    made = service.call("send_second")
    expect(desk.locator("#call")).to_contain_text(made["call_id"])


def test_an_open_call_is_not_taken_away(desk: Page, service: Service) -> None:
    first = service.call("send_second")
    show(desk, first)
    second = service.call("primary_only")
    expect(desk.locator("#next")).to_be_visible()
    expect(desk.locator("#call")).to_contain_text(first["call_id"])
    desk.keyboard.press("n")
    expect(desk.locator("#call")).to_contain_text(second["call_id"])
    expect(desk.locator("#next")).to_be_hidden()


def test_rows_outlive_new_calls(desk: Page, service: Service) -> None:
    """A click or the focus is not lost because another call comes in."""
    first = service.call("primary_only")
    show(desk, first)
    row = desk.locator(f".call-row[data-id='{first['id']}']")
    row.focus()
    handle = row.element_handle()
    second = service.call("send_second")
    expect(desk.locator(f".call-row[data-id='{second['id']}']")).to_be_visible()
    assert handle.evaluate("node => node.isConnected")
    expect(row).to_be_focused()


def test_an_answer_right_after_the_desk_moved_on_is_void(desk: Page, service: Service) -> None:
    """A key pressed for the call before must not answer the one that took its place."""
    first = service.call("no_advice")
    show(desk, first)
    desk.evaluate(
        """new MutationObserver(() => {
             const key = {key: "a", code: "KeyA", bubbles: true};
             document.body.dispatchEvent(new KeyboardEvent("keydown", key));
             window.pressed = true;
           }).observe(document.getElementById("call"), {childList: true})"""
    )
    second = service.call("send_second")
    expect(desk.locator("#call")).to_contain_text(second["call_id"])
    desk.wait_for_function("window.pressed === true")
    expect(desk.locator("#accept")).to_be_enabled()
    assert service.advice(second)["response"] is None


def test_accept(desk: Page, service: Service) -> None:
    made = service.call("send_second")
    show_open(desk, made)
    desk.keyboard.press("a")
    expect(desk.locator("#answer-words")).to_contain_text("Accepted by demo")
    expect(desk.locator("#accept")).to_be_disabled()
    assert service.advice(made)["response"]["action"] == "accept"
    shoot(desk, "accepted")


def test_override_with_a_coded_reason(desk: Page, service: Service) -> None:
    made = service.call("primary_only")
    show_open(desk, made)
    desk.keyboard.press("o")
    expect(desk.locator("#override-dialog")).to_be_visible()
    shoot(desk, "override")
    desk.keyboard.press("2")
    desk.keyboard.press("Tab")
    desk.keyboard.type("parade on 2 roads")
    desk.keyboard.press("Tab")
    desk.keyboard.press("Enter")
    expect(desk.locator("#answer-words")).to_contain_text("I know the roads better today")
    response = service.advice(made)["response"]
    assert response["action"] == "override"
    assert response["reason_code"] == "road_knowledge"
    assert response["text"] == "parade on 2 roads"


def test_an_override_needs_a_reason(desk: Page, service: Service) -> None:
    made = service.call("primary_only")
    show_open(desk, made)
    desk.keyboard.press("o")
    desk.get_by_role("button", name="Record override").click()
    expect(desk.locator("#override-dialog")).to_be_visible()
    desk.keyboard.press("Escape")
    expect(desk.locator("#override-dialog")).to_be_hidden()
    expect(desk.locator("#override")).to_be_focused()
    assert service.advice(made)["response"] is None


def test_a_wrong_accept_can_be_overridden(desk: Page, service: Service) -> None:
    made = service.call("send_second")
    show_open(desk, made)
    desk.keyboard.press("a")
    expect(desk.locator("#answer-words")).to_contain_text("Accepted")
    desk.keyboard.press("o")
    desk.keyboard.press("5")
    desk.keyboard.press("Enter")
    expect(desk.locator("#answer-words")).to_contain_text("Overridden by demo")
    assert service.advice(made)["response"]["action"] == "override"


def test_two_desks_see_one_answer(
    flat_browser: Browser, service: Service, desk: Page, open_desk: Turn
) -> None:
    made = service.call("send_second")
    other = open_desk(flat_browser, service)
    show(other, made)
    show_open(desk, made)
    desk.keyboard.press("a")
    expect(other.locator("#answer-words")).to_contain_text("Accepted by demo")


def test_a_newer_revision_greys_the_one_before(desk: Page, service: Service) -> None:
    first = service.call("primary_only")
    show(desk, first)
    second = service.call("send_second", call_id=first["call_id"])
    assert second["revision"] == 2
    expect(desk.locator("#call")).to_contain_text("revision 2")
    show(desk, first)
    expect(desk.locator("#advice")).to_have_attribute("data-standing", "superseded")
    expect(desk.locator("#standing")).to_have_text("Replaced by newer advice")
    expect(desk.locator("#accept")).to_be_disabled()
    desk.keyboard.press("a")
    desk.keyboard.press("o")
    expect(desk.locator("#override-dialog")).to_be_hidden()
    shoot(desk, "superseded")
    assert service.advice(first)["response"] is None


def test_of_two_answers_the_one_asked_for_later_counts(desk: Page) -> None:
    """The one asked for first may come on record later, with the higher number."""
    newest = desk.evaluate(
        """async () => {
          const { Store } = await import("/store.js");
          const made = (id, revision, second) => ({
            id, revision, call_id: "c", asked_at: `2026-01-01T00:00:0${second}.000Z`,
            created_at: "2026-01-01T00:00:10.000Z",
          });
          const all = [made("early", 3, 1), made("twin", 1, 2), made("late", 2, 2)];
          return [all, all.toReversed()].map((advices) => {
            const store = new Store();
            advices.forEach((advice) => store.put(advice));
            return store.newest("c").id;
          });
        }"""
    )
    assert newest == ["late", "late"]


def test_an_expired_advice_is_greyed(
    flat_browser: Browser, service: Service, open_desk: Turn
) -> None:
    made = service.call("send_second")

    def hurried(route: Route) -> None:
        """The service's own list, with an expiry that is seconds away instead of minutes."""
        answer = route.fetch()
        soon = (datetime.now(UTC) + timedelta(seconds=3)).isoformat()
        listed = [advice | {"expires_at": soon} for advice in answer.json()]
        route.fulfill(response=answer, json=listed)

    desk = open_desk(flat_browser, service, meddle=("**/v1/recommendations?*", hurried))
    show(desk, made)
    expect(desk.locator("#advice")).to_have_attribute("data-standing", "expired")
    expect(desk.locator("#standing")).to_have_text("Expired: do not use")
    expect(desk.locator("#expiry")).to_be_hidden()
    expect(desk.locator("#accept")).to_be_disabled()
    expect(desk.locator("#answer-words")).to_contain_text("has expired")
    desk.keyboard.press("a")
    shoot(desk, "expired")
    assert service.advice(made)["response"] is None


def test_why_and_what_if(desk: Page, service: Service) -> None:
    made = service.call("send_second")
    show(desk, made)
    expect(desk.locator("#why")).to_contain_text(made["explanation"]["roads"][0]["name"])
    assert made["explanation"]["seconds_from"] == "router"
    expect(desk.locator("#why")).to_contain_text("Seconds by road, traffic now")
    expect(desk.locator("#why")).to_contain_text("Survival")
    expect(desk.locator("#what-if-words")).to_contain_text("a second ambulance would go")
    slider = desk.locator("#what-if-value")
    slider.focus()
    desk.keyboard.press("End")
    expect(desk.locator("#what-if-words")).to_contain_text("the primary would be enough")
    expect(desk.locator("#what-if")).to_contain_text("nothing changes")
    expect(desk.locator("#verdict-words")).to_have_text("Send a second ambulance")
    desk.get_by_role("button", name="Back to the advice").click()
    expect(desk.locator("#what-if-words")).to_contain_text("a second ambulance would go")


def test_a_gap_of_zero_is_no_best_case(
    flat_browser: Browser, service: Service, open_desk: Turn
) -> None:
    made = service.call("primary_only")

    def nothing_sooner(route: Route) -> None:
        answer = route.fetch()
        gap = {"lower_s": 0.0, "upper_s": 0.0, "status": "exact"}
        route.fulfill(response=answer, json=[one | {"gap": gap} for one in answer.json()])

    page = open_desk(flat_browser, service, meddle=("**/v1/recommendations?*", nothing_sooner))
    show(page, made)
    expect(page.locator("#facts")).to_contain_text("In the forecast no other way is sooner.")
    expect(page.locator("#facts")).not_to_contain_text("0 s sooner")


def test_simulated_calls_flow(flat_browser: Browser, own_service: Service, open_desk: Turn) -> None:
    page = open_desk(flat_browser, own_service)
    before = page.locator(".call-row").count()
    page.get_by_role("button", name="Simulated calls").click()
    expect(page.get_by_role("button", name="Stop simulated calls")).to_be_visible()
    expect(page.locator("#follow")).to_be_checked()
    expect(page.locator(".call-row").nth(before)).to_be_visible()
    expect(page.locator("#call")).to_contain_text("SIM-")
    page.get_by_role("button", name="Stop simulated calls").click()
    expect(page.get_by_role("button", name="Simulated calls", exact=True)).to_be_visible()
    assert own_service.ask("GET", "/v1/simulated-calls")["running"] is False


@pytest.mark.parametrize("size", [(1280, 720), (1920, 1080)])
@pytest.mark.parametrize("locale", ["en-GB", "zh-HK"])
def test_the_first_remark_is_in_sight(
    flat_browser: Browser,
    service: Service,
    open_desk: Turn,
    size: tuple[int, int],
    locale: str,
) -> None:
    page = open_desk(flat_browser, service, size, locale=locale)
    city = service.ask("GET", "/v1/city")
    lon, lat = city["centre"]
    made = service.call(
        "primary_only",  # however many units are promised to the calls of other tests
        location={"lon": lon, "lat": lat, "accuracy_m": 900.0},
        depots=None,
        primary={"depot": city["depots"][0]["name"]},
        context={"weather": {"temperature_c": -40.0, "rainfall_mm": 300.0}},
    )
    assert made["degraded"][0]["code"] == "unusual_context"
    show(page, made)
    shoot(page, f"remarks_{locale}_{size[0]}")
    lines = page.locator("#doubts li")
    expect(lines.first).to_contain_text(made["degraded"][0]["words"])
    expect(lines).to_have_count(len(made["degraded"]) - 1)
    for number in range(lines.count()):
        expect(lines.nth(number)).to_be_in_viewport(ratio=1)
    above = [page.locator(name).bounding_box() for name in ("#verdict", "#doubts", "#facts")]
    tops = [box["y"] for box in above if box is not None]
    assert tops == sorted(tops), "between the verdict and what it rests on"
    if made["sooner_unit"] is not None:
        expect(page.locator("#sooner")).to_be_in_viewport(ratio=1)
    standing = page.locator("#standing-doubts li")
    expect(standing).to_have_count(1)
    expect(standing).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize(
    ("locale", "words"),
    [
        ("en-GB", "{far} would arrive {s} s sooner than the primary from {near} ({p} % sure)"),
        ("zh-HK", "{far} 預期較首輛（{near}）早到 {s} 秒（{p}% 把握）"),
    ],
)
def test_a_sooner_ambulance_than_the_primary_is_one_line(
    flat_browser: Browser, service: Service, open_desk: Turn, locale: str, words: str
) -> None:
    page = open_desk(flat_browser, service, (1280, 720), locale=locale)
    near, far = service.ask("GET", "/v1/city")["depots"]
    place = {"lon": far["lon"], "lat": far["lat"]}
    made = service.call("send_second", location=place, primary={"depot": near["name"]})
    show(page, made)
    said = made["sooner_unit"]
    told = words.format(
        far=far["name"], near=near["name"], s=f"{said['seconds']:.0f}",
        p=min(99, int(100 * said["probability"])),
    )  # fmt: skip
    expect(page.locator("#sooner")).to_have_text(told)
    expect(page.locator("#sooner")).to_be_in_viewport(ratio=1)
    shoot(page, f"sooner_{locale}")
    show(page, service.call("send_second", location=place, primary={"depot": far["name"]}))
    expect(page.locator("#sooner")).to_be_hidden()
