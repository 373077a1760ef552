"""One table, four forms; and the rows of a run's tables by hand."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.dispatch.survival import CURVES
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import Interval, day_t_interval, regret_s
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.result_tables import (
    arrival_table,
    benchmark_table,
    difference_table,
    regret_table,
    second_table,
    wilcoxon_table,
)
from ideal_dispatch.evaluation.strategies import matched_arrival_s
from ideal_dispatch.evaluation.table import Column, Table
from ideal_dispatch.pages import environment
from tests.unit.evaluation.logs import decided, entry, town_run, write_run

SMALL = Table(
    "small",
    "A small one & more",
    (Column("who"), Column("n"), Column("share", percent=True, arrow="↑"),
     Column("gain s", signed=True), Column("p", scientific=True, latex="$p$")),
    (("a_1, +25 %", 1160, 0.5, Interval(-0.04, -1.0, 2.0), 3.4e-113), ("b", 2, None, None, 0.25)),
    frozenset({0}),
)  # fmt: skip


def test_text() -> None:
    assert SMALL.text_rows() == [
        ["a_1, +25 %", "1,160", "50.0", "+0.0 [−1.0, +2.0]", "3.4e−113"],
        ["b", "2", "–", "–", "0.250"],
    ]
    unknown = Interval(1.0, float("nan"), float("nan"))
    assert Table("t", "T", (Column("x"),), ((unknown,),)).text_rows() == [["1.0"]]


def test_csv_has_plain_numbers_and_three_columns_for_an_interval() -> None:
    rows = list(csv.reader(io.StringIO(SMALL.csv())))
    assert rows[0] == ["who", "n", "share", "gain s", "gain s low", "gain s high", "p"]
    assert rows[1] == ["a_1, +25 %", "1160", "50", "-0.04", "-1", "2", "3.4e-113"]
    assert rows[2] == ["b", "2", "", "", "", "", "0.25"]


def test_a_frame_has_the_numbers_of_the_csv() -> None:
    pytest.importorskip("pandas", reason="the records extra is not installed")
    made = SMALL.to_frame()
    assert len(made) == len(SMALL.rows)
    assert list(made.columns) == SMALL.csv().splitlines()[0].split(",")


def test_latex_is_escaped_and_in_the_form_of_the_paper() -> None:
    text = SMALL.latex()
    assert r"\caption{A small one \& more.}" in text
    assert r"\begin{tabular}{lrrrr}" in text
    assert r"who & n & share $\uparrow$ & gain s & $p$ \\" in text
    assert r"\textbf{a\_1, +25 \%} & 1,160 & 50.0 & +0.0 [$-$1.0, +2.0] & " in text
    assert r"$3.4\times 10^{-113}$ \\" in text
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]


def test_rows_must_fit() -> None:
    with pytest.raises(InputError, match="table t: a row of 2 cells, there are 1 columns"):
        Table("t", "T", (Column("x"),), ((1.0, 2.0),))


def test_save_and_show(tmp_path: Path) -> None:
    assert SMALL.save(tmp_path) == [tmp_path / "small.csv", tmp_path / "small.tex"]
    assert (tmp_path / "small.csv").read_text() == SMALL.csv()
    text = '{% from "parts.html" import result_tables %}{{ result_tables([small, small]) }}'
    html = environment().from_string(text).render(small=replace(SMALL, note="Read it so."))
    assert html.count("<p>A small one &amp; more:</p>") == 2
    assert "<th>share ↑</th>" in html
    assert '<tr class="bold"><td>a_1, +25 %</td><td>1,160</td>' in html
    assert html.count("<p>Read it so.</p>") == 1


# --- tables of a run ----------------------------------------------------------------


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    folder = tmp_path_factory.mktemp("runs")
    run = Outcomes.load(town_run(folder / "run"))
    training = Outcomes.load(town_run(folder / "training", shift=5.0))
    return Judged(run, training, CURVES["waalewijn-2001"])


def test_arrivals(judged: Judged) -> None:
    table = arrival_table(judged, "instantaneous")
    labels = [row[0] for row in table.rows]
    assert labels[:6] == ["region", "router", "interval, +25 %", "interval, +50 %",
                          "interval, +75 %", "router-dual"]  # fmt: skip
    assert labels[-2:] == ["ideal, dual", "ideal, as set"]
    region = judged.outcomes.policy("region").drives["instantaneous"].primary_s
    assert table.rows[0][1:4] == (0.0, region.mean(), np.quantile(region, 0.9))
    assert {str(labels[i]).split(",")[0] for i in table.bold} == {"ideal"}
    assert all(max(map(len, row)) < 30 for row in table.text_rows())
    bare = arrival_table(Judged(judged.outcomes), "instantaneous")
    assert "survival" not in bare.header
    controls = arrival_table(judged, "instantaneous", judged.others)
    assert controls.name == "arrival-controls-instantaneous"
    assert controls.rows[0][0] == "random, +25 %"


def test_the_papers_first_table(judged: Judged) -> None:
    table = regret_table(judged, "experienced")
    assert table.header == ["Strategy", "Optimal %", "Mean", "P95", "P99", "CVaR95", "CVaR99"]
    late = regret_s(
        judged.at("ideal", 1.0).arrival_s["experienced"],
        judged.outcomes.best_s["experienced"]["paper"],
    )
    row = next(row for row in table.rows if row[0] == "ideal, dual")
    assert row[1:3] == ((late <= 0).mean(), late.mean())
    extra = judged.at("ideal", 0.25).extra
    assert f"ideal, +{100 * extra:.1f}% amb." in [row[0] for row in table.rows]
    assert r"$\mathrm{CVaR}_{0.95}$ $\downarrow$" in table.latex()


def test_the_papers_second_table(judged: Judged) -> None:
    table = wilcoxon_table(judged, "instantaneous", "paper-ideal")
    assert [row[0] for row in table.rows] == ["(1) region", "(2) router", "(3) router-dual"]
    assert all(row[1] == 24 for row in table.rows)
    assert "Wilcoxon $n_{\\ne0}$" in table.latex()


def test_wider_benchmarks(judged: Judged) -> None:
    table = benchmark_table(judged, "instantaneous")
    assert len(table.columns) == 8
    last = table.rows[-1]
    assert isinstance(last[6], float)
    assert isinstance(last[3], float)
    assert last[6] > last[3]  # hindsight is harder to meet


def test_differences_are_against_interval_at_the_same_volume(judged: Judged) -> None:
    table = difference_table(judged, "experienced")
    assert table is not None
    shown = [(name, 4 if judged.as_set(name) else 3) for name in judged.rivals("interval")]
    assert [name for name, _ in shown] == ["paper-ideal", "ideal", "random", "alternative"]
    assert [row[0] for row in table.rows] == [name for name, count in shown for _ in range(count)]
    own, other = judged.at("ideal", 0.5), judged.at("interval", 0.5)
    ours = [row for row in table.rows if row[0] == "ideal"]
    row = ours[1]
    assert row[:4] == ("ideal", "+50 %", own.extra, other.extra)
    saved = other.arrival_s["experienced"] - own.arrival_s["experienced"]
    assert isinstance(row[4], Interval)
    assert row[4].mean == pytest.approx(saved.mean())
    assert row[5] == day_t_interval(saved, judged.outcomes.day)
    assert str(row[6]).endswith("of 4")
    policies = [judged.outcomes.policy(name) for name in ("interval", "ideal")]
    rival, us = (matched_arrival_s(policy, 0.5, "experienced") for policy in policies)
    assert row[7] == day_t_interval(rival - us, judged.outcomes.day)
    as_set = judged.as_set("ideal")
    assert as_set is not None
    other = judged.at("interval", as_set.extra)
    assert ours[3][:4] == ("ideal", "as set", as_set.extra, other.extra)
    saved = other.arrival_s["experienced"] - as_set.arrival_s["experienced"]
    assert ours[3][5] == day_t_interval(saved, judged.outcomes.day)


def test_forms_of_the_printed_policy_are_named(tmp_path: Path) -> None:
    forms = {"paper": "network one", "paper-quantile": "radius two"}
    lines = [
        entry(f"{i}", {"s0": 50.0 + i, "s1": 49.0},
              {"router": decided("s0", "s1")} | {n: decided("s0", "s1", float(i)) for n in forms})
        for i in range(4)
    ]  # fmt: skip
    described = {
        n: {"policies": {"d": {"type": "PaperIdeal", "form": f}}} for n, f in forms.items()
    }
    run = write_run(
        tmp_path / "run", lines, policies={"router": {"type": "RouterPolicy"}, **described}
    )
    table = regret_table(Judged(Outcomes.load(run)), "instantaneous")
    assert {"paper, dual", "paper-quantile, dual"} <= {row[0] for row in table.rows}
    assert "paper: network one. paper-quantile: radius two. " in table.note


def test_no_interval_policy_no_differences(tmp_path: Path) -> None:
    lines = [entry("one", {"s0": 5.0, "s1": 4.0}, {"ideal": decided("s0", "s1")})]
    lone = Judged(Outcomes.load(write_run(tmp_path / "run", lines)))
    assert difference_table(lone, "instantaneous") is None
    assert lone.own == "ideal"
    assert len(arrival_table(lone, "instantaneous").rows) == 1


def test_where_the_second_drives(tmp_path: Path) -> None:
    same = ([1, 2], [10.0, 30.0])
    lines = [
        entry("one", {"s0": same, "s0+00000000": same, "s1": ([3, 2], [10.0, 10.0])},
              {"ideal": decided("s0", "s0+00000000", 2.0), "control": decided("s0", "s1", 1.0)}),
        entry("two", {"s0": same, "s1": ([3, 2], [25.0, 25.0])},
              {"ideal": decided("s0", "s1", 1.0), "control": decided("s0", None, 0.0)}),
    ]  # fmt: skip
    table = second_table(Judged(Outcomes.load(write_run(tmp_path / "run", lines))), "instantaneous")
    assert table.rows[0][:6] == ("ideal", 1.0, 0.5, 0.5, 0.75, 0.0)
    assert table.rows[1][:7] == ("control", 0.5, 0.0, 0.0, 0.5, 1.0, 20.0)


def test_what_a_second_saves_as_set(judged: Judged) -> None:
    table = second_table(judged, "experienced")
    assert table.header[-1] == "s saved each, as set"
    own = judged.as_set("ideal")
    assert own is not None
    drives = judged.outcomes.policy("ideal").drives["experienced"]
    saved = np.fmax(drives.primary_s - drives.second_s, 0.0)[own.sent]
    row = next(row for row in table.rows if row[0] == "ideal")
    assert row[-1] == pytest.approx(saved.mean())
