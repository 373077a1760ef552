"""Seconds saved against interval-selective, with intervals that know about days."""

from ideal_dispatch.evaluation.result_tables import EXTRA, WORLD_WORDS, Judged
from ideal_dispatch.evaluation.significance import day_interval, day_t_interval, days_won
from ideal_dispatch.evaluation.strategies import VOLUMES, matched_arrival_s
from ideal_dispatch.evaluation.tables import Cell, Column, Table


def difference_table(judged: Judged, world: str) -> Table | None:
    """Seconds saved against interval-selective, with day-clustered intervals.

    None where no interval policy took part.
    """
    outcomes = judged.outcomes
    reference = outcomes.roles.get("interval")
    if reference is None:
        return None
    rival = outcomes.policy(reference)
    rows: list[tuple[Cell, ...]] = []
    names = []
    for name in judged.rivals(reference):
        policy = outcomes.policy(name)
        for share in VOLUMES:
            own, other = judged.at(name, share), judged.at(reference, share)
            saved = other.arrival_s[world] - own.arrival_s[world]
            even = matched_arrival_s(rival, share, world) - matched_arrival_s(policy, share, world)
            rows.append(
                (name, f"+{100 * share:.0f} %", own.extra, other.extra,
                 day_interval(saved, outcomes.day, seed=judged.seed),
                 day_t_interval(saved, outcomes.day),
                 f"{days_won(saved, outcomes.day)[0]} of {len(outcomes.days)}",
                 day_t_interval(even, outcomes.day))
            )  # fmt: skip
            names.append(name)
    return Table(
        f"saved-{world}",
        f"Seconds saved per call against {reference} in {WORLD_WORDS[world]}",
        (Column("policy"), Column("target"), EXTRA,
         Column(f"{reference} reached %", 1, signed=True, percent=True),
         Column("saved s, bootstrap", 2, signed=True), Column("saved s, t", 2, signed=True),
         Column("days ahead"), Column("at matched volume s, t", 2, signed=True)),
        tuple(rows),
        judged.bold(names),
        "Mean over all calls with a 95 % interval that draws whole days, and beside it the mean of "
        "the days' means with Student's 95 % interval, which is wider and the safer one; above "
        "zero throughout, the policy is better beyond chance. Days ahead: on how many its mean "
        "was better. At matched volume: both send exactly the target, by thresholds interpolated "
        "on these very days, so a comparison after the fact and no forecast of what a threshold "
        "does.",
    )  # fmt: skip
