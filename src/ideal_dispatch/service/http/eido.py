"""NENA EIDO (NENA-STA-021.1) → a request of ours.

An EIDO is JSON whose components are named by ``$id`` and pointed at by
``$ref``; its locations are PIDF-LO documents, XML inside JSON strings.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from pydantic import ValidationError

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.http.schemas import RecommendationRequest, first_fault

EXAMPLE = {
    "$id": "urn:emergency:uid:eido:1",
    "incidentComponent": {
        "$id": "incident-1",
        "incidentTrackingIdentifier": "urn:emergency:uid:incidentid:2026-000123:cad.example",
        "lastUpdateTimeStamp": "2026-03-01T08:15:00+08:00",
        "incidentTypeCommonRegistryText": "Cardiac arrest",
        "locationReference": [{"$ref": "location-1"}],
    },
    "locationComponent": [
        {
            "$id": "location-1",
            "locationByValue": (
                '<presence xmlns="urn:ietf:params:xml:ns:pidf" '
                'xmlns:gml="http://www.opengis.net/gml"><tuple id="t"><status>'
                '<geopriv xmlns="urn:ietf:params:xml:ns:pidf:geopriv10"><location-info>'
                '<gml:Point srsName="urn:ogc:def:crs:EPSG::4326">'
                "<gml:pos>21.5845 117.2393</gml:pos></gml:Point>"
                "</location-info></geopriv></status></tuple></presence>"
            ),
        },
        {"$id": "location-2", "locationDescriptionText": "Kelp Point"},
    ],
    "dispatchComponent": [
        {"$id": "dispatch-1", "emergencyResourceReference": [{"$ref": "resource-1"}]}
    ],
    "emergencyResourceComponent": [
        {
            "$id": "resource-1",
            "emergencyResourceName": "A117",
            "unitLocationReference": {"$ref": "location-2"},
        }
    ],
}

_XML_BYTES = 200_000
_SPACE = " "
_GML, _GS = "http://www.opengis.net/gml", "http://www.opengis.net/pidflo/1.0"
_REACH = {  # shapes with one middle, and the element that says how far around it
    f"{_GML} Point": None,
    f"{_GS} Circle": f"{_GS} radius",
    f"{_GS} Ellipse": f"{_GS} semiMajorAxis",
}
_SHAPES = "gml:Point, gs:Circle or gs:Ellipse"
_SYSTEM = re.compile(r"urn:ogc:def:crs:EPSG:[0-9.]*:(4326|4979)")  # latitude first
_METRE = "urn:ogc:def:uom:EPSG::9001"


def request_of(
    document: Mapping[str, Any], is_depot: Callable[[str], bool] = lambda name: True
) -> RecommendationRequest:
    """The request that an EIDO stands for, or one line on what it lacks.

    The primary is the first dispatched resource of a depot of ours: of the
    resources that ``dispatchComponent`` refers to, the first whose location is
    described by a depot's name, or whose own name is one (an alias, such as a
    call sign, counts). Resources of others, such as the police, are passed over.
    """
    components = {component["$id"]: component for component in _named(document)}
    incident = _one(document.get("incidentComponent"), components, "incidentComponent")
    call_id = incident.get("incidentTrackingIdentifier")
    if not isinstance(call_id, str):
        raise InputError("EIDO: incidentComponent has no incidentTrackingIdentifier")
    place = incident.get("locationReference", document.get("locationComponent"))
    location = _one(place, components, "incidentComponent.locationReference")
    stamp = incident.get("lastUpdateTimeStamp", document.get("lastUpdateTimeStamp"))
    kind = incident.get("incidentTypeCommonRegistryText")
    kinds = kind if isinstance(kind, list) else [kind]
    try:
        return RecommendationRequest.model_validate({
            "call_id": call_id,
            "received_at": stamp,
            "location": _place(location.get("locationByValue")),
            "primary": _primary(document, components, is_depot),
            "note": ", ".join(str(one) for one in kinds if one is not None)[:2000] or None,
        })  # fmt: skip
    except ValidationError as error:
        where, words = first_fault(error.errors())
        raise InputError(f"EIDO: {where}: {words}") from None


def _named(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every object with a ``$id``, wherever it stands; nesting is capped before."""
    if isinstance(value, Mapping):
        if isinstance(value.get("$id"), str):
            yield value
        for inner in value.values():
            yield from _named(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _named(inner)


def _primary(
    document: Mapping[str, Any], components: Mapping[str, Any], is_depot: Callable[[str], bool]
) -> dict[str, Any] | None:
    for dispatch in _all(document.get("dispatchComponent"), components):
        for resource in _all(dispatch.get("emergencyResourceReference"), components):
            unit = resource.get("emergencyResourceName")
            places = _all(resource.get("unitLocationReference"), components)
            stations = [place.get("locationDescriptionText") for place in places]
            for depot in (*stations, unit):
                if isinstance(depot, str) and depot and is_depot(depot):
                    return {"depot": depot, "unit": unit if isinstance(unit, str) else None}
    return None


def _all(value: Any, components: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The objects of a component or of references to some; references that lead nowhere aside."""
    for item in value if isinstance(value, list) else [value]:
        found = _resolved(item, components)
        if isinstance(found, Mapping):
            yield found


def _resolved(item: Any, components: Mapping[str, Any]) -> Any:
    """The object itself, or the one that it refers to, None where that is not in the document."""
    if not (isinstance(item, Mapping) and isinstance(item.get("$ref"), str)):
        return item
    name = item["$ref"]
    return components.get(name, components.get(name.removeprefix("#")))


def _one(value: Any, components: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The first object of a component or of references to some."""
    first = value[0] if isinstance(value, list) and value else value
    found = _resolved(first, components)
    if found is None and isinstance(first, Mapping):
        raise InputError(f"EIDO: {where} refers to {first['$ref'][:100]!r}, which is not in it")
    if not isinstance(found, Mapping):
        raise InputError(f"EIDO: {where} is missing")
    return found


def _place(text: Any) -> dict[str, float]:
    """Longitude, latitude and accuracy of a PIDF-LO with a point, circle or ellipse."""
    if not isinstance(text, str):
        raise InputError("EIDO: the location has no locationByValue; a reference is not fetched")
    shape = _shape(text)
    if shape.tag not in _REACH:
        name = shape.tag.rsplit(_SPACE, 1)[-1]
        raise InputError(f"EIDO: the location's shape is {name[:40]}; send a {_SHAPES}")
    _check_system(shape)
    parts = {part.tag: part for part in shape}
    position = parts.get(f"{_GML} pos")
    words = "" if position is None else (position.text or "").strip()
    numbers = _numbers(words)
    if len(numbers) not in (2, 3):
        raise InputError(f"EIDO: gml:pos {words[:60]!r} is no latitude and longitude")
    place = {"lat": numbers[0], "lon": numbers[1]}
    reach = _REACH[shape.tag]
    return place if reach is None else {**place, "accuracy_m": _metres(parts.get(reach), reach)}


def _check_system(shape: Element) -> None:
    """Other systems have other axes or another order of them: a swapped place looks like one."""
    systems = [one.attrib["srsName"] for one in shape.iter() if "srsName" in one.attrib]
    for system in systems or [""]:
        if _SYSTEM.fullmatch(system) is None:
            raise InputError(
                f"EIDO: the location has srsName {system[:60]!r}; "
                "urn:ogc:def:crs:EPSG::4326 or urn:ogc:def:crs:EPSG::4979 is needed"
            )


def _metres(length: Element | None, tag: str) -> float:
    name = tag.rsplit(_SPACE, 1)[-1]
    words = "" if length is None else (length.text or "").strip()
    unit = "" if length is None else length.get("uom", "")
    numbers = _numbers(words)
    if len(numbers) != 1 or unit != _METRE:
        raise InputError(
            f"EIDO: {name} {words[:60]!r} in {unit[:60]!r}; metres ({_METRE}) are needed"
        )
    return numbers[0]


def _numbers(words: str) -> list[float]:
    """The numbers of a text; none where one of them is no number."""
    try:
        return [float(word) for word in words.split()]
    except ValueError:
        return []


def _shape(text: str) -> Element:
    """The first GML shape, which a PIDF-LO means before all others; entities are refused unread."""
    content = text.encode("utf-8", "replace")
    if len(content) > _XML_BYTES:
        raise InputError(f"EIDO: a PIDF-LO of more than {_XML_BYTES:,} bytes")

    def refuse(*_: Any) -> None:
        raise InputError("EIDO: the PIDF-LO declares a document type; entities are not read")

    tree = TreeBuilder()
    parser = expat.ParserCreate("utf-8", _SPACE)
    parser.StartElementHandler, parser.EndElementHandler = tree.start, tree.end
    parser.CharacterDataHandler = tree.data
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise InputError(f"EIDO: the PIDF-LO is no XML ({error})") from None
    for element in tree.close().iter():
        if element.tag.rpartition(_SPACE)[0] in (_GML, _GS):
            return element
    raise InputError(f"EIDO: the PIDF-LO has no {_SHAPES}; a civic address alone cannot be used")
