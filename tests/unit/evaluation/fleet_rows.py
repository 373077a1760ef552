"""Rows of runs.json that tests make up; no figure of theirs is a finding."""

from typing import Any

Row = dict[str, Any]


def row(policy: str, recall: str = "none", **changes: Any) -> Row:
    """A run of a fleet of ten, busy for half of its time, 100 calls a day for two years."""
    made: Row = {
        "city": "Town", "units": 10, "load": 0.5, "entitled": 0.03, "policy": policy,
        "recall": recall, "years": 2, "utilisation": 0.5, "second_share": 0.0,
        "deaths_per_1000": 900.0, "deaths_difference": 0.0, "paired_se": 0.0,
        "mean_first_s": 400.0, "p90_first_s": 700.0, "late_share": 0.2, "others_mean_s": 420.0,
        "second_unit_minutes": 0.0, "stood_down_share": 0.0, "stood_down_minutes": 0.0,
        "queued_share": 0.01,
        "groups": {
            name: {"calls": calls, "mean_s": 400.0, "p90_s": 700.0, "late_share": 0.2}
            for name, calls in (("arrests", 2190), ("others", 70810), ("high", 29200),
                                ("low", 43800))
        },
    }  # fmt: skip
    return made | changes


def rows(
    load: float = 0.5, *, saved: float = 10.0, later_s: float = 6.0, **changes: Any
) -> list[Row]:
    """Never, and two policies under two rules of recall; stood down, a second costs a third."""
    own = {"load": load, "utilisation": load} | changes
    made = [row("never", **own)]
    for policy, share in (("always", 1.0), ("priced C", 0.5)):
        for recall, cost in (("none", 1.0), ("first arrival", 1.0 / 3.0)):
            made.append(
                row(policy, recall, **{
                    **own, "second_share": share, "deaths_difference": -share * saved,
                    "deaths_per_1000": 900.0 - share * saved, "paired_se": 0.4,
                    "others_mean_s": 420.0 + share * cost * later_s,
                    "second_unit_minutes": 15.0 * cost,
                })
            )  # fmt: skip
    return made
