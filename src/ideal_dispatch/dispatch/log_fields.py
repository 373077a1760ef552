"""What logs and JSON keep of a decision: plain values, made of its typed fields in this place."""

import math
from dataclasses import fields
from typing import TYPE_CHECKING

from ideal_dispatch.dispatch.trace import Facts

if TYPE_CHECKING:
    from ideal_dispatch.dispatch.decision import Decision
    from ideal_dispatch.dispatch.scenario_gap import Outlook
    from ideal_dispatch.dispatch.worth import Worth
    from ideal_dispatch.gap import OptimisticGap


def log_details(decision: "Decision") -> Facts:
    """The ``details`` of a decision, with the policy's own facts last.

    The order of keys differs by policy as it always did: logs stay the same bytes.
    """
    pair, outlook, gap = pair_facts(decision), {}, {}
    if decision.outlook is not None:
        outlook = outlook_facts(decision.outlook)
    if decision.gap is not None:
        gap = gap_facts(decision.gap)
    if decision.primary_s is None or decision.primary_by == "router":
        known = {**pair, **gap, **outlook}
    elif decision.primary_by == "model":
        known = {"nominal_primary_s": round(decision.primary_s, 3), **outlook, **gap, **pair}
    else:
        known = {"primary_s": round(decision.primary_s, 3)}
        if (worth := decision.worth) is not None:
            known |= worth_facts(worth)
            known["expected_survival_gain"] = round(worth.survival_gain, 6)
            known["survival_curve"] = worth.curve.name
        known |= {**pair, **outlook, **gap}
    return known | dict(decision.facts)


def pair_facts(decision: "Decision") -> Facts:
    """How different the second ambulance's path is from the first's."""
    overlap = decision.overlap
    if overlap is None:
        return {}
    return {
        "overlap": round(overlap, 4),
        "same_depot": decision.same_depot,
        "same_path": decision.same_path,
    }


def worth_facts(worth: "Worth") -> Facts:
    """The worth of a second; with what came about, its features are rows to fit a gain on."""
    names = [column.name for column in fields(worth.features)]
    values = {name: float(getattr(worth.features, name)) for name in names}
    return {
        "second": worth.candidate.source,
        "second_s": round(worth.candidate.expected_s, 3),
        "expected_gain_s": round(worth.gain_s, 3),
        "spread_s": round(worth.spread_s, 3),
        "times_from": worth.times_from,
        "spread_from": worth.spread_from,
        **{name: None if math.isnan(v) else round(v, 3) for name, v in values.items()},
    }


def outlook_facts(outlook: "Outlook") -> Facts:
    """The scenario set, and what is unusual about its forecast."""
    facts: Facts = {"centre": outlook.centre, "radius": round(outlook.scenarios.radius, 6)}
    if outlook.forecast.unusual:
        facts["unusual"] = "; ".join(outlook.forecast.unusual)
    if outlook.forecast.transferred:
        facts["transferred"] = True
    return facts


def gap_facts(gap: "OptimisticGap") -> Facts:
    """The interval of the gap; an upper end of null was not found."""
    return {
        "gap_lower_s": round(gap.lower_s, 3),
        "gap_upper_s": round(gap.upper_s, 3) if math.isfinite(gap.upper_s) else None,
        "gap_status": gap.status,
    }
