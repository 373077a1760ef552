"""The units that an answer takes, and what is said where they are not free."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ideal_dispatch.dispatch.reasons import Remark, rank
from ideal_dispatch.errors import InputError
from ideal_dispatch.service.audit import PromisedUnits
from ideal_dispatch.service.audit.promises import takes_of
from ideal_dispatch.service.http.schemas import RecommendationRequest
from ideal_dispatch.service.solver.answer import no_advice
from ideal_dispatch.service.solver.depot_names import DepotNames


def taken(
    request: RecommendationRequest, advice: Mapping[str, Any], names: DepotNames, default: int
) -> dict[str, Any]:
    """The units of an advice, for the audit: those advised, and the primary of the CAD itself.

    ``default`` units are assumed at a depot that nobody told about.
    """
    advised = []
    if advice["primary"] is not None and advice["primary"]["chosen_by"] == "router":
        advised.append(advice["primary"]["depot"])
    if advice["decision"] == "send_second":
        advised.append(advice["second"]["depot"])
    sent = None if request.primary is None else _found(names, request.primary.depot)
    if request.depots is None:
        return takes_of(advised, sent, dict.fromkeys(advised, default), listed=False)
    counts: dict[str, int] = {}
    for one in request.depots:
        depot = _found(names, one.name)
        if depot is not None:
            counts[depot] = counts.get(depot, 0) + one.units
    return takes_of(advised, sent, counts, listed=True)


def unchecked(advice: Mapping[str, Any]) -> dict[str, Any]:
    """An advice that is made without the database, with the remark that says so."""
    code, words = "promises_unknown", "the database is down: promises of other workers are unknown"
    said = [*advice["degraded"], asdict(Remark(code, words))]
    return {**advice, "degraded": sorted(said, key=lambda one: rank(one["code"]))}


def outrun(request: RecommendationRequest, lost: PromisedUnits) -> dict[str, Any]:
    """No advice: other calls got the units, again and again or at the last moment."""
    words = "; ".join(
        f"the last unit of {depot} was just promised to call {calls[-1]}"
        if calls else f"{depot} has just no free unit any more"
        for depot, calls in lost.calls.items()
    )  # fmt: skip
    return no_advice(request.call(), [("last_unit_promised", f"{words}; ask again")])


def _found(names: DepotNames, word: str) -> str | None:
    try:
        return names.find(word)
    except InputError:  # the answer says so
        return None
