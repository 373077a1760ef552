"""What comes in is checked strictly."""

import json
import pickle
from typing import Any

import pytest
from pydantic import ValidationError

from ideal_dispatch.service.http.schemas import REQUEST_EXAMPLE, RecommendationRequest


def changed(**changes: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(REQUEST_EXAMPLE)), **changes}


def test_the_example_is_valid() -> None:
    request = RecommendationRequest.model_validate(changed())
    assert request.received_at.utcoffset() is not None
    assert request.model_dump(mode="json")["received_at"] == "2026-03-01T08:15:00+08:00"


@pytest.mark.parametrize(
    ("body", "where", "words"),
    [
        ({"call_id": ""}, "call_id", "at least 1 character"),
        ({"call_id": "x" * 129}, "call_id", "at most 128"),
        ({"call_id": 5}, "call_id", "valid string"),
        ({"call_id": "a\0b"}, "call_id", "a NUL"),
        ({"note": "\ud800"}, "note", "half a character"),
        ({"received_at": "2026-03-01T08:15:00"}, "received_at", "timezone"),
        ({"received_at": 1772324100}, "received_at", "written as text"),
        ({"received_at": "1772324100"}, "received_at", "written as text"),
        ({"received_at": "2026-02-30T08:15:00Z"}, "received_at", "day value"),
        ({"location": {"lon": 22.28, "lat": 114.15}}, "location", "are they swapped?"),
        ({"location": {"lon": 181.0, "lat": 1.0}}, "location.lon", "less than or equal to 180"),
        ({"location": {"lon": "114", "lat": 22.0}}, "location.lon", "valid number"),
        ({"location": {"lon": True, "lat": 22.0}}, "location.lon", "valid number"),
        ({"location": {"lon": 114.0}}, "location.lat", "required"),
        ({"location": None}, "location", "valid dictionary"),
        ({"primary": {"depot": "A", "edges": [1], "polyline": "x"}}, "primary", "give one of"),
        ({"primary": {"depot": "A", "edges": [1.5]}}, "primary.edges.0", "valid integer"),
        ({"depots": [{"name": "A", "units": -1}]}, "depots.0.units", "greater than or equal"),
        ({"threshold_s": float("nan")}, "threshold_s", "finite"),
        ({"threshold_s": float("inf")}, "threshold_s", "finite"),
        ({"context": {"weather": {"rainfall_mm": -1}}}, "context.weather.rainfall_mm", "greater"),
        ({"surprise": 1}, "surprise", "not permitted"),
        ({"location": {"lon": 10**400, "lat": 1}}, "location.lon", ""),
    ],
)
def test_what_makes_no_sense_is_refused(body: dict[str, Any], where: str, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        RecommendationRequest.model_validate(changed(**body))
    first = caught.value.errors()[0]
    assert ".".join(map(str, first["loc"])) == where
    assert words in first["msg"]


def test_whole_degrees_are_numbers_too() -> None:
    request = RecommendationRequest.model_validate(changed(location={"lon": 114, "lat": 22}))
    assert request.location.lon == 114.0


def test_a_call_for_a_solver_is_plain() -> None:
    """So that a solver's process loads nothing for it."""
    request = RecommendationRequest.model_validate(changed())
    assert b"pydantic" not in pickle.dumps(request.call())
    assert request.call().received_at == request.received_at
