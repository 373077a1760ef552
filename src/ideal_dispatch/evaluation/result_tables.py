"""The tables of a run: arrivals, the paper's two, wider benchmarks, second trips."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.dispatch.survival import SurvivalCurve
from ideal_dispatch.evaluation.metrics import ArrivalSummary, RegretSummary
from ideal_dispatch.evaluation.outcomes import BENCHMARKS, Outcomes
from ideal_dispatch.evaluation.roles import STORY, first_of
from ideal_dispatch.evaluation.significance import paired_wilcoxon
from ideal_dispatch.evaluation.strategies import (
    VOLUMES,
    Strategy,
    as_decided,
    at_volume,
    dual,
    is_selective,
    sends_one,
    single,
    strategies,
)
from ideal_dispatch.evaluation.tables import Cell, Column, Table, file_name
from ideal_dispatch.replay.drive import World

WORLD_WORDS: Mapping[str, str] = {world: world.words for world in World}
_BENCHMARK_WORDS = {"common": "all drives", "hindsight": "hindsight"}
EXTRA = Column("reached %", 1, signed=True, percent=True)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A run with its thresholds set: what tables and figures are made of.

    ``calibration`` is the run of other days on which thresholds for a volume
    are set; without one they are set on the run itself.
    """

    outcomes: Outcomes
    calibration: Outcomes | None = None
    curve: SurvivalCurve | None = None
    seed: int = 0

    @property
    def main(self) -> tuple[str, ...]:
        """Policies with a part in the story, in the order of telling, then those without a role."""
        roles = self.outcomes.roles
        return (*(roles[role] for role in STORY if role in roles), *self.outcomes.free)

    @property
    def others(self) -> tuple[str, ...]:
        """Every other policy: controls and variants."""
        return tuple(name for name in self.outcomes.policies if name not in self.main)

    def rows(self, policies: Iterable[str], as_set: bool = False) -> list[Strategy]:
        """The strategies of the given policies, one after the other.

        With ``as_set``, the candidates also at the thresholds they were given, where those select.
        """
        found = []
        for name in policies:
            found += strategies(self.outcomes, name, self.calibration)
            own = as_decided(self.outcomes.policy(name))
            if as_set and name in candidates(self.outcomes) and 0.0 < own.extra < 1.0:
                found.append(own)
        return found

    def at(self, policy: str, share: float) -> Strategy:
        """A policy at a volume; 1 is dual."""
        one = self.outcomes.policy(policy)
        if share >= 1.0:
            return dual(one)
        trained = None if self.calibration is None else self.calibration.policy(policy)
        return at_volume(one, share, trained)

    @property
    def own(self) -> str | None:
        """The policy a report is about.

        It is ours, else the first without a role, else the paper's, else any that selects.
        """
        roles, free = self.outcomes.roles, self.outcomes.free
        named = (roles.get("ideal"), *free, roles.get("paper"), *self.rivals())
        return next((name for name in named if name is not None), None)

    def rivals(self, reference: str | None = None) -> list[str]:
        """Policies that choose who gets a second, but for the one they are compared with."""
        return [
            name
            for name, policy in self.outcomes.policies.items()
            if name != reference and is_selective(policy)
        ]

    @property
    def printed(self) -> tuple[str, ...]:
        """Every form of the paper's policy, the one with a part in the story first."""
        main = self.outcomes.roles.get("paper")
        forms = [name for name, claim in self.outcomes.claims.items() if claim == "paper"]
        return tuple(sorted(forms, key=lambda name: name != main))

    def bold(self, policies: Iterable[str]) -> frozenset[int]:
        """Numbers of the rows to make stand out."""
        return frozenset(i for i, policy in enumerate(policies) if policy == self.own)


def arrival_table(judged: Judged, world: str, policies: Sequence[str] | None = None) -> Table:
    """When the first ambulance comes; policies with a part in the story unless told."""
    rows = judged.rows(judged.main if policies is None else policies, as_set=True)
    columns: tuple[Column, ...] = (
        Column("strategy"), EXTRA, Column("mean s", 2, arrow="↓"), Column("P90 s", 2, arrow="↓"),
        Column("P95 s", 2, arrow="↓"), Column("<8 min", percent=True, arrow="↑"),
        Column("<12 min", percent=True, arrow="↑"),
        Column("survival", 2, percent=True, arrow="↑"),
    )  # fmt: skip
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        s = ArrivalSummary.of(row.arrival_s[world], judged.curve)
        cells.append((row.label, row.extra, s.mean_s, s.p90_s, s.p95_s, s.within_8_min,
                      s.within_12_min, s.survival))  # fmt: skip
    if judged.curve is None:
        columns, cells = columns[:-1], [row[:-1] for row in cells]
    return Table(
        f"arrival-{world}" if policies is None else f"arrival-controls-{world}",
        f"Driving time of the first ambulance to arrive in {WORLD_WORDS[world]}",
        columns,
        tuple(cells),
        judged.bold(row.policy for row in rows),
        "In a strategy's name the share of calls that shall get a second ambulance, beside it the "
        "share that did. Below 8 and 12 minutes: share of calls, %."
        + ("" if judged.curve is None else f" Survival: expected by {judged.curve.name}, %."),
    )


def regret_table(judged: Judged, world: str) -> Table:
    """The paper's first table, and its candidate-optimal rate: every form of its policy."""
    others = [name for name in judged.printed if name not in judged.main]
    rows = judged.rows([*judged.main, *others])
    best = judged.outcomes.best_s[world]["paper"]
    tail = r"$\mathrm{CVaR}_{0.%d}$"
    names = (("Mean", ""), ("P95", ""), ("P99", ""), ("CVaR95", tail % 95), ("CVaR99", tail % 99))
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        s = RegretSummary.of(row.arrival_s[world], best)
        cells.append(
            (_paper_label(row), s.optimal, s.mean_s, s.p95_s, s.p99_s, s.cvar95_s, s.cvar99_s)
        )
    return Table(
        f"regret-{world}",
        f"Summary statistics of regret in seconds in {WORLD_WORDS[world]}",
        (Column("Strategy"), Column("Optimal %", percent=True, arrow="↑"),
         *(Column(name, 2, arrow="↓", latex=latex) for name, latex in names)),
        tuple(cells),
        judged.bold(row.policy for row in rows),
        "Regret is against the best of every depot's adaptive drive and the printed policy's "
        f"second path; percentages are the dispatch volume reached. {forms_in_words(judged)}"
        "A form whose second is not the set's may fall below zero.",
    )  # fmt: skip


def wilcoxon_table(judged: Judged, own: str, world: str) -> Table:
    """The paper's second table: always-dual ``own`` against the baselines."""
    outcomes = judged.outcomes
    ours = dual(outcomes.policy(own))
    columns = (
        Column("Baseline"), Column("Evaluation n", latex="Evaluation $n$"),
        Column("Wilcoxon n≠0", latex=r"Wilcoxon $n_{\ne0}$"),
        Column("Mean diff. (s; normal 95% CI)", 2, latex=r"Mean diff.\ (s; normal 95\% CI)"),
        Column("Statistic"), Column("p-value", scientific=True, latex="$p$-value"),
    )  # fmt: skip
    cells: list[tuple[Cell, ...]] = []
    for role in ("region", "router", "router-dual"):
        if role not in outcomes.roles:
            continue
        one = outcomes.policy(outcomes.roles[role])
        baseline = dual(one) if role == "router-dual" else single(one)
        test = paired_wilcoxon(baseline.arrival_s[world], ours.arrival_s[world])
        cells.append((f"({len(cells) + 1}) {one.name}", test.incidents, test.nonzero,
                      test.difference, whole(test.statistic), test.p_value))  # fmt: skip
    return Table(
        f"wilcoxon-{file_name(own)}-{world}",
        f"One-sided paired Wilcoxon signed-rank tests against {own}, dual in {WORLD_WORDS[world]}",
        columns,
        tuple(cells),
        note=f"The alternative is that the baseline arrives later than {own}, dual. Incidents "
        "count as independent here, as in the paper; those of one day are not, so p is too small.",
    )


def benchmark_table(judged: Judged, world: str) -> Table:
    """Regret against wider benchmarks, for a set with our own path in it flatters us."""
    rows, known = judged.rows(judged.main), judged.outcomes.best_s[world]
    used = [one for one in BENCHMARKS[1:] if one in known]
    columns = [Column("strategy"), EXTRA]
    for one in used:
        words = _BENCHMARK_WORDS[one]
        columns += [Column(f"{words}: best %", percent=True, arrow="↑"),
                    Column(f"{words}: mean s", 2, arrow="↓"),
                    Column(f"{words}: CVaR95 s", 2, arrow="↓")]  # fmt: skip
    cells = []
    for row in rows:
        line: list[Cell] = [row.label, row.extra]
        for one in used:
            s = RegretSummary.of(row.arrival_s[world], known[one])
            line += [s.optimal, s.mean_s, s.cvar95_s]
        cells.append(tuple(line))
    return Table(
        f"benchmarks-{world}",
        f"Regret against wider benchmarks in {WORLD_WORDS[world]}",
        tuple(columns),
        tuple(cells),
        judged.bold(row.policy for row in rows),
        "Best: share of incidents no later than the benchmark. All drives are those of every "
        "policy here, sent or not; hindsight is the fastest drive for one who knows the future.",
    )


def second_table(judged: Judged, world: str) -> Table:
    """Where the second ambulance drives, and how often it is first."""
    columns = (
        Column("policy"), Column("has second %", percent=True),
        Column("same road %", percent=True), Column("same depot %", percent=True),
        Column("overlap %", percent=True), Column("second first %", percent=True),
        Column("s saved each, dual", 2), Column("s saved each, +25 %", 2),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    names = []
    for name, policy in judged.outcomes.policies.items():
        has, drives = policy.has_second, policy.drives[world]
        if not has.any() or sends_one(policy):
            continue
        saved = np.fmax(drives.primary_s - drives.second_s, 0.0)
        few = judged.at(name, VOLUMES[0]).sent if is_selective(policy) else np.zeros_like(has)
        rows.append(
            (name, float(has.mean()), float(drives.same_road[has].mean()),
             float(policy.same_depot[has].mean()), float(drives.overlap[has].mean()),
             float((saved[has] > 0).mean()), float(saved[has].mean()),
             float(saved[few].mean()) if few.any() else None)
        )  # fmt: skip
        names.append(name)
    return Table(
        f"second-{world}",
        f"The second ambulance in {WORLD_WORDS[world]}",
        columns,
        tuple(rows),
        judged.bold(names),
        "Of calls that have a second, sent or not. Same road: both drive the very same streets. "
        "Overlap: part of the second's driving time on streets the first drives too. Seconds "
        "saved each: what one second ambulance brings forward the arrival, on average.",
    )


def forms_in_words(judged: Judged) -> str:
    """Which network and radius every form of the paper's policy has, with a space at the end."""
    known = judged.outcomes.manifest.get("policies", {})
    forms = [(name, first_of(known.get(name)).get("form")) for name in judged.printed]
    return "".join(f"{name}: {form}. " for name, form in forms if form)


def _paper_label(row: Strategy) -> str:
    if not row.form.startswith("+"):
        return row.label
    return f"{row.policy}, +{100 * row.extra:.1f}% amb."


def whole(value: float) -> float | int:
    """A statistic as tables show it: without decimals where it has none."""
    return int(value) if value.is_integer() else value


def candidates(outcomes: Outcomes) -> list[str]:
    """The policies to be judged: the paper's, ours, and those without a role."""
    known = [outcomes.roles[role] for role in ("paper", "ideal") if role in outcomes.roles]
    return [*known, *outcomes.free]
