"""Which policies of a run play a part in the story that tables and figures tell."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

ROLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "region": ("RegionPolicy", "region"),
        "router": ("RouterPolicy", "router"),
        "interval": ("IntervalPolicy", "interval"),
        "router-dual": ("RouterDual", "router-dual"),
        "paper": ("PaperIdeal", "paper-ideal", "paper"),
        "ideal": ("Ideal", "ideal"),
    }
)
"""Policies that tables and figures know by their part in the story: type, and usual names."""


def roles_of(manifest: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """Who plays which part: by the type in the manifest, and by name where there are several."""
    types = {name: type_of(manifest.get("policies", {}).get(name)) for name in names}
    known = {kind for kind, *_ in ROLES.values()}
    found = {}
    for role, (kind, *usual) in ROLES.items():
        able = [name for name in names if types[name] == kind]
        able = able or [name for name in names if name in usual and types[name] not in known]
        if able:
            found[role] = next((name for name in able if name in usual), able[0])
    return found


def first_of(described: Any) -> Mapping[str, Any]:
    """What a manifest says of a policy; of one that differs by day, of its first."""
    if not isinstance(described, dict):
        return {}
    by_day = described.get("policies")
    if isinstance(by_day, dict) and by_day:
        return first_of(next(iter(by_day.values())))
    return described


def type_of(described: Any) -> str:
    """The type of a policy by what a manifest says of it."""
    return str(first_of(described).get("type", ""))
