"""Tables of replays that only the evidence shows."""

from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import day_t_interval, days_won
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.strategies import VOLUMES
from ideal_dispatch.evaluation.table import Cell, Column, Table

OTHER_DEPOT, ANY_SECOND = "ideal-other-depot", "ideal"
"""Our form with two choices of the second, by their names in the experiment files."""


def training_table(judged: Judged, world: str) -> Table | None:
    """Seconds saved against interval-selective, a row for each policy; to choose by.

    Student's intervals, at the thresholds of each volume. None where no interval
    policy took part.
    """
    outcomes = judged.outcomes
    reference = outcomes.roles.get("interval")
    if reference is None:
        return None
    names = judged.rivals(reference)
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        saved = [judged.saved_s(name, reference, share, world) for share in VOLUMES]
        ahead = ", ".join(f"{days_won(one, outcomes.day)}" for one in saved)
        rows.append(
            (name, *(day_t_interval(one, outcomes.day) for one in saved),
             f"{ahead} of {len(outcomes.days)}")
        )  # fmt: skip
    return Table(
        "training",
        f"Seconds saved per call against {reference}, training days",
        (Column("policy"), *(Column(f"+{100 * v:.0f} %", 2, signed=True) for v in VOLUMES),
         Column("days ahead")),
        tuple(rows),
        judged.bold(names),
        "Mean of the days' means with Student's 95 % interval; above zero throughout, the policy "
        "is better beyond chance. Days ahead: on how many its mean was better, at each volume.",
    )  # fmt: skip


def which_second(outcomes: Outcomes, world: str) -> Table | None:
    """What any road for the second wins over another depot's alone, at the same volume."""
    if not {OTHER_DEPOT, ANY_SECOND} <= set(outcomes.policies):
        return None
    judged = Judged(outcomes)
    saved = [judged.matched_saved_s(ANY_SECOND, OTHER_DEPOT, share, world) for share in VOLUMES]
    return Table(
        "which_second",
        f"Seconds that `{ANY_SECOND}` saves over `{OTHER_DEPOT}`, at the same volume",
        (Column("number of days"), *(Column(f"+{100 * v:.0f} %", 2, signed=True) for v in VOLUMES),
         Column("mean", 2, signed=True)),
        ((len(outcomes.days), *(day_t_interval(one, outcomes.day) for one in saved),
          float(sum(one.mean() for one in saved) / len(saved))),),
    )  # fmt: skip
