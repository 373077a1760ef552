"""NENA EIDO (NENA-STA-021.1) → a request of ours, and news of units.

An EIDO is JSON whose components are named by ``$id`` and pointed at by
``$ref``; its locations are PIDF-LO documents, XML inside JSON strings.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, XMLParser

from pydantic import ValidationError

from ideal_dispatch.errors import InputError
from ideal_dispatch.service import clock
from ideal_dispatch.service.clock import moment_text
from ideal_dispatch.service.http.schemas import RecommendationRequest, first_fault
from ideal_dispatch.service.units.statuses import StatusCodes
from ideal_dispatch.service.units.unit import AHEAD, FREE, Status

_XML_BYTES = 200_000
_OLDEST_NEWS = timedelta(days=1)
_GML, _GS = "{http://www.opengis.net/gml}", "{http://www.opengis.net/pidflo/1.0}"
_REACH = {  # shapes with one middle, and the element that says how far around it
    f"{_GML}Point": None,
    f"{_GS}Circle": "radius",
    f"{_GS}Ellipse": "semiMajorAxis",
}
_SHAPES = "gml:Point, gs:Circle or gs:Ellipse"
_SYSTEM = re.compile(r"urn:ogc:def:crs:EPSG:[0-9.]*:(4326|4979)")  # latitude first
_METRE = "urn:ogc:def:uom:EPSG::9001"


def request_of(
    document: Mapping[str, Any],
    is_depot: Callable[[str], bool] = lambda name: True,
    is_unit: Callable[[str], bool] = lambda name: False,
) -> RecommendationRequest:
    """The request that an EIDO stands for, or one line on what it lacks.

    The primary is the first dispatched resource that is a unit of the fleet or of
    a depot of ours: of the resources that ``dispatchComponent`` refers to, the
    first whose name is a unit's, whose location is described by a depot's name, or
    whose own name is one (an alias, such as a call sign, counts). Resources of
    others, such as the police, are passed over.
    """
    components = _components(document)
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
            "primary": _primary(document, components, is_depot, is_unit),
            "note": ", ".join(str(one) for one in kinds if one is not None)[:2000] or None,
        })  # fmt: skip
    except ValidationError as error:
        where, words = first_fault(error.errors())
        raise InputError(f"EIDO: {where}: {words}") from None


def news_of(
    document: Mapping[str, Any], is_unit: Callable[[str], bool], codes: StatusCodes | None = None
) -> list[dict[str, Any]]:
    """What an EIDO tells of units of the fleet, as news of ``PUT /v1/fleet/units``.

    A unit is a resource of ``emergencyResourceComponent`` whose name ``is_unit``
    knows. Its status is the first that ``codes`` know of ``unitStatusInternal``,
    ``secondaryUnitStatusRegistryText`` and ``primaryUnitStatusRegistryText``: from
    the centre's own code to the coarsest word. Its place is the location by value
    of ``unitLocationReference``. Each is as of its component's
    ``lastUpdateTimeStamp``, or the document's. What has no time, is not of the
    last day or cannot be read is left out: none of it is a reason to refuse a call.

    The names are those of NENA-STA-021.1a. Its registries of statuses are not
    shipped: a word of theirs counts where it is one of ours, or in ``[units] codes``.
    """
    components, codes = _components(document), codes or StatusCodes()
    incident = next(_all(document.get("incidentComponent"), components), {})
    sent = [id(resource) for resource in _dispatched(document, components)]
    news: dict[tuple[str, str], dict[str, Any]] = {}
    for resource in _all(document.get("emergencyResourceComponent"), components):
        unit = resource.get("emergencyResourceName")
        if not (isinstance(unit, str) and is_unit(unit)):
            continue
        told: list[tuple[Mapping[str, Any], dict[str, Any]]] = []
        if (status := _status(resource, codes)) is not None:
            call = incident.get("incidentTrackingIdentifier")
            on_call = id(resource) in sent and status not in FREE and isinstance(call, str)
            told.append((resource, {"status": status, **({"call_id": call} if on_call else {})}))
        locations = _all(resource.get("unitLocationReference"), components)
        told += [(location, _unit_place(location)) for location in locations]
        for component, values in told:
            at = _recent([component, resource, document])
            if values and at is not None:
                news.setdefault((unit, at), {"id": unit, "at": at}).update(values)
    return list(news.values())


def _status(resource: Mapping[str, Any], codes: StatusCodes) -> Status | None:
    names = ("unitStatusInternal", "secondaryUnitStatusRegistryText",
             "primaryUnitStatusRegistryText")  # fmt: skip
    for name in names:
        given = resource.get(name)
        for text in given if isinstance(given, list) else [given]:
            with suppress(InputError):
                if isinstance(text, str) and (status := codes.status(text)) is not None:
                    return status
    return None


def _unit_place(location: Mapping[str, Any]) -> dict[str, Any]:
    try:
        place = _place(location.get("locationByValue"))
    except InputError:
        return {}
    lon, lat = place["lon"], place["lat"]
    return {"lon": lon, "lat": lat} if abs(lon) <= 180 and abs(lat) <= 90 else {}


def _recent(components: list[Mapping[str, Any]]) -> str | None:
    """The time stamp of the first that has one, if it is of the last day."""
    stamp = next((c["lastUpdateTimeStamp"] for c in components if "lastUpdateTimeStamp" in c), None)
    try:
        at, now = datetime.fromisoformat(stamp or ""), clock.now()
        return moment_text(at) if now - _OLDEST_NEWS <= at <= now + AHEAD else None
    except (TypeError, ValueError, OverflowError):  # no text, no moment, no zone
        return None


def _components(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {component["$id"]: component for component in _named(document)}


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
    document: Mapping[str, Any],
    components: Mapping[str, Any],
    is_depot: Callable[[str], bool],
    is_unit: Callable[[str], bool],
) -> dict[str, Any] | None:
    for resource in _dispatched(document, components):
        unit = resource.get("emergencyResourceName")
        if isinstance(unit, str) and is_unit(unit):
            return {"unit": unit}
        places = _all(resource.get("unitLocationReference"), components)
        stations = [place.get("locationDescriptionText") for place in places]
        for depot in (*stations, unit):
            if isinstance(depot, str) and depot and is_depot(depot):
                return {"depot": depot, "unit": unit if isinstance(unit, str) else None}
    return None


def _dispatched(
    document: Mapping[str, Any], components: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    for dispatch in _all(document.get("dispatchComponent"), components):
        yield from _all(dispatch.get("emergencyResourceReference"), components)


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
        name = shape.tag.rpartition("}")[2]
        raise InputError(f"EIDO: the location's shape is {name[:40]}; send a {_SHAPES}")
    _check_system(shape)
    words, numbers, _ = _measured(shape.find(f"{_GML}pos"))
    if len(numbers) not in (2, 3):
        raise InputError(f"EIDO: gml:pos {words!r} is no latitude and longitude")
    place = {"lat": numbers[0], "lon": numbers[1]}
    reach = _REACH[shape.tag]
    if reach is not None:
        words, numbers, unit = _measured(shape.find(f"{_GS}{reach}"))
        if len(numbers) != 1 or unit != _METRE:
            raise InputError(f"EIDO: {reach} {words!r} in {unit!r}; metres ({_METRE}) are needed")
        place["accuracy_m"] = numbers[0]
    return place


def _measured(element: Element | None) -> tuple[str, list[float], str]:
    """The beginning of an element's text, its numbers (none where a word is none), and its unit."""
    words = "" if element is None else (element.text or "").strip()
    unit = "" if element is None else element.get("uom", "")
    try:
        numbers = [float(word) for word in words.split()]
    except ValueError:
        numbers = []
    return words[:60], numbers, unit[:60]


def _check_system(shape: Element) -> None:
    """Other systems have other axes or another order of them: a swapped place looks like one."""
    systems = [one.attrib["srsName"] for one in shape.iter() if "srsName" in one.attrib]
    for system in systems or [""]:
        if _SYSTEM.fullmatch(system) is None:
            raise InputError(
                f"EIDO: the location has srsName {system[:60]!r}; "
                "urn:ogc:def:crs:EPSG::4326 or urn:ogc:def:crs:EPSG::4979 is needed"
            )


def _shape(text: str) -> Element:
    """The first GML shape, which a PIDF-LO means before all others."""
    content = text.encode("utf-8", "replace")
    if len(content) > _XML_BYTES:
        raise InputError(f"EIDO: a PIDF-LO of more than {_XML_BYTES:,} bytes")
    if b"<!DOCTYPE" in content:  # looked for first: the parser would go on and expand entities
        raise InputError("EIDO: the PIDF-LO declares a document type; entities are not read")
    try:
        root = ElementTree.XML(content, XMLParser(encoding="utf-8"))
    except ElementTree.ParseError as error:
        raise InputError(f"EIDO: the PIDF-LO is no XML ({error})") from None
    for element in root.iter():
        if element.tag.startswith((_GML, _GS)):
            return element
    raise InputError(f"EIDO: the PIDF-LO has no {_SHAPES}; a civic address alone cannot be used")
