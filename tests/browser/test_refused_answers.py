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

    def outrun(route: Route) -> None:
        """As if the newer advice came while the key was pressed."""
        route.continue_(url=route.request.url.replace(second["id"], first["id"]))

    desk.route("**/response", outrun)
    desk.keyboard.press("a")
    expect(desk.locator("#answer-words")).to_have_text(
        f"Not recorded: call '{first['call_id']}' has a newer advice, revision 2; answer that one"
    )
    expect(desk.locator("#accept")).to_be_enabled()
    assert service.advice(first)["response"] is None
