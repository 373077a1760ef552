"""Advice that comes late, from a database that was away, is old news and told as such."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ideal_dispatch.service.audit.record import Entry
from ideal_dispatch.service.audit.store import AuditStore
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import Service, Turn, shoot, show

pytestmark = pytest.mark.slow

COUNT_TONES = """() => {
  window.tones = 0;
  const made = AudioContext.prototype.createOscillator;
  AudioContext.prototype.createOscillator = function () {
    window.tones += 1;
    return made.call(this);
  };
}"""


def listen(page: Page) -> None:
    """Switch the sound on and count its tones from now on."""
    page.keyboard.press("s")
    expect(page.locator("#sound")).to_have_attribute("aria-pressed", "true")
    page.evaluate(COUNT_TONES)


def replayed(service: Service, made: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Another worker's advice, which reaches the database only now."""
    answer = {key: value for key, value in made.items() if key != "response"}
    answer |= {"id": uuid.uuid4().hex, **changes}
    body = {"request_sha256": "0", "answer": answer}
    id_, at = answer["id"], datetime.now(UTC)
    entry = Entry("recommendation", answer["call_id"], body, at=at, key=f"key:{id_}", id=id_)
    store = AuditStore(f"sqlite:///{service.folder / 'ideal-dispatch' / 'demo.db'}")
    store.append([entry])
    store.close()
    return answer


def ago(minutes: float) -> str:
    return (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()


def joined_the_list(page: Page, old: dict[str, Any], words: str) -> None:
    """It is in the list, as old; nothing else tells of it."""
    row = page.locator(f".call-row[data-id='{old['id']}']")
    expect(row).to_have_attribute("data-standing", "old")
    expect(row.locator(".state")).to_have_text(words)
    assert row.get_attribute("data-new") is None
    assert row.get_attribute("aria-current") is None
    expect(page.locator("#next")).to_be_hidden()
    assert page.evaluate("window.tones") == 0


@pytest.mark.parametrize("decision", ["send_second", "no_advice"])
def test_an_advice_that_has_expired_when_it_comes_only_joins_the_list(
    flat_browser: Browser, service: Service, open_desk: Turn, decision: str
) -> None:
    made, shown = service.call(decision), service.call("no_advice")
    page = open_desk(flat_browser, service)
    listen(page)
    show(page, shown)  # which the desk leaves for news
    page.locator("#follow").set_checked(True)
    name = f"late-{made['call_id']}"
    old = replayed(service, made, call_id=name, created_at=ago(9), expires_at=ago(7))
    joined_the_list(page, old, "expired")
    expect(page.locator("#call")).to_contain_text(shown["call_id"])
    shoot(page, f"old_news_{decision}")
    news = service.call("send_second")
    expect(page.locator("#call")).to_contain_text(news["call_id"])
    assert page.evaluate("window.tones") == 2


def test_an_advice_that_was_replaced_when_it_comes_only_joins_the_list(
    flat_browser: Browser, service: Service, open_desk: Turn
) -> None:
    """The first answer to the call that is shown, from a worker that was cut off."""
    shown = service.call("primary_only")
    page = open_desk(flat_browser, service)
    listen(page)
    show(page, shown)
    old = replayed(service, shown, decision="send_second", created_at=ago(0.5))
    joined_the_list(page, old, "replaced")
    expect(page.locator("#verdict-words")).to_have_text("Primary is enough")
    expect(page.locator("#advice")).to_have_attribute("data-standing", "current")
    expect(page.locator("#accept")).to_be_enabled()


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
    expect(words).to_have_text("No advice")
    assert "line-through" not in words.evaluate("node => getComputedStyle(node).textDecoration")
    row = page.locator(f".call-row[data-id='{made['id']}']")
    expect(row).to_have_attribute("data-standing", "old")
    shoot(page, "expired_no_advice")
