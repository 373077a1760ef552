"""What a reader must know before trusting the numbers of a run."""

from collections.abc import Iterator

from ideal_dispatch.dispatch.settings import KINDS
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.roles import first_of

ENOUGH_DAYS = 10
_OFF_TARGET = 0.03


def caveats(judged: Judged) -> list[str]:
    """A line for each reason to be careful; empty where there is none."""
    outcomes, lines = judged.outcomes, []
    if judged.calibration is None:
        lines.append(
            "Thresholds for a volume were set on the very calls they are judged on, so volumes "
            "are met exactly and results are a little too good. A run of other days, given with "
            "--calibration, makes it fair."
        )
    else:
        shared = sorted(set(outcomes.days) & set(judged.calibration.days))
        if shared:
            lines.append(
                f"The calibration run shares {len(shared)} days with this one, {shared[0]} among "
                "them: thresholds have seen what they are judged on."
            )
        off = [
            row
            for row in judged.rows(outcomes.policies)
            if row.form.startswith("+") and abs(row.extra - _asked(row.form)) > _OFF_TARGET
        ]
        if off:
            worst = max(off, key=lambda row: abs(row.extra - _asked(row.form)))
            lines.append(
                f"{len(off)} {'strategies send' if len(off) > 1 else 'strategy sends'} a second "
                "on more or fewer calls than asked for, by more than "
                f"{100 * _OFF_TARGET:.0f} points; furthest off is {worst.label}, with "
                f"{100 * worst.extra:+.1f} %. Compare at matched volume, in the table of seconds "
                "saved (saved-*.csv), or in the figures."
            )
    if len(outcomes.days) < ENOUGH_DAYS:
        lines.append(
            f"{len(outcomes.days)} {'days are' if len(outcomes.days) > 1 else 'day is'} few: at "
            f"least {ENOUGH_DAYS} are needed before a difference may be claimed."
        )
    if "paper" not in outcomes.roles:
        lines.append(
            "The paper's printed policy is not in this run: its candidate set is every depot's "
            "adaptive drive alone."
        )
    if "interval" not in outcomes.roles:
        lines.append("No interval-selective policy is in this run to compare with.")
    dropped = outcomes.manifest.get("dropped")
    if dropped:
        lines.append(
            f"{len(dropped)} of {len(outcomes) + len(dropped)} incidents could not be replayed "
            "and are in no number here; the run's manifest says why."
        )
    return [*lines, *_second_players(outcomes)]


def _second_players(outcomes: Outcomes) -> Iterator[str]:
    """Parts that several policies claim, unless they are all forms of a policy of ours."""
    known, ours = outcomes.manifest.get("policies", {}), {one.__name__ for one in KINDS.values()}
    for role, player in outcomes.roles.items():
        claimed = [name for name, claim in outcomes.claims.items() if claim == role]
        others = ", ".join(name for name in claimed if name != player)
        if others and {first_of(known.get(name)).get("type") for name in claimed} - ours:
            yield (
                f'The role "{role}" is played by {player}. Among the controls, with the same role: '
                f"{others}. A policy without a role is shown beside ours."
            )


def _asked(form: str) -> float:
    return float(form.strip("+ %")) / 100
