"""The paper's tables beside ours: what is printed, and where our rows come from."""

import pytest

from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import RegretSummary
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.replay.drive import World
from tests.unit.evaluation.logs import town_run
from workshop.evidence.printed import RESULTS, regret_beside, wilcoxon_beside


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[World, Judged]:
    outcomes = Outcomes.load(town_run(tmp_path_factory.mktemp("runs") / "run"))
    return {world: Judged(outcomes.only(world)) for world in World}


def test_regrets(runs: dict[World, Judged]) -> None:
    table = regret_beside(runs, RESULTS["hong-kong-island"])
    assert table.rows[0] == (
        "Region-based", "paper, Hong Kong Island", 0.0, 0.497, 59.6, 200.0, 414.4, 324.1, 502.0,
    )  # fmt: skip
    (row,) = (r for r in table.rows if r[:2] == ("IDEAL as printed, +50 %", "here, experienced"))
    own = runs[World.EXPERIENCED].at("paper-ideal", 0.5)
    best = runs[World.EXPERIENCED].outcomes.best_s["experienced"]["paper"]
    summary = RegretSummary.of(own.arrival_s["experienced"], best)
    assert row[2:5] == (own.extra, summary.optimal, summary.mean_s)
    assert [r[1] for r in table.rows if r[0] == "IDEAL, ours, dual"] == [
        "here, instantaneous", "here, experienced"
    ]  # fmt: skip


def test_tests(runs: dict[World, Judged]) -> None:
    table = wilcoxon_beside(runs, RESULTS["sha-tin"])
    assert len(table.rows) == 3 * (1 + 2 * 2)
    assert table.rows[0][:4] == ("(1) Region-based", "paper, Sha Tin: IDEAL dual", 705, 247)
    assert table.text_rows()[-5][4:] == ["7.90 [5.80, 10.10]", "18,077", "1.3e−25"]


@pytest.mark.parametrize("place", RESULTS)
def test_what_is_printed_is_sound(place: str) -> None:
    for (_, share), (extra, mean, p95, p99, cvar95, cvar99) in RESULTS[place].regret.items():
        assert extra == pytest.approx(100 * share, abs=0.5)
        assert mean <= cvar95 <= cvar99
        assert p95 <= p99 <= cvar99
