"""The running dispatch on the desk: who is expected when, what is asked, what was done."""

import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import Service, Turn, shoot, show, show_open
from tests.browser.test_people import INSIDE, SIZES, serious

pytestmark = pytest.mark.slow

_numbers = count(1)


@pytest.fixture
def made(city: Service) -> Iterator[dict[str, Any]]:
    """A call whose second is advised, with units that no other test has had."""
    number = next(_numbers)
    near, far = city.ask("GET", "/v1/city")["depots"]
    first, second = f"A{number:02d}", f"B{number:02d}"
    city.ask(
        "PUT",
        "/v1/fleet/units",
        [
            {"id": first, "station": near["name"], "status": "at_station"},
            {"id": second, "station": far["name"], "status": "at_station"},
        ],
    )
    made = city.call("send_second", depots=None, primary={"unit": first})
    assert (made["primary"]["unit"], made["second"]["unit"]) == (first, second)
    yield made
    for unit in (first, second):
        city.send("DELETE", f"/v1/fleet/units/{unit}")


@pytest.fixture
def page(flat_browser: Browser, city: Service, made: dict[str, Any], open_desk: Turn) -> Page:
    """A desk that is opened after the call came in."""
    return open_desk(flat_browser, city)


def do(city: Service, made: dict[str, Any], role: str, status: str) -> None:
    """A unit of the call tells its status."""
    news = {"status": status, "call_id": made["call_id"]}
    city.ask("PUT", f"/v1/fleet/units/{made[role]['unit']}", news)


def accepted(page: Page, city: Service, made: dict[str, Any]) -> None:
    """Accept the advice, and let both leave."""
    show_open(page, made)
    page.keyboard.press("a")
    expect(page.locator("#answer-words")).to_contain_text("Accepted by demo")
    for role in ("primary", "second"):
        do(city, made, role, "en_route")


def dispatch(city: Service, made: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = city.ask("GET", f"/v1/dispatches/{made['id']}")
    return found


def test_both_are_expected_and_the_time_runs_down(
    page: Page, city: Service, made: dict[str, Any]
) -> None:
    show(page, made)
    expect(page.locator("#running")).to_be_hidden()
    accepted(page, city, made)
    expect(page.locator("#running-words")).to_have_text(re.compile(r"^Under way since \d\d:\d\d$"))
    expect(page.locator("#verdict-words")).to_have_text("Advice was: Send a second ambulance")
    expect(page.locator("#expiry")).to_be_hidden()
    rows = page.locator("#running-expected > div")
    expect(rows).to_have_count(3)
    for row, role in ((rows.nth(0), "primary"), (rows.nth(1), "second")):
        expect(row.locator("dt")).to_have_text(f"{made[role]['unit']} arrives in")
        expect(row.locator("dd")).to_have_text(re.compile(r"^\d+:\d\d$"))
    expect(rows.nth(2).locator("dt")).to_have_text(f"{made['second']['unit']} arrives first")
    expect(rows.nth(2).locator("dd")).to_have_text(re.compile(r"^\d+ %$"))
    expect(page.locator("#running-buttons")).to_be_hidden()
    row = page.locator(f".call-row[data-id='{made['id']}']")
    expect(row.locator(".state")).to_have_text("under way")
    shoot(page, "dispatch_running")


@pytest.mark.parametrize("key", ["a", "d"])
def test_a_stand_down_is_asked_and_accepted(
    page: Page, city: Service, made: dict[str, Any], key: str
) -> None:
    second = made["second"]["unit"]
    accepted(page, city, made)
    do(city, made, "primary", "on_scene")
    expect(page.locator("#running-words")).to_have_text(f"Stand down {second}?")
    expect(page.locator("#running-reason")).to_have_text("The first unit is at the scene.")
    expect(page.locator("#said-running")).to_contain_text(f"Stand down {second}?")
    expect(page.locator("#running-accept kbd")).to_have_text("A")
    row = page.locator(f".call-row[data-id='{made['id']}']")
    expect(row.locator(".short")).to_have_text(f"Stand down {second}?")
    sizes = page.evaluate(
        """() => ["verdict-words", "running-words"].map((id) =>
             parseFloat(getComputedStyle(document.getElementById(id)).fontSize))"""
    )
    assert sizes[0] < sizes[1], "what was decided must not outshout what is asked"
    shoot(page, "stand_down")
    expect(page.locator("#running-accept")).to_be_enabled()
    page.keyboard.press(key)
    expect(page.locator("#running-words")).to_have_text(
        re.compile(f"^{second} stood down: accepted by demo, ")
    )
    expect(page.locator("#running-buttons")).to_be_hidden()
    found = dispatch(city, made)
    assert found["state"] in ("stood_down", "ended")  # the first is there: nothing is left to do
    assert found["response"]["action"] == "accept"
    assert city.advice(made)["response"]["action"] == "accept"  # the advice itself is as it was
    shoot(page, "stood_down")


def test_a_stand_down_is_overridden_with_a_reason(
    page: Page, city: Service, made: dict[str, Any]
) -> None:
    second = made["second"]["unit"]
    accepted(page, city, made)
    do(city, made, "primary", "on_scene")
    expect(page.locator("#running-override")).to_be_enabled()
    page.keyboard.press("o")
    expect(page.locator("#override-call")).to_contain_text(f"Stand down {second}?")
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    expect(page.locator("#running-words")).to_have_text(
        re.compile(f"^{second} goes on: overridden by demo, .*: The patient's condition$")
    )
    found = dispatch(city, made)
    assert (found["state"], found["response"]["reason_code"]) == ("running", "patient_condition")
    assert city.advice(made)["response"]["action"] == "accept"


def test_one_is_sent_where_the_first_breaks_down_after_a_stand_down(
    page: Page, city: Service, made: dict[str, Any]
) -> None:
    spare = f"C{made['id'][:6]}"
    station = {"station": made["second"]["depot"], "status": "at_station"}
    city.ask("PUT", f"/v1/fleet/units/{spare}", station)
    accepted(page, city, made)
    place = {key: made["location"][key] for key in ("lon", "lat")}
    city.ask("PUT", f"/v1/fleet/units/{made['primary']['unit']}", place)  # there in a moment
    expect(page.locator("#running-accept")).to_be_enabled()
    page.keyboard.press("a")
    expect(page.locator("#running-words")).to_contain_text("stood down: accepted")
    do(city, made, "primary", "out_of_service")
    expect(page.locator("#running-words")).to_have_text(re.compile("^Send .+ now[?]$"))
    expect(page.locator("#running-reason")).to_contain_text("no other is coming")
    shoot(page, "send_one")
    expect(page.locator("#running-accept")).to_be_enabled()
    page.keyboard.press("a")
    expect(page.locator("#running-words")).to_contain_text("to be sent: accepted by demo")
    found = dispatch(city, made)
    assert (found["state"], found["response"]["action"]) == ("running", "accept")
    expect(page.locator("#running-words")).to_contain_text(found["second"]["unit"])
    city.send("DELETE", f"/v1/fleet/units/{spare}")


def test_a_question_about_another_call_is_seen_and_reached(
    page: Page, city: Service, made: dict[str, Any]
) -> None:
    accepted(page, city, made)
    other = city.call("no_advice")
    expect(page.locator(f".call-row[data-id='{other['id']}']")).to_be_visible()
    expect(page.locator("#call")).to_contain_text(made["call_id"])  # it stays while both drive
    show(page, other)
    do(city, made, "primary", "on_scene")
    expect(page.locator("#next")).to_have_text(f"Stand down {made['second']['unit']}? Press N")
    expect(page.locator("#running")).to_be_hidden()
    page.keyboard.press("a")  # nothing is asked here
    page.keyboard.press("n")
    expect(page.locator("#call")).to_contain_text(made["call_id"])
    expect(page.locator("#running-words")).to_contain_text("Stand down")
    expect(page.locator("#next")).to_be_hidden()
    assert dispatch(city, made)["response"] is None


def test_keys_meant_for_an_advice_that_waits_do_not_answer_its_dispatch(
    page: Page, city: Service, made: dict[str, Any]
) -> None:
    """A newer advice of the call waits for its answer: the question has keys of its own."""
    accepted(page, city, made)
    do(city, made, "primary", "on_scene")
    expect(page.locator("#running-words")).to_contain_text("Stand down")
    station = made["primary"]["depot"]
    more = [
        {"id": f"{made['id'][:8]}-{n}", "station": station, "status": "at_station"} for n in (1, 2)
    ]
    city.ask("PUT", "/v1/fleet/units", more)
    newer = city.call("primary_only", call_id=made["call_id"], depots=None)
    for unit in more:
        city.send("DELETE", f"/v1/fleet/units/{unit['id']}")
    expect(page.locator("#call")).to_contain_text("revision 2")
    expect(page.locator("#running-accept kbd")).to_have_text("D")
    expect(page.locator("#accept")).to_be_enabled()
    page.keyboard.press("a")
    expect(page.locator("#answer-words")).to_contain_text("Accepted by demo")
    assert city.advice(newer)["response"]["action"] == "accept"


def test_a_reply_that_came_too_late_is_said_to_be_so(
    page: Page, city: Service, made: dict[str, Any]
) -> None:
    accepted(page, city, made)
    do(city, made, "primary", "on_scene")
    expect(page.locator("#running-accept")).to_be_enabled()

    def outrun(route: Route) -> None:
        """As if the service said something newer while the key was pressed."""
        body: Any = route.request.post_data_json
        route.continue_(post_data=body | {"advice_id": "0"})

    page.route("**/v1/dispatches/*/response", outrun)
    page.keyboard.press("a")
    expect(page.locator("#running-reason")).to_have_text(
        f"Not recorded: dispatch of call '{made['call_id']}' has a newer advice"
    )
    assert dispatch(city, made)["response"] is None


def test_an_advice_that_expired_while_units_drive_is_under_way(
    page: Page, city: Service, made: dict[str, Any]
) -> None:
    accepted(page, city, made)

    def aged(route: Route) -> None:
        """The service's own list, with an expiry that has passed."""
        answer = route.fetch()
        past = made["created_at"]
        route.fulfill(response=answer, json=[one | {"expires_at": past} for one in answer.json()])

    page.route("**/v1/recommendations?*", aged)
    page.reload()
    show(page, made)
    expect(page.locator("#advice")).to_have_attribute("data-standing", "decided")
    expect(page.locator("#standing")).to_be_hidden()
    words = page.locator("#verdict-words")
    assert "line-through" not in words.evaluate("node => getComputedStyle(node).textDecoration")
    shoot(page, "dispatch_of_an_expired_advice")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("look", [("light", "en-GB"), ("dark", "zh-HK")], ids=lambda look: look[0])
def test_sizes_themes_and_axe(
    flat_browser: Browser,
    city: Service,
    made: dict[str, Any],
    open_desk: Turn,
    size: tuple[int, int],
    look: tuple[str, str],
) -> None:
    theme, locale = look
    page = open_desk(flat_browser, city, size, color_scheme=theme, locale=locale)
    show_open(page, made)
    page.keyboard.press("a")
    do(city, made, "second", "en_route")
    do(city, made, "primary", "on_scene")
    expect(page.locator("#running-accept")).to_be_enabled()
    expect(page.locator("#running")).to_be_in_viewport(ratio=1)
    assert page.evaluate(INSIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shoot(page, f"stand_down_{size[0]}_{theme}")
    assert serious(page) == []
