"""The map: by WebGL2, without it, when the graphics are taken away, and not at all."""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import Service, Turn, shoot, show

pytestmark = pytest.mark.slow

DRAWN = "data-drawn-by"
APART = """() => {
  const marks = [...document.querySelectorAll("#map .units")];
  const [a, b] = marks.map((one) => one.getBoundingClientRect());
  return Math.hypot(a.x - b.x, a.y - b.y);
}"""
"""How far two depots are apart, in pixels."""


def _markers(page: Page, service: Service) -> None:
    for row in service.ask("GET", "/v1/units"):
        marker = page.locator(".depot-marker", has_text=row["depot"])
        expect(marker.locator(".units")).to_have_text(_shown(row))
    expect(page.locator(".incident-marker")).to_be_visible()


def _shown(row: dict[str, Any]) -> str:
    """Free units of a depot, and those promised to calls beside them."""
    promised = len(row["promised"])
    return f"{max(row['units'] - promised, 0)}{f'+{promised}' if promised else ''}"


def test_promised_units_are_beside_the_free_ones(desk: Page, service: Service) -> None:
    """In both languages, and to which call."""
    made = service.call("send_second")
    depot = made["second"]["depot"]
    # a count settles what was accepted before it, such as in other tests
    rows = service.ask("PUT", "/v1/units", [{"depot": depot, "units": 500}])
    row = next(one for one in rows if one["depot"] == depot)
    count = len(row["promised"])
    service.ask("PUT", "/v1/units", [{"depot": depot, "units": count + 3}])
    units = desk.locator(".depot-marker", has_text=depot).locator(".units")
    expect(units).to_have_text(f"3+{count}")
    calls = re.escape(", ".join(one["call_id"] for one in row["promised"]))
    assert made["call_id"] in calls.replace("\\", "")
    expect(units).to_have_attribute("title", re.compile(f"^3 free, {count} promised to {calls}$"))
    desk.keyboard.press("Escape")
    desk.get_by_role("button", name="中文").click()
    expect(units).to_have_attribute("title", re.compile(f"^可用 3 輛，{count} 輛已指派予 {calls}$"))
    desk.get_by_role("button", name="English").click()
    shoot(desk, "promised")


def test_with_webgl2(browser: Browser, service: Service, open_desk: Turn) -> None:
    page = open_desk(browser, service)
    expect(page.locator("#map")).to_have_attribute(DRAWN, "maplibre")
    show(page, service.call("send_second"))
    _markers(page, service)
    shoot(page, "map_maplibre")


@pytest.mark.parametrize("kind", ["maplibre", "leaflet"])
def test_both_ways_stay_in_sight_in_another_window_until_somebody_moves_the_map(
    browser: Browser, flat_browser: Browser, service: Service, open_desk: Turn, kind: str
) -> None:
    page = open_desk(browser if kind == "maplibre" else flat_browser, service, (1920, 1080))
    expect(page.locator("#map")).to_have_attribute(DRAWN, kind)
    show(page, service.call("send_second"))
    wide = page.evaluate(APART)
    page.set_viewport_size({"width": 1024, "height": 768})
    page.wait_for_function(f"(wide) => ({APART})() < 0.8 * wide", arg=wide)
    narrow = page.evaluate(APART)
    page.locator("#map").dispatch_event("wheel")
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.wait_for_timeout(500)
    assert page.evaluate(APART) == pytest.approx(narrow, abs=2)


def test_without_webgl2(desk: Page, service: Service) -> None:
    expect(desk.locator("#map")).to_have_attribute(DRAWN, "leaflet")
    show(desk, service.call("send_second"))
    _markers(desk, service)
    shoot(desk, "map_leaflet")


def test_an_older_browser(flat_browser: Browser, service: Service, open_desk: Turn) -> None:
    page = open_desk(flat_browser, service)
    page.add_init_script("delete Map.groupBy; delete Object.groupBy;")
    page.reload()
    expect(page.locator("#map")).to_have_attribute(DRAWN, "leaflet")


@pytest.mark.parametrize("colour", ["#56B4E9", "#E69F00"])
def test_both_ways_are_drawn(desk: Page, service: Service, colour: str) -> None:
    expect(desk.locator("#map")).to_have_attribute(DRAWN, "leaflet")
    show(desk, service.call("send_second"))
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    desk.wait_for_function(
        """([r, g, b]) => {
             const canvas = document.querySelector("#map canvas");
             const drawn = canvas.getContext("2d");
             const { data } = drawn.getImageData(0, 0, canvas.width, canvas.height);
             let found = 0;
             for (let i = 0; i < data.length; i += 4)
               if (data[i] === r && data[i + 1] === g && data[i + 2] === b) found += 1;
             return found > 100;
           }""",
        arg=wanted,
    )


def test_graphics_taken_away(browser: Browser, service: Service, open_desk: Turn) -> None:
    page = open_desk(browser, service)
    expect(page.locator("#map")).to_have_attribute(DRAWN, "maplibre")
    show(page, service.call("primary_only"))
    page.evaluate(
        """document.querySelector("#map canvas").getContext("webgl2")
             .getExtension("WEBGL_lose_context").loseContext()"""
    )
    expect(page.locator("#map")).to_have_attribute(DRAWN, "leaflet")
    _markers(page, service)


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
