"""Which rows a policy gets, and the operating points of its curve."""

import json
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.figures import arrivals, pareto
from ideal_dispatch.evaluation.judged import Goal, Judged
from ideal_dispatch.evaluation.metrics import RegretSummary
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.report import caveats
from ideal_dispatch.evaluation.result_tables import (
    beating_table,
    benchmark_table,
    coverage_table,
    regret_table,
)
from ideal_dispatch.evaluation.strategies import at_threshold, dual, single, thresholds
from tests.unit.evaluation.logs import TYPES, decided, entry, town_run, write_run


def test_points_of_a_curve_by_recomputation(tmp_path: Path) -> None:
    run = Outcomes.load(town_run(tmp_path / "run"))
    one, best = run.policy("ideal"), run.best_s["experienced"]["paper"]
    found = Judged(run).curves("ideal", "experienced")["ideal"]
    assert (np.diff(found.extra) > 0).all()
    for place, end in ((0, single(one)), (-1, dual(one))):
        assert found.extra[place] == end.extra
        assert found.mean_arrival_s[place] == pytest.approx(end.arrival_s["experienced"].mean())
    for place, threshold in enumerate(thresholds(one)):
        point = at_threshold(one, threshold)
        late = RegretSummary.of(point.arrival_s["experienced"], best)
        assert found.extra[place] == point.extra
        assert found.mean_regret_s[place] == pytest.approx(late.mean_s)
        assert found.cvar95_regret_s[place] == pytest.approx(late.cvar95_s)
    router = Judged(run).curves("router", "experienced")["router"]
    assert router.extra.tolist() == [0.0]


def test_rows_of_each_policy(tmp_path: Path) -> None:
    run = Outcomes.load(town_run(tmp_path / "run"))

    def labels(name: str) -> list[str]:
        return [row.label for row in Judged(run).rows([name])]

    assert labels("region") == ["region"]
    assert labels("router") == ["router"]
    assert labels("router-dual") == ["router-dual"]
    assert Judged(run).rows(["router-dual"])[0].extra == 1.0
    assert Judged(run).rows(["router"])[0].extra == 0.0
    assert labels("interval") == ["interval, +25 %", "interval, +50 %", "interval, +75 %"]
    assert labels("ideal") == ["ideal, +25 %", "ideal, +50 %", "ideal, +75 %", "ideal, dual",
                               "ideal, as set"]  # fmt: skip
    assert labels("random")[-1] == "random, dual"


def test_what_the_experiment_names_is_shown(tmp_path: Path) -> None:
    run = town_run(tmp_path / "experienced" / "test")
    assert Outcomes.load(run).worlds == ("instantaneous", "experienced")
    tables = {"interval": {"threshold": 5}, "random": {"threshold": 0.5}, "ideal": {}}
    told = {"name": "x", "worlds": ["experienced"], "policies": tables}
    (tmp_path / "experiment.json").write_text(json.dumps(told))
    found = Outcomes.load(run)
    assert found.worlds == ("experienced",)
    assert found.only("instantaneous").worlds == ("instantaneous",)  # asked for by name
    judged = Judged(found)
    labels = [row[0] for row in benchmark_table(judged, "experienced").rows]
    assert {"interval, as set", "ideal, as set"} <= set(labels)
    assert {"interval, as set"} < {row[0] for row in regret_table(judged, "experienced").rows}
    for figure in (pareto(judged), arrivals(judged)):
        circles = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
        shown = {str(line.get_label()): line.get_xdata() for line in circles}
        assert {"ideal, as set", "interval, as set", "random, as set"} <= set(shown)
    own = judged.as_set("ideal")
    assert own is not None
    assert shown["ideal, as set"] == pytest.approx([100 * own.extra])


def test_a_part_that_two_policies_claim(tmp_path: Path) -> None:
    names = ("region", "router", "interval", "router-dual", "paper-ideal", "ideal", "random")
    roles = dict(zip(names, names, strict=True)) | {"paper-ideal": "ideal", "random": "control"}
    types = TYPES | {"paper-ideal": "Mine"}
    found = Outcomes.load(town_run(tmp_path / "run", types=types, roles=roles))
    said = [line for line in caveats(Judged(found)) if "The role" in line]
    assert said == [
        'The role "ideal" is played by ideal. Among the controls, with the same role: '
        "paper-ideal. A policy without a role is shown beside ours."
    ]
    ours = Outcomes.load(town_run(tmp_path / "ours", roles=roles))
    assert not [line for line in caveats(Judged(ours)) if "The role" in line]


def test_another_primary_is_a_row_of_its_own(tmp_path: Path) -> None:
    lines = [
        entry(f"{i}", {"s0": 100.0, "s1": 90.0},
              {"router": decided("s0", "s1"), "ideal": decided("s1", "s0", float(i))})
        for i in range(4)
    ]  # fmt: skip
    run = Outcomes.load(write_run(tmp_path / "run", lines))
    assert Judged(run).rows(["ideal"])[0].form == "single"


def _eight_calls(folder: Path, scores: list[float]) -> Outcomes:
    """The router's first is best on calls 0-2, the other depot on 3, the detour on 4-7."""
    lines = []
    for call, score in enumerate(scores):
        drives = {"s0": 100.0, "s1": 95.0 if call == 3 else 120.0}
        drives["s0+00000001"] = 90.0 if call > 3 else 110.0
        decisions = {
            "region": decided("s1"),
            "router": decided("s0", "s1"),
            "interval": decided("s0", "s1", float(call), 4.0),
            "router-dual": decided("s0", "s1", 0.0, None),
            "paper-ideal": decided("s0", "s0+00000001", score),
            "ideal": decided("s0", "s1", score),
        }
        lines.append(entry(str(call), drives, decisions))
    return Outcomes.load(write_run(folder, lines))


def test_the_least_volume_that_beats_the_strongest_baseline(tmp_path: Path) -> None:
    """Router dual is best on 4 of 8; the printed policy on 3, and on one more per good second."""
    run = _eight_calls(tmp_path / "run", [9.0, 8.0, 0.0, 0.0, 7.0, 6.0, 5.0, 4.0])
    for world in run.worlds:
        judged = Judged(run)
        strongest = judged.strongest(world)
        assert strongest is not None
        assert (strongest.label, judged.rate(strongest, world)) == ("interval, +75 %", 0.5)
        found = judged.beating("paper-ideal", world)
        assert found is not None
        assert found.label == "paper-ideal, least to beat baselines"
        assert found.sent.tolist() == [True, True, False, False, True, True, False, False]
        assert judged.rate(found, world) == 5 / 8  # 4 of 8 at one second less does not exceed
        assert judged.beating("ideal", world) is None  # sends what router dual does
        table = beating_table(judged, world)
        assert table is not None
        assert table.rows == (
            ("paper-ideal", 0.5, 5 / 8, 7 / 8),
            ("ideal", "not reached", None, 0.5),
        )
        assert "strongest baseline is interval, +75 %: 50.0 % of calls" in table.note


def test_beating_by_a_threshold_of_other_days(tmp_path: Path) -> None:
    run = _eight_calls(tmp_path / "run", [9.0, 8.0, 0.0, 0.0, 7.0, 6.0, 5.0, 4.0])
    other = _eight_calls(tmp_path / "other", [0.0, 0.0, 0.0, 0.0, 9.0, 8.0, 7.0, 7.0])
    judged = Judged(run, other)
    found = judged.beating("paper-ideal", "experienced", other)
    assert found is not None
    assert (found.threshold_s, found.extra) == (7.0, 0.25)
    table = beating_table(judged, "experienced")
    assert table is not None
    assert table.rows[0] == ("paper-ideal", 0.5, 5 / 8, 7 / 8, 0.25, 3 / 8)
    assert table.rows[1][-2:] == ("not reached", None)


def test_a_calibration_of_the_other_world(tmp_path: Path) -> None:
    """A live run has instantaneous drives alone, and its calibration may have none."""
    run = _eight_calls(tmp_path / "run", [9.0, 8.0, 0.0, 0.0, 7.0, 6.0, 5.0, 4.0])
    decisions = {name: decided("s0", "s1", 1.0) for name in run.policies}
    line = entry("x", {"s0": 9.0, "s1": 8.0}, decisions, worlds=["experienced"])
    judged = Judged(run, Outcomes.load(write_run(tmp_path / "other", [line])))
    table = beating_table(judged, "instantaneous")
    assert table is not None
    assert table.rows[0] == ("paper-ideal", 0.5, 5 / 8, 7 / 8)
    with pytest.raises(InputError, match="no world instantaneous; it has experienced"):
        judged.covering("ideal", "instantaneous", Goal(0.9))


def test_without_a_baseline_nobody_is_beaten(tmp_path: Path) -> None:
    lines = [
        entry(str(i), {"s0": 9.0, "s1": 8.0}, {"ideal": decided("s0", "s1", i)}) for i in (1, 2)
    ]
    judged = Judged(Outcomes.load(write_run(tmp_path / "run", lines)))
    assert judged.strongest("experienced") is None
    assert judged.beating("ideal", "experienced") is None
    assert beating_table(judged, "experienced") is None


def test_thresholds_for_a_coverage_target(tmp_path: Path) -> None:
    """In instantaneous traffic only the detours of calls 4-7 take less than 95 s."""
    run = _eight_calls(tmp_path / "run", [9.0, 8.0, 0.0, 0.0, 7.0, 6.0, 5.0, 4.0])
    other = _eight_calls(tmp_path / "other", [0.0, 0.0, 0.0, 0.0, 9.0, 8.0, 7.0, 7.0])
    world, quarter = "instantaneous", Goal(0.25, 95.0)
    found = Judged(run).covering("paper-ideal", world, quarter)
    assert found is not None
    assert (found.threshold_s, found.extra) == (5.0, 0.5)  # 9, 8, 7 and 6 go; two are in time
    learned = Judged(run, other).covering("paper-ideal", world, quarter)
    assert learned is not None
    assert (learned.threshold_s, learned.extra) == (7.0, 0.25)
    assert Judged(run).covering("paper-ideal", world, Goal(0.6, 95.0)) is None
    table = coverage_table(Judged(run, other, goal=quarter), world)
    assert table is not None
    assert table.title.startswith("Thresholds that reach 25 % of calls in 95 s of driving")
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["paper-ideal"] == (7.0, 0.25, 0.0, 0.0, 0.5)
    assert rows["ideal"] == ("not reached", None, None, 0.0, 0.0)
    assert "met on the calls of" in table.note
    all_go = coverage_table(Judged(run, goal=Goal(0.5, 95.0)), world)
    assert all_go is not None
    assert ("paper-ideal", 0.0, 0.75, 0.5, 0.0, 0.5) in all_go.rows
    easy = coverage_table(Judged(run, goal=Goal(0.9, 500.0)), world)
    assert easy is not None
    assert ("ideal", "no second needed", 0.0, 1.0, 1.0, 1.0) in easy.rows
    assert coverage_table(Judged(run), world) is None
    with pytest.raises(InputError, match=r"share 92.5: 0 to 1 is needed"):
        Goal(92.5)
    with pytest.raises(InputError, match=r"within_s 0.0: more than 0 is needed"):
        Goal(0.9, 0.0)
