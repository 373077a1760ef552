"""The pages of real races, made of a made-up log."""

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.evaluation.predictors import BOOSTING
from ideal_dispatch.evaluation.race_study import RaceStudy, StudySettings, study_races
from tests.unit.evaluation.race_logs import town_log
from workshop.evidence import races

pytest.importorskip("torch", reason="the train extra is not installed")


@pytest.fixture(scope="module")
def study(grid: RoadNetwork) -> RaceStudy:
    return study_races(town_log(grid), StudySettings(date(2023, 2, 1), "month"), grid)


def test_sides_of_the_river() -> None:
    lon = np.array([-0.123, -0.114, 0.009, -0.019, -0.25])
    lat = np.array([51.530, 51.462, 51.478, 51.500, 51.43])
    # King's Cross, Brixton, Greenwich, the Isle of Dogs, Wimbledon Common
    assert races.north_of_the_thames(lon, lat).tolist() == [True, False, False, True, False]


def test_aims_are_judged_by_their_estimates(study: RaceStudy) -> None:
    table = races.aims(study)
    half = study.judged.shares_kept("ideal", (0.5,))[0].mean
    assert table.rows[0][3] == ("yes" if half >= races.HALF else "no")
    ratio = study.judged.gain_ratio
    assert table.rows[2][3] == ("yes" if ratio.low <= 1 <= ratio.high else "no")
    rival = min((n for n in study.judged.predicted_s if n.startswith(BOOSTING)),
                key=study.arrivals_mae_s)  # fmt: skip
    ahead = races.error_ahead(study, rival)
    ours, theirs = study.arrivals_mae_s("ideal"), study.arrivals_mae_s(rival)
    assert ahead.mean == pytest.approx(1 - ours / theirs)
    assert ahead.low < ahead.mean < ahead.high


def test_a_page_has_the_tables_and_the_figures(
    study: RaceStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(races, "IMAGES", tmp_path)
    races.write_page(tmp_path, "london", races.london_words(study), study, [])
    page = (tmp_path / "london.md").read_text()
    for heading in ("# London: fire engines", "## Aims", "## What fell short, and why",
                    "## What a second unit saves", "## Who expects arrivals best?"):  # fmt: skip
        assert f"{heading}\n" in page
    assert "took more than twice what was expected of it" in page
    for name in ("volumes", "reliability", "map"):
        assert (tmp_path / f"races_london_{name}.png").is_file()
        assert f"races_london_{name}.png" in page
    races.write_page(tmp_path, "lancaster", races.lancaster_words(study), study, [])
    other = (tmp_path / "lancaster.md").read_text()
    assert "## Aims" not in other
    assert "times what was saved" in other
