"""Closed roads on the desk: drawn, listed, pointed at, opened again."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import SPOT, TAPE, Service, Turn, serious, shoot, spot

pytestmark = pytest.mark.slow


@pytest.fixture
def opened(city: Service) -> Iterator[Service]:
    """All roads are open, and will be again."""
    yield city
    for closure in city.ask("GET", "/v1/closures"):
        city.send("DELETE", f"/v1/closures/{closure['id']}")


TAPED = """([r, g, b]) => {
  const canvas = document.querySelector("#map .overlay");
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  for (let i = 4 * width * Math.floor(height / 3); i < data.length; i += 4)
    if (data[i] === r && data[i + 1] === g && data[i + 2] === b)
      return [(i / 4) % width, Math.floor(i / 4 / width)];
  return [0, 0];
}"""
"""A place on the closed road."""


def drawn(page: Page) -> None:
    expect(page.locator("#map")).to_have_attribute("data-drawn", "yes")


def road(city: Service) -> int:
    """An edge of a long road near the middle of the city."""
    lon, lat = city.ask("GET", "/v1/city")["centre"]
    features = city.ask("GET", "/v1/network.geojson")["features"]

    def far(feature: Any) -> float:
        x, y = feature["geometry"]["coordinates"][0]
        return float(abs(x - lon) + abs(y - lat))

    near = sorted(features, key=far)[:40]
    found = max(near, key=lambda one: len(one["geometry"]["coordinates"]))
    edge: int = found["properties"]["edges"][0]
    return edge


def close(city: Service, reason: str, **more: object) -> None:
    city.send("POST", "/v1/closures", {"reason": reason, "edges": [road(city)], **more})


def test_a_closed_road_is_on_the_map_and_in_the_list_until_it_is_opened(
    browser: Browser, opened: Service, open_desk: Turn
) -> None:
    def refuse(route: Route) -> None:
        route.fulfill(status=503, json={"error": {"code": "x", "message": "the record is full"}})

    page = open_desk(browser, opened)
    drawn(page)
    expect(page.locator("#closures-box")).to_be_hidden()
    later = (datetime.now(UTC) + timedelta(hours=3)).isoformat()
    close(opened, "<b>parade</b>", until=later)
    row, tip, button = page.locator(".closure"), page.locator("#map-tip"), page.get_by_role
    expect(row).to_contain_text("<b>parade</b>")
    expect(row.locator(".time")).to_have_text(re.compile(r"^until .*\d\d:\d\d$"))
    row.click()  # look at it
    spot(page, TAPE, 50)
    x, y = page.evaluate(TAPED, TAPE)
    page.locator("#map").hover(position={"x": x, "y": y})
    expect(tip).to_contain_text("Closed: <b>parade</b>")
    expect(tip).to_contain_text("by demo, ")
    shoot(page, "closure")
    page.route("**/v1/closures/*", refuse, times=1)
    button("button", name="Open again").click()
    expect(page.locator("#ending-dialog")).to_be_visible()
    button("button", name="Open the road").click()
    expect(page.locator("#ending-error")).to_have_text("Still closed: the record is full")
    assert serious(page) == []
    button("button", name="Keep it closed").click()
    assert len(opened.ask("GET", "/v1/closures")) == 1
    button("button", name="Open again").click()
    button("button", name="Open the road").click()
    expect(page.locator("#closures-box")).to_be_hidden()
    assert opened.ask("GET", "/v1/closures") == []


def _look_closely(page: Page, city: Service) -> tuple[float, float]:
    """Bring a road to the middle of the map; where its middle is then."""
    close(city, "to look at")
    page.locator(".closure").click()
    page.get_by_role("button", name="Open again: to look at").click()
    page.get_by_role("button", name="Open the road").click()
    expect(page.locator("#closures-box")).to_be_hidden()
    box = page.locator("#map").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + (box["height"] - 16) / 2


def test_an_area_is_drawn_with_the_mouse(
    browser: Browser, opened: Service, open_desk: Turn
) -> None:
    page = open_desk(browser, opened, (1600, 1000))
    drawn(page)
    x, y = _look_closely(page, opened)
    page.get_by_role("button", name="Close a road").click()
    expect(page.locator("#closing")).to_be_visible()
    expect(page.locator("#closing-finish")).to_be_disabled()
    for dx, dy in ((-90, -60), (90, -60), (90, 60), (-90, 60)):
        page.mouse.click(x + dx, y + dy, delay=20)
        page.wait_for_timeout(400)  # two clicks in a hurry are a double click
    expect(page.locator("#closing-finish")).to_be_enabled()
    shoot(page, "closing")
    page.mouse.click(x - 88, y - 58)  # back to the first point: an area
    expect(page.locator("#closing-dialog")).to_be_visible()
    expect(page.locator("#closing-area")).to_be_checked()
    assert serious(page) == []
    page.locator("#closing-reason").fill("burst main")
    page.get_by_role("button", name="2 h").click()
    page.get_by_role("button", name="Close the road").click()
    expect(page.locator(".closure")).to_contain_text("burst main")
    expect(page.locator("#closing")).to_be_hidden()
    (made,) = opened.ask("GET", "/v1/closures")
    assert made["reason"] == "burst main"
    assert len(made["polygon"]) == 4
    left = datetime.fromisoformat(made["until"]) - datetime.now(UTC)
    assert timedelta(hours=1.9) < left <= timedelta(hours=2)
    shoot(page, "closed_area")


def test_an_area_is_drawn_with_the_keyboard_alone(
    browser: Browser, opened: Service, open_desk: Turn
) -> None:
    page = open_desk(browser, opened, (1600, 1000))
    drawn(page)
    _look_closely(page, opened)
    page.keyboard.press("c")
    expect(page.locator("#closing")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#closing")).to_be_hidden()
    expect(page.locator("#close-road")).to_be_focused()
    page.keyboard.press("c")
    sides = [
        ("ArrowLeft", 8), ("ArrowUp", 5), (" ", 1), ("ArrowRight", 16), (" ", 1),
        ("ArrowDown", 10), (" ", 1), ("ArrowLeft", 16), (" ", 1), (" ", 1), ("Backspace", 1),
    ]  # fmt: skip
    for key, times in sides:
        for _ in range(times):
            page.keyboard.press(key)
    page.keyboard.press("Enter")
    expect(page.locator("#closing-reason")).to_be_focused()
    expect(page.locator("#closing-line")).to_be_checked()
    page.keyboard.type("a tree")
    page.keyboard.press("Tab")
    zone = ZoneInfo(opened.ask("GET", "/v1/city")["time_zone"])
    at = datetime.now(zone).replace(second=0, microsecond=0) + timedelta(hours=3)
    page.keyboard.type(f"{at:%H%M}")
    page.locator("#closing-line").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".closure")).to_contain_text("a tree")
    expect(page.locator(".closure")).to_contain_text(f"{at:%H:%M}")
    (made,) = opened.ask("GET", "/v1/closures")
    assert len(made["polygon"]) == 4
    assert datetime.fromisoformat(made["until"]) == at


def test_a_line_where_no_road_is_keeps_the_drawing(
    browser: Browser, opened: Service, open_desk: Turn
) -> None:
    page = open_desk(browser, opened, (1600, 1000))
    drawn(page)
    page.get_by_role("button", name="Whole city").click()
    box = page.locator("#map").bounding_box()
    assert box is not None
    page.keyboard.press("c")
    for right in (8, 40):  # the whole city has a margin around it
        page.mouse.click(box["x"] + right, box["y"] + 90)
        page.wait_for_timeout(400)
    page.keyboard.press("Enter")
    expect(page.locator("#closing-area")).to_be_disabled()  # two points are no area
    page.locator("#closing-reason").fill("nothing")
    page.keyboard.press("Enter")
    expect(page.locator("#closing-error")).to_contain_text("Not closed: ")
    expect(page.locator("#closing-reason")).to_have_value("nothing")
    assert opened.ask("GET", "/v1/closures") == []


def test_one_that_lost_its_roads_is_not_in_force(
    browser: Browser, opened: Service, open_desk: Turn
) -> None:
    """When the network changes, a closure by edges alone closes none."""
    close(opened, "parade")
    (found,) = opened.ask("GET", "/v1/closures")
    lost = {**found, "edges": [], "active": False}
    page = open_desk(
        browser, opened, meddle=("**/v1/closures", lambda route: route.fulfill(json=[lost]))
    )
    row = page.locator(".closure")
    expect(row).to_contain_text("not in force: the road network changed. Close it again.")
    row.click()
    drawn(page)
    assert page.evaluate(SPOT, TAPE)["count"] == 0
