"""Calls that come at once at two worker processes: units and numbers are given once."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.service_faults import PATIENT
from tests.postgres import Postgres
from tests.service_town import Served, Town, bearer, serving

CALLS = 10
PROMISED = "last_unit_promised"


@pytest.fixture(params=["sqlite", "postgresql"])
def config(town: Town, request: pytest.FixtureRequest) -> Path:
    """Settings of workers that share a database of either kind."""
    audit = {}
    if request.param == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        audit = {"url": postgres.new_database()}
    name = f"{request.node.originalname}-{request.param}.toml"
    return town.config(name, server=PATIENT, audit=audit)


@contextmanager
def workers(config: Path) -> Iterator[list[Served]]:
    with ExitStack() as stack:
        yield [stack.enter_context(serving(config)) for _ in range(2)]


def at_once(asks: list[Callable[[], Any]]) -> list[dict[str, Any]]:
    """Answers to all of them."""
    with ThreadPoolExecutor(len(asks)) as pool:
        answers = [future.result() for future in [pool.submit(ask) for ask in asks]]
    assert [answer.status_code for answer in answers] == [200] * len(asks), answers[0].text
    return [answer.json() for answer in answers]


def last_unit(town: Town, call_id: str) -> dict[str, Any]:
    """A call for which a second is worth a lot, and one unit left."""
    depots = [{"name": "D1", "units": 1}]
    return town.call(call_id, primary={"depot": "D0"}, threshold_s=-1000.0, depots=depots)


def test_many_calls_for_one_last_unit(town: Town, config: Path) -> None:
    """One gets it, and has it after a crash of everybody who knows."""
    with workers(config) as served:
        made = at_once([
            lambda n=n: served[n % 2].post(last_unit(town, f"c-{n}"))  # type: ignore[misc]
            for n in range(CALLS)
        ])  # fmt: skip
        winners = [one for one in made if one["decision"] == "send_second"]
        assert len(winners) == 1
        words = f"the last unit of D1 is promised to call {winners[0]['call_id']}"
        for one in made:
            said = [each["words"] for each in one["degraded"] if each["code"] == PROMISED]
            assert said == ([] if one in winners else [words])
        url = f"{served[0].url}/v1/recommendations/{winners[0]['id']}/response"
        body = {"action": "accept"}
        assert served[0].client.post(url, json=body, headers=bearer()).status_code == 200
        for worker in served:
            os.kill(worker.process.pid, signal.SIGKILL)
            worker.process.wait(30)
    with serving(config) as again:
        made = again.post(last_unit(town, "after")).json()
        assert made["decision"] == "primary_only"
        assert words in [each["words"] for each in made["degraded"]]


def test_two_bodies_for_one_call_have_numbers_of_their_own(town: Town, config: Path) -> None:
    with workers(config) as served:
        for n in range(CALLS):
            made = at_once([
                lambda n=n, which=which: served[which].post(  # type: ignore[misc]
                    town.call(f"c-{n}", node=(65, 30)[which])
                )
                for which in range(2)
            ])  # fmt: skip
            assert sorted(one["revision"] for one in made) == [1, 2]
