"""Which languages the desk offers, and whether it can draw them."""

import os
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest
from playwright.sync_api import Browser, Playwright, expect

from tests.browser.conftest import PLAIN, Host, Service, Turn, shoot, show
from tests.service_town import Town, serving, token
from tests.service_town import town as town

pytestmark = pytest.mark.slow

PICTURE = """async (character) => {
  const font = getComputedStyle(document.body).fontFamily;
  const fonts = ["400", "700"].map((weight) => `${weight} 40px ${font}`);
  await Promise.all(fonts.map((one) => document.fonts.load(one, character)));
  return fonts.map((one) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 60, height: 60 });
    const drawn = canvas.getContext("2d");
    drawn.font = one;
    drawn.fillText(character, 5, 45);
    return canvas.toDataURL();
  });
}"""


@pytest.fixture(scope="module")
def chinese(town: Town) -> Iterator[Host]:
    """A service whose desk speaks Chinese only."""
    with serving(town.config("chinese.toml", city={"languages": ["zh-Hant"]})) as running:
        yield Host(running.url, token("dispatcher"))


@pytest.fixture(scope="module")
def bare_browser(
    playwright: Playwright, chromium: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Browser]:
    """Chromium on a computer without a Chinese font."""
    folder = tmp_path_factory.mktemp("fonts")
    latin = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    config = folder / "fonts.conf"
    config.write_text(
        f"<fontconfig><dir>{latin}</dir><cachedir>{folder / 'cache'}</cachedir></fontconfig>"
    )
    browser = playwright.chromium.launch(
        executable_path=chromium,
        args=[*PLAIN, "--disable-gpu", "--disable-3d-apis"],
        env={**os.environ, "FONTCONFIG_FILE": str(config)},
    )
    yield browser
    browser.close()


def test_a_language_no_longer_offered_is_forgotten(
    flat_browser: Browser, chinese: Host, open_desk: Turn
) -> None:
    page = open_desk(flat_browser, chinese, locale="en-GB")
    page.evaluate("localStorage.setItem('desk.language', 'en')")
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hant")
    expect(page.locator("#accept")).to_contain_text("接納")


def test_the_sign_in_page_offers_no_other(flat_browser: Browser, chinese: Host) -> None:
    context = flat_browser.new_context(locale="en-GB")
    page = context.new_page()
    page.goto(chinese.url)
    expect(page.locator("#token")).to_be_focused()
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hant")
    expect(page.locator("#sign-in-form [data-action=language]")).to_be_hidden()
    context.close()


@pytest.mark.parametrize(
    ("locale", "language"), [("en-GB", "en"), ("zh-HK", "zh-Hant"), ("fr-FR", "en")]
)
def test_the_browsers_language_or_the_first(
    flat_browser: Browser, service: Service, locale: str, language: str
) -> None:
    context = flat_browser.new_context(locale=locale)
    page = context.new_page()
    page.goto(service.url)
    expect(page.locator("html")).to_have_attribute("lang", language)
    context.close()


def test_chinese_without_a_chinese_font(
    bare_browser: Browser, service: Service, open_desk: Turn
) -> None:
    page = open_desk(bare_browser, service, locale="zh-HK")
    show(page, service.call("send_second"))
    expect(page.locator("#verdict-words")).to_have_text("加派第二輛救護車")
    pictures = [page.evaluate(PICTURE, character) for character in "救護車派"]
    for weight in range(2):
        assert len({picture[weight] for picture in pictures}) == 4, "characters are boxes"
    boxes = [page.evaluate(PICTURE, character) for character in "龘齉"]
    assert boxes[0] == boxes[1], "this browser has a Chinese font"
    shoot(page, "desk_without_chinese_font")
