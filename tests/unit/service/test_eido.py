"""EIDO documents: references resolved, locations read, tricks refused."""

import copy
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.eido import EXAMPLE, request_of

GML = 'xmlns:gml="http://www.opengis.net/gml" xmlns:gs="http://www.opengis.net/pidflo/1.0"'


def document(pidf: str | None = None, **incident: Any) -> dict[str, Any]:
    made: dict[str, Any] = copy.deepcopy(EXAMPLE)
    made["incidentComponent"].update(incident)
    if pidf is not None:
        made["locationComponent"][0]["locationByValue"] = pidf
    return made


def test_the_example() -> None:
    request = request_of(EXAMPLE)
    assert (request.location.lon, request.location.lat) == (114.15, 22.28)
    assert request.location.accuracy_m is None
    assert request.call_id == "urn:emergency:uid:incidentid:2026-000123:cad.example"
    assert request.received_at.isoformat() == "2026-03-01T08:15:00+08:00"
    assert request.primary is None
    assert request.note == "Cardiac arrest"


@pytest.mark.parametrize(
    "shape",
    [
        f"<gs:Circle {GML}><gml:pos>22.5 114.5</gml:pos><gs:radius>35.0</gs:radius></gs:Circle>",
        f"<gs:Ellipse {GML}><gml:pos>22.5 114.5</gml:pos><gs:semiMajorAxis>35</gs:semiMajorAxis>"
        "<gs:semiMinorAxis>5</gs:semiMinorAxis></gs:Ellipse>",
        f'<?xml version="1.0" encoding="UTF-8"?><gs:Circle {GML}>\n<gml:pos> 22.5\n114.5 3.0'
        "</gml:pos><gs:radius>35</gs:radius></gs:Circle>",
    ],
)
def test_shapes_with_an_accuracy(shape: str) -> None:
    place = request_of(document(shape)).location
    assert (place.lon, place.lat, place.accuracy_m) == (114.5, 22.5, 35.0)


@pytest.mark.parametrize(
    "reference",
    [{"$ref": "location-1"}, [{"$ref": "location-1"}], {"$ref": "#location-1"},
     [{"$ref": "location-1"}, {"$ref": "other"}]],
)  # fmt: skip
def test_references_in_all_their_forms(reference: Any) -> None:
    assert request_of(document(locationReference=reference)).location.lat == 22.28


def test_components_in_a_list_or_alone() -> None:
    made = document()
    made["incidentComponent"] = [made["incidentComponent"]]
    made["locationComponent"] = made["locationComponent"][0]
    assert request_of(made).location.lat == 22.28
    del made["incidentComponent"][0]["locationReference"]
    assert request_of(made).location.lat == 22.28
    made["lastUpdateTimeStamp"] = made["incidentComponent"][0].pop("lastUpdateTimeStamp")
    assert request_of(made).received_at.hour == 8


BOMB = (
    '<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    f"<gml:Point {GML}><gml:pos>&b;</gml:pos></gml:Point>"
)
OUTSIDE = (
    '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    f"<gml:Point {GML}><gml:pos>&f;</gml:pos></gml:Point>"
)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({}, "incidentComponent is missing"),
        (document(incidentTrackingIdentifier=None), "no incidentTrackingIdentifier"),
        (document(incidentTrackingIdentifier="x" * 200), "call_id: String should have at most 128"),
        (document(lastUpdateTimeStamp="yesterday"), "received_at: a moment is written as text"),
        (document(lastUpdateTimeStamp="2026-03-01T08:15:00"), "received_at: .*timezone"),
        (document(locationReference={"$ref": "lost"}), "refers to 'lost', which is not in it"),
        (document(locationReference="location-1"), "locationReference is missing"),
        (document("no xml"), "the PIDF-LO is no XML"),
        (document("<a><b></a>"), "the PIDF-LO is no XML"),
        (document("<a/>"), "has no gml:pos; a civic address alone"),
        (document(f"<gml:Point {GML}><gml:pos>1</gml:pos></gml:Point>"), "no latitude and"),
        (document(f"<gml:Point {GML}><gml:pos>x y</gml:pos></gml:Point>"), "no latitude and"),
        (document(f"<gml:Point {GML}><gml:pos>nan 1</gml:pos></gml:Point>"), "location.lat"),
        (document(f"<gml:Point {GML}><gml:pos>114.1 22.2</gml:pos></gml:Point>"), "swapped"),
        (document(BOMB), "declares a document type; entities are not read"),
        (document(OUTSIDE), "declares a document type; entities are not read"),
        (document("<a>" + "x" * 200_001 + "</a>"), "more than 200,000 bytes"),
    ],
)
def test_what_cannot_be_used_is_one_line(made: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        request_of(made)
    assert "\n" not in str(caught.value)


def test_a_location_by_reference_is_not_fetched() -> None:
    made = document()
    made["locationComponent"][0] = {"$id": "location-1", "locationByReference": "https://lis/x"}
    with pytest.raises(InputError, match="a reference is not fetched"):
        request_of(made)


NAMES = st.sampled_from(
    ["$id", "$ref", "incidentComponent", "locationComponent", "locationReference",
     "locationByValue", "incidentTrackingIdentifier", "lastUpdateTimeStamp", "location-1"]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | NAMES
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5)
)


@given(st.dictionaries(NAMES, JSON, max_size=6), st.booleans())
def test_any_document_is_read_or_refused(part: dict[str, Any], whole: bool) -> None:
    made = {**document(), **part} if whole else part
    with suppress(InputError):
        request_of(made)


@given(st.text(max_size=60))
def test_any_text_in_place_of_a_location(text: str) -> None:
    with suppress(InputError):
        request_of(document(text))
