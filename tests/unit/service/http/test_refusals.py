"""What clients hear of faults: enough to act on, nothing about the machines behind."""

import logging
from collections.abc import Iterator

import pytest

from tests.service_town import Local, Town, application, bearer, local

ASK = "/v1/recommendations"


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    """A service whose database file is none."""
    settings = town.settings("broken.toml")
    (town.folder / "broken.toml.db").write_bytes(b"no database" * 1000)
    with local(application(settings)) as opened:
        yield opened


def test_a_database_that_fails_is_not_named(
    client: Local, town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "ideal_dispatch.service.http.refusals"):
        answer = client.get(f"{ASK}/{'0' * 32}", headers=bearer())
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert answer.json()["error"] == {
        "code": "audit_unavailable",
        "message": "the audit's database does not answer; ask again",
        "where": None,
    }
    assert "broken.toml.db" in caplog.text  # the log says which


def test_a_spool_that_fails_is_not_named(client: Local, town: Town) -> None:
    client.service.ledger.writer.close()  # nothing takes entries any more
    answer = client.post(ASK, json=town.call("unrecorded"), headers=bearer("cad"))
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "not_recorded"
    assert answer.json()["error"]["message"] == "it could not be recorded in time; ask again"
