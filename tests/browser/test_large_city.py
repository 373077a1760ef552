"""The map of a city with as many roads as London's centre, and many depots."""

import time
from collections.abc import Callable, Iterator

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from ideal_dispatch import RoadNetwork
from tests.browser.conftest import Host, Turn, names_drawn, shoot
from tests.service_town import Town, serving, token
from tests.unit.dispatch.worlds import random_model

pytestmark = pytest.mark.slow

SIDE = 149  # junctions along each side: 88,208 roads
DEPOTS = [(row, column) for row in (20, 35, 50, 65) for column in (15, 30, 45, 60, 75)]
DEPOT = "Station 50-45 Harbour"
UNITS = [
    {"id": f"A{n}", "depot": DEPOT, "status": "available", "lon": 114.045, "lat": 22.0495 + n / 4e3}
    for n in range(4)
]
FRAMES = """() => {
  const seen = (window.frames_seen = []);
  const look = (moment) => {
    seen.push(moment);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""
CALL = {
    "call_id": "c-1",
    "location": {"lon": 114.0451, "lat": 22.0482},
    "primary": {"depot": DEPOT},
}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A service on a grid of 88,208 roads with twenty-five depots."""
    node = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    a = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
    b = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
    lon = 114.0 + 0.001 * (np.arange(node.size) % SIDE)
    lat = 22.0 + 0.001 * (np.arange(node.size) // SIDE)
    network = RoadNetwork.from_arrays(
        np.concatenate([a, b]), np.concatenate([b, a]), np.full(2 * a.size, 115.0), lon, lat,
        road_class=np.arange(2 * a.size) % 14,
    )  # fmt: skip
    assert network.num_edges > 88_000
    folder = tmp_path_factory.mktemp("large")
    network.save(folder / "town.network")
    rows = [
        f"Station {row}-{column} Harbour,{lon[node[row, column]]},{lat[node[row, column]]}"
        for row, column in DEPOTS
    ]
    (folder / "depots.csv").write_text("\n".join(["name,lon,lat", *rows]) + "\n")
    random_model(network).save(folder / "model")
    town = Town(folder, network)
    config = town.config(traffic={"kind": "forecast", "file": ""})
    with serving(config) as running:
        yield Host(running.url, token("dispatcher"))


def _drawn(page: Page) -> None:
    expect(page.locator("#map")).to_have_attribute("data-drawn", "yes")
    expect(page.locator("#map-missing")).to_be_hidden()


def test_all_roads_are_drawn_and_no_name_covers_another(
    browser: Browser, large: Host, open_desk: Turn
) -> None:
    """Depots of the shown call are named, whatever units are in the way."""
    page = open_desk(browser, large, (1366, 768))
    _drawn(page)
    for method, path, body in (("PUT", "units", UNITS), ("POST", "recommendations", CALL)):
        answer = httpx.request(
            method, f"{large.url}/v1/{path}", json=body, trust_env=False,
            headers={"Authorization": f"Bearer {large.token}"},
        )  # fmt: skip
        assert answer.is_success, answer.text
    expect(page.locator("#call")).to_contain_text("c-1")
    names, covered = names_drawn(page)
    shoot(page, "large_city")
    assert covered == 0
    assert 0 < names < len(DEPOTS)  # there is no room for all of them


def test_the_map_is_panned_by_software_alone(
    browser: Browser, large: Host, open_desk: Turn, record_property: Callable[[str, float], None]
) -> None:
    """Without a graphics card, as in many dispatch centres."""
    page = open_desk(browser, large, (1366, 768))
    _drawn(page)
    page.get_by_role("button", name="Whole city").click()
    box = page.locator("#map").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(FRAMES)
    for step in range(120):
        page.mouse.move(x + 150 * np.sin(step / 10), y + 60 * np.cos(step / 10))
    page.mouse.up()
    seen = np.array(page.evaluate("window.frames_seen"))
    frames_s = 1000 * (seen.size - 1) / (seen[-1] - seen[0])
    record_property("frames_a_second", float(frames_s))
    print(f"{frames_s:.1f} frames/s, longest {np.diff(seen).max():.0f} ms")
    shoot(page, "large_city_panned")
    assert seen.size > 20
    assert np.median(np.diff(seen)) < 200, "a hand sees it jump"


def test_roads_that_come_late_are_waited_for(
    browser: Browser, large: Host, open_desk: Turn
) -> None:
    def late(route: Route) -> None:
        time.sleep(10)  # other questions are given up after 8 s
        route.continue_()

    page = open_desk(browser, large, meddle=("**/v1/network.geojson", late))
    _drawn(page)
