"""Webhooks of real workers: one is killed between a message and the note that it was taken."""

import os
import signal
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from tests.postgres import Postgres
from tests.service_town import Served, Town, serving
from tests.webhook_receiver import SECRET, Receiver, receiving

SECRETS = {"IDEAL_WEBHOOK_SECRETS": f"cad:{SECRET}"}


@pytest.fixture(params=["sqlite", "postgresql"])
def audit(request: pytest.FixtureRequest) -> dict[str, str]:
    if request.param == "sqlite":
        return {}
    postgres: Postgres = request.getfixturevalue("postgres")
    return {"url": postgres.new_database()}


def config(town: Town, request: pytest.FixtureRequest, audit: dict[str, str], url: str) -> Path:
    name = f"{request.node.originalname}-{'pg' if audit else 'sqlite'}.toml"
    path = town.config(name, audit=audit)
    hook = f'[[webhooks]]\nname = "cad"\nurl = "{url}"\nevents = ["recommendation"]\n'
    path.write_text(path.read_text() + hook)
    return path


def asked(town: Town, served: Served, call_id: str) -> str:
    answer = served.post(town.call(call_id))
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def telling(receiver: Receiver, *workers: Served) -> None:
    """Wait until one of them has begun: rows before that are not told."""
    begun = "webhook cad: this worker sends what follows row"
    receiver.wait_for(lambda: any(begun in one.log.read_text() for one in workers))


def test_what_a_killed_worker_sent_is_sent_again(
    town: Town, request: pytest.FixtureRequest, audit: dict[str, str]
) -> None:
    with receiving() as receiver:
        path = config(town, request, audit, receiver.url)
        with serving(path, environment=SECRETS) as served:
            telling(receiver, served)
            ids = [asked(town, served, "before")]
            receiver.wait_for(lambda: receiver.taken)
            worker = served.process.pid
            receiver.on_message = lambda: os.kill(worker, signal.SIGKILL)
            with suppress(httpx.TransportError):  # it may die before it answers
                asked(town, served, "killed")
            served.process.wait(60)
            receiver.wait_for(lambda: len(receiver.came) == 2)
            ids.append(receiver.came[1][0])
            receiver.on_message = lambda: None
        with serving(path, environment=SECRETS) as served:
            ids.append(asked(town, served, "after"))
            receiver.wait_for(lambda: len(receiver.came) == 4)
    assert [id_ for id_, _ in receiver.came] == [ids[0], ids[1], ids[1], ids[2]]
    first, second = (one for one in receiver.messages if one["id"] == ids[1])
    assert first == second
    assert first["call_id"] == "killed"


def test_two_workers_tell_each_advice_once(
    town: Town, request: pytest.FixtureRequest, audit: dict[str, str]
) -> None:
    with receiving() as receiver, ExitStack() as stack:
        path = config(town, request, audit, receiver.url)
        workers = [
            stack.enter_context(serving(path, environment=SECRETS)) for _ in range(2)
        ]  # fmt: skip
        telling(receiver, *workers)
        ids = [asked(town, workers[number % 2], f"two-{number}") for number in range(10)]
        receiver.wait_for(lambda: len(receiver.came) >= 10)
        last = asked(town, workers[0], "last")
        receiver.wait_for(lambda: receiver.came[-1][0] == last)
    assert receiver.taken == [*ids, last]
