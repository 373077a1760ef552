"""An advice where there is none: all its fields, and why."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ideal_dispatch.dispatch.reasons import Reason, remarks
from ideal_dispatch.service.solver.call import Call


def finite(value: float | None) -> float | None:
    """A number that JSON has, or None."""
    return value if value is not None and math.isfinite(value) else None


def no_advice(call: Call, reasons: Sequence[Reason]) -> dict[str, Any]:
    """All fields of an advice, with nothing in them but why; the first reason is the cause."""
    place, cause = call.location, reasons[:1]
    return {
        "decision": "no_advice",
        "headline": f"No advice: {reasons[0][1]}" if reasons else "No advice",
        "location": {"lon": place.lon, "lat": place.lat, "node": None, "snapped_m": None},
        "primary": None,
        "second": None,
        "sooner_unit": None,
        "gain_s": None,
        "gain_survival": None,
        "gap": None,
        "threshold": None,
        "radius": None,
        "nominal": {"primary_s": None, "second_s": None},
        "explanation": {
            "text": "\n".join(dict.fromkeys(words for _, words in reasons)), "other_way": None,
            "seconds_from": None, "shared_m": None,
            "primary_only": [], "second_only": [], "roads": [], "stress": [],
        },
        "degraded": degraded(cause) + degraded([one for one in reasons if one not in cause]),
        "data_ages": {"traffic_s": None, "weather_s": None, "units_s": None},
    }  # fmt: skip


def degraded(reasons: Sequence[Reason]) -> list[dict[str, Any]]:
    """Reasons as the API gives them, the most serious first."""
    return [asdict(one) for one in remarks(reasons)]
