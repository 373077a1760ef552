"""The rows of a replay's tables by hand."""

from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.dispatch.survival import CURVES
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import day_interval, day_t_interval, paired_wilcoxon
from ideal_dispatch.evaluation.outcomes import BENCHMARKS, Benchmark, Outcomes
from ideal_dispatch.evaluation.result_tables import (
    arrival_table,
    difference_table,
    regret_table,
    second_table,
    wilcoxon_table,
)
from ideal_dispatch.evaluation.strategies import dual, matched_arrival_s
from tests.unit.evaluation.logs import decided, entry, town_run, write_run


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    folder = tmp_path_factory.mktemp("runs")
    run = Outcomes.load(town_run(folder / "run"))
    training = Outcomes.load(town_run(folder / "training", shift=5.0))
    return Judged(run, training, CURVES["waalewijn-2001"])


def test_arrivals(judged: Judged) -> None:
    table = arrival_table(judged)
    labels = [row[0] for row in table.rows]
    assert labels[:6] == ["region", "router", "interval, +25 %", "interval, +50 %",
                          "interval, +75 %", "router-dual"]  # fmt: skip
    assert labels[-2:] == ["ideal, dual", "ideal, as set"]
    region_s = judged.outcomes.policy("region").primary_s
    assert table.rows[0][1:4] == (0.0, region_s.mean(), np.quantile(region_s, 0.9))
    assert {str(labels[i]).split(",")[0] for i in table.bold} == {"ideal"}
    assert "survival" not in arrival_table(Judged(judged.outcomes)).header
    controls = arrival_table(judged, judged.others)
    assert (controls.name, controls.rows[0][0]) == ("arrival-controls", "random, +25 %")


def test_the_papers_first_table(judged: Judged) -> None:
    table = regret_table(judged)
    assert table.header == ["Strategy", "Optimal %", "Mean", "P95", "P99", "CVaR95", "CVaR99"]
    found = judged.regret(judged.at("ideal", 1.0))
    row = next(row for row in table.rows if row[0] == "ideal, dual")
    assert row[1:3] == (found.optimal, found.mean_s)
    extra = judged.at("ideal", 0.25).extra
    assert f"ideal, +{100 * extra:.1f}% amb." in [row[0] for row in table.rows]


def test_the_papers_second_table(judged: Judged) -> None:
    table = wilcoxon_table(judged, "paper-ideal")
    assert [row[0] for row in table.rows] == ["(1) region", "(2) router", "(3) router-dual"]
    own = dual(judged.outcomes.policy("paper-ideal"))
    rivals = {"(2) router": "primary_s", "(3) router-dual": None}
    for row in table.rows[1:]:
        policy = judged.outcomes.policy(str(row[0])[4:])
        alone = policy.primary_s if rivals[str(row[0])] else dual(policy).arrival_s
        test = paired_wilcoxon(alone, own.arrival_s)
        assert row[1:4] == (24, test.nonzero, test.difference)
        assert row[4:] == (test.statistic, test.p_value)


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_regret_against_each_benchmark(judged: Judged, benchmark: Benchmark) -> None:
    always_s = judged.at("ideal", 1.0).arrival_s
    late_s = always_s - judged.outcomes.best_s[benchmark]
    row = next(row for row in regret_table(judged, benchmark).rows if row[0] == "ideal, dual")
    assert row[1:3] == pytest.approx(((late_s <= 0).mean(), late_s.mean()))


def test_differences_are_against_interval_at_the_same_volume(judged: Judged) -> None:
    table, day = difference_table(judged), judged.outcomes.day
    assert table is not None
    shown = [(name, 4 if judged.as_set(name) else 3) for name in judged.rivals("interval")]
    assert [name for name, _ in shown] == ["paper-ideal", "ideal", "random", "alternative"]
    assert [row[0] for row in table.rows] == [name for name, count in shown for _ in range(count)]
    ours = [row for row in table.rows if row[0] == "ideal"]
    own, other = judged.at("ideal", 0.5), judged.at("interval", 0.5)
    assert ours[1][:4] == ("ideal", "+50 %", own.extra, other.extra)
    saved_s = other.arrival_s - own.arrival_s
    assert ours[1][4:6] == (day_interval(saved_s, day), day_t_interval(saved_s, day))
    assert str(ours[1][6]).endswith("of 4")
    policies = [judged.outcomes.policy(name) for name in ("interval", "ideal")]
    rival_s, us_s = (matched_arrival_s(policy, 0.5) for policy in policies)
    assert ours[1][7] == day_t_interval(rival_s - us_s, day)
    as_set = judged.as_set("ideal")
    assert as_set is not None
    other = judged.at("interval", as_set.extra)
    assert ours[3][:4] == ("ideal", "as set", as_set.extra, other.extra)
    assert ours[3][5] == day_t_interval(other.arrival_s - as_set.arrival_s, day)


def test_forms_of_the_printed_policy_are_named(tmp_path: Path) -> None:
    forms = {"paper": "network one", "paper-quantile": "radius two"}
    lines = [
        entry(f"{i}", {"s0": 50.0 + i, "s1": 49.0},
              {"router": decided("s0", "s1")} | {n: decided("s0", "s1", float(i)) for n in forms})
        for i in range(4)
    ]  # fmt: skip
    described = {n: {"policies": {"d": {"form": f}}} for n, f in forms.items()}
    roles = {"router": "router", **dict.fromkeys(forms, "paper")}
    run = write_run(tmp_path / "run", lines, policies=described, roles=roles)
    table = regret_table(Judged(Outcomes.load(run)))
    assert {"paper, dual", "paper-quantile, dual"} <= {row[0] for row in table.rows}
    assert "paper: network one. paper-quantile: radius two." in table.note


def test_a_lone_policy_has_no_differences(tmp_path: Path) -> None:
    lines = [entry("one", {"s0": 5.0, "s1": 4.0}, {"ideal": decided("s0", "s1")})]
    lone = Judged(Outcomes.load(write_run(tmp_path / "run", lines)))
    assert difference_table(lone) is None
    assert lone.own == "ideal"
    assert len(arrival_table(lone).rows) == 1


def test_where_the_second_drives(tmp_path: Path) -> None:
    same = ([1, 2], [10.0, 30.0])
    lines = [
        entry("one", {"s0": same, "s0+00000000": same, "s1": ([3, 2], [10.0, 10.0])},
              {"ideal": decided("s0", "s0+00000000", 2.0), "control": decided("s0", "s1", 1.0)}),
        entry("two", {"s0": same, "s1": ([3, 2], [25.0, 25.0])},
              {"ideal": decided("s0", "s1", 1.0), "control": decided("s0", None, 0.0)}),
    ]  # fmt: skip
    run = Outcomes.load(write_run(tmp_path / "run", lines, world="instantaneous"))
    table = second_table(Judged(run))
    assert table.rows[0][:6] == ("ideal", 1.0, 0.5, 0.5, 0.75, 0.0)
    assert table.rows[1][:7] == ("control", 0.5, 0.0, 0.0, 0.5, 1.0, 20.0)


def test_what_a_second_saves_as_set(judged: Judged) -> None:
    own, policy = judged.as_set("ideal"), judged.outcomes.policy("ideal")
    assert own is not None
    saved_s = np.fmax(policy.primary_s - policy.second_s, 0.0)[own.sent]
    row = next(row for row in second_table(judged).rows if row[0] == "ideal")
    assert row[-1] == pytest.approx(saved_s.mean())
