"""The sweep's ends are single and dual, and its points are true operating points."""

from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.evaluation.metrics import RegretSummary
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.strategies import at_threshold, dual, single
from ideal_dispatch.evaluation.sweep import sweep
from tests.unit.evaluation.logs import town_run


def test_points_by_recomputation(tmp_path: Path) -> None:
    run = Outcomes.load(town_run(tmp_path / "run"))
    one, best = run.policy("ideal"), run.best_s["experienced"]["common"]
    found = sweep(run, "ideal", "experienced", "common")
    assert (np.diff(found.extra) > 0).all()
    for place, end in ((0, single(one)), (-1, dual(one))):
        assert found.extra[place] == end.extra
        assert found.mean_arrival_s[place] == pytest.approx(end.arrival_s["experienced"].mean())
    for place in range(found.extra.size):
        point = at_threshold(one, found.threshold_s[place])
        late = RegretSummary.of(point.arrival_s["experienced"], best)
        assert found.extra[place] == point.extra
        assert found.mean_regret_s[place] == pytest.approx(late.mean_s)
        assert found.cvar95_regret_s[place] == pytest.approx(late.cvar95_s)
        assert found.p95_arrival_s[place] == pytest.approx(
            np.quantile(point.arrival_s["experienced"], 0.95)
        )
    assert sweep(run, "ideal", "experienced", points=5).extra.size == 5
