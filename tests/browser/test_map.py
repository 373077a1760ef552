"""The map: in any browser, and not at all."""

import re

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import Service, Turn, show

pytestmark = pytest.mark.slow

DRAWN = "data-drawn"
BLUE = """() => {
  const canvas = document.querySelector("#map .overlay");
  const { width } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, canvas.height);
  const at = [];
  for (let i = 0; i < data.length; i += 4)
    if (data[i] === 0x56 && data[i + 1] === 0xb4 && data[i + 2] === 0xe9) at.push((i / 4) % width);
  return at.reduce((a, b) => Math.max(a, b), 0) - at.reduce((a, b) => Math.min(a, b), width);
}"""
"""How wide the primary's way is, in pixels."""


def test_depots_are_listed_with_their_units(desk: Page, service: Service) -> None:
    """Promised ones beside the free ones, in both languages."""
    expect(desk.locator("#map")).to_have_attribute(DRAWN, "yes")
    made = service.call("send_second")
    show(desk, made)
    units = [
        one for one in service.ask("GET", "/v1/units") if one["depot"] == made["second"]["depot"]
    ]
    promised = sum(one["promised"] is not None for one in units)
    item = desk.locator(f"#depots [data-depot='{made['second']['depot']}']")
    free = len(units) - promised
    expect(item).to_contain_text(re.compile(rf"\b{free} free, {promised} promised"))
    desk.get_by_role("button", name="中文").click()
    expect(item).to_contain_text(f"可用 {free} 輛，已指派 {promised} 輛")
    desk.get_by_role("button", name="English").click()


def test_both_ways_stay_in_sight_in_another_window_until_somebody_moves_the_map(
    flat_browser: Browser, service: Service, open_desk: Turn
) -> None:
    page = open_desk(flat_browser, service, (1366, 900))
    expect(page.locator("#map")).to_have_attribute(DRAWN, "yes")
    show(page, service.call("send_second"))
    page.wait_for_function(f"() => ({BLUE})() > 100")
    wide = page.evaluate(BLUE)
    page.set_viewport_size({"width": 1024, "height": 900})
    page.wait_for_function(f"(wide) => ({BLUE})() < 0.8 * wide", arg=wide)
    narrow = page.evaluate(BLUE)
    page.locator("#map").dispatch_event("wheel")
    page.set_viewport_size({"width": 1366, "height": 900})
    page.wait_for_timeout(1000)
    assert page.evaluate(BLUE) == pytest.approx(narrow, abs=2)


def test_an_older_browser(flat_browser: Browser, service: Service, open_desk: Turn) -> None:
    page = open_desk(flat_browser, service)
    page.add_init_script("delete Map.groupBy; delete Object.groupBy;")
    page.reload()
    expect(page.locator("#map")).to_have_attribute(DRAWN, "yes")


@pytest.mark.parametrize("colour", ["#56B4E9", "#E69F00"])
def test_both_ways_are_drawn(desk: Page, service: Service, colour: str) -> None:
    expect(desk.locator("#map")).to_have_attribute(DRAWN, "yes")
    show(desk, service.call("send_second"))
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    desk.wait_for_function(
        """([r, g, b]) => {
             const canvas = document.querySelector("#map .overlay");
             const drawn = canvas.getContext("2d");
             const { data } = drawn.getImageData(0, 0, canvas.width, canvas.height);
             let found = 0;
             for (let i = 0; i < data.length; i += 4)
               if (data[i] === r && data[i + 1] === g && data[i + 2] === b) found += 1;
             return found > 100;
           }""",
        arg=wanted,
    )


def test_advice_does_not_need_the_map(
    flat_browser: Browser, service: Service, open_desk: Turn
) -> None:
    def refused(route: Route) -> None:
        route.fulfill(status=503, json={"error": {"code": "busy", "message": "busy"}})

    made = service.call("send_second")
    page = open_desk(flat_browser, service, meddle=("**/v1/network.geojson", refused))
    show(page, made)
    expect(page.locator("#map-missing")).to_be_visible()
    expect(page.locator("#verdict-words")).to_have_text("Send a second ambulance")
    expect(page.locator("#accept")).to_be_enabled()
