"""A look of two seconds does not mislead: by what is bold, by a number, or by what is cut."""

from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import SECOND, SPOT, Service, Turn, shoot, show, show_open

pytestmark = pytest.mark.slow

_numbers = count(1)
CUT = """() => [...document.querySelectorAll(".by-road dt, .call-row .id, .numbers dd, .words *")]
  .filter((node) => node.checkVisibility())
  .filter((node) => getComputedStyle(node).display !== "inline")
  .filter(({ scrollWidth, clientWidth, scrollHeight, clientHeight }) =>
    scrollWidth > clientWidth + 1 || scrollHeight > clientHeight + 4)
  .map((node) => node.textContent)"""


@pytest.fixture
def pair(city: Service) -> tuple[str, str]:
    """Two units that no other test has had; the second has the longest name there may be."""
    number = next(_numbers)
    near, far = (depot["name"] for depot in city.ask("GET", "/v1/city")["depots"])
    ids = f"A{number:02d}", f"سيارة {number:02d} ".ljust(64, "X")
    news = [
        {"id": unit, "depot": depot, "status": "at_station"}
        for unit, depot in zip(ids, (near, far), strict=True)
    ]
    city.remove()
    city.ask("PUT", "/v1/units", news)
    return ids


@pytest.fixture
def page(browser: Browser, city: Service, open_desk: Turn, pair: tuple[str, str]) -> Page:
    page = open_desk(browser, city, (1366, 768))
    expect(page.locator("#map")).to_have_attribute("data-drawn", "yes")
    return page


def tell(city: Service, unit: str, made: dict[str, Any], status: str) -> None:
    """A unit has a status on this call, and is where it happened."""
    place = {key: made["location"][key] for key in ("lon", "lat")}
    news = {"id": unit, "status": status, "call_id": made["call_id"], **place}
    city.ask("PUT", "/v1/units", [news])


@pytest.mark.parametrize("how", ["overridden", "superseded"])
def test_the_way_of_a_second_that_is_not_sent_is_dim(
    page: Page, city: Service, pair: tuple[str, str], how: str
) -> None:
    made = city.call("send_second", primary={"unit": pair[0]})
    show_open(page, made)
    page.wait_for_function(f"() => ({SPOT})({SECOND}).count > 200")
    open_words = page.locator(".gain .label").inner_text()
    if how == "overridden":
        body = {"action": "override", "reason_code": "other"}
        city.ask("POST", f"/v1/recommendations/{made['id']}/reply", body)
    else:
        city.call("send_second", primary={"unit": pair[0]}, call_id=made["call_id"], note="")
        show(page, made)
    expect(page.locator("#advice")).to_have_attribute("data-standing", how)
    page.wait_for_function(f"() => ({SPOT})({SECOND}).count < 50")
    expect(page.locator(".who.second .arrives")).to_contain_text("would")
    expect(page.locator(".gain .label")).not_to_have_text(open_words)  # that gain is gone
    shoot(page, f"not_sent_{how}")


def test_a_primary_that_is_there_is_not_counted_down(
    page: Page, city: Service, pair: tuple[str, str]
) -> None:
    made = city.call("send_second", primary={"unit": pair[0]})
    show_open(page, made)
    tell(city, pair[0], made, "on_scene")
    expect(page.locator(".who.primary .arrives")).to_have_text("on scene")


def test_an_advice_that_lost_its_unit_does_not_shout(
    browser: Browser, page: Page, city: Service, pair: tuple[str, str], open_desk: Turn
) -> None:
    """Neither on a desk that heard of it, nor on one that is opened later."""
    made = city.call("send_second", primary={"unit": pair[0]})
    show_open(page, made)
    tell(city, pair[1], made | {"call_id": "another"}, "en_route")
    for desk in (page, open_desk(browser, city, (1366, 768))):
        show(desk, made)
        expect(desk.locator("#advice")).to_have_attribute("data-standing", "lost")
        expect(desk.locator("#verdict-words")).to_have_text("A unit is gone: ask again")
        expect(desk.locator("#losses li")).to_have_attribute("data-why", "on_call")
        expect(desk.locator("#reply-buttons")).to_be_hidden()
        expect(desk.locator(f".call-row[data-id='{made['id']}'] .short")).to_have_text(
            "Lost its unit"
        )
    shoot(page, "lost_its_unit")


@pytest.mark.parametrize("size", [(1366, 768), (1024, 768), (800, 600)])
def test_a_long_name_leaves_the_question_in_sight(
    page: Page, city: Service, pair: tuple[str, str], size: tuple[int, int]
) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    made = city.call("send_second", primary={"unit": pair[0]})
    show_open(page, made)
    page.keyboard.press("a")
    expect(page.locator("#running-words")).to_contain_text("Under way")
    assert f"\u2068{pair[1]}\u2069" in page.locator("#recall").inner_text()  # it turns no words
    expect(page.locator("#running-expected .chance")).to_be_visible()
    tell(city, pair[0], made, "on_scene")
    expect(page.locator("#running-do")).to_be_enabled()
    shoot(page, f"long_name_{size[0]}")
    for part in ("#verdict", "#running", "#running-do", "#running-leave", "#running-expected"):
        expect(page.locator(part)).to_be_in_viewport(ratio=1)
    expect(page.locator("#running-expected .chance")).to_have_count(0)  # one is there already
    words, verdict = (page.locator(part).bounding_box() for part in ("#running", "#verdict"))
    assert words is not None
    assert verdict is not None
    assert verdict["height"] > 40
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("size", [(1366, 768), (1280, 720), (1024, 768)])
def test_nothing_is_cut(
    browser: Browser, service: Service, open_desk: Turn, size: tuple[int, int]
) -> None:
    page = open_desk(browser, service, size)
    made = service.call("send_second")
    show_open(page, service.call("send_second", call_id=made["call_id"], note="12 Lantern Street"))
    assert page.evaluate(CUT) == []
    button, other = (page.locator(part).bounding_box() for part in ("#override", ".who.primary"))
    assert button is not None
    assert other is not None
    assert button["x"] + button["width"] <= other["x"]


def test_a_dispatch_stays_in_a_long_list(page: Page, city: Service, pair: tuple[str, str]) -> None:
    made = city.call("send_second", primary={"unit": pair[0]})
    show_open(page, made)
    page.keyboard.press("a")
    expect(page.locator("#running")).to_be_visible()
    show(page, city.call("no_advice"))
    for _ in range(105):
        last = city.call("no_advice")
    expect(page.locator("#call")).to_contain_text(last["call_id"])
    tell(city, pair[0], made, "on_scene")
    expect(page.locator("#next")).to_contain_text("Stand down")
    expect(page.locator("#legend-units")).to_contain_text("on scene")
    page.keyboard.press("n")
    expect(page.locator("#call")).to_contain_text(made["call_id"])
