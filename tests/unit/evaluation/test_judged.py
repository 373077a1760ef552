"""Which rows a policy gets, and the operating points of its curve."""

from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.evaluation.figures import curve_of
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import RegretSummary
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.strategies import at_threshold, dual, single, thresholds
from tests.unit.evaluation.logs import decided, entry, town_run, write_run


def test_points_of_a_curve_by_recomputation(tmp_path: Path) -> None:
    run = Outcomes.load(town_run(tmp_path / "run"))
    one, best = run.policy("ideal"), run.best_s["experienced"]["paper"]
    found = curve_of(Judged(run), "ideal", "experienced")
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
    router = curve_of(Judged(run), "router", "experienced")
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
    assert labels("ideal") == ["ideal, +25 %", "ideal, +50 %", "ideal, +75 %", "ideal, dual"]


def test_another_primary_is_a_row_of_its_own(tmp_path: Path) -> None:
    lines = [
        entry(f"{i}", {"s0": 100.0, "s1": 90.0},
              {"router": decided("s0", "s1"), "ideal": decided("s1", "s0", float(i))})
        for i in range(4)
    ]  # fmt: skip
    run = Outcomes.load(write_run(tmp_path / "run", lines))
    assert Judged(run).rows(["ideal"])[0].form == "single"
