"""The tables of a replay: arrivals, differences, the paper's two, benchmarks, second units."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple

import numpy as np

from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import (
    ArrivalSummary,
    RegretSummary,
    day_interval,
    day_t_interval,
    days_won,
    paired_wilcoxon,
)
from ideal_dispatch.evaluation.outcomes import Benchmark, first_of
from ideal_dispatch.evaluation.strategies import (
    ALWAYS,
    NEVER,
    VOLUMES,
    dual,
    is_selective,
    sends_one,
    single,
)
from ideal_dispatch.report import Cell, Column, Table, file_name

_BENCHMARK_WORDS = {
    "paper": "the paper's candidate set",
    "common": "all drives",
    "hindsight": "hindsight",
}
_BENCHMARK_NOTES = {
    "paper": "The benchmark is the best of every depot's adaptive drive and the printed policy's "
    "second path; percentages are the dispatch volume reached. A form whose second is not the "
    "set's may fall below zero.",
    "common": "All drives are those of every policy here, sent or not.",
    "hindsight": "Hindsight is the fastest drive for one who knows the future.",
}
_LIMITS: Mapping[float, str] = {ALWAYS: "always", NEVER: "no second needed"}
EXTRA = Column("reached %", 1, signed=True, percent=True)


def arrival_table(judged: Judged, policies: Sequence[str] | None = None) -> Table:
    """When the first ambulance comes; of policies with a part in the story by default."""
    rows = judged.rows(judged.main if policies is None else policies)
    columns: tuple[Column, ...] = (
        Column("strategy"), EXTRA, Column("mean s", 2, arrow="↓"), Column("P90 s", 2, arrow="↓"),
        Column("P95 s", 2, arrow="↓"), Column("<8 min", percent=True, arrow="↑"),
        Column("<12 min", percent=True, arrow="↑"),
        Column("survival", 2, percent=True, arrow="↑"),
    )  # fmt: skip
    cells: list[tuple[Cell, ...]] = [
        (row.label, row.extra, *astuple(ArrivalSummary.of(row.arrival_s, judged.curve)))
        for row in rows
    ]
    survival = f" Survival: expected by {judged.curve.name}, %." if judged.curve else ""
    if judged.curve is None:
        columns, cells = columns[:-1], [row[:-1] for row in cells]
    return Table(
        "arrival" if policies is None else "arrival-controls",
        "Driving time of the first ambulance to arrive",
        columns,
        tuple(cells),
        judged.bold(row.policy for row in rows),
        "In a strategy's name the share of calls that shall get a second ambulance, beside it the "
        f"share that did. Below 8 and 12 minutes: share of calls, %.{survival}",
    )


def difference_table(judged: Judged) -> Table | None:
    """Seconds saved against interval-selective, with day-clustered intervals.

    A policy *as set* is compared at the volume that it reaches. None where no interval policy took
    part.
    """
    outcomes = judged.outcomes
    reference = outcomes.roles.get("interval")
    if reference is None:
        return None
    rows: list[tuple[Cell, ...]] = []
    for name in judged.rivals(reference):
        shown = [(share, judged.at(name, share)) for share in VOLUMES]
        if (as_set := judged.as_set(name)) is not None:
            shown.append((as_set.extra, as_set))
        for share, own in shown:
            other = judged.at(reference, share)
            saved_s = other.arrival_s - own.arrival_s
            even_s = judged.matched_saved_s(name, reference, share)
            rows.append(
                (name, own.form, own.extra, other.extra,
                 day_interval(saved_s, outcomes.day, seed=judged.seed),
                 day_t_interval(saved_s, outcomes.day),
                 f"{days_won(saved_s, outcomes.day)} of {len(outcomes.days)}",
                 day_t_interval(even_s, outcomes.day))
            )  # fmt: skip
    return Table(
        "saved",
        f"Seconds saved per call against {reference}",
        (Column("policy"), Column("target"), EXTRA,
         Column(f"{reference} reached %", 1, signed=True, percent=True),
         Column("saved s, bootstrap", 2, signed=True), Column("saved s, t", 2, signed=True),
         Column("days ahead"), Column("at matched volume s, t", 2, signed=True)),
        tuple(rows),
        judged.bold(str(row[0]) for row in rows),
        "Mean over all calls with a 95 % interval that draws whole days, and beside it the mean of "
        "the days' means with Student's 95 % interval, which is wider and the safer one; above "
        "zero throughout, the policy is better beyond chance. Days ahead: on how many its mean "
        "was better. At matched volume: both send exactly the target, by thresholds interpolated "
        "on these very days: a comparison after the fact, no forecast of what a threshold does.",
    )  # fmt: skip


def regret_table(judged: Judged, benchmark: Benchmark = "paper") -> Table:
    """The paper's first table, and its candidate-optimal rate, against one of the benchmarks.

    Against the paper's own it has every form of the printed policy.
    """
    shown, note = [*judged.main], _BENCHMARK_NOTES[benchmark]
    if benchmark == "paper":
        described = judged.outcomes.manifest.get("policies", {})
        forms = [(name, first_of(described.get(name)).get("form")) for name in judged.printed]
        note += "".join(f" {name}: {form}." for name, form in forms if form)
        shown += [name for name in judged.printed if name not in shown]
    rows = judged.rows(shown)
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        label = f"{row.policy}, +{100 * row.extra:.1f}% amb."
        late = RegretSummary.of(row.arrival_s, judged.outcomes.best_s[benchmark])
        cells.append((label if row.form.startswith("+") else row.label, *astuple(late)))
    return Table(
        f"regret-{benchmark}",
        f"Regret in seconds against {_BENCHMARK_WORDS[benchmark]}",
        (Column("Strategy"), Column("Optimal %", percent=True, arrow="↑"),
         *(Column(name, 2, arrow="↓") for name in ("Mean", "P95", "P99", "CVaR95", "CVaR99"))),
        tuple(cells),
        judged.bold(row.policy for row in rows),
        f"Optimal: share of incidents no later than the benchmark. {note}",
    )  # fmt: skip


def coverage_table(judged: Judged) -> Table | None:
    """The highest threshold of each policy that meets the goal; None without a goal."""
    goal, found_on = judged.goal, judged.calibration or judged.outcomes
    if goal is None:
        return None
    rows: list[tuple[Cell, ...]] = []
    for name in judged.rivals():
        found, one = judged.covering(name, goal), judged.outcomes.policy(name)
        alone, at, both = (
            None if row is None else float(goal.met(row.arrival_s).mean())
            for row in (single(one), found, dual(one))
        )
        threshold: Cell = "not reached"
        if found is not None:
            threshold = _LIMITS.get(found.threshold_s, found.threshold_s)
        rows.append((name, threshold, None if found is None else found.extra, at, alone, both))
    return Table(
        "coverage",
        f"Thresholds that reach {100 * goal.share:g} % of calls in {goal.within_s:g} s of driving",
        (Column("policy"), Column("threshold s", 3), EXTRA,
         Column("in time %", percent=True, arrow="↑"),
         Column("single: in time %", percent=True, arrow="↑"),
         Column("dual: in time %", percent=True, arrow="↑")),
        tuple(rows),
        judged.bold(judged.rivals()),
        "The highest threshold, so the one that sends the fewest second ambulances, with which "
        f"the target was met on the calls of {found_on.name}; beside it, what it does here.",
    )  # fmt: skip


def wilcoxon_table(judged: Judged, own: str) -> Table:
    """The paper's second table: always-dual ``own`` against the baselines."""
    outcomes = judged.outcomes
    ours = dual(outcomes.policy(own))
    cells: list[tuple[Cell, ...]] = []
    for role in ("region", "router", "router-dual"):
        if role not in outcomes.roles:
            continue
        one = outcomes.policy(outcomes.roles[role])
        baseline = dual(one) if role == "router-dual" else single(one)
        test = paired_wilcoxon(baseline.arrival_s, ours.arrival_s)
        label = judged.rows([one.name])[0].label if role == "region" else one.name
        cells.append((f"({len(cells) + 1}) {label}", test.incidents, test.nonzero,
                      test.difference, whole(test.statistic), test.p_value))  # fmt: skip
    return Table(
        f"wilcoxon-{file_name(own)}",
        f"One-sided paired Wilcoxon signed-rank tests against {own}, dual",
        (Column("Baseline"), Column("Evaluation n"), Column("Wilcoxon n≠0"),
         Column("Mean diff. (s; normal 95% CI)", 2), Column("Statistic"),
         Column("p-value", scientific=True)),
        tuple(cells),
        note=f"The alternative is that the baseline arrives later than {own}, dual. Incidents "
        "count as independent here, as in the paper; those of one day are not, so p is too small.",
    )  # fmt: skip


def second_table(judged: Judged) -> Table:
    """Where the second ambulance drives, and how often it is first."""
    columns = [
        Column("policy"), Column("has second %", percent=True),
        Column("same road %", percent=True), Column("same depot %", percent=True),
        Column("overlap %", percent=True), Column("second first %", percent=True),
        Column("s saved each, dual", 2), Column("s saved each, +25 %", 2),
    ]  # fmt: skip
    as_set = {name: judged.as_set(name) for name in judged.outcomes.policies}
    if any(as_set.values()):
        columns.append(Column("s saved each, as set", 2))
    rows: list[tuple[Cell, ...]] = []
    for name, policy in judged.outcomes.policies.items():
        has = policy.has_second
        if not has.any() or sends_one(policy):
            continue
        saved_s = np.fmax(policy.primary_s - policy.second_s, 0.0)
        few = judged.at(name, VOLUMES[0]) if is_selective(policy) else None
        each = [
            float(saved_s[one.sent].mean()) if one is not None and one.sent.any() else None
            for one in (few, as_set[name])
        ]
        row: tuple[Cell, ...] = (
            name, float(has.mean()), float(policy.same_road[has].mean()),
            float(policy.same_depot[has].mean()), float(policy.overlap[has].mean()),
            float((saved_s[has] > 0).mean()), float(saved_s[has].mean()), *each,
        )  # fmt: skip
        rows.append(row[: len(columns)])
    return Table(
        "second",
        "The second ambulance",
        tuple(columns),
        tuple(rows),
        judged.bold(str(row[0]) for row in rows),
        "Of calls that have a second, sent or not. Same road: both drive the very same streets. "
        "Overlap: part of the second's driving time on streets the first drives too. Seconds "
        "saved each: what one second ambulance brings forward the arrival, on average.",
    )


def whole(value: float) -> float | int:
    """A statistic as tables show it: without decimals where it has none."""
    return int(value) if value.is_integer() else value
