"""The same call again, also at another worker: the same answer and one row."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.faults.test_database import recorded
from tests.postgres import Postgres
from tests.service_town import PATIENT, Served, Town, application, counts, local, serving

CALLS = 6


@contextmanager
def workers(config: Path, count: int = 2) -> Iterator[list[Served]]:
    with ExitStack() as stack:
        yield [stack.enter_context(serving(config)) for _ in range(count)]


def test_a_new_body_is_a_revision_and_the_old_one_keeps_its_answer(town: Town) -> None:
    settings = town.settings("same.toml", server=PATIENT)
    with local(application(settings)) as client:
        client.report()
        body = town.call("c")
        first = client.advice(body)
        assert client.advice(body) == first
        revised = client.advice(town.call("c", node=30))
        assert (revised["revision"], revised["state"]) == (2, "open")
        old = client.advice(body)
        assert (old["id"], old["state"]) == (first["id"], "superseded")
        other = client.ask(town.call("c", node=31), headers={"Idempotency-Key": "k"})
        used = client.ask(town.call("c", node=32), headers={"Idempotency-Key": "k"})
        assert (other.status_code, used.status_code) == (200, 409)
        assert used.json()["error"]["code"] == "key_used"
    assert recorded(settings.database_url) == {first["id"], revised["id"], other.json()["id"]}


def test_an_answer_that_expired_is_made_anew(town: Town) -> None:
    settings = town.settings("expired.toml", server={"expiry_s": 0.001})
    with local(application(settings)) as client:
        client.report()
        body = town.call("c")
        made = [client.advice(body) for _ in range(3)]
        assert [one["revision"] for one in made] == [1, 2, 3]
        assert len({one["id"] for one in made}) == 3


def test_no_advice_that_may_pass_is_made_anew(town: Town) -> None:
    with local(application(town.settings("passing.toml", server=PATIENT))) as client:
        body = town.call("c")
        assert client.advice(body)["decision"] == "no_advice"
        client.report(*counts(D0=1, D1=1))
        assert client.advice(body)["decision"] != "no_advice"


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_two_workers_one_call(town: Town, kind: str, request: pytest.FixtureRequest) -> None:
    """The same request at the same moment, from six callers to two workers."""
    name, audit = f"twins-{kind}.toml", {}
    if kind == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        audit = {"url": postgres.new_database()}
    config = town.config(name, server=PATIENT, audit=audit)
    with workers(config) as both, ThreadPoolExecutor(6) as callers:
        both[0].report()
        ids = set[str]()
        for number in range(CALLS):
            body = town.call(f"twin-{number}", idempotency_key="k")
            asks = [callers.submit(both[turn % 2].advice, body) for turn in range(6)]
            found = {ask.result()["id"] for ask in asks}
            assert len(found) == 1
            ids |= found
        for number in range(CALLS):  # two bodies have two numbers, whoever was first
            bodies = [town.call(f"two-{number}", node=node) for node in (65, 30)]
            asks = [callers.submit(both[turn].advice, bodies[turn]) for turn in range(2)]
            made = [ask.result() for ask in asks]
            assert sorted(one["revision"] for one in made) == [1, 2]
            ids |= {one["id"] for one in made}
    assert recorded(audit.get("url", f"sqlite:///{town.folder}/{name}.db")) == ids
