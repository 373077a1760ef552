"""The 14 functional classes of the paper's one-hot columns, and the rule for all others."""

import re
from collections.abc import Mapping
from types import MappingProxyType

ROAD_CLASSES = (
    "motorway",
    "motorway_link",
    "trunk",
    "trunk_link",
    "primary",
    "primary_link",
    "secondary",
    "secondary_link",
    "tertiary",
    "tertiary_link",
    "unclassified",
    "residential",
    "living_street",
    "service",
)
"""OSM functional classes in the order of the feature columns ([IDEAL] table of edge features)."""

USUAL_SPEED_KMH: Mapping[str, float] = MappingProxyType(
    {
        "motorway": 100.0, "motorway_link": 60.0, "trunk": 80.0, "trunk_link": 60.0,
        "primary": 60.0, "residential": 30.0, "living_street": 15.0, "service": 20.0,
    }
)  # fmt: skip
"""Free flow on a road whose limit is not known; on all other classes it is 50 km/h."""

FALLBACK_CLASS = "unclassified"
"""The class of a drivable road that is not one of the 14 and that no rule below names."""

_CODES = MappingProxyType({name: code for code, name in enumerate(ROAD_CLASSES)})
_ALIASES = MappingProxyType({"busway": "service", "road": "unclassified", "minor": "unclassified"})
_SUFFIXES = ("_tunnel", "_bridge")


def plain_class(tag: str) -> str:
    """An OSM ``highway`` value without additions: the first of several, no suffix.

    >>> plain_class("trunk|motorway"), plain_class("residential_tunnel")
    ('trunk', 'residential')
    """
    tag = re.split(r"[;|]", tag)[0].strip()
    for suffix in _SUFFIXES:
        tag = tag.removesuffix(suffix)
    return tag


def class_code(tag: str) -> tuple[int, bool]:
    """Code of an OSM ``highway`` value, and whether it was one of the 14 as written.

    >>> class_code("primary"), class_code("residential_tunnel"), class_code("ice_road")
    ((4, True), (11, False), (10, False))
    """
    if tag in _CODES:
        return _CODES[tag], True
    tag = plain_class(tag)
    tag = _ALIASES.get(tag, tag)
    return _CODES.get(tag, _CODES[FALLBACK_CLASS]), False
