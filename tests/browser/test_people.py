"""For whoever sits there: languages, themes, sizes, keyboard, assistive technology."""

import json
import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, Request, expect

from tests.browser.conftest import Host, Service, Turn, shoot, show, show_open
from tests.service_town import Town, bearer, serving, token
from tests.service_town import town as town

pytestmark = pytest.mark.slow

SIZES = [(1024, 768), (1280, 800), (1920, 1080)]
INSIDE = """() => [...document.querySelectorAll(
    ".verdict h2, .expiry, .main .depot, .gain .number, #accept, #override, .ages")]
  .filter((node) => node.getClientRects().length)
  .filter((node) => {
    const box = node.getBoundingClientRect();
    return box.left < 0 || box.top < 0 || box.right > innerWidth || box.bottom > innerHeight ||
      node.scrollWidth > node.clientWidth + 1;
  })
  .map((node) => node.className || node.id || node.tagName)"""


def serious(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {json.dumps([node['html'] for node in one['nodes']])[:400]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("look", [("light", "en-GB"), ("dark", "zh-HK")], ids=lambda look: look[0])
def test_sizes_themes_and_axe(
    flat_browser: Browser,
    service: Service,
    open_desk: Turn,
    size: tuple[int, int],
    look: tuple[str, str],
) -> None:
    theme, locale = look
    made = service.call("send_second")
    page = open_desk(flat_browser, service, size, color_scheme=theme, locale=locale)
    show(page, made)
    expect(page.locator("#map")).to_have_attribute("data-drawn-by", "leaflet")
    expect(page.locator("html")).to_have_attribute("data-theme", theme)
    assert page.evaluate(INSIDE) == []
    shoot(page, f"desk_{size[0]}_{theme}")
    assert serious(page) == []


def test_a_low_window_shows_the_buttons_however_many_calls_there_are(
    flat_browser: Browser, service: Service, open_desk: Turn
) -> None:
    """1366 x 768 is a common screen; a browser's own bars leave some 650 of it."""
    for _ in range(12):
        made = service.call("send_second")
    page = open_desk(flat_browser, service, (1366, 650))
    show(page, made)
    assert page.evaluate(INSIDE) == []


def test_a_narrow_window_scrolls_down_and_never_sideways(
    flat_browser: Browser, service: Service, open_desk: Turn
) -> None:
    """Also what a page at twice its size is, on a common screen."""
    page = open_desk(flat_browser, service, (683, 900))
    show(page, service.call("send_second"))
    parts = page.locator(".bar, .verdict, .facts, .map, .why, #accept, #override, .ages")
    for part in parts.all():
        left, right, spare = part.evaluate(
            """(node) => [node.getBoundingClientRect().left, node.getBoundingClientRect().right,
                 node.clientWidth - node.scrollWidth]"""
        )
        assert left >= 0
        assert right <= 683
        assert spare >= 0
    assert serious(page) == []
    shoot(page, "narrow")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_any_state(
    flat_browser: Browser, own_service: Service, open_desk: Turn, theme: str
) -> None:
    page = open_desk(flat_browser, own_service, color_scheme=theme)
    assert serious(page) == []
    for decision in ("no_advice", "primary_only", "send_second"):
        show(page, own_service.call(decision))
        assert serious(page) == []
    expect(page.locator("#accept")).to_be_enabled()
    page.keyboard.press("a")
    expect(page.locator("#answer-words")).to_contain_text("Accepted")
    assert serious(page) == []
    page.keyboard.press("o")
    assert serious(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert serious(page) == []
    page.keyboard.press("Escape")
    own_service.kill()
    expect(page.locator("#lost")).to_be_visible()
    assert serious(page) == []


def test_sign_in_page(flat_browser: Browser, service: Service) -> None:
    context = flat_browser.new_context(locale="en-GB", color_scheme="dark")
    page = context.new_page()
    page.goto(service.url)
    expect(page.locator("#token")).to_be_focused()
    shoot(page, "sign_in")
    assert serious(page) == []
    context.close()


def test_both_languages(desk: Page, service: Service) -> None:
    show(desk, service.call("send_second"))
    expect(desk.locator("#verdict-words")).to_have_text("Send a second ambulance")
    desk.get_by_role("button", name="中文").click()
    expect(desk.locator("html")).to_have_attribute("lang", "zh-Hant")
    expect(desk.locator("#verdict-words")).to_have_text("加派第二輛救護車")
    expect(desk.locator("#accept")).to_contain_text("接納")
    expect(desk).to_have_title("調派員工作台")
    left = desk.locator("body").inner_text()
    assert not re.search(r"\b[a-z]+\.[a-z_]+\b", left), "a key without words"
    desk.reload()
    expect(desk.locator("#verdict-words")).to_have_text("加派第二輛救護車")
    desk.get_by_role("button", name="English").click()
    expect(desk.locator("#verdict-words")).to_have_text("Send a second ambulance")


def test_theme_follows_the_system_until_chosen(desk: Page) -> None:
    html = desk.locator("html")
    desk.emulate_media(color_scheme="dark")
    expect(html).to_have_attribute("data-theme", "dark")
    desk.emulate_media(color_scheme="light")
    expect(html).to_have_attribute("data-theme", "light")
    desk.keyboard.press("t")
    expect(html).to_have_attribute("data-theme", "dark")
    desk.emulate_media(color_scheme="light")
    expect(html).to_have_attribute("data-theme", "dark")


def test_keyboard_alone(desk: Page, service: Service) -> None:
    older, newer = service.call("primary_only"), service.call("send_second")
    expect(desk.locator(f".call-row[data-id='{newer['id']}']")).to_be_visible()
    for _ in range(6):  # through all that nobody has looked at, and then to the newest
        desk.keyboard.press("n")
    expect(desk.locator("#call")).to_contain_text(newer["call_id"])
    desk.keyboard.press("j")
    expect(desk.locator("#call")).to_contain_text(older["call_id"])
    desk.keyboard.press("ArrowUp")
    expect(desk.locator("#call")).to_contain_text(newer["call_id"])
    desk.keyboard.press("ArrowDown")
    desk.keyboard.press("k")
    expect(desk.locator("#call")).to_contain_text(newer["call_id"])
    desk.keyboard.press("?")
    expect(desk.locator("#keys-dialog")).to_be_visible()
    shoot(desk, "keys")
    desk.keyboard.press("Enter")
    expect(desk.locator("#keys-dialog")).to_be_hidden()
    desk.keyboard.press("Control+a")
    expect(desk.locator("#answer-words")).to_be_empty()


def test_every_control_can_be_reached_and_is_seen_to_be(desk: Page, service: Service) -> None:
    show_open(desk, service.call("send_second"))
    desk.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(60):
        desk.keyboard.press("Tab")
        seen = desk.evaluate(
            """() => {
                 const style = getComputedStyle(document.activeElement);
                 return [document.activeElement.id, style.outlineStyle, style.outlineWidth];
               }"""
        )
        if seen[0]:
            reached.add(seen[0])
            assert seen[1] != "none", seen
            assert seen[2] != "0px", seen
    wanted = {"simulate", "sound", "theme", "language", "follow", "accept", "override"}
    assert wanted | {"facts", "why", "what-if-value", "what-if-reset"} <= reached


def test_sound_is_off_until_asked_for(desk: Page) -> None:
    expect(desk.locator("#sound")).to_have_attribute("aria-pressed", "false")
    desk.keyboard.press("s")
    expect(desk.locator("#sound")).to_have_attribute("aria-pressed", "true")
    desk.keyboard.press("s")
    expect(desk.locator("#sound")).to_have_attribute("aria-pressed", "false")


ANSWERS = "#accept", "#override", "#running-accept", "#running-override", "#close-road"


def test_who_may_only_look_has_nothing_to_answer_with(
    flat_browser: Browser, town: Town, open_desk: Turn
) -> None:
    """An auditor sees an advice and what its dispatch asks, without a button or a key for it."""
    config = town.config("auditor.toml", server={"deadline_s": 60.0, "expiry_s": 3600.0})
    with serving(config) as running:

        def tell(method: str, path: str, body: Any, role: str = "cad") -> Any:
            url = f"{running.url}/v1/{path}"
            answer = running.client.request(method, url, json=body, headers=bearer(role))
            assert answer.is_success, answer.text
            return answer.json()

        def closed_to(page: Page, *answers: str) -> None:
            for answer in answers:
                expect(page.locator(answer)).to_be_hidden()
            for key in "aodlc":
                page.keyboard.press(key)
            expect(page.locator("#override-dialog")).to_be_hidden()
            expect(page.locator("#closing")).to_be_hidden()

        units = {"A1": "D0", "A2": "D1"}
        news = [{"id": one, "station": units[one], "status": "at_station"} for one in units]
        tell("PUT", "fleet/units", news)
        call = town.call("c-1", depots=None, primary={"unit": "A1"}, threshold_s=-1000.0)
        made = tell("POST", "recommendations", call)
        assert made["second"]["unit"] == "A2"
        auditor, dispatcher = (
            open_desk(flat_browser, Host(running.url, token(role)))
            for role in ("auditor", "dispatcher")
        )
        sent: list[str] = []

        def note(request: Request) -> None:
            if request.method != "GET":
                sent.append(request.url)

        auditor.on("request", note)
        for page in (auditor, dispatcher):
            show(page, made)
            expect(page.locator("#map")).to_have_attribute("data-drawn-by", "leaflet")
        for answer in ("#accept", "#override", "#close-road"):
            expect(dispatcher.locator(answer)).to_be_visible()
        closed_to(auditor, *ANSWERS)

        tell("POST", f"recommendations/{made['id']}/response", {"action": "accept"}, "dispatcher")
        for unit, status in (("A1", "en_route"), ("A2", "en_route"), ("A1", "on_scene")):
            tell("PUT", f"fleet/units/{unit}", {"status": status, "call_id": "c-1"})
        for page in (auditor, dispatcher):
            expect(page.locator("#running-words")).to_have_text("Stand down A2?")
        for answer in ("#running-accept", "#running-override"):
            expect(dispatcher.locator(answer)).to_be_visible()
        closed_to(auditor, *ANSWERS)
        shoot(auditor, "auditor")
        assert sent == []
