"""An answer that the service refuses is said to be so, with the service's own words."""

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Service, show_open

pytestmark = pytest.mark.slow


def test_an_answer_to_a_replaced_advice_is_shown_as_not_recorded(
    desk: Page, service: Service
) -> None:
    first = service.call("primary_only")
    second = service.call("send_second", call_id=first["call_id"])
    show_open(desk, second)
    # both have the call's name: an answer to what the desk showed before would be another test
    row = desk.locator(f".call-row[data-id='{second['id']}']")
    expect(row).to_have_attribute("aria-current", "true")

    asked = []

    def outrun(route: Route) -> None:
        """As if the newer advice came while the key was pressed."""
        asked.append(route.request.url)
        route.continue_(url=route.request.url.replace(second["id"], first["id"]))

    desk.route("**/response", outrun)
    with desk.expect_response("**/response") as answered:
        desk.keyboard.press("a")
    assert [second["id"] in url for url in asked] == [True]  # what the page asked for, once
    assert answered.value.status == 409
    revision = second["revision"]  # the third on a machine so busy that there was a late one
    expect(desk.locator("#answer-words")).to_have_text(
        f"Not recorded: call '{first['call_id']}' has a newer advice, revision {revision}; "
        "answer that one"
    )
    expect(desk.locator("#accept")).to_be_enabled()
    assert service.advice(first)["response"] is None
