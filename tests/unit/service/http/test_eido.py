"""EIDO documents: references resolved once, locations read, tricks refused."""

import copy
import json
from contextlib import suppress
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.http.eido import MOST_RESOLVED, Eido
from ideal_dispatch.service.requests import RecommendationRequest
from tests.conftest import ROOT

EXAMPLE: dict[str, Any] = json.loads((ROOT / "examples" / "eido.json").read_text(encoding="utf-8"))
CALL = EXAMPLE["incidentComponent"]["incidentTrackingIdentifier"]
WGS84 = "urn:ogc:def:crs:EPSG::4326"
METRE = "urn:ogc:def:uom:EPSG::9001"
SPACES = 'xmlns:gml="http://www.opengis.net/gml" xmlns:gs="http://www.opengis.net/pidflo/1.0"'
GML = f'{SPACES} srsName="{WGS84}"'
POS = "<gml:pos>22.5 114.5</gml:pos>"
RADIUS = f'<gs:radius uom="{METRE}">35</gs:radius>'
STAMP, EARLIER = "2026-03-01T08:15:00+08:00", "2026-03-01T08:10:00+08:00"


def point(inside: str = POS, system: str = WGS84) -> str:
    return f'<gml:Point {SPACES} srsName="{system}">{inside}</gml:Point>'


def circle(inside: str) -> str:
    return f"<gs:Circle {GML}>{inside}</gs:Circle>"


def document(pidf: str | None = None, **incident: Any) -> dict[str, Any]:
    made: dict[str, Any] = copy.deepcopy(EXAMPLE)
    made["incidentComponent"].update(incident)
    if pidf is not None:
        made["locationComponent"][0]["locationByValue"] = pidf
    return made


def read(
    made: dict[str, Any],
    depots: tuple[str, ...] = ("Kelp Point",),
    units: tuple[str, ...] = (),
) -> RecommendationRequest:
    return Eido(made).request(depots.__contains__, units.__contains__)


def test_the_example() -> None:
    request = read(EXAMPLE)
    assert (request.location.lon, request.location.lat) == (117.2393, 21.5845)
    assert request.call_id == CALL
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
    place = read(document(shape)).location
    assert (place.lon, place.lat, place.accuracy_m) == (114.5, 22.5, 35.0)


@pytest.mark.parametrize(
    "system", [WGS84, "urn:ogc:def:crs:EPSG::4979", "urn:ogc:def:crs:EPSG:6.6:4326"]
)
def test_systems_with_latitude_first(system: str) -> None:
    place = read(document(point(system=system))).location
    assert (place.lon, place.lat, place.accuracy_m) == (114.5, 22.5, None)


def test_the_first_shape_counts() -> None:
    """A PIDF-LO with many places names the best first; a worse one is no way around it."""
    other = "<gml:pos>1 2</gml:pos>"
    assert read(document(f"<a>{point()}{point(other)}</a>")).location.lat == 22.5
    with pytest.raises(InputError, match="Polygon"):
        read(document(f"<a><gml:Polygon {GML}>{other}</gml:Polygon>{point()}</a>"))


@pytest.mark.parametrize(
    "reference",
    [{"$ref": "location-1"}, [{"$ref": "location-1"}], {"$ref": "#location-1"},
     [{"$ref": "location-1"}, {"$ref": "other"}]],
)  # fmt: skip
def test_references_in_all_their_forms(reference: Any) -> None:
    assert read(document(locationReference=reference)).location.lat == 21.5845


def test_components_in_a_list_or_alone() -> None:
    made = document(lastUpdateTimeStamp=STAMP)
    made["incidentComponent"] = [made["incidentComponent"]]
    made["locationComponent"] = made["locationComponent"][0]
    assert read(made).location.lat == 21.5845
    del made["incidentComponent"][0]["locationReference"]
    assert read(made).location.lat == 21.5845
    made["lastUpdateTimeStamp"] = made["incidentComponent"][0].pop("lastUpdateTimeStamp")
    at = read(made).received_at
    assert at is not None
    assert at.isoformat() == STAMP
    del made["lastUpdateTimeStamp"]
    assert read(made).received_at is None  # now


def with_resources(*resources: dict[str, Any]) -> dict[str, Any]:
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
        ([{"emergencyResourceName": "A9"}], (None, "A9")),
        ([{"emergencyResourceName": "A9", **AT_KELP}], (None, "A9")),
        ([{"emergencyResourceName": ["A9"]}], None),
        ([], None),
    ],
)  # fmt: skip
def test_the_primary_is_the_first_dispatched_unit_that_is_known(
    resources: list[dict[str, Any]], primary: tuple[str | None, str | None] | None
) -> None:
    request = read(with_resources(*resources), ("Kelp Point", "Medic 9"), ("A9",))
    assert (request.primary and (request.primary.depot, request.primary.unit)) == primary


def test_a_resource_that_was_not_dispatched_is_no_primary() -> None:
    made = document()
    del made["dispatchComponent"]
    assert read(made).primary is None
    made["dispatchComponent"] = {"emergencyResourceReference": {"$ref": "lost"}}
    assert read(made).primary is None


# --- news of units ---------------------------------------------------------------------


def told(made: dict[str, Any], codes: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """News of two units, without their moments."""
    news = Eido(made).news({"A117", "A118"}.__contains__, codes or {})
    return [one.model_dump(exclude_none=True, exclude={"at"}) for one in news]


def unit(name: str = "A117", **more: Any) -> dict[str, Any]:
    return {"emergencyResourceName": name, "lastUpdateTimeStamp": STAMP, **more}


def with_place(pidf: str, **more: Any) -> dict[str, Any]:
    made = with_resources(unit(unitLocationReference={"$ref": "here"}))
    made["locationComponent"].append({"$id": "here", "locationByValue": pidf, **more})
    return made


@pytest.mark.parametrize(
    ("more", "news"),
    [
        ({"primaryUnitStatusRegistryText": "En Route"}, {"status": "en_route", "call_id": CALL}),
        ({"secondaryUnitStatusRegistryText": ["On-Scene"]},
         {"status": "on_scene", "call_id": CALL}),
        ({"primaryUnitStatusRegistryText": "Available"}, {"status": "available"}),
        ({"unitStatusInternal": ["?", "7"], "secondaryUnitStatusRegistryText": "On scene"},
         {"status": "transporting", "call_id": CALL}),
        ({"unitStatusInternal": ["5"], "secondaryUnitStatusRegistryText": "On scene"},
         {"status": "on_scene", "call_id": CALL}),
    ],
)  # fmt: skip
def test_the_status_of_a_unit(more: dict[str, Any], news: dict[str, Any]) -> None:
    """The centre's own code comes first; an unknown word is passed over."""
    codes = {"7": "transporting", "5": ""}
    assert told(with_resources(unit(**more)), codes) == [{"id": "A117", **news}]


def test_a_unit_that_was_not_dispatched_is_on_no_call() -> None:
    made = with_resources(unit(primaryUnitStatusRegistryText="En route"))
    del made["dispatchComponent"]
    assert told(made) == [{"id": "A117", "status": "en_route"}]


def test_the_place_of_a_unit_and_its_status_each_have_their_time() -> None:
    made = with_place(point(), lastUpdateTimeStamp=EARLIER)
    made["emergencyResourceComponent"][0]["primaryUnitStatusRegistryText"] = "available"
    status, place = Eido(made).news({"A117"}.__contains__, {})
    assert (status.status, status.lon, place.status, place.lon) == ("available", None, None, 114.5)
    assert status.at is not None
    assert place.at is not None
    assert place.at < status.at
    del made["locationComponent"][-1]["lastUpdateTimeStamp"]
    (both,) = Eido(made).news({"A117"}.__contains__, {})
    assert (both.status, both.lon, both.at) == ("available", 114.5, status.at)


def test_units_of_others_are_none_of_ours() -> None:
    made = with_resources(
        unit("Car 54", primaryUnitStatusRegistryText="available"),
        unit("A118", primaryUnitStatusRegistryText="available"),
    )
    assert told(made) == [{"id": "A118", "status": "available"}]


@pytest.mark.parametrize("at", [None, "", "soon", 3, "2026-03-01T08:15:00"])
def test_news_without_a_moment_are_left_out(at: Any) -> None:
    made = with_resources(unit(primaryUnitStatusRegistryText="available", lastUpdateTimeStamp=at))
    made.pop("lastUpdateTimeStamp", None)
    assert told(made) == []


@pytest.mark.parametrize("pidf", ["", "<a/>", "no xml", point("<gml:pos>1 900</gml:pos>"),
                                  point("<gml:pos>nan 1</gml:pos>")])  # fmt: skip
def test_a_place_that_cannot_be_read_is_left_out(pidf: str) -> None:
    assert told(with_place(pidf)) == []


# --- documents made to do harm -----------------------------------------------------------


def multiplying(count: int) -> dict[str, Any]:
    """References to references: followed one by one they are count³."""
    made = document()
    many = [{"$ref": name} for name in ("d", "r", "l") for _ in range(count)]
    dispatches, resources, places = many[:count], many[count : 2 * count], many[2 * count :]
    made["dispatchComponent"] = [{"$id": "d", "emergencyResourceReference": resources}, *dispatches]
    made["emergencyResourceComponent"] = [
        {"$id": "r", "emergencyResourceName": "A117", "unitLocationReference": places}
    ]
    made["locationComponent"].append({"$id": "l", "locationByValue": point()})
    return made


def test_each_reference_is_followed_once() -> None:
    one, many = Eido(multiplying(1)), Eido(multiplying(1001))
    assert many.resolved - one.resolved == 3 * 1000  # as many as there are more in the document
    request = many.request({"Kelp Point"}.__contains__, {"A117"}.__contains__)
    assert request.primary is not None
    assert request.primary.unit == "A117"


def test_a_place_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many units are said to be there."""
    made = with_resources(*(unit(unitLocationReference={"$ref": "l"}) for _ in range(50)))
    made["locationComponent"].append({"$id": "l", "locationByValue": point()})
    read_xml: list[Any] = []
    plain = ElementTree.XML

    def counted(*given: Any) -> Any:
        read_xml.append(given)
        return plain(*given)

    monkeypatch.setattr(ElementTree, "XML", counted)
    assert len(Eido(made).news({"A117"}.__contains__, {})) == 1
    assert len(read_xml) == 1


def test_too_many_components_are_refused() -> None:
    made = document()
    made["emergencyResourceComponent"] = [{}] * (MOST_RESOLVED + 1)
    with pytest.raises(InputError, match="components"):
        Eido(made)


BOMB = (
    '<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    f"<gml:Point {GML}><gml:pos>&b;</gml:pos></gml:Point>"
)
OUTSIDE = (
    '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    f"<gml:Point {GML}><gml:pos>&f;</gml:pos></gml:Point>"
)
CRS84 = "urn:ogc:def:crs:OGC:1.3:CRS84"


@pytest.mark.parametrize(
    ("made", "key"),
    [
        ({}, "incidentComponent"),
        (document(incidentTrackingIdentifier=None), "incidentTrackingIdentifier"),
        (document(incidentTrackingIdentifier="x" * 200), "call_id"),
        (document(lastUpdateTimeStamp="yesterday"), "received_at"),
        (document(lastUpdateTimeStamp="2026-03-01T08:15:00"), "received_at"),
        (document(locationReference={"$ref": "lost"}), "lost"),
        (document(locationReference=[{"$ref": "lost"}, {"$ref": "location-1"}]), "lost"),
        (document(locationReference="location-1"), "locationReference"),
        (document("no xml"), "XML"),
        (document("<a><b></a>"), "XML"),
        (document("<a/>"), "gml:Point"),
        (document(point("<gml:pos>1</gml:pos>")), "gml:pos"),
        (document(point("<gml:pos>x y</gml:pos>")), "gml:pos"),
        (document(point("<gml:pos>nan 1</gml:pos>")), "location.lat"),
        (document(point("<gml:pos>114.1 22.2</gml:pos>")), "swapped"),
        (document(point("<gml:pos>1 2 3 4</gml:pos>")), "gml:pos"),
        (document(point("")), "gml:pos"),
        (document(point(f"<gml:Point>{POS}</gml:Point>")), "gml:pos"),
        (document(f"<gml:Polygon {GML}><gml:a>{POS}</gml:a></gml:Polygon>"), "Polygon"),
        (document(f"<gs:ArcBand {GML}>{POS}</gs:ArcBand>"), "ArcBand"),
        (document(f"<gs:Sphere {GML}>{POS}{RADIUS}</gs:Sphere>"), "Sphere"),
        (document(f"<gml:Circle {GML}>{POS}</gml:Circle>"), "Circle"),
        (document(f"<Point>{POS.replace('gml:', '')}</Point>"), "gml:Point"),
        (document(f"<gml:Point {SPACES}>{POS}</gml:Point>"), "srsName"),
        (document(point(POS.replace(">", f' srsName="{CRS84}">', 1))), "CRS84"),
        (document(point(system=CRS84)), "CRS84"),
        (document(point(system="EPSG:4326")), "EPSG:4326"),
        (document(point(system=f"{WGS84}9")), "43269"),
        (document(circle(POS)), "radius"),
        (document(circle(f"{POS}<gs:radius>35</gs:radius>")), "radius"),
        (document(circle(POS + RADIUS.replace("9001", "9002"))), "9002"),
        (document(circle(POS + RADIUS.replace("35", "far"))), "radius"),
        (document(circle(POS + RADIUS.replace("35", "-1"))), "location.accuracy_m"),
        (document(circle(POS + RADIUS.replace("35", "nan"))), "location.accuracy_m"),
        (document("<a>" * 20_000 + "</a>" * 20_000), "gml:Point"),
        (document(BOMB), "document type"),
        (document(OUTSIDE), "document type"),
        (document(f"no xml {BOMB}"), "document type"),  # not even looked into
        (document("<a>" + "x" * 200_001 + "</a>"), "200,000"),
    ],
)
def test_what_cannot_be_used_is_one_line(made: dict[str, Any], key: str) -> None:
    with pytest.raises(InputError, match=key) as caught:
        read(made)
    assert "\n" not in str(caught.value)


def changed(value: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    """The example with parts of it exchanged for anything."""
    anything: st.SearchStrategy[Any] = (
        st.none() | st.booleans() | st.integers() | st.text() | st.just([]) | st.just({})
    )
    if isinstance(value, dict) and depth < 4:
        same = st.fixed_dictionaries({k: changed(v, depth + 1) for k, v in value.items()})
        return same | anything
    if isinstance(value, list) and depth < 4:
        return st.tuples(*(changed(one, depth + 1) for one in value)).map(list) | anything
    return st.just(value) | anything


@given(changed(EXAMPLE))
def test_any_document_is_read_or_refused(made: Any) -> None:
    if isinstance(made, dict):
        with suppress(InputError):
            found = Eido(made)
            found.news(lambda _: True, {})
            found.request(lambda _: True, lambda _: False)
