"""What tests of the service's faults share."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from ideal_dispatch.service.audit.record import Entry
from ideal_dispatch.service.http.answer_schemas import Recommendation
from ideal_dispatch.service.http.app import create_app
from ideal_dispatch.service.recorded_answers import RecordedAnswer
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.pool import SolverPool
from tests.service_town import PATIENCE_S, Local, bearer, local
from tests.waiting import wait_for

ASK = "/v1/recommendations"
PATIENT = {"expiry_s": 3600.0}
"""A server whose answers do not expire, on a machine that is busy otherwise."""


def post(client: Local, body: Any, role: str = "cad") -> httpx.Response:
    return client.post(ASK, json=body, headers=bearer(role))


def advised(client: Local, body: Any) -> Recommendation:
    """The answer, which keeps its form whatever happens."""
    answer = post(client, body)
    assert answer.status_code == 200, answer.text
    return Recommendation.model_validate(answer.json())


def codes(made: Recommendation) -> list[str]:
    return [code for reason in made.degraded for code in (reason.code, *reason.also)]


def words(made: Recommendation, code: str) -> str:
    return next(one.words for one in made.degraded if code in (one.code, *one.also))


@contextmanager
def pooled(settings: ServiceSettings, hangs_s: float = 60.0) -> Iterator[tuple[Local, SolverPool]]:
    """The service with real solver processes, all of them at work."""
    pool = SolverPool(hangs_s)
    pool.begin(settings)
    with local(create_app(settings, pool)) as client:
        wait_for(lambda: len(working(pool)) == settings.server.solvers)
        yield client, pool


def record_patiently(client: Local) -> None:
    """Let answers take as long as they need to come on record, whatever their deadline is."""
    ledger = client.service.ledger
    record = ledger.record

    async def patient(entry: Entry, _: float) -> RecordedAnswer:
        return await record(entry, PATIENCE_S)

    setattr(ledger, "record", patient)  # noqa: B010


def working(pool: SolverPool) -> list[int]:
    return [one._child.process.pid for one in pool._solvers if one._child and one.warm]
