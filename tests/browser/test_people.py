"""For everybody who sits there: languages, themes, sizes, keyboard, roles, assistive technology."""

import re

import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect

from tests.browser.conftest import (
    Host,
    Service,
    Turn,
    names_drawn,
    serious,
    shoot,
    show,
    show_open,
)
from tests.service_town import Town, serving, token
from tests.service_town import town as town

pytestmark = pytest.mark.slow

CROWDED = 49, 50, 53, 61, 62, 65
"""Junctions of the grid, some of them neighbours."""


def test_a_narrow_window_scrolls_down_and_never_sideways(
    browser: Browser, service: Service, open_desk: Turn
) -> None:
    """Also what a page at twice its size is, on a common screen."""
    page = open_desk(browser, service, (683, 900))
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
    browser: Browser, own_service: Service, open_desk: Turn, theme: str
) -> None:
    page = open_desk(browser, own_service, color_scheme=theme)
    assert serious(page) == []
    for decision in ("no_advice", "primary_only", "send_second"):
        show(page, own_service.call(decision))
        assert serious(page) == []
    expect(page.locator("#override")).to_be_enabled()
    page.keyboard.press("o")
    assert serious(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    expect(page.locator("#verdict-words")).to_contain_text("Accepted")
    assert serious(page) == []
    own_service.kill()
    expect(page.locator("#lost")).to_be_visible()
    assert serious(page) == []


def test_both_languages(desk: Page, service: Service) -> None:
    show(desk, service.call("send_second"))
    words = desk.locator("#verdict-words")
    expect(words).to_have_text("Send a second ambulance")
    desk.get_by_role("button", name="中文").click()
    expect(desk.locator("html")).to_have_attribute("lang", "zh-Hant")
    expect(words).to_have_text("加派第二輛救護車")
    expect(desk).to_have_title("調派員工作台")
    fonts = desk.evaluate("[...document.fonts].map((font) => font.status)")
    assert "loaded" in fonts, "its own: a computer may have none with these characters"
    left = desk.locator("body").inner_text()
    assert not re.search(r"\b[a-z]+\.[a-z_]+\b", left), "a key without words"
    desk.reload()
    expect(words).to_have_text("加派第二輛救護車")
    desk.get_by_role("button", name="English").click()
    expect(words).to_have_text("Send a second ambulance")


@pytest.mark.parametrize(
    ("locale", "language"), [("en-GB", "en"), ("zh-HK", "zh-Hant"), ("fr-FR", "en")]
)
def test_the_browsers_language_or_the_first(
    browser: Browser, service: Service, locale: str, language: str
) -> None:
    context = browser.new_context(locale=locale)
    page = context.new_page()
    page.goto(service.url)
    expect(page.locator("html")).to_have_attribute("lang", language)
    context.close()


def test_one_language_refused_roads_and_crowded_depots(
    browser: Browser, town: Town, open_desk: Turn
) -> None:
    """The desk of a small town: a language that is not offered is forgotten."""
    places = [(town.network.lon[node], town.network.lat[node]) for node in CROWDED]
    rows = [f"Station {number} Harbour,{lon},{lat}" for number, (lon, lat) in enumerate(places)]
    (town.folder / "crowded.csv").write_text("\n".join(["name,lon,lat", *rows]) + "\n")
    city = {"languages": ["zh-Hant"], "depots": "crowded.csv"}
    refusals = iter([503, 503])

    def refused(route: Route) -> None:
        status = next(refusals, None)
        if status is None:
            return route.continue_()
        return route.fulfill(status=status, json={"error": {"code": "busy"}})

    with serving(town.config("crowded.toml", city=city)) as running:
        host = Host(running.url, token("dispatcher"))
        page = open_desk(browser, host, locale="en-GB", meddle=("**/network.geojson", refused))
        expect(page.locator("html")).to_have_attribute("lang", "zh-Hant")
        expect(page.locator("#language")).to_be_hidden()
        expect(page.locator("#map-missing")).to_have_text("正在載入道路資料。建議內容不受影響。")
        expect(page.locator("#map")).to_have_attribute("data-drawn", "yes")
        expect(page.locator("#map-missing")).to_be_hidden()
        names, covered = names_drawn(page)
        assert 0 < names <= len(CROWDED)
        assert covered == 0
        shoot(page, "small_town")
        page.evaluate("localStorage.setItem('desk.language', 'en')")
        page.reload()
        expect(page.locator("html")).to_have_attribute("lang", "zh-Hant")


def test_theme_follows_the_system_until_chosen(desk: Page) -> None:
    html = desk.locator("html")
    for scheme in ("dark", "light"):
        desk.emulate_media(color_scheme=scheme)
        expect(html).to_have_attribute("data-theme", scheme)
    desk.keyboard.press("t")
    expect(html).to_have_attribute("data-theme", "dark")
    desk.emulate_media(color_scheme="light")
    expect(html).to_have_attribute("data-theme", "dark")


def test_keyboard_alone(desk: Page, service: Service) -> None:
    older, newer = service.call("primary_only"), service.call("send_second")
    call = desk.locator("#call")
    expect(desk.locator(f".call-row[data-id='{newer['id']}']")).to_be_visible()
    for _ in range(6):  # through all that were not looked at, and then to the newest
        desk.keyboard.press("n")
    expect(call).to_contain_text(newer["call_id"])
    for key, made in (("j", older), ("ArrowUp", newer), ("ArrowDown", older), ("k", newer)):
        desk.keyboard.press(key)
        expect(call).to_contain_text(made["call_id"])
    desk.keyboard.press("?")
    expect(desk.locator("#keys-dialog")).to_be_visible()
    desk.keyboard.press("Enter")
    expect(desk.locator("#keys-dialog")).to_be_hidden()
    for pressed in ("true", "false"):  # the sound is off until asked for
        desk.keyboard.press("s")
        expect(desk.locator("#sound")).to_have_attribute("aria-pressed", pressed)
    desk.keyboard.press("Control+a")
    assert service.advice(newer)["reply"] is None


def test_every_control_can_be_reached_and_is_seen_to_be(desk: Page, service: Service) -> None:
    show_open(desk, service.call("send_second"))
    desk.locator("#why summary").click()
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
    assert wanted | {"why", "what-if-value", "what-if-reset"} <= reached


def test_an_auditor_has_nothing_to_answer_with(
    browser: Browser, town: Town, open_desk: Turn
) -> None:
    """An auditor sees advice, questions and closures, without a button or a key for them."""
    buttons = "#accept", "#override", "#running-do", "#running-leave", "#close-road", ".end"
    config = town.config("auditor.toml", server={"deadline_s": 60.0, "expiry_s": 3600.0})
    with serving(config) as running:
        running.report(town.unit("A1"), town.unit("A2", depot="D1"))
        call = town.call("c-1", primary={"unit": "A1"}, threshold_s=-1000.0)
        made = running.advice(call)
        assert made["second"]["unit"] == "A2"
        closure = {"reason": "parade", "edges": [0]}
        headers = {"Authorization": f"Bearer {token('cad')}"}
        assert running.post("/v1/closures", json=closure, headers=headers).is_success
        auditor, dispatcher = (
            open_desk(browser, Host(running.url, token(role))) for role in ("auditor", "dispatcher")
        )
        sent: list[str] = []

        def note(request: Request) -> None:
            if request.method != "GET":
                sent.append(request.url)

        auditor.on("request", note)

        def compare(*usable: str) -> None:
            for button in usable:
                expect(dispatcher.locator(button)).to_be_visible()
            for button in buttons:
                expect(auditor.locator(button)).to_be_hidden()
            for key in "aodlc":
                auditor.keyboard.press(key)
            for opened in ("#override-dialog", "#closing"):
                expect(auditor.locator(opened)).to_be_hidden()

        for page in (auditor, dispatcher):
            show(page, made)
            expect(page.locator("#map")).to_have_attribute("data-drawn", "yes")
            expect(page.locator(".closure")).to_contain_text("parade")
        compare("#accept", "#override", "#close-road", ".end")
        assert running.reply(made).is_success
        for unit, status in (("A1", "en_route"), ("A2", "en_route"), ("A1", "on_scene")):
            running.report({"id": unit, "status": status, "call_id": "c-1"})
        for page in (auditor, dispatcher):
            expect(page.locator("#running-words")).to_have_text("Stand down A2?")
        compare("#running-do", "#running-leave")
        shoot(auditor, "auditor")
        assert sent == []
