"""Units on the desk: where they are, what they do, how many are free, at any size and speed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Host, Service, Turn, shoot, show
from tests.browser.test_people import INSIDE, SIZES, serious
from tests.service_town import Town, serving, token
from tests.service_town import town as town

pytestmark = pytest.mark.slow

FREE = [0x00, 0x9E, 0x73]
SPOT = """([r, g, b]) => {
  const canvas = document.querySelector("#map .overlay");
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  let [count, x, y] = [0, 0, 0];
  for (let i = 0; i < data.length; i += 4)
    if (data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255) {
      count += 1;
      x += (i / 4) % width;
      y += Math.floor(i / 4 / width);
    }
  return [count, x / count, y / count];
}"""
"""How many pixels of a colour the canvas of units has, and where their middle is."""


@dataclass(frozen=True)
class Fleet:
    """A service with three units: two at the first station, one at the second."""

    service: Service
    first: str
    second: str
    third: str

    def tell(self, *news: dict[str, Any]) -> None:
        answer = self.service.ask("PUT", "/v1/fleet/units", list(news))
        assert answer == {"taken": len(news), "ignored": []}

    def remove(self, unit: str) -> None:
        self.service.send("DELETE", f"/v1/fleet/units/{unit}")

    @property
    def stations(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.service.ask("GET", "/v1/city")["depots"]
        return found

    def middle(self, east: float = 0.0) -> dict[str, float]:
        """The middle of the city, or a place east of it."""
        lon, lat = self.service.ask("GET", "/v1/city")["centre"]
        return {"lon": lon + east, "lat": lat}


_numbers = count(1)


@pytest.fixture
def fleet(city: Service) -> Iterator[Fleet]:
    """Units that no other test has had: what is promised stays so for a while."""
    number = next(_numbers)
    fleet = Fleet(city, *(f"{letter}{number:02d}" for letter in "ABC"))
    near, far = (depot["name"] for depot in fleet.stations)
    fleet.tell(
        {"id": fleet.first, "station": near, "status": "at_station"},
        {"id": fleet.second, "station": near, "status": "at_station"},
        {"id": fleet.third, "station": far, "status": "at_station"},
    )
    yield fleet
    for unit in city.ask("GET", "/v1/fleet/units"):
        fleet.remove(unit["id"])


@pytest.fixture
def page(flat_browser: Browser, fleet: Fleet, open_desk: Turn) -> Page:
    """A desk that is opened once the units are known."""
    return open_desk(flat_browser, fleet.service)


@pytest.fixture
def large_page(flat_browser: Browser, fleet: Fleet, open_desk: Turn) -> Page:
    """A large desk that shows all of the city."""
    page = open_desk(flat_browser, fleet.service, (1600, 1000))
    whole_city(page)
    return page


def whole_city(page: Page, kind: str = "leaflet") -> None:
    """Look at all of the city, whichever call is shown."""
    expect(page.locator("#map")).to_have_attribute("data-drawn-by", kind)
    page.get_by_role("button", name="Whole city").click()


def spot(page: Page, colour: list[int]) -> tuple[float, float]:
    """Where the marks of a colour are, once they are drawn."""
    page.wait_for_function(f"(colour) => ({SPOT})(colour)[0] > 40", arg=colour)
    _, x, y = page.evaluate(SPOT, colour)
    return x, y


@pytest.mark.parametrize("kind", ["maplibre", "leaflet"])
def test_a_free_unit_on_the_road_is_seen_to_move(
    browser: Browser, flat_browser: Browser, fleet: Fleet, open_desk: Turn, kind: str
) -> None:
    chosen = browser if kind == "maplibre" else flat_browser
    page = open_desk(chosen, fleet.service, (1600, 1000))
    whole_city(page, kind)
    fleet.tell({"id": fleet.first, "status": "available", "heading": 90.0, **fleet.middle()})
    x, _ = spot(page, FREE)
    fleet.tell({"id": fleet.first, "heading": 90.0, **fleet.middle(east=0.01)})
    page.wait_for_function(f"([colour, x]) => ({SPOT})(colour)[1] > x + 20", arg=[FREE, x])
    shoot(page, f"units_{kind}")
    fleet.tell({"id": fleet.first, "status": "en_route", "call_id": "2026-17"})
    page.wait_for_function(
        f"(colour) => ({SPOT})(colour)[0] === 0", arg=FREE
    )  # busy ones are quiet


def test_who_points_at_a_unit_reads_what_it_does(large_page: Page, fleet: Fleet) -> None:
    page = large_page
    fleet.tell({"id": fleet.third, "status": "available", **fleet.middle()})
    x, y = spot(page, FREE)
    page.locator("#map").hover(position={"x": x, "y": y})
    tip = page.locator("#map-tip")
    expect(tip).to_contain_text(f"{fleet.third} · free, on the road")
    expect(tip).to_contain_text(fleet.stations[1]["name"])
    fleet.tell({"id": fleet.third, "status": "on_scene", "call_id": "2026-17"})
    expect(tip).to_contain_text(f"{fleet.third} · on scene")
    expect(tip).to_contain_text("Call 2026-17")
    shoot(page, "unit_pointed_at")
    page.mouse.move(2, 2)
    expect(tip).to_be_hidden()


def test_a_unit_that_was_not_seen_for_long_is_hollow_at_its_station(
    large_page: Page, fleet: Fleet
) -> None:
    page = large_page
    square = page.locator(".depot-marker", has_text=fleet.stations[1]["name"]).locator(".units")
    expect(square).to_have_text("1")
    long_ago = (datetime.now(UTC) - timedelta(minutes=20)).isoformat()
    fleet.tell({"id": "D104", "station": fleet.stations[1]["name"], "status": "available"})
    fleet.tell({"id": "D104", "at": long_ago, **fleet.middle()})
    expect(page.locator("#units-free")).to_have_text("4 of 4 units free")
    expect(square).to_have_text("1")  # it is not known to stand there
    box = square.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2 - 38)
    expect(page.locator("#map-tip")).to_contain_text("D104 · free, on the road")
    expect(page.locator("#map-tip")).to_contain_text("no position for 20 min: shown at its station")
    assert page.evaluate(SPOT, FREE)[0] == 0
    shoot(page, "unit_stale")


def test_free_units_and_the_next_call_in_one_line(page: Page, fleet: Fleet) -> None:
    line = page.locator("#city-line")
    told = r"Next call: help in about [\d.]+ min, 9 of 10 in [\d.]+ min"
    expect(line).to_have_text(re.compile(f"^3 of 3 units free {told}$"))
    squares = page.locator(".depot-marker .units")
    expect(squares.filter(has_text="2")).to_have_attribute(
        "title", f"{fleet.first}, {fleet.second}"
    )
    fleet.tell({"id": fleet.third, "status": "out_of_service"})
    expect(line).to_contain_text("2 of 3 units free")
    fleet.tell(*({"id": one, "status": "transporting"} for one in (fleet.first, fleet.second)))
    expect(line).to_have_text("0 of 3 units free The next call must wait")
    fleet.remove(fleet.third)
    expect(line).to_contain_text("0 of 2 units free")
    page.get_by_role("button", name="中文").click()
    expect(line).to_contain_text("2 輛中 0 輛可用")
    page.get_by_role("button", name="English").click()


@pytest.mark.parametrize(
    ("cover", "words", "chinese"),
    [
        ({"median_s": 300.0, "p90_s": None},
         "Next call: help in about 5.0 min, but closed roads cut off over 1 of 10 places",
         "道路封閉，一成以上地點無法到達"),
        ({"median_s": None, "p90_s": None},
         "Next call: closed roads cut off over half of all places",
         "道路封閉，一半以上地點無法到達"),
    ],
)  # fmt: skip
def test_the_line_says_where_closed_roads_keep_units_from_the_next_call(
    flat_browser: Browser,
    fleet: Fleet,
    open_desk: Turn,
    cover: dict[str, float | None],
    words: str,
    chinese: str,
) -> None:
    told = {**fleet.service.ask("GET", "/v1/city"), "cover": cover}
    page = open_desk(
        flat_browser, fleet.service, meddle=("**/v1/city", lambda route: route.fulfill(json=told))
    )
    line = page.locator("#next-call")
    expect(line).to_have_text(words)
    page.get_by_role("button", name="中文").click()
    expect(line).to_contain_text(chinese)
    page.get_by_role("button", name="English").click()


def test_all_units_are_in_a_table_for_the_keyboard(page: Page, fleet: Fleet) -> None:
    expect(page.locator("#city-line")).to_be_visible()
    fleet.tell({"id": fleet.third, "status": "transporting", "call_id": "<b>17</b>"})
    page.keyboard.press("u")
    rows = page.locator("#units-rows tr")
    expect(rows.last).to_contain_text(f"{fleet.third}transporting")
    expect(rows.last).to_contain_text("<b>17</b>")
    fleet.tell({"id": fleet.third, "status": "available"})
    expect(rows.filter(has_text=fleet.third)).to_contain_text("free, on the road")
    assert serious(page) == []
    shoot(page, "units_in_a_table")
    page.keyboard.press("Escape")
    expect(page.locator("#units-dialog")).to_be_hidden()


def test_a_promised_unit_is_not_free_and_an_advice_names_units(page: Page, fleet: Fleet) -> None:
    made = fleet.service.call("send_second", depots=None)
    show(page, made)
    expect(page.locator(".who.main .depot")).to_have_text(
        f"{made['second']['unit']} {made['second']['depot']}"
    )
    # the first that goes, chosen by the router, and the second that is advised
    promised = [one for one in fleet.service.ask("GET", "/v1/fleet/units") if one["promised"]]
    assert made["second"]["unit"] in {one["id"] for one in promised}
    expect(page.locator("#units-free")).to_have_text(f"{3 - len(promised)} of 3 units free")
    square = page.locator(".depot-marker", has_text=made["second"]["depot"]).locator(".units")
    expect(square.locator("sup")).to_have_attribute("aria-label", re.compile(made["call_id"]))


def test_three_hundred_units_are_one_canvas(large_page: Page, fleet: Fleet) -> None:
    page = large_page
    expect(page.locator("#units-free")).to_have_text("3 of 3 units free")
    nodes = page.evaluate("document.querySelectorAll('#map *').length")
    place, name = fleet.middle(), fleet.stations[0]["name"]
    crowd = [
        {"id": f"X{number:03d}", "station": name, "status": "available", "heading": float(number),
         "lon": place["lon"] + 0.001 * (number % 20 - 10),
         "lat": place["lat"] + 0.0007 * (number // 20 - 7)}
        for number in range(300)
    ]  # fmt: skip
    fleet.tell(*crowd)
    expect(page.locator("#units-free")).to_have_text("303 of 303 units free")
    spot(page, FREE)
    assert page.evaluate("document.querySelectorAll('#map *').length") == nodes
    shoot(page, "units_300")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("look", [("light", "en-GB"), ("dark", "zh-HK")], ids=lambda look: look[0])
def test_sizes_themes_and_axe(
    flat_browser: Browser,
    fleet: Fleet,
    open_desk: Turn,
    size: tuple[int, int],
    look: tuple[str, str],
) -> None:
    theme, locale = look
    fleet.tell({"id": fleet.first, "status": "available", **fleet.middle()})
    page = open_desk(flat_browser, fleet.service, size, color_scheme=theme, locale=locale)
    show(page, fleet.service.call("send_second", depots=None))
    expect(page.locator("#map")).to_have_attribute("data-drawn-by", "leaflet")
    assert page.evaluate(INSIDE) == []
    expect(page.locator("#city-line")).to_be_in_viewport(ratio=1)
    assert serious(page) == []
    page.keyboard.press("?")
    expect(page.locator("#symbols li")).to_have_count(9)
    assert serious(page) == []
    shoot(page, f"symbols_{size[0]}_{theme}")


# --- the service's clock ----------------------------------------------------------------


@pytest.fixture(scope="module")
def fast(chromium: str, town: Town) -> Iterator[Host]:
    """A service whose clock began on another day, and runs sixty times as fast."""
    clock = {
        "origin": "2031-05-06T08:00:00+08:00",
        "started": datetime.now(UTC).isoformat(),
        "speed": 60.0,
    }
    with serving(town.config("fast.toml", clock=clock)) as running:
        yield Host(running.url, token("dispatcher"))


def test_the_desk_runs_by_the_services_clock(
    flat_browser: Browser, fast: Host, open_desk: Turn
) -> None:
    page = open_desk(flat_browser, fast)
    seen = page.evaluate(
        """async () => {
             const { now } = await import("/clock.js");
             const look = () => [performance.now(), now(), performance.now()];
             const first = look();
             await new Promise((resume) => setTimeout(resume, 300));
             return [first, look()];
           }"""
    )
    (before, first, after), (then_before, then, then_after) = seen
    assert 60 * (then_before - after) - 1 <= then - first <= 60 * (then_after - before) + 1
    assert datetime.fromtimestamp(first / 1000, UTC).year == 2031
