"""The server is lost: the desk says so within seconds and shows nothing old as new."""

import re
import signal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Service, Turn, shoot, show

pytestmark = pytest.mark.slow


def _lost(page: Page) -> None:
    banner = page.locator("#lost")
    expect(banner).to_be_visible()
    expect(banner).to_contain_text("Connection to the server lost")
    expect(page.locator("#advice")).to_have_attribute("data-standing", "offline")
    expect(page.locator("#verdict-words")).to_have_text("Old: connection lost")
    expect(page.locator("#reply-buttons")).to_be_hidden()
    expect(page.locator(".call-row").first).to_have_attribute("data-standing", "old")


def test_server_killed_and_back(browser: Browser, own_service: Service, open_desk: Turn) -> None:
    page = open_desk(browser, own_service)
    made = own_service.call("send_second")
    show(page, made)
    own_service.kill()
    _lost(page)
    shoot(page, "offline")
    page.keyboard.press("a")
    expect(page.locator("#reply-words")).to_contain_text("Connection lost")
    own_service.start()  # with another token: the old session is no longer known
    expect(page.locator("#token")).to_be_visible()
    expect(page.locator("#desk")).to_be_hidden()
    page.locator("#token").fill(own_service.token)
    page.keyboard.press("Enter")
    expect(page.locator("#link")).to_have_attribute("data-link", re.compile("live|impaired"))
    expect(page.locator("#lost")).to_be_hidden()
    show(page, made)
    assert own_service.advice(made)["reply"] is None


def test_server_that_hangs_and_goes_on(
    browser: Browser, own_service: Service, open_desk: Turn
) -> None:
    """The connection stays open and nothing comes: only the missing heartbeat tells."""
    page = open_desk(browser, own_service)
    made = own_service.call("send_second")
    show(page, made)
    own_service.process.send_signal(signal.SIGSTOP)
    _lost(page)
    own_service.process.send_signal(signal.SIGCONT)
    expect(page.locator("#lost")).to_be_hidden()
    expect(page.locator("#advice")).to_have_attribute("data-standing", "open")
    expect(page.locator("#accept")).to_be_enabled()
