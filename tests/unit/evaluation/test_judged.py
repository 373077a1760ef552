"""Which rows a policy gets, and the operating points of its curve."""

from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.judged import Goal, Judged
from ideal_dispatch.evaluation.metrics import RegretSummary
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.result_tables import (
    coverage_table,
)
from ideal_dispatch.evaluation.strategies import at_threshold, dual, single, thresholds
from tests.unit.evaluation.logs import (
    ROLES,
    decided,
    entry,
    town_run,
    write_experiment,
    write_run,
)


def test_points_of_a_curve_by_recomputation(tmp_path: Path) -> None:
    run = Outcomes.load(town_run(tmp_path / "run"))
    one, best = run.policy("ideal"), run.best_s["paper"]
    found = Judged(run).curves("ideal")["ideal"]
    assert (np.diff(found.extra) > 0).all()
    for place, end in ((0, single(one)), (-1, dual(one))):
        assert found.extra[place] == end.extra
        assert found.mean_arrival_s[place] == pytest.approx(end.arrival_s.mean())
    for place, threshold in enumerate(thresholds(one)):
        point = at_threshold(one, threshold)
        late = RegretSummary.of(point.arrival_s, best)
        assert found.extra[place] == point.extra
        assert found.mean_regret_s[place] == pytest.approx(late.mean_s)
        assert found.cvar95_regret_s[place] == pytest.approx(late.cvar95_s)
    router = Judged(run).curves("router")["router"]
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


def test_a_threshold_that_is_given_is_shown_as_set(tmp_path: Path) -> None:
    run = town_run(tmp_path / "test")
    tables = {"interval": {"threshold": 5}, "random": {"threshold": 0.5}, "ideal": {}}
    write_experiment(tmp_path, name="x", policies=tables)
    judged = Judged(Outcomes.load(run))
    labels = {row.label for row in judged.rows(judged.outcomes.policies)}
    assert {"interval, as set", "ideal, as set", "random, as set"} <= labels
    assert judged.as_set("alternative") is None
    own = judged.as_set("ideal")
    assert own is not None
    assert judged.curves("ideal")["ideal, as set"].extra == [own.extra]


def test_a_policy_without_a_role_is_treated_like_ours(tmp_path: Path) -> None:
    roles = {**ROLES, "paper-ideal": "", "random": "control", "alternative": "control"}
    judged = Judged(Outcomes.load(town_run(tmp_path / "run", roles=roles)))
    assert judged.main[-2:] == ("ideal", "paper-ideal")
    assert judged.others == ("random", "alternative")
    assert (judged.own, judged.shown) == ("ideal", "ideal")
    assert judged.candidates == ("ideal", "paper-ideal")
    assert {"paper-ideal, dual", "paper-ideal, as set"} <= {
        r.label for r in judged.rows(judged.main)
    }


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
    return Outcomes.load(write_run(folder, lines, world="instantaneous"))


def test_the_least_volume_that_beats_the_strongest_baseline(tmp_path: Path) -> None:
    """Router dual is best on 4 of 8; the printed policy on 3, and on one more per good second."""
    run = _eight_calls(tmp_path / "run", [9.0, 8.0, 0.0, 0.0, 7.0, 6.0, 5.0, 4.0])
    judged = Judged(run)
    strongest = judged.strongest()
    assert strongest is not None
    assert (strongest.label, judged.rate(strongest)) == ("interval, +75 %", 0.5)
    found = judged.beating("paper-ideal")
    assert found is not None
    assert found.sent.tolist() == [True, True, False, False, True, True, False, False]
    assert judged.rate(found) == 5 / 8  # 4 of 8 at one second less does not exceed
    assert judged.beating("ideal") is None  # sends what router dual does


def test_a_calibration_of_the_other_world_covers_nothing(tmp_path: Path) -> None:
    run = _eight_calls(tmp_path / "run", [9.0, 8.0, 0.0, 0.0, 7.0, 6.0, 5.0, 4.0])
    judged = Judged(run, Outcomes.load(town_run(tmp_path / "other")))
    with pytest.raises(InputError, match="experienced traffic"):
        judged.covering("ideal", Goal(0.9))


def test_without_a_baseline_nobody_is_beaten(tmp_path: Path) -> None:
    lines = [
        entry(str(i), {"s0": 9.0, "s1": 8.0}, {"ideal": decided("s0", "s1", i)}) for i in (1, 2)
    ]
    judged = Judged(Outcomes.load(write_run(tmp_path / "run", lines)))
    assert judged.strongest() is None
    assert judged.beating("ideal") is None


def test_thresholds_for_a_coverage_target(tmp_path: Path) -> None:
    """In instantaneous traffic only the detours of calls 4-7 take less than 95 s."""
    run = _eight_calls(tmp_path / "run", [9.0, 8.0, 0.0, 0.0, 7.0, 6.0, 5.0, 4.0])
    other = _eight_calls(tmp_path / "other", [0.0, 0.0, 0.0, 0.0, 9.0, 8.0, 7.0, 7.0])
    quarter = Goal(0.25, 95.0)
    found = Judged(run).covering("paper-ideal", quarter)
    assert found is not None
    assert (found.threshold_s, found.extra) == (5.0, 0.5)  # 9, 8, 7 and 6 go; two are in time
    learned = Judged(run, other).covering("paper-ideal", quarter)
    assert learned is not None
    assert (learned.threshold_s, learned.extra) == (7.0, 0.25)
    assert Judged(run).covering("paper-ideal", Goal(0.6, 95.0)) is None
    table = coverage_table(Judged(run, other, goal=quarter))
    assert table is not None
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["paper-ideal"] == (7.0, 0.25, 0.0, 0.0, 0.5)
    assert rows["ideal"] == ("not reached", None, None, 0.0, 0.0)
    all_go = coverage_table(Judged(run, goal=Goal(0.5, 95.0)))
    assert all_go is not None
    assert ("paper-ideal", 0.0, 0.75, 0.5, 0.0, 0.5) in all_go.rows
    easy = coverage_table(Judged(run, goal=Goal(0.9, 500.0)))
    assert easy is not None
    assert ("ideal", "no second needed", 0.0, 1.0, 1.0, 1.0) in easy.rows
    assert coverage_table(Judged(run)) is None
    with pytest.raises(InputError, match=r"share 92.5: 0 to 1 is needed"):
        Goal(92.5)
    with pytest.raises(InputError, match=r"within_s 0.0: more than 0 is needed"):
        Goal(0.9, 0.0)
