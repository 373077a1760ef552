"""What comes in is checked strictly."""

import json
from datetime import datetime
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from ideal_dispatch.service import requests as schemas
from ideal_dispatch.service.requests import (
    CALL_EXAMPLE,
    ClosureIn,
    CountIn,
    RecommendationRequest,
    ReplyIn,
    UnitInList,
)

LATER = "2026-03-01T09:00:00+08:00"
NEWS: TypeAdapter[Any] = TypeAdapter(list[schemas.News])


def changed(**changes: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(CALL_EXAMPLE)), **changes}


def test_a_call_may_come_without_a_moment() -> None:
    request = RecommendationRequest.model_validate(changed())
    assert request.content()["received_at"] is None  # the service fills it in
    told = RecommendationRequest.model_validate(changed(received_at=LATER))
    assert told.received_at == datetime.fromisoformat(LATER)
    assert told.content()["received_at"] == LATER


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"call_id": ""}, "call_id"),
        ({"call_id": "  "}, "call_id"),
        ({"call_id": "x" * 129}, "call_id"),
        ({"call_id": 5}, "call_id"),
        ({"call_id": "a\0b"}, "call_id"),
        ({"call_id": "a\u202eb"}, "call_id"),
        ({"note": "\ud800"}, "note"),
        ({"received_at": "2026-03-01T08:15:00"}, "received_at"),
        ({"received_at": 1772324100}, "received_at"),
        ({"received_at": "1772324100"}, "received_at"),
        ({"received_at": "2026-02-30T08:15:00Z"}, "received_at"),
        ({"location": {"lon": 22.28, "lat": 114.15}}, "location"),
        ({"location": {"lon": 181.0, "lat": 1.0}}, "location.lon"),
        ({"location": {"lon": "114", "lat": 22.0}}, "location.lon"),
        ({"location": {"lon": True, "lat": 22.0}}, "location.lon"),
        ({"location": {"lon": 114.0}}, "location.lat"),
        ({"location": None}, "location"),
        ({"location": {"lon": 10**400, "lat": 1}}, "location.lon"),
        ({"primary": {"depot": "A", "edges": [1], "polyline": "x"}}, "primary"),
        ({"primary": {"depot": "A", "edges": [1.5]}}, "primary.edges.0"),
        ({"primary": {}}, "primary"),
        ({"primary": {"unit": "\u2067A1"}}, "primary.unit"),
        ({"depots": [{"name": "A", "units": 1}]}, "depots"),
        ({"threshold_s": float("nan")}, "threshold_s"),
        ({"threshold_s": float("inf")}, "threshold_s"),
        ({"context": {"weather": {"rainfall_mm": -1}}}, "context.weather.rainfall_mm"),
    ],
)
def test_a_call_that_cannot_be_understood_is_refused(body: dict[str, Any], where: str) -> None:
    with pytest.raises(ValidationError) as caught:
        RecommendationRequest.model_validate(changed(**body))
    assert schemas.first_fault(caught.value.errors())[0] == where


def test_whole_degrees_are_numbers_too() -> None:
    request = RecommendationRequest.model_validate(changed(location={"lon": 114, "lat": 22}))
    assert request.location.lon == 114.0


def test_units_and_counts_come_in_one_list() -> None:
    made = NEWS.validate_python(schemas.UNITS_EXAMPLE)
    assert [type(one) for one in made] == [UnitInList, CountIn]


@pytest.mark.parametrize(
    ("id_", "kept"),
    [(" A117 ", "A117"), ("1/83-1", "1/83-1"), ("Rettung 7 Süd", "Rettung 7 Süd"), ("救1", "救1")],
)
def test_ids_of_units_may_hold_slashes_and_letters(id_: str, kept: str) -> None:
    assert NEWS.validate_python([{"id": id_}])[0].id == kept


@pytest.mark.parametrize(
    "id_",
    ["", " ", "\t", "A\n1", "A\u202e1", "A\u200f1", "A\u200b1", "A\u061c1", "A\u00ad1",
     "\u2066A1\u2069", "A\x7f", "\ud800", "x" * 65],
)  # fmt: skip
def test_ids_that_are_blank_or_turn_words_around_are_refused(id_: str) -> None:
    with pytest.raises(ValidationError):
        NEWS.validate_python([{"id": id_}])


@pytest.mark.parametrize(
    ("news", "where"),
    [
        ({"depot": "D0", "free": -1}, "0.count.free"),
        ({"depot": "D0", "free": 1, "status": "available"}, "0.count.status"),
        ({"depot": "D0"}, "0.unit.id"),
        ({"id": "A1", "lon": 190.0, "lat": 0.0}, "0.unit.lon"),
        ({"id": "A1", "station": "D0"}, "0.unit.station"),
        ({"id": "A1", "at": 5}, "0.unit.at"),
    ],
)
def test_news_that_cannot_be_understood_name_their_field(news: Any, where: str) -> None:
    with pytest.raises(ValidationError) as caught:
        NEWS.validate_python([news])
    assert schemas.first_fault(caught.value.errors())[0] == where


@pytest.mark.parametrize(
    "closure",
    [
        {},
        {"edges": [1], "line": [[114.0, 22.0], [114.1, 22.0]]},
        {"edges": []},
        {"edges": ["1"]},
        {"line": [[114.0, 22.0]]},
        {"line": [[114.0, 22.0, 5.0], [114.1, 22.0]]},
        {"line": [[22.0, 114.0], [22.0, 114.1]]},
        {"line": [[114.0, 22.0]] * 501},
        {"edges": [1], "until": "2996-03-01T08:00:00"},
        {"edges": [1], "from": LATER, "until": LATER},
        {"edges": [1], "reason": "x" * 201},
        {"edges": [1], "reason": "flood\u202e"},
        {"edges": [1], "why": "parade"},
    ],
)
def test_a_closure_that_cannot_be_understood_is_refused(closure: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ClosureIn.model_validate(closure)


def test_an_override_needs_its_reason() -> None:
    with pytest.raises(ValidationError):
        ReplyIn.model_validate({"action": "override"})
    assert ReplyIn.model_validate({"action": "keep", "question": "q1"}).question == "q1"
