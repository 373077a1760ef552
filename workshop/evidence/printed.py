"""The paper's two tables of results, and ours in the same form below each of their rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import Interval, RegretSummary, paired_wilcoxon
from ideal_dispatch.evaluation.result_tables import whole
from ideal_dispatch.evaluation.strategies import dual, single
from ideal_dispatch.evaluation.table import Cell, Column, Table
from ideal_dispatch.replay.drive import World

Key = tuple[str, float]
"""A role (see :mod:`ideal_dispatch.evaluation.roles`) and second ambulances per incident."""


@dataclass(frozen=True, slots=True)
class Results:
    """What [IDEAL] prints of one place.

    ``regret`` has extra %, mean, P95, P99, CVaR95 and CVaR99 by strategy;
    ``optimal`` the candidate-optimal rates it tells, as shares; ``tests`` the
    incidents, those that differ, mean difference and ends, statistic and p of
    IDEAL dual against each baseline.
    """

    place: str
    regret: Mapping[Key, tuple[float, float, float, float, float, float]]
    optimal: Mapping[Key, float]
    tests: Mapping[str, tuple[int, int, Interval, float, float]]


RESULTS: Mapping[str, Results] = MappingProxyType(
    {
        "hong-kong-island": Results(
            "paper, Hong Kong Island",
            {
                ("region", 0.0): (0.0, 59.6, 200.0, 414.4, 324.1, 502.0),
                ("router", 0.0): (0.0, 5.2, 29.1, 121.1, 79.8, 156.8),
                ("interval", 0.25): (25.2, 4.1, 20.0, 113.4, 69.5, 156.8),
                ("interval", 0.5): (50.0, 3.5, 15.0, 104.2, 62.8, 147.0),
                ("interval", 0.75): (75.3, 3.4, 13.0, 104.2, 62.0, 147.0),
                ("router-dual", 1.0): (100.0, 3.4, 13.0, 104.2, 60.9, 147.0),
                ("paper", 0.25): (25.0, 3.7, 21.0, 85.2, 61.6, 129.7),
                ("paper", 0.5): (50.0, 2.5, 12.0, 57.0, 43.3, 98.2),
                ("paper", 0.75): (75.0, 2.0, 7.0, 50.0, 36.8, 95.9),
                ("paper", 1.0): (100.0, 1.0, 0.0, 37.0, 20.5, 63.6),
            },
            {
                ("region", 0.0): 0.497, ("router", 0.0): 0.841,
                ("router-dual", 1.0): 0.884, ("paper", 1.0): 0.958,
            },
            {
                "region": (1160, 713, Interval(58.6, 53.7, 63.6), 251497.0, 3.4e-113),
                "router": (1160, 161, Interval(4.1, 3.0, 5.2), 13041.0, 1.7e-28),
                "router-dual": (1160, 183, Interval(2.3, 1.2, 3.4), 11957.5, 4.0e-7),
            },
        ),
        "sha-tin": Results(
            "paper, Sha Tin",
            {
                ("region", 0.0): (0.0, 16.5, 141.8, 169.9, 158.2, 179.2),
                ("router", 0.0): (0.0, 8.6, 50.2, 149.0, 127.7, 154.2),
                ("interval", 0.25): (25.0, 8.5, 50.2, 149.0, 127.7, 154.2),
                ("interval", 0.5): (49.9, 8.4, 46.8, 149.0, 126.5, 154.2),
                ("interval", 0.75): (75.2, 8.3, 46.8, 149.0, 126.5, 154.2),
                ("router-dual", 1.0): (100.0, 8.3, 46.8, 149.0, 126.5, 154.2),
                ("paper", 0.25): (25.0, 5.7, 17.6, 144.9, 96.5, 151.2),
                ("paper", 0.5): (49.9, 2.6, 8.0, 89.6, 46.8, 140.5),
                ("paper", 0.75): (75.0, 1.0, 1.0, 13.0, 18.5, 65.1),
                ("paper", 1.0): (100.0, 0.3, 0.0, 8.9, 6.5, 26.1),
            },
            {
                ("region", 0.0): 0.637, ("router", 0.0): 0.721,
                ("router-dual", 1.0): 0.739, ("paper", 1.0): 0.982,
            },
            {
                "region": (705, 247, Interval(16.2, 13.2, 19.2), 30455.5, 1.1e-41),
                "router": (705, 184, Interval(8.3, 6.2, 10.4), 17020.0, 2.7e-32),
                "router-dual": (705, 197, Interval(7.9, 5.8, 10.1), 18077.0, 1.3e-25),
            },
        ),
    }
)  # fmt: skip
"""[IDEAL] section 6.2 and appendix H, by the place."""

_NAMES = {
    "region": "Region-based", "router": "Router primary", "router-dual": "Router dual",
    "interval": "Interval", "paper": "IDEAL as printed", "ideal": "IDEAL, ours",
}  # fmt: skip
_OWN = [("ideal", share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]


def regret_beside(runs: Mapping[World, Judged], printed: Results) -> Table:
    """The paper's table of regrets with our rows under each of its own; ``runs`` are by world."""
    rows: list[tuple[Cell, ...]] = []
    for role, share in [*printed.regret, *_OWN]:
        told = printed.regret.get((role, share))
        if told is not None:
            extra, *rest = told
            optimal = printed.optimal.get((role, share))
            rows.append((_label(role, share), printed.place, extra / 100, optimal, *rest))
        for world, judged in runs.items():
            if role in judged.outcomes.roles:
                rows.append((_label(role, share), f"here, {world}",
                             *_regret(judged, role, share, world)))  # fmt: skip
    names = ("Mean", "P95", "P99", "CVaR95", "CVaR99")
    return Table(
        "regret-beside",
        "Summary statistics of regret in seconds, the paper's and ours",
        (Column("Strategy"), Column("where"), Column("amb.", 1, signed=True, percent=True),
         Column("Optimal %", percent=True, arrow="↑"),
         *(Column(name, 2, arrow="↓") for name in names)),
        tuple(rows),
        frozenset(i for i, row in enumerate(rows) if str(row[1]).startswith("here")),
        "Regret against the best of every depot's adaptive drive and the printed policy's second "
        "path; amb. is the dispatch volume reached. The paper's router is Google's on Google's "
        "own estimates; levels cannot be compared, orders can.",
    )  # fmt: skip


def wilcoxon_beside(
    runs: Mapping[World, Judged], printed: Results, roles: Sequence[str] = ("paper", "ideal")
) -> Table:
    """The paper's table of one-sided paired tests, with ours under each of its rows."""
    rows: list[tuple[Cell, ...]] = []
    for number, (role, told) in enumerate(printed.tests.items(), 1):
        name = f"({number}) {_NAMES[role]}"
        rows.append((name, f"{printed.place}: IDEAL dual", *told[:3], whole(told[3]), told[4]))
        for world, judged in runs.items():
            outcomes = judged.outcomes
            for own in roles:
                if not {role, own} <= set(outcomes.roles):
                    continue
                ours = dual(outcomes.policy(outcomes.roles[own]))
                one = outcomes.policy(outcomes.roles[role])
                baseline = dual(one) if role == "router-dual" else single(one)
                test = paired_wilcoxon(baseline.arrival_s[world], ours.arrival_s[world])
                rows.append(
                    (name, f"here, {world}: {_NAMES[own]}, dual", test.incidents,
                     test.nonzero, test.difference, whole(test.statistic), test.p_value)
                )  # fmt: skip
    return Table(
        "wilcoxon-beside",
        "One-sided paired Wilcoxon signed-rank tests on regret, the paper's and ours",
        (Column("Baseline"), Column("where"), Column("Evaluation n"), Column("Wilcoxon n≠0"),
         Column("Mean diff. (s; normal 95% CI)", 2), Column("Statistic"),
         Column("p-value", scientific=True)),
        tuple(rows),
        frozenset(i for i, row in enumerate(rows) if str(row[1]).startswith("here")),
        "The alternative is that the baseline arrives later than the always-dual policy. Incidents "
        "count as independent, as in the paper; those of one day are not, so p is too small.",
    )  # fmt: skip


def _regret(judged: Judged, role: str, share: float, world: str) -> tuple[Cell, ...]:
    outcomes = judged.outcomes
    name = outcomes.roles[role]
    row = single(outcomes.policy(name)) if share == 0.0 else judged.at(name, share)
    s = RegretSummary.of(row.arrival_s[world], outcomes.best_s[world]["paper"])
    return (row.extra, s.optimal, s.mean_s, s.p95_s, s.p99_s, s.cvar95_s, s.cvar99_s)


def _label(role: str, share: float) -> str:
    if role in ("region", "router", "router-dual"):
        return _NAMES[role]
    form = {0.0: "single", 1.0: "dual"}.get(share, f"+{100 * share:.0f} %")
    return f"{_NAMES[role]}, {form}"
