"""The running dispatch on the desk: who is expected when, what is asked, what was done."""

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import (
    INSIDE,
    LOOKS,
    SIZES,
    Service,
    Turn,
    serious,
    shoot,
    show,
    show_open,
)

pytestmark = pytest.mark.slow

Do = Callable[[str, str], None]


@pytest.fixture
def made(city: Service, trio: tuple[str, str, str]) -> dict[str, Any]:
    """A call whose second is advised; the first unit of the trio is its primary."""
    made = city.call("send_second", primary={"unit": trio[0]})
    assert made["second"]["unit"] == trio[2]
    return made


@pytest.fixture
def do(city: Service, made: dict[str, Any]) -> Do:
    """A unit of the call reports a status."""

    def do(role: str, status: str) -> None:
        city.tell({"id": made[role]["unit"], "status": status, "call_id": made["call_id"]})

    return do


@pytest.fixture
def page(browser: Browser, city: Service, made: dict[str, Any], open_desk: Turn) -> Page:
    """A desk that is opened after the call came in."""
    return open_desk(browser, city)


def accepted(page: Page, made: dict[str, Any], do: Do) -> None:
    """Accept the advice, and let both leave."""
    show_open(page, made)
    page.keyboard.press("a")
    expect(page.locator("#running")).to_be_visible()
    for role in ("primary", "second"):
        do(role, "en_route")


def asked(page: Page, made: dict[str, Any], do: Do) -> None:
    """The first is there, so that the desk asks whether to stand the second down."""
    accepted(page, made, do)
    do("primary", "on_scene")
    expect(page.locator("#running-do")).to_be_enabled()


def dispatch(city: Service, made: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = city.ask("GET", f"/v1/dispatches/{made['id']}")
    return found


def test_both_are_expected_and_the_time_runs_down(page: Page, made: dict[str, Any], do: Do) -> None:
    show(page, made)
    expect(page.locator("#running")).to_be_hidden()
    accepted(page, made, do)
    expect(page.locator("#running-words")).to_have_text(re.compile(r"^Under way since \d\d:\d\d$"))
    expect(page.locator("#verdict-words")).to_have_text("Advice was: Send a second ambulance")
    expect(page.locator("#expiry")).to_be_hidden()
    rows = page.locator("#running-expected > div")
    expect(rows).to_have_count(3)
    for row, role in ((rows.nth(0), "primary"), (rows.nth(1), "second")):
        expect(row.locator("dt")).to_have_text(f"{made[role]['unit']} arrives in")
        expect(row.locator("dd")).to_have_text(re.compile(r"^\d+:\d\d$"))
        expect(page.locator(f".who.{role} .arrives")).to_be_hidden()  # the dispatch's are newer
    expect(rows.nth(2).locator("dt")).to_have_text(f"{made['second']['unit']} arrives first")
    expect(rows.nth(2).locator("dd")).to_have_text(re.compile(r"^(over |under )?\d+ %$"))
    expect(page.locator("#running-buttons")).to_be_hidden()
    before = rows.nth(0).locator("dd").inner_text()
    expect(rows.nth(0).locator("dd")).not_to_have_text(before)
    state = page.locator(f".call-row[data-id='{made['id']}'] .state")
    expect(state).to_have_text("under way")
    shoot(page, "dispatch_running")


@pytest.mark.parametrize("key", ["a", "d"])
def test_a_stand_down_is_asked_and_done(
    page: Page, city: Service, made: dict[str, Any], do: Do, key: str
) -> None:
    second = made["second"]["unit"]
    asked(page, made, do)
    words, reason = page.locator("#running-words"), page.locator("#running-reason")
    expect(words).to_have_text(f"Stand down {second}?")
    expect(reason).to_have_text("The first unit is at the scene.")
    expect(page.locator("#said-running")).to_contain_text(f"Stand down {second}?")
    expect(page.locator("#running-do kbd")).to_have_text("A")
    row = page.locator(f".call-row[data-id='{made['id']}']")
    expect(row.locator(".short")).to_have_text(f"Stand down {second}?")
    sizes = page.evaluate(
        """() => ["verdict-words", "running-words"].map((id) =>
             parseFloat(getComputedStyle(document.getElementById(id)).fontSize))"""
    )
    assert sizes[0] < sizes[1], "what was decided must not outshout what is asked"
    shoot(page, "stand_down")
    page.keyboard.press(key)
    expect(words).to_have_text(re.compile(f"^{second} was stood down$|^Ended .* was first$"))
    expect(reason).to_contain_text("Stood down by demo")
    expect(reason).not_to_contain_text("on their way")
    expect(page.locator("#running-buttons")).to_be_hidden()
    found = dispatch(city, made)
    assert found["state"] in ("stood_down", "ended")  # the first is there: nothing is left to do
    assert found["reply"]["action"] == "stand_down"
    assert city.advice(made)["reply"]["action"] == "accept"  # the advice itself stays
    expect(row.locator(".state")).to_have_text("ended")
    expect(row).to_have_attribute("data-standing", "old")
    shoot(page, "stood_down")


def test_an_older_view_does_not_replace_a_newer_one(
    page: Page, made: dict[str, Any], do: Do
) -> None:
    """The answer to a question after the reply may come later than the event of the end."""
    asked(page, made, do)

    def late(route: Route) -> None:
        answer = route.fetch()
        time.sleep(4)
        older = {"state": "stood_down", "ended_at": None, "as_of": made["asked_at"]}
        route.fulfill(response=answer, json=answer.json() | older)

    page.route("**/v1/dispatches/*", late)
    with page.expect_response("**/v1/dispatches/*"):
        page.keyboard.press("a")
    page.wait_for_timeout(500)
    state = page.locator(f".call-row[data-id='{made['id']}'] .state")
    expect(state).to_have_text("ended")


def test_a_second_that_is_kept_goes_on(
    page: Page, city: Service, made: dict[str, Any], do: Do
) -> None:
    asked(page, made, do)
    page.keyboard.press("o")
    expect(page.locator("#running-reason")).to_contain_text("Kept by demo")
    expect(page.locator("#running-words")).to_contain_text("Under way since")
    found = dispatch(city, made)
    assert (found["state"], found["reply"]["action"]) == ("running", "keep")
    page.locator("#recall").click()  # and may be stood down at any time
    expect(page.locator("#running-reason")).to_contain_text("Stood down by demo")


def test_one_is_sent_where_the_first_breaks_down_after_a_stand_down(
    page: Page, city: Service, made: dict[str, Any], do: Do
) -> None:
    accepted(page, made, do)
    place = {key: made["location"][key] for key in ("lon", "lat")}
    city.tell({"id": made["primary"]["unit"], **place})  # there in a moment
    expect(page.locator("#running-do")).to_be_enabled()
    page.keyboard.press("a")
    expect(page.locator("#running-words")).to_contain_text("was stood down")
    do("primary", "out_of_service")
    expect(page.locator("#running-words")).to_have_text(re.compile("^Send .+ now[?]$"))
    expect(page.locator("#running-reason")).to_contain_text("no other is coming")
    shoot(page, "send_one")
    expect(page.locator("#running-do")).to_be_enabled()
    page.keyboard.press("a")
    expect(page.locator("#running-reason")).to_contain_text("Sent by demo")
    found = dispatch(city, made)
    assert found["state"] == "running"
    expect(page.locator("#running-expected .second")).to_contain_text(found["second"]["unit"])


def test_a_question_about_another_call_is_seen_and_reached(
    page: Page, city: Service, made: dict[str, Any], do: Do
) -> None:
    accepted(page, made, do)
    other = city.call("no_advice")
    expect(page.locator(f".call-row[data-id='{other['id']}']")).to_be_visible()
    expect(page.locator("#call")).to_contain_text(made["call_id"])  # it stays while both drive
    show(page, other)
    do("primary", "on_scene")
    expect(page.locator("#next")).to_have_text(f"Stand down {made['second']['unit']}? Press N")
    expect(page.locator("#running")).to_be_hidden()
    page.keyboard.press("a")  # nothing is asked here
    page.keyboard.press("n")
    expect(page.locator("#call")).to_contain_text(made["call_id"])
    expect(page.locator("#running-words")).to_contain_text("Stand down")
    expect(page.locator("#next")).to_be_hidden()
    assert dispatch(city, made)["reply"] is None


def test_keys_meant_for_an_advice_that_waits_do_not_answer_its_dispatch(
    page: Page, city: Service, made: dict[str, Any], do: Do, trio: tuple[str, str, str]
) -> None:
    """A newer advice of the call waits for its answer: the question has keys of its own."""
    asked(page, made, do)
    newer = city.call("primary_only", call_id=made["call_id"], primary={"unit": trio[1]})
    expect(page.locator("#call")).to_contain_text(f"revision {newer['revision']}")
    expect(page.locator("#running-do kbd")).to_have_text("D")
    expect(page.locator("#accept")).to_be_enabled()
    page.keyboard.press("a")
    expect(page.locator("#verdict-words")).to_contain_text("Accepted by demo")
    assert city.advice(newer)["reply"]["action"] == "accept"
    assert dispatch(city, made)["reply"] is None


def test_a_reply_that_came_too_late_is_said_to_be_so(
    page: Page, city: Service, made: dict[str, Any], do: Do
) -> None:
    asked(page, made, do)

    def outrun(route: Route) -> None:
        """As if another desk replied while the key was pressed here."""
        city.ask("POST", f"/v1/recommendations/{made['id']}/reply", {"action": "keep"})
        route.continue_()

    page.route("**/reply", outrun, times=1)
    page.keyboard.press("a")
    expect(page.locator("#running-reason")).to_contain_text("Not recorded: ")
    assert dispatch(city, made)["reply"]["action"] == "keep"


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look[0])
def test_sizes_themes_and_axe(
    browser: Browser,
    city: Service,
    made: dict[str, Any],
    do: Do,
    open_desk: Turn,
    size: tuple[int, int],
    look: tuple[str, str],
) -> None:
    theme, locale = look
    page = open_desk(browser, city, size, color_scheme=theme, locale=locale)
    show_open(page, made)
    expect(page.locator("#map")).to_have_attribute("data-drawn", "yes")
    expect(page.locator("html")).to_have_attribute("data-theme", theme)
    assert page.evaluate(INSIDE) == []
    assert serious(page) == []
    shoot(page, f"desk_{size[0]}_{theme}")
    asked(page, made, do)
    expect(page.locator("#running")).to_be_in_viewport(ratio=1)
    assert page.evaluate(INSIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shoot(page, f"stand_down_{size[0]}_{theme}")
    assert serious(page) == []
