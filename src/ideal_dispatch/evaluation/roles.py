"""Which part every policy of a run plays in tables and figures: what its ``role`` says.

A policy without a role is shown like our own. One of the parts in
:data:`STORY` is played by a single policy: by the one of that name, else by the
first that claims it. All others that claim it, and those with the role
:data:`CONTROL`, stand apart.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ideal_dispatch.dispatch.policy_tables import KINDS

STORY = ("region", "router", "interval", "router-dual", "paper", "ideal")
"""The parts that tables and figures refer to, in the order of telling."""

BASELINES = STORY[:4]
"""The parts of those that the paper compares itself with."""

CONTROL = "control"


def claims_of(manifest: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """The role of each policy, empty where it has none.

    Runs before version 0.2 do not say roles: there the type and the name tell.
    """
    if "roles" in manifest:
        return {name: str(manifest["roles"].get(name, "")) for name in names}
    ours = {role: role for role in STORY}
    for kind, policy in KINDS.items():
        ours[kind] = ours[policy.__name__] = policy.role
    types = {name: first_of(manifest.get("policies", {}).get(name)).get("type") for name in names}
    return {name: ours.get(str(types[name])) or ours.get(name, CONTROL) for name in names}


def players(claims: Mapping[str, str]) -> dict[str, str]:
    """The policy that plays each part of :data:`STORY`, of parts that are claimed."""
    found = {}
    for role in STORY:
        able = [name for name, claim in claims.items() if claim == role]
        if able:
            found[role] = role if role in able else able[0]
    return found


def first_of(described: Any) -> Mapping[str, Any]:
    """What a manifest says of a policy; of one that differs by day, of its first."""
    if not isinstance(described, dict):
        return {}
    by_day = described.get("policies")
    if isinstance(by_day, dict) and by_day:
        return first_of(next(iter(by_day.values())))
    return described
