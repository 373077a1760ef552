"""The map: in any browser, and not at all."""

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.conftest import PRIMARY, SECOND, SPOT, Service, Turn, show, spot

pytestmark = pytest.mark.slow

DRAWN = "data-drawn"


def test_both_ways_stay_in_sight_in_another_window_until_somebody_moves_the_map(
    browser: Browser, service: Service, open_desk: Turn
) -> None:
    page = open_desk(browser, service, (1366, 900))
    expect(page.locator("#map")).to_have_attribute(DRAWN, "yes")
    show(page, service.call("send_second"))
    wide = spot(page, PRIMARY, 100)["width"]
    spot(page, SECOND, 100)
    page.set_viewport_size({"width": 1024, "height": 900})
    narrower = f"([colour, wide]) => ({SPOT})(colour).width < 0.8 * wide"
    page.wait_for_function(narrower, arg=[PRIMARY, wide])
    narrow = page.evaluate(SPOT, PRIMARY)["width"]
    page.locator("#map").dispatch_event("wheel")
    page.set_viewport_size({"width": 1366, "height": 900})
    page.wait_for_timeout(1000)
    assert page.evaluate(SPOT, PRIMARY)["width"] == pytest.approx(narrow, abs=2)


def test_an_older_browser(browser: Browser, service: Service, open_desk: Turn) -> None:
    page = open_desk(browser, service)
    page.add_init_script("delete Map.groupBy; delete Object.groupBy;")
    page.reload()
    expect(page.locator("#map")).to_have_attribute(DRAWN, "yes")


def test_advice_does_not_need_the_map(browser: Browser, service: Service, open_desk: Turn) -> None:
    def refused(route: Route) -> None:
        route.fulfill(status=503, json={"error": {"code": "busy", "message": "busy"}})

    made = service.call("send_second")
    page = open_desk(browser, service, meddle=("**/v1/network.geojson", refused))
    show(page, made)
    expect(page.locator("#map-missing")).to_be_visible()
    expect(page.locator("#verdict-words")).to_have_text("Send a second ambulance")
    expect(page.locator("#accept")).to_be_enabled()
