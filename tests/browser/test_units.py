"""Units on the desk: where they are, what they do, how many are free, at any size and speed."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import FREE, SPOT, Host, Service, Turn, serious, shoot, show, spot
from tests.service_town import Town, serving, token
from tests.service_town import town as town

pytestmark = pytest.mark.slow

Trio = tuple[str, str, str]


def middle(city: Service, east: float = 0.0) -> dict[str, float]:
    """The middle of the city, or a place east of it."""
    lon, lat = city.ask("GET", "/v1/city")["centre"]
    return {"lon": lon + east, "lat": lat}


@pytest.fixture
def page(browser: Browser, city: Service, trio: Trio, open_desk: Turn) -> Page:
    """A large desk that shows all of the city, opened once the units are known."""
    page = open_desk(browser, city, (1600, 1000))
    expect(page.locator("#map")).to_have_attribute("data-drawn", "yes")
    page.get_by_role("button", name="Whole city").click()
    return page


def test_a_free_unit_is_seen_to_move_and_can_be_pointed_at(
    page: Page, city: Service, trio: Trio
) -> None:
    unit, tip = trio[2], page.locator("#map-tip")
    city.tell({"id": unit, "status": "available", "heading": 90.0, **middle(city)})
    before = spot(page, FREE)["x"]
    city.tell({"id": unit, "heading": 90.0, **middle(city, east=0.01)})
    page.wait_for_function(f"([colour, x]) => ({SPOT})(colour).x > x + 20", arg=[FREE, before])
    page.wait_for_timeout(2500)  # it glides
    now = spot(page, FREE)
    page.locator("#map").hover(position={"x": now["x"], "y": now["y"]})
    expect(tip).to_contain_text("free, on the road")
    expect(tip).to_contain_text(unit)
    expect(tip).to_contain_text(city.ask("GET", "/v1/city")["depots"][1]["name"])
    shoot(page, "unit_pointed_at")
    city.tell({"id": unit, "status": "on_scene", "call_id": "2026-17"})
    expect(tip).to_contain_text("on scene")
    expect(tip).to_contain_text("Call 2026-17")
    page.wait_for_function(f"(colour) => ({SPOT})(colour).count === 0", arg=FREE)  # busy: quiet
    page.mouse.move(2, 2)
    expect(tip).to_be_hidden()


def test_a_unit_that_was_not_seen_for_long_is_hollow_at_its_depot(
    page: Page, city: Service, trio: Trio
) -> None:
    long_ago = (datetime.now(UTC) - timedelta(minutes=20)).isoformat()
    depot = city.ask("GET", "/v1/city")["depots"][1]["name"]
    city.tell({"id": "D104", "depot": depot, "status": "available"})
    city.tell({"id": "D104", "at": long_ago, **middle(city)})
    expect(page.locator("#units-free")).to_have_text("4 of 4 units free")
    item = page.locator(f"#depots [data-depot='{depot}']")
    expect(item).to_contain_text("1 free")  # it is not known to stand there
    expect(page.locator("#legend-units")).to_contain_text("hollow")
    assert page.evaluate(SPOT, FREE)["count"] == 0
    page.keyboard.press("u")
    row = page.locator("#units-rows tr", has_text="D104")
    expect(row.locator("[data-old]")).to_have_text("20 min")
    shoot(page, "unit_stale")


def test_free_units_and_the_next_call_in_one_line(page: Page, city: Service, trio: Trio) -> None:
    line = page.locator("#city-line")
    words = r"Next call: usual drive about [\d.]+ min, 9 of 10 within [\d.]+ min"
    expect(line).to_have_text(re.compile(f"^3 of 3 units free {words}$"))
    city.tell({"id": trio[2], "status": "out_of_service"})
    expect(line).to_contain_text("2 of 3 units free")
    city.tell(*({"id": one, "status": "transporting"} for one in trio[:2]))
    expect(line).to_have_text("0 of 3 units free The next call must wait")
    city.remove(trio[2])
    expect(line).to_contain_text("0 of 2 units free")


@pytest.mark.parametrize("median_s", [300.0, None])
def test_the_line_says_where_closed_roads_keep_units_from_the_next_call(
    browser: Browser, city: Service, trio: Trio, open_desk: Turn, median_s: float | None
) -> None:
    cover = {"median_s": median_s, "p90_s": None}
    changed = {**city.ask("GET", "/v1/city"), "cover": cover}
    page = open_desk(
        browser, city, meddle=("**/v1/city", lambda route: route.fulfill(json=changed))
    )
    cut_off = "over 1 of 10 places" if median_s else "over half of all places"
    expect(page.locator("#next-call")).to_contain_text(f"closed roads cut off {cut_off}")


def test_no_unit_reported_is_not_zero(browser: Browser, city: Service, open_desk: Turn) -> None:
    city.remove()
    page = open_desk(browser, city, (1366, 768))
    show(page, city.call("no_advice", location=middle(city)))
    expect(page.locator("#verdict-words")).to_have_text("No advice: no units reported")
    expect(page.locator("#facts")).to_contain_text("PUT /v1/units")
    expect(page.locator("#units-free")).to_have_text("No units reported")
    expect(page.locator("#depots li").first).to_contain_text("No units reported")
    shoot(page, "units_unknown")


def test_all_units_are_in_a_table_for_the_keyboard(page: Page, city: Service, trio: Trio) -> None:
    city.tell({"id": trio[2], "status": "transporting", "call_id": "<b>17</b>"})
    page.keyboard.press("u")
    rows = page.locator("#units-rows tr")
    expect(rows.last).to_contain_text(f"{trio[2]}transporting")
    expect(rows.last).to_contain_text("<b>17</b>")
    city.tell({"id": trio[2], "status": "available"})
    expect(rows.filter(has_text=trio[2])).to_contain_text("free, on the road")
    assert serious(page) == []
    shoot(page, "units_in_a_table")
    page.keyboard.press("Escape")
    expect(page.locator("#units-dialog")).to_be_hidden()


def test_a_promised_unit_is_not_free_and_an_advice_names_units(
    page: Page, city: Service, trio: Trio
) -> None:
    made = city.call("send_second", primary={"unit": trio[0]})
    show(page, made)
    second = made["second"]
    expect(page.locator(".who.main .depot")).to_contain_text(second["unit"])
    expect(page.locator(".who.main .depot")).to_contain_text(second["depot"])
    promised = {one["id"] for one in city.ask("GET", "/v1/units") if one["promised"]}
    assert promised == {trio[0], second["unit"]}
    expect(page.locator("#units-free")).to_have_text("1 of 3 units free")
    item = page.locator(f"#depots [data-depot='{second['depot']}']")
    expect(item).to_contain_text("0 free, 1 promised")


@pytest.fixture(scope="module")
def fast(chromium: str, town: Town) -> Iterator[Host]:
    """A service whose clock began on another day, and runs sixty times as fast."""
    clock = {
        "origin": datetime.fromisoformat("2031-05-06T08:00:00+08:00"),
        "started": datetime.now(UTC),
        "speed": 60.0,
    }
    with serving(town.config("fast.toml", clock=clock)) as running:
        yield Host(running.url, token("dispatcher"))


def test_the_desk_runs_by_the_services_clock(browser: Browser, fast: Host, open_desk: Turn) -> None:
    page = open_desk(browser, fast)
    page.evaluate("async () => (window.clock = await import('/clock.js'))")
    look = "() => [performance.now(), clock.now(), performance.now()]"
    before, first, after = page.evaluate(look)
    page.wait_for_timeout(300)
    then_before, then, then_after = page.evaluate(look)
    assert 60 * (then_before - after) - 1 <= then - first <= 60 * (then_after - before) + 1
    assert datetime.fromtimestamp(first / 1000, UTC).year == 2031
