"""EIDO documents: references resolved, locations read, tricks refused."""

import copy
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideal_dispatch.errors import InputError
from ideal_dispatch.service import clock
from ideal_dispatch.service.http.eido import news_of, request_of
from ideal_dispatch.service.units.statuses import StatusCodes
from tests.service_town import EIDO

WGS84 = "urn:ogc:def:crs:EPSG::4326"
METRE = "urn:ogc:def:uom:EPSG::9001"
SPACES = 'xmlns:gml="http://www.opengis.net/gml" xmlns:gs="http://www.opengis.net/pidflo/1.0"'
GML = f'{SPACES} srsName="{WGS84}"'
POS = "<gml:pos>22.5 114.5</gml:pos>"
RADIUS = f'<gs:radius uom="{METRE}">35</gs:radius>'


def point(inside: str = POS, system: str = WGS84) -> str:
    return f'<gml:Point {SPACES} srsName="{system}">{inside}</gml:Point>'


def circle(inside: str) -> str:
    return f"<gs:Circle {GML}>{inside}</gs:Circle>"


def document(pidf: str | None = None, **incident: Any) -> dict[str, Any]:
    made: dict[str, Any] = copy.deepcopy(EIDO)
    made["incidentComponent"].update(incident)
    if pidf is not None:
        made["locationComponent"][0]["locationByValue"] = pidf
    return made


def test_the_example() -> None:
    request = request_of(EIDO)
    assert (request.location.lon, request.location.lat) == (117.2393, 21.5845)
    assert request.location.accuracy_m is None
    assert request.call_id == "urn:emergency:uid:incidentid:2026-000123:cad.example"
    assert request.received_at.isoformat() == "2026-03-01T08:15:00+08:00"
    assert request.primary is not None
    assert (request.primary.depot, request.primary.unit) == ("Kelp Point", "A117")
    assert request.note == "Cardiac arrest"


@pytest.mark.parametrize(
    "shape",
    [
        circle(f'{POS}<gs:radius uom="{METRE}"> 35.0\n</gs:radius>'),
        f'<gs:Ellipse {GML}>{POS}<gs:semiMajorAxis uom="{METRE}">35</gs:semiMajorAxis>'
        f'<gs:semiMinorAxis uom="{METRE}">5</gs:semiMinorAxis></gs:Ellipse>',
        f'<?xml version="1.0" encoding="UTF-8"?><gs:Circle {GML.replace("4326", "4979")}>\n'
        f"<gml:pos> 22.5\n114.5 3.0</gml:pos>{RADIUS}</gs:Circle>",
    ],
)
def test_shapes_with_an_accuracy(shape: str) -> None:
    place = request_of(document(shape)).location
    assert (place.lon, place.lat, place.accuracy_m) == (114.5, 22.5, 35.0)


@pytest.mark.parametrize(
    "system", [WGS84, "urn:ogc:def:crs:EPSG::4979", "urn:ogc:def:crs:EPSG:6.6:4326"]
)
def test_systems_with_latitude_first(system: str) -> None:
    place = request_of(document(point(system=system))).location
    assert (place.lon, place.lat, place.accuracy_m) == (114.5, 22.5, None)


def test_the_first_shape_counts() -> None:
    """A PIDF-LO with many places names the best first; a worse one is no way around it."""
    other = "<gml:pos>1 2</gml:pos>"
    both = f"<a>{point()}{point(other)}</a>"
    assert request_of(document(both)).location.lat == 22.5
    with pytest.raises(InputError, match="the location's shape is Polygon"):
        request_of(document(f"<a><gml:Polygon {GML}>{other}</gml:Polygon>{point()}</a>"))


def test_a_position_of_another_system_than_its_shape() -> None:
    inside = '<gml:pos srsName="urn:ogc:def:crs:OGC:1.3:CRS84">22.5 14.5</gml:pos>'
    with pytest.raises(InputError, match="CRS84'; urn:ogc:def:crs:EPSG::4326 or"):
        request_of(document(point(inside)))


@pytest.mark.parametrize(
    "reference",
    [{"$ref": "location-1"}, [{"$ref": "location-1"}], {"$ref": "#location-1"},
     [{"$ref": "location-1"}, {"$ref": "other"}]],
)  # fmt: skip
def test_references_in_all_their_forms(reference: Any) -> None:
    assert request_of(document(locationReference=reference)).location.lat == 21.5845


def test_components_in_a_list_or_alone() -> None:
    made = document()
    made["incidentComponent"] = [made["incidentComponent"]]
    made["locationComponent"] = made["locationComponent"][0]
    assert request_of(made).location.lat == 21.5845
    del made["incidentComponent"][0]["locationReference"]
    assert request_of(made).location.lat == 21.5845
    made["lastUpdateTimeStamp"] = made["incidentComponent"][0].pop("lastUpdateTimeStamp")
    assert request_of(made).received_at.hour == 8


def _with_resources(*resources: dict[str, Any]) -> dict[str, Any]:
    made = document()
    named = [{"$id": f"r{number}", **one} for number, one in enumerate(resources)]
    made["emergencyResourceComponent"] = named
    made["dispatchComponent"] = [
        {"$id": f"d{number}", "emergencyResourceReference": [{"$ref": f"#r{number}"}]}
        for number in range(len(named))
    ]
    return made


AT_KELP = {"unitLocationReference": {"$ref": "location-2"}}


@pytest.mark.parametrize(
    ("resources", "primary"),
    [
        ([{"emergencyResourceName": "A117", **AT_KELP}], ("Kelp Point", "A117")),
        ([{"emergencyResourceName": "Medic 9"}], ("Medic 9", "Medic 9")),
        ([AT_KELP], ("Kelp Point", None)),
        ([{"emergencyResourceName": "Car 54"}, {"emergencyResourceName": "A1", **AT_KELP}],
         ("Kelp Point", "A1")),
        ([{"emergencyResourceName": "Medic 9"}, {"emergencyResourceName": "A1", **AT_KELP}],
         ("Medic 9", "Medic 9")),
        ([{"emergencyResourceName": "Car 54"}], None),
        ([{"emergencyResourceName": 7, "unitLocationReference": {"$ref": "lost"}}], None),
        ([{"emergencyResourceName": "Car 54", "unitLocationReference": "location-2"}], None),
        ([], None),
    ],
)  # fmt: skip
def test_the_primary_is_the_first_dispatched_unit_of_a_depot(
    resources: list[dict[str, Any]], primary: tuple[str, str | None] | None
) -> None:
    request = request_of(_with_resources(*resources), {"Kelp Point", "Medic 9"}.__contains__)
    sent = request.primary and (request.primary.depot, request.primary.unit)
    assert sent == primary


@pytest.mark.parametrize(
    ("resources", "primary"),
    [
        ([{"emergencyResourceName": "A117"}], (None, "A117")),
        ([{"emergencyResourceName": "A117", **AT_KELP}], (None, "A117")),
        ([{"emergencyResourceName": "Car 54"}, {"emergencyResourceName": "A117"}],
         (None, "A117")),
        ([{"emergencyResourceName": "A9", **AT_KELP}, {"emergencyResourceName": "A117"}],
         ("Kelp Point", "A9")),
        ([{"emergencyResourceName": ["A117"]}], None),
    ],
)  # fmt: skip
def test_a_unit_of_the_fleet_needs_no_depot(
    resources: list[dict[str, Any]], primary: tuple[str | None, str] | None
) -> None:
    document = _with_resources(*resources)
    request = request_of(document, {"Kelp Point"}.__contains__, {"A117"}.__contains__)
    sent = request.primary and (request.primary.depot, request.primary.unit)
    assert sent == primary


def test_a_resource_that_was_not_dispatched_is_no_primary() -> None:
    made = document()
    del made["dispatchComponent"]
    assert request_of(made).primary is None
    made["dispatchComponent"] = {"emergencyResourceReference": {"$ref": "lost"}}
    assert request_of(made).primary is None


# --- news of units ---------------------------------------------------------------------


def stamp(seconds_ago: float = 0.0) -> str:
    return (clock.now() - timedelta(seconds=seconds_ago)).isoformat()


def told(document: dict[str, Any], codes: StatusCodes | None = None) -> list[dict[str, Any]]:
    """News without their times."""
    news = news_of(document, {"A117", "A118"}.__contains__, codes)
    return [{name: one[name] for name in one if name != "at"} for one in news]


def unit(name: str = "A117", **more: Any) -> dict[str, Any]:
    return {"emergencyResourceName": name, "lastUpdateTimeStamp": stamp(10), **more}


CALL = EIDO["incidentComponent"]["incidentTrackingIdentifier"]


def _with_place(pidf: str, **more: Any) -> dict[str, Any]:
    made = _with_resources(unit(unitLocationReference={"$ref": "here"}))
    made["locationComponent"].append({"$id": "here", "locationByValue": pidf, **more})
    return made


@pytest.mark.parametrize(
    ("more", "news"),
    [
        ({"primaryUnitStatusRegistryText": "En Route"}, {"status": "en_route", "call_id": CALL}),
        ({"secondaryUnitStatusRegistryText": ["OnScene"]},
         {"status": "on_scene", "call_id": CALL}),
        ({"primaryUnitStatusRegistryText": "Available"}, {"status": "available"}),
        ({"unitStatusInternal": ["?", "7"], "secondaryUnitStatusRegistryText": "On scene",
          "primaryUnitStatusRegistryText": "Assigned"},
         {"status": "transporting", "call_id": CALL}),
        ({"unitStatusInternal": ["5"], "secondaryUnitStatusRegistryText": "On scene"},
         {"status": "on_scene", "call_id": CALL}),
    ],
)  # fmt: skip
def test_the_status_of_a_unit(more: dict[str, Any], news: dict[str, Any]) -> None:
    """The centre's own code comes first; a word that nobody knows is passed over."""
    assert told(_with_resources(unit(**more)), StatusCodes("fms")) == [{"id": "A117", **news}]


def test_a_unit_that_was_not_dispatched_is_on_no_call() -> None:
    made = _with_resources(unit(primaryUnitStatusRegistryText="En route"))
    del made["dispatchComponent"]
    assert told(made) == [{"id": "A117", "status": "en_route"}]


def test_the_place_of_a_unit_and_its_status_each_have_their_time() -> None:
    made = _with_place(point(), lastUpdateTimeStamp=stamp(3))
    assert told(made) == [{"id": "A117", "lon": 114.5, "lat": 22.5}]
    made["emergencyResourceComponent"][0]["primaryUnitStatusRegistryText"] = "free"
    status, place = news_of(made, {"A117"}.__contains__)
    assert (status["status"], place["lon"]) == ("available", 114.5)
    assert status["at"] < place["at"]
    del made["locationComponent"][-1]["lastUpdateTimeStamp"]
    (both,) = news_of(made, {"A117"}.__contains__)
    assert (both["status"], both["lon"], both["at"]) == ("available", 114.5, status["at"])


def test_units_of_others_are_none_of_ours() -> None:
    made = _with_resources(
        unit("Car 54", primaryUnitStatusRegistryText="free"),
        unit("A118", primaryUnitStatusRegistryText="free"),
    )
    assert told(made) == [{"id": "A118", "status": "available"}]


@pytest.mark.parametrize("at", [None, "", "soon", 3, "2026-03-01T08:15:00", 90_000.0, -600.0])
def test_news_without_a_time_of_today_are_left_out(at: Any) -> None:
    at = stamp(at) if isinstance(at, float) else at  # so many seconds ago
    made = _with_resources(unit(primaryUnitStatusRegistryText="free", lastUpdateTimeStamp=at))
    assert told(made) == []


def test_the_time_of_the_document_is_that_of_its_parts() -> None:
    made = _with_resources({"emergencyResourceName": "A117", "unitStatusInternal": "free"})
    assert told(made) == []
    assert len(told({**made, "lastUpdateTimeStamp": stamp()})) == 1


@pytest.mark.parametrize("pidf", ["", "<a/>", "no xml", point("<gml:pos>1 900</gml:pos>"),
                                  point("<gml:pos>nan 1</gml:pos>")])  # fmt: skip
def test_a_place_that_cannot_be_read_is_left_out(pidf: str) -> None:
    assert told(_with_place(pidf)) == []


def test_the_example_is_history() -> None:
    assert told(EIDO) == []


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
        (document("<a/>"), "has no gml:Point, gs:Circle or gs:Ellipse; a civic"),
        (document(point("<gml:pos>1</gml:pos>")), "no latitude and"),
        (document(point("<gml:pos>x y</gml:pos>")), "no latitude and"),
        (document(point("<gml:pos>nan 1</gml:pos>")), "location.lat"),
        (document(point("<gml:pos>114.1 22.2</gml:pos>")), "swapped"),
        (document(point("<gml:pos>1 2 3 4</gml:pos>")), "no latitude and"),
        (document(point("")), "gml:pos '' is no latitude and"),
        (document(point(f"<gml:Point>{POS}</gml:Point>")), "gml:pos '' is no latitude and"),
        (
            document(
                f"<gml:Polygon {GML}><gml:exterior><gml:LinearRing>{POS}</gml:LinearRing>"
                "</gml:exterior></gml:Polygon>"
            ),
            "shape is Polygon; send a gml:Point, gs:Circle or",
        ),
        (document(f"<gs:ArcBand {GML}>{POS}</gs:ArcBand>"), "shape is ArcBand; send a gml:Point"),
        (
            document(f"<gs:Sphere {GML}>{POS}{RADIUS}</gs:Sphere>"),
            "shape is Sphere; send a gml:Point",
        ),
        (document(f"<gml:Circle {GML}>{POS}</gml:Circle>"), "shape is Circle; send a gml:Point"),
        (document(f"<Point>{POS.replace('gml:', '')}</Point>"), "has no gml:Point"),
        (document(f"<gml:Point {SPACES}>{POS}</gml:Point>"), "has srsName ''; urn:"),
        (document(point(system="urn:ogc:def:crs:OGC:1.3:CRS84")), "CRS84'; urn:.* is needed"),
        (document(point(system="EPSG:4326")), "srsName 'EPSG:4326'; urn:.* is needed"),
        (document(point(system=f"{WGS84}9")), "43269'; urn:.* is needed"),
        (document(circle(POS)), "radius '' in ''; metres .* are needed"),
        (document(circle(f"{POS}<gs:radius>35</gs:radius>")), "radius '35' in ''; metres"),
        (document(circle(POS + RADIUS.replace("9001", "9002"))), "9002'; metres .* are needed"),
        (document(circle(POS + RADIUS.replace("35", "far"))), "radius 'far' in .*; metres"),
        (document(circle(POS + RADIUS.replace("35", "-1"))), "location.accuracy_m: .*greater"),
        (document(circle(POS + RADIUS.replace("35", "nan"))), "location.accuracy_m"),
        (document("<a>" * 20_000 + "</a>" * 20_000), "has no gml:Point"),
        (document(BOMB), "declares a document type; entities are not read"),
        (document(OUTSIDE), "declares a document type; entities are not read"),
        (document(f"no xml {BOMB}"), "declares a document type"),  # not even looked into
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
     "locationByValue", "dispatchComponent", "emergencyResourceComponent",
     "emergencyResourceReference", "emergencyResourceName", "unitLocationReference",
     "unitStatusInternal", "primaryUnitStatusRegistryText", "incidentTrackingIdentifier",
     "lastUpdateTimeStamp", "location-1"]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | NAMES
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5)
)


@given(st.dictionaries(NAMES, JSON, max_size=6), st.booleans())
def test_any_document_is_read_or_refused(part: dict[str, Any], whole: bool) -> None:
    made = {**document(), **part} if whole else part
    with suppress(InputError):
        request_of(made, is_unit=lambda name: True)
    news_of(made, lambda name: True)


@given(st.text(max_size=60))
def test_any_text_in_place_of_a_location(text: str) -> None:
    with suppress(InputError):
        request_of(document(text))
