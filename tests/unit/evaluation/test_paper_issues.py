"""Issues 1 to 3 counted on a replay's own log."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.evaluation.figures import report_figures
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.paper_issues import contests_of, issues
from ideal_dispatch.replay.drive import World
from tests.unit.evaluation.logs import town_run
from tests.unit.replay.small import small_replay


@pytest.fixture(scope="module")
def outcomes(grid: RoadNetwork, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return Outcomes.load(small_replay(grid, tmp_path_factory.mktemp("contests") / "run"))


def test_calls_with_two_near_depots_are_contests(outcomes: Outcomes) -> None:
    found = contests_of(outcomes)
    assert found is not None
    contests, numbers = found
    assert 0 < len(contests) == len(numbers) < len(outcomes)
    entries = outcomes.entries(set(numbers))
    for row, number in enumerate(numbers):
        entry = entries[number]
        quoted = [station["quote"]["duration_s"] for station in entry["stations"]]
        assert max(quoted) <= 1.25 * min(quoted)
        assert contests.region[row] == entry["region"]
        took = [sum(entry["drives"][f"s{i}"]["experienced"]["seconds"]) for i in (0, 1)]
        np.testing.assert_allclose(contests.took_s[1, row], took)
    best = contests.took_s[1].argmin(axis=1)
    chosen = contests.took_s[1][np.arange(len(contests)), contests.region]
    assert contests.region_share()[1] == (chosen <= contests.took_s[1].min(axis=1)).mean()
    assert 0.0 <= contests.overlap_share() <= 1.0
    assert set(best) <= {0, 1}


def test_the_most_telling_call_is_drawn(outcomes: Outcomes, grid: RoadNetwork) -> None:
    found = contests_of(outcomes)
    assert found is not None
    contests, numbers = found
    call = contests.most_telling(World.EXPERIENCED)
    assert call is not None
    assert contests.lost_s()[1, call] == contests.lost_s()[1].max()
    drawn = dict(report_figures(Judged(outcomes), grid, lambda stage: None))
    assert list(drawn)[:2] == ["issues", "forecast"]
    below = drawn["forecast"].axes[1]
    depots = outcomes.entries({numbers[call]})[numbers[call]]["stations"]
    assert [text.get_text() for text in below.get_legend().get_texts()] == [  # type: ignore[union-attr]
        f"promised first, from {depots[contests.favourite[call]]['depot']}",
        f"promised second, from {depots[contests.rival[call]]['depot']}",
    ]
    without = dict(report_figures(Judged(outcomes), None, lambda stage: None))
    assert "forecast" not in without


def test_contests_of_one_world_alone(outcomes: Outcomes) -> None:
    found = contests_of(outcomes)
    assert found is not None
    one = replace(found[0], took_s=found[0].took_s[1:], worlds=(World.EXPERIENCED,))
    assert one.region_share()[0] == found[0].region_share()[1]
    assert one.most_telling(World.EXPERIENCED) == found[0].most_telling(World.EXPERIENCED)
    first, _, third = issues([("this run", one)]).axes
    labels = [[text.get_text() for text in axes.get_yticklabels()] for axes in (first, third)]
    assert labels == [["paper", "this run, experienced"], ["paper", "this run"]]


def test_a_log_without_quotes_has_no_contests(tmp_path: Path) -> None:
    assert contests_of(Outcomes.load(town_run(tmp_path / "run"))) is None
