"""What policies achieved in replays: the dispatch tables of docs/evidence.md.

Reads the runs of an experiment (`ideal replay`); the protocol stands above the
tables and in the experiment file.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE
from ideal_dispatch.evaluation.figures import pareto
from ideal_dispatch.evaluation.metrics import RegretSummary
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.result_tables import (
    Judged,
    arrival_table,
    benchmark_table,
    difference_table,
    regret_table,
    second_table,
    wilcoxon_table,
)
from ideal_dispatch.evaluation.tables import Table
from ideal_dispatch.files import atomic_write

WORLDS = {
    "A": "a road takes what the router shows when it is entered, as in the paper",
    "B": "a road takes what really happens to who enters it",
}
FIGURE_OF = "B"
PRINTED = {
    ("region", 0.0): (59.6, 324.1, 16.5, 158.2),
    ("router", 0.0): (5.2, 79.8, 8.6, 127.7),
    ("interval", 0.25): (4.1, 69.5, 8.5, 127.7),
    ("interval", 0.5): (3.5, 62.8, 8.4, 126.5),
    ("interval", 0.75): (3.4, 62.0, 8.3, 126.5),
    ("router-dual", 1.0): (3.4, 60.9, 8.3, 126.5),
    ("paper", 0.25): (3.7, 61.6, 5.7, 96.5),
    ("paper", 0.5): (2.5, 43.3, 2.6, 46.8),
    ("paper", 0.75): (2.0, 36.8, 1.0, 18.5),
    ("paper", 1.0): (1.0, 20.5, 0.3, 6.5),
}
"""[IDEAL] tables 1 and 3: mean and CVaR95 of regret, Hong Kong Island and Sha Tin."""
PAIR = ("paper-calibrated", "paper-many-starts")  # Algorithm 2's gap, and the best of many starts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("run", type=Path, help="the folder that `ideal replay` wrote")
    parser.add_argument("--mark", default="port-almery", help="of the part that is replaced")
    parser.add_argument("--write", type=Path, help="the page whose tables are replaced")
    given = parser.parse_args()
    text = "\n".join(_page(given.run))
    if given.write is None:
        print(text)
        return
    begin, end = f"<!-- {given.mark}: begin -->", f"<!-- {given.mark}: end -->"
    before, found, rest = given.write.read_text(encoding="utf-8").partition(begin)
    if not found:
        parser.error(f"{given.write} has no mark {begin}")
    with atomic_write(given.write) as file:
        file.write(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}".encode())
    if (given.run / FIGURE_OF / "test").exists():
        judged = _judged(given.run, FIGURE_OF)
        shown = replace(judged, outcomes=judged.outcomes.only(FIGURE_OF))
        pareto(shown).savefig(given.write.parent / "images" / "evidence_pareto.png", dpi=110)


def _page(run: Path) -> list[str]:
    lines = _beside(run)
    for world, words in WORLDS.items():
        if not (run / world).exists():
            continue
        training = Judged(Outcomes.load(run / world / "training"), None, CURVES[USUAL_CURVE], 0)
        test = run / world / "test"
        lines += [f"### World {world}: {words}", ""]
        lines += ["#### Training days, cross-fitted: to choose by", ""]
        lines += _tables([difference_table(training, world), second_table(training, world)])
        lines += _fitted(run / world)
        if not test.exists():
            continue
        judged = _judged(run, world)
        outcomes = judged.outcomes
        days = len(set(outcomes.day.tolist()))
        lines += [
            "",
            f"#### Test days: {outcomes.day.size:,} calls on {days} days",
            "",
            "Thresholds for a volume are those of the training days; the volume reached is shown.",
            "",
        ]
        lines += _tables(
            [
                arrival_table(judged, world),
                arrival_table(judged, world, judged.others),
                difference_table(judged, world),
                regret_table(judged, world),
                wilcoxon_table(judged, "paper", world),
                wilcoxon_table(judged, "ideal", world),
                benchmark_table(judged, world),
                second_table(judged, world),
            ]
        )
        lines += _gap_pair(judged, world)
    return lines


def _judged(run: Path, world: str) -> Judged:
    training = Outcomes.load(run / world / "training")
    return Judged(Outcomes.load(run / world / "test"), training, CURVES[USUAL_CURVE], 0)


def _beside(run: Path) -> list[str]:
    """The paper's regrets beside ours for the same strategies."""
    worlds = [world for world in WORLDS if (run / world / "test").exists()]
    if not worlds:
        return []
    heads = ["paper, Hong Kong", "paper, Sha Tin", *(f"here, world {world}" for world in worlds)]
    judged = {world: _judged(run, world) for world in worlds}
    lines = [
        "### The paper's table beside ours",
        "",
        "Mean / CVaR95 of regret in seconds against the candidate set of the paper (test days).",
        "",
        f"| strategy | {' | '.join(heads)} |",
        f"|---|{'---:|' * len(heads)}",
    ]
    rows = [*PRINTED, *(("ideal", share) for share in (0.25, 0.5, 0.75, 1.0))]
    for policy, share in rows:
        printed = PRINTED.get((policy, share))
        cells = ["–", "–"]
        if printed:
            cells = [f"{printed[0]} / {printed[1]}", f"{printed[2]} / {printed[3]}"]
        for world in worlds:
            arrival_s = judged[world].at(policy, share).arrival_s[world]
            summary = RegretSummary.of(arrival_s, judged[world].outcomes.best_s[world]["paper"])
            cells.append(f"{summary.mean_s:.1f} / {summary.cvar95_s:.1f}")
        form = {0.0: "", 1.0: "dual"}.get(share, f"+{share:.0%}")
        name = f"{policy}, {form}" if form and policy != "router-dual" else policy
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def _tables(tables: list[Table | None]) -> list[str]:
    lines = []
    for table in tables:
        if table is not None:
            lines += [table.markdown(), ""]
            if table.note:
                lines += [table.note, ""]
    return lines


def _fitted(folder: Path) -> list[str]:
    """What was learned from all training days, where it was."""
    gain, drift = folder / "all" / "gain.json", folder / "all" / "drift" / "manifest.json"
    if not gain.exists():
        return []
    above, below = json.loads(gain.read_text())["reversion"]
    held_out = json.loads(drift.read_text())["details"]["held_out"]
    return [
        f"Learned from all training days: a quote moves by {above:.2f} of what the router's range "
        f"reaches above it and by {below:.2f} of what it reaches below. The drift network's error "
        f"on held-out training days: quotes {held_out['quoted_mae_s']:.1f} s, corrected "
        f"{held_out['corrected_mae_s']:.1f} s.",
        "",
    ]


def _gap_pair(judged: Judged, world: str) -> list[str]:
    """Algorithm 2's gap against the best of many starts, in the same policy."""
    if not set(PAIR) <= set(judged.outcomes.policies):
        return []
    plain, better = (judged.outcomes.policy(name) for name in PAIR)
    ahead = better.score_s - plain.score_s
    lines = [
        f"The gap of many starts against Algorithm 2's, same policy and scenario set: larger by "
        f"more than 0.1 s in {np.mean(ahead > 0.1):.1%} of the calls, by {ahead.mean():.2f} s in "
        "the mean."
    ]
    for share in (0.25, 0.5):
        one, other = (judged.at(name, share) for name in PAIR)
        changed = np.mean(one.sent != other.sent)
        saved = (one.arrival_s[world] - other.arrival_s[world]).mean()
        lines.append(
            f"At +{share:.0%} it changes {changed:.1%} of the decisions and saves {saved:.2f} s "
            "a call."
        )
    return [" ".join(lines), ""]


if __name__ == "__main__":
    main()
