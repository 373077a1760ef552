"""An answer that has expired is old, and the desk shows it as such."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.conftest import Service, Turn, shoot, show

pytestmark = pytest.mark.slow


def test_no_advice_expires_too(flat_browser: Browser, service: Service, open_desk: Turn) -> None:
    """Its reason held minutes ago; struck out it would say that there is an advice."""
    made = service.call("no_advice")

    def hurried(route: Route) -> None:
        """The service's own list, with an expiry that is seconds away instead of minutes."""
        answer = route.fetch()
        soon = (datetime.now(UTC) + timedelta(seconds=3)).isoformat()
        route.fulfill(response=answer, json=[one | {"expires_at": soon} for one in answer.json()])

    page = open_desk(flat_browser, service, meddle=("**/v1/recommendations?*", hurried))
    show(page, made)
    expect(page.locator("#advice")).to_have_attribute("data-standing", "expired")
    expect(page.locator("#standing")).to_have_text("Expired: the CAD may ask again")
    words = page.locator("#verdict-words")
    expect(words).to_contain_text("No advice")
    assert "line-through" not in words.evaluate("node => getComputedStyle(node).textDecoration")
    row = page.locator(f".call-row[data-id='{made['id']}']")
    expect(row).to_have_attribute("data-standing", "old")
    shoot(page, "expired_no_advice")
