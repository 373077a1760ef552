"""The desk of a small town: one language, roads that are refused at first, crowded depots."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.conftest import Host, Turn, names_drawn, shoot
from tests.service_town import Town, serving, token
from tests.service_town import town as town

CROWDED = 49, 50, 53, 61, 62, 65
"""Junctions of the grid, some of them neighbours."""


@pytest.fixture(scope="module")
def host(chromium: str, town: Town) -> Iterator[Host]:
    """A service whose desk speaks Chinese only."""
    places = [(town.network.lon[node], town.network.lat[node]) for node in CROWDED]
    rows = [f"Station {number} Harbour,{lon},{lat}" for number, (lon, lat) in enumerate(places)]
    (town.folder / "crowded.csv").write_text("\n".join(["name,lon,lat", *rows]) + "\n")
    city = {"languages": ["zh-Hant"], "depots": "crowded.csv"}
    with serving(town.config("crowded.toml", city=city)) as running:
        yield Host(running.url, token("dispatcher"))


def test_one_language_refused_roads_and_crowded_depots(
    flat_browser: Browser, host: Host, open_desk: Turn
) -> None:
    refusals = iter([503, 503])

    def refused(route: Route) -> None:
        status = next(refusals, None)
        if status is None:
            return route.continue_()
        return route.fulfill(status=status, json={"error": {"code": "solver_lost"}})

    page = open_desk(flat_browser, host, locale="en-GB", meddle=("**/network.geojson", refused))
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hant")
    expect(page.locator("#accept")).to_contain_text("接納")
    expect(page.locator("#theme")).to_be_visible()
    expect(page.locator("#language")).to_be_hidden()

    expect(page.locator("#map-missing")).to_have_text("正在載入道路資料。建議內容不受影響。")
    expect(page.locator("#map")).to_have_attribute("data-drawn", "yes")
    expect(page.locator("#map-missing")).to_be_hidden()

    shoot(page, "small_town")
    names, covered = names_drawn(page)
    assert 0 < names <= len(CROWDED)
    assert covered == 0
