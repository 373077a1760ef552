"""Whatever is sent to the running service: documented answers, no crash, no hang.

The inputs are made from the API's own OpenAPI document, well- and ill-formed.
"""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.service_town import Served, Town, bearer
from tests.waiting import PATIENCE_S

CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
OPERATIONS = [
    ("POST", "/v1/recommendations"),
    ("GET", "/v1/recommendations"),
    ("GET", "/v1/recommendations/{id}"),
    ("POST", "/v1/recommendations/{id}/reply"),
    ("GET", "/v1/units"),
    ("PUT", "/v1/units"),
    ("GET", "/v1/units/{id}"),
    ("PUT", "/v1/units/{id}"),
    ("DELETE", "/v1/units/{id}"),
    ("GET", "/v1/dispatches"),
    ("GET", "/v1/dispatches/{id}"),
    ("GET", "/v1/closures"),
    ("POST", "/v1/closures"),
    ("DELETE", "/v1/closures/{id}"),
    ("GET", "/v1/city"),
    ("GET", "/v1/network.geojson"),
    ("GET", "/v1/languages"),
    ("GET", "/v1/model-card"),
    ("POST", "/v1/clock"),
    ("POST", "/v1/session"),
    ("GET", "/v1/session"),
    ("DELETE", "/v1/session"),
    ("POST", "/v1/incidents/eido"),
    ("GET", "/v1/simulated-calls"),
    ("POST", "/v1/clock"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
]
NOT_FUZZED = {("GET", "/v1/events"), ("POST", "/v1/simulated-calls")}
"""A stream has no end, and simulated calls would come long after."""

NO_INPUT = {
    ("GET", "/v1/model-card"), ("DELETE", "/v1/session"), ("GET", "/healthz"), ("GET", "/readyz"),
    ("GET", "/metrics"), ("GET", "/v1/languages"),
}  # fmt: skip
"""Nothing can be wrong with these."""


@pytest.fixture(scope="module")
def document(served: Served) -> Any:
    return schemathesis.openapi.from_url(f"{served.url}/v1/openapi.json")


def test_every_route_is_fuzzed(document: Any) -> None:
    known = {
        (method.upper(), path)
        for path, methods in document.raw_schema["paths"].items()
        for method in methods
    }
    assert known == set(OPERATIONS) | NOT_FUZZED


CASES = [
    (*operation, mode)
    for operation in OPERATIONS
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    if mode is GenerationMode.POSITIVE or operation not in NO_INPUT
]


@pytest.mark.parametrize(("method", "path", "mode"), CASES)
def test_every_answer_is_a_documented_one(
    document: Any, served: Served, method: str, path: str, mode: GenerationMode
) -> None:
    operation = document[path][method]

    @given(operation.as_strategy(generation_mode=mode))
    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    def check(case: Any) -> None:
        answer = case.call(headers=bearer("admin"), timeout=PATIENCE_S)
        assert answer.status_code < 500 or answer.status_code == 503
        case.validate_response(answer, checks=CHECKS)

    check()


def test_the_service_is_as_well_as_before(served: Served, town: Town) -> None:
    """After all that."""
    assert served.process.poll() is None
    served.report()
    for one in served.read("/v1/closures"):
        served.delete(f"/v1/closures/{one['id']}", headers=bearer()).raise_for_status()
    assert served.advice(town.call("after fuzzing"))["decision"] != "no_advice"
    assert not [line for line in served.lines() if '"unexpected"' in line or "Traceback" in line]
