"""Standing a second down with live information: docs/evidence/live_recall.md.

``python -m workshop.evidence.live_recall --fleet OUT --races LOG`` reads a folder of ``ideal fleet
simulate experiments/fleet_live_recall.toml`` and the responses of Lancaster County;
`make live-recall-evidence` makes both first. Protocol and tables were fixed before any result
was looked at.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ideal_dispatch import __version__
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.recall import RECALLS, Recall
from ideal_dispatch.evaluation.fleet_report import RECALL_WORDS
from ideal_dispatch.evaluation.fleet_runs import ALWAYS, NEVER, PRICED, SURE
from ideal_dispatch.files import write_file
from ideal_dispatch.fleet.results import RunSummary, standard_error
from ideal_dispatch.records.responses import Responses
from ideal_dispatch.report import Cell, Column, Table
from workshop.evidence import live_races
from workshop.evidence.fleet_years import tallied
from workshop.evidence.live_races import LiveRaces
from workshop.evidence.pages import FOLDER, shown

STOOD: Recall = "first arrival"
"""What the other rules are held against: it gives nothing of the call's own gain away."""

PROTOCOL = (
    "**Question.** Two units are on their way. How much of what the second saves is lost if it is "
    "stood down before anybody arrives, how much of its time is freed, and does it help to know "
    "where both are?",
    "**Rules.** *Never stood down*: the later unit drives to the end and assists. *At first "
    "arrival*: it turns round when the other one is there. *By its price*: each 30 s both are "
    "looked at; known is who has left, and that nobody has arrived. The one expected later is "
    "stood down where what it may still save is below the price of its absence. *By its price, "
    "positions known* (`live`): each 15 s, and known is also which share of its drive each has "
    "done. The margins are those of the service: stood down below 0.8 times the price, or where "
    "it is first with a chance below 2 %. Either of the two may be stood down; the service "
    "speaks of the second alone. Whoever is stood down stays so.",
    "**What a position tells.** In the simulation a drive has one true pace. A dispatcher who "
    "counted on that would know the end of a drive from its first minute, which nobody does. So "
    "he believes the forecast at the start and the pace at the end: with a share p driven and f "
    "times the seconds that this share should have taken, f to the power of p is expected of the "
    "rest. The rest has the spread of a whole drive of its length, all of the slack included.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fleet", type=Path, required=True, help="of `ideal fleet simulate`")
    parser.add_argument("--docs", type=Path, default=FOLDER, help="folder of the page")
    parser.add_argument("--races", type=Path, required=True, help="the .responses file")
    given = parser.parse_args()
    cases = list(fleet_cases(given.fleet))
    made = f"*Made by `make live-recall-evidence`, ideal-dispatch {__version__}.*"
    blocks = ["# Standing a second down, with live information", made, *PROTOCOL]
    blocks += ["## A simulated fleet", *fleet_words(cases)]
    blocks += shown(*fleet_tables(cases))
    races = LiveRaces.of(Responses.load(given.races))
    blocks += ["## Real races", *live_races.PROTOCOL, *shown(races.table)]
    blocks += live_races.race_words(races)
    write_file(given.docs / "live_recall.md", "\n\n".join(blocks) + "\n")


# --- a simulated fleet -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    """A number with its standard error over years, None where there is one year."""

    value: float
    error: float | None

    @classmethod
    def of(cls, by_year: FloatArray) -> "Measured":
        """The mean over years."""
        return cls(float(by_year.mean()), standard_error(by_year) if len(by_year) > 1 else None)

    @property
    def sure(self) -> bool:
        """Whether it is beyond chance."""
        return self.error is not None and abs(self.value) > SURE * self.error

    def told(self, decimals: int = 1) -> str:
        """With its sign."""
        error = "" if self.error is None else f" ± {self.error:.{decimals}f}"
        return f"{self.value:+.{decimals}f}{error}".replace("-", "−")


@dataclass(frozen=True, slots=True, eq=False)
class FleetCase:
    """One load and share of entitled calls, under one policy: the years of every recall rule."""

    load: float
    entitled: float
    policy: str
    never: RunSummary
    rules: dict[Recall, RunSummary]

    def survivors(self, recall: Recall, than: Recall | None = None) -> Measured:
        """More survivors of 1,000 arrests than with no seconds, or than under another rule."""
        other = self.never if than is None else self.rules[than]
        return Measured.of(other.deaths_by_year - self.rules[recall].deaths_by_year)

    def hours(self, recall: Recall) -> FloatArray:
        """Hours of every year for which units were held that took no patient."""
        return self.rules[recall].each("held_s") / 3600.0

    def freed(self, recall: Recall, than: Recall) -> Measured:
        """Unit minutes that are freed for each second unit that the other rule sends."""
        seconds = np.maximum(self.rules[than].each("seconds"), 1.0)
        return Measured.of(60.0 * (self.hours(than) - self.hours(recall)) / seconds)

    def minutes(self, recall: Recall) -> float:
        """Minutes for which a second is held."""
        tally = self.rules[recall]
        return float(tally.each("held_s").sum() / 60.0 / max(tally.each("seconds").sum(), 1.0))

    def later_s(self, recall: Recall) -> Measured:
        """How much longer the calls wait that are not entitled, than with no seconds."""
        means = []
        for tally in (self.rules[recall], self.never):
            groups = [one["groups"]["others"] for _, one in sorted(tally.years.items())]
            means.append(np.array([total_s / max(calls, 1) for calls, total_s in groups]))
        return Measured.of(means[0] - means[1])


def fleet_cases(folder: Path) -> Iterator[FleetCase]:
    """All of a folder, by share of entitled calls, load and policy."""
    for about, tallies in sorted(
        tallied(folder), key=lambda one: (one[0]["entitled"], one[0]["load"])
    ):
        for policy in (ALWAYS, PRICED):
            rules = {recall: tallies[policy, recall] for recall in RECALLS}
            never = tallies[NEVER, "none"]
            yield FleetCase(about["load"], about["entitled"], policy, never, rules)


def fleet_tables(cases: list[FleetCase]) -> Iterator[Table]:
    """A table for each share of entitled calls; a row for each load, policy and rule."""
    for share in sorted({one.entitled for one in cases}):
        rows: list[tuple[Cell, ...]] = []
        for one in (case for case in cases if case.entitled == share):
            gain = one.survivors(STOOD)
            for recall in RECALLS:
                found = one.survivors(recall)
                kept = found.value / gain.value if gain.value > 0.0 and gain.sure else None
                rows.append(
                    (f"{100 * one.load:.0f} %", one.policy, RECALL_WORDS[recall], found.told(),
                     kept, "–" if recall == STOOD else one.survivors(recall, STOOD).told(2),
                     one.minutes(recall), float(one.hours(recall).mean()),
                     "–" if recall == STOOD else one.freed(recall, STOOD).told(2),
                     "–" if recall == "none" else one.freed(recall, "none").told(1),
                     one.later_s(recall).told())
                )  # fmt: skip
        yield Table(
            f"fleet_{100 * share:.0f}",
            f"Port Almery, {100 * share:.0f} % of the calls are entitled to a second",
            (Column("busy"), Column("policy"), Column("the later unit is"),
             Column("more survivors"), Column("% of first arrival's", 0, percent=True),
             Column("survivors against first arrival"), Column("held, min"),
             Column("held, h a year", 0), Column("freed against first arrival, min"),
             Column("freed against never, min"), Column("others wait longer, s")),
            tuple(rows),
            frozenset(n for n, row in enumerate(rows) if row[2] == RECALL_WORDS["live"]),
            note="More survivors: of 1,000 patients with a cardiac arrest, against no seconds at "
            "all. Freed: unit minutes for each second that the other rule sends. ± is the "
            f"standard error over {len(cases[0].never.years)} years, paired by year. The share "
            "stands where the gain at first arrival is sure.",
        )  # fmt: skip


def fleet_words(cases: list[FleetCase]) -> list[str]:
    """What came out of the fleet, for and against live recall."""
    lines = []
    for recall in ("worth", "live"):
        lost = [one.survivors(recall, STOOD) for one in cases]
        freed = [one.freed(recall, STOOD).value for one in cases]
        lines.append(
            f"- **{RECALL_WORDS[recall][0].upper()}{RECALL_WORDS[recall][1:]}**, against first "
            f"arrival: survivors change by {min(m.value for m in lost):+.2f} to "
            f"{max(m.value for m in lost):+.2f} of 1,000 (surely fewer in "
            f"{sum(m.sure and m.value < 0 for m in lost)} and surely more in "
            f"{sum(m.sure and m.value > 0 for m in lost)} of {len(lost)} cases), and "
            f"{min(freed):.2f} to {max(freed):.2f} unit minutes are freed for each second."
        )
    beside = [one.survivors("live", "worth") for one in cases]
    more = [one.freed("live", "worth") for one in cases]
    lines.append(
        f"- **What positions add**, live against by its price: survivors change by "
        f"{min(m.value for m in beside):+.2f} to {max(m.value for m in beside):+.2f} of 1,000 "
        f"(surely fewer in {sum(m.sure and m.value < 0 for m in beside)} and surely more in "
        f"{sum(m.sure and m.value > 0 for m in beside)} of {len(beside)} cases), and "
        f"{min(m.value for m in more):+.2f} to {max(m.value for m in more):+.2f} unit minutes are "
        "freed for each second."
    )
    early = [one.survivors(recall, STOOD) for one in cases for recall in ("worth", "live")]
    better = sum(m.sure and m.value > 0 for m in early)
    if not better:
        lines.append(
            "- **Against us.** Neither rule surely saves more than standing down at first arrival, "
            "in any case. By the rule's own prices the freed time is worth more than what is "
            "given up; that cannot be seen here. Time is freed, and no lives."
        )
    return ["\n".join(lines).replace(" -", " −")]


if __name__ == "__main__":
    main()
