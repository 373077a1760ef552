"""Text of others stays text, tokens stay out of reach, and the policy stays strict."""

import re

from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import Service, Turn, serious, shoot, show, show_open, sign_in

HOSTILE = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>{{7*7}}&lt;b&gt;"


def test_hostile_text_is_shown_as_text(desk: Page, service: Service) -> None:
    made = service.call("send_second", call_id=f"<b>{HOSTILE}"[:120], note=HOSTILE)
    show_open(desk, made)
    expect(desk.locator("#note")).to_have_text(HOSTILE)
    desk.keyboard.press("o")
    desk.keyboard.press("5")
    desk.locator("#override-text").fill(HOSTILE)
    shoot(desk, "hostile")
    desk.get_by_role("button", name="Record override").click()
    expect(desk.locator("#standing")).to_contain_text(HOSTILE)
    assert desk.evaluate("window.hacked") is None
    assert desk.locator("main img, main script, .calls img, .calls b").count() == 0


def test_long_text_stays_in_its_place(desk: Page, service: Service) -> None:
    made = service.call("primary_only", call_id="W" * 128, note="長" * 2000)
    show(desk, made)
    shoot(desk, "long_text")
    wide = desk.evaluate("document.documentElement.scrollWidth")
    assert wide <= desk.evaluate("innerWidth")
    expect(desk.locator("#verdict-words")).to_be_in_viewport(ratio=1)


def test_much_that_is_missing_pushes_nothing_off_the_page(
    browser: Browser, service: Service, open_desk: Turn
) -> None:
    parts = dict.fromkeys(("decisions", "database", "traffic", "weather"), "away")

    def impaired(route: Route) -> None:
        route.fulfill(json={"status": "degraded", "parts": parts})

    page = open_desk(browser, service, (1024, 768), meddle=("**/healthz", impaired))
    link = page.locator("#link")
    expect(link).to_have_attribute("data-link", re.compile("impaired|live"))
    if link.get_attribute("data-link") == "live":  # the real service reported its own health
        page.reload()
    expect(link).to_have_attribute("data-link", "impaired")
    expect(page.locator("[data-action=sign_out]")).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shoot(page, "impaired")


def test_token_stays_out_of_reach(desk: Page, service: Service) -> None:
    cookies = desk.context.cookies()
    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Strict")]
    kept = desk.evaluate("JSON.stringify(localStorage) + document.cookie + location.href")
    assert service.token not in kept
    assert service.token not in desk.content()


def test_signing_in_and_out(browser: Browser, service: Service) -> None:
    context = browser.new_context(locale="en-GB", color_scheme="dark")
    page = context.new_page()
    page.goto(service.url)
    page.locator("#token").fill("not a token")
    page.keyboard.press("Enter")
    expect(page.locator("#sign-in-error")).to_have_text("This token is not known.")
    expect(page.locator("#desk")).to_be_hidden()
    assert serious(page) == []
    shoot(page, "sign_in")
    sign_in(page, service)
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("#token")).to_be_visible()
    assert context.cookies() == []
    context.close()
