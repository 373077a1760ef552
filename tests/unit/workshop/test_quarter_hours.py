"""Quotes corrected by the clock: the ratios, their file, and the control that uses them."""

from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch.decision import log_details
from ideal_dispatch.dispatch.ideal import Ideal
from ideal_dispatch.errors import FileFormatError, InputError
from tests.unit.dispatch.worlds import GAIN, situation
from workshop.quarter_hours import (
    QUARTERS,
    QuarterHourPolicy,
    QuarterHours,
    mean_ratios,
    quarter_of,
)

HALF = QuarterHours((0.5,) * QUARTERS, GAIN)


class Quotes:
    """A training whose log has these quotes and outcomes, on any date."""

    def __init__(self, at: list[datetime], quoted_s: list[float], realised_s: list[float]) -> None:
        self.lines = [
            SimpleNamespace(asked_at=moment, times={"duration_s": quoted}, realised_s=realised)
            for moment, quoted, realised in zip(at, quoted_s, realised_s, strict=True)
        ]
        calendar = SimpleNamespace(local=lambda moment: moment)
        self.ground = SimpleNamespace(recording=SimpleNamespace(calendar=calendar))

    def quotes(self, dates: object) -> "Quotes":
        return self


def test_ratios_are_means_of_their_quarter(grid: RoadNetwork) -> None:
    at = situation(grid).context.at.replace(minute=14)
    moments = [at, at + timedelta(minutes=1), at + timedelta(minutes=2), at]
    training: Any = Quotes(moments, [100.0, 100, 200, 100], [110.0, 120, 260, np.nan])
    made = mean_ratios(training, [])
    assert made[quarter_of(at)] == pytest.approx(1.1)
    assert made[quarter_of(at + timedelta(minutes=9))] == pytest.approx((1.2 + 1.3) / 2)
    assert made[quarter_of(at + timedelta(hours=1))] == 1.0  # nothing known
    assert quarter_of(at.replace(hour=23, minute=59)) == QUARTERS - 1


def test_a_file_and_what_is_none(tmp_path: Path) -> None:
    HALF.save(tmp_path / "h.json")
    assert QuarterHours.load(tmp_path / "h.json") == HALF
    for text, message in (
        ("{}", "not a file of quarter hours"),
        ("[", "damaged"),
        (
            '{"kind": "ideal-dispatch quarter hours", "version": 1}',
            "format 1, this version needs 2; fit and save it again",
        ),
        (
            '{"kind": "ideal-dispatch quarter hours", "version": 2}',
            "damaged file of quarter hours .KeyError",
        ),
    ):
        (tmp_path / "wrong.json").write_text(text)
        with pytest.raises(FileFormatError, match=message):
            QuarterHours.load(tmp_path / "wrong.json")


def test_what_makes_no_sense() -> None:
    with pytest.raises(InputError, match="96 ratios above zero"):
        QuarterHours((1.0,) * 95, GAIN)
    with pytest.raises(InputError, match="96 ratios above zero"):
        QuarterHours((0.0,) * 96, GAIN)


def test_the_control_is_our_form_on_scaled_quotes(grid: RoadNetwork) -> None:
    call, rng = situation(grid), np.random.default_rng(0)
    plain = Ideal(None, GAIN, report_gap=False, name="quarter-hour").decide(call, rng)
    usual = QuarterHourPolicy(QuarterHours((1.0,) * QUARTERS, GAIN)).decide(call, rng)
    assert usual.score_s == plain.score_s
    halved = QuarterHourPolicy(HALF).decide(call, rng)
    assert halved.primary == plain.primary
    assert log_details(halved)["mean_s"] == pytest.approx(
        log_details(plain)["mean_s"] / 2, abs=1e-3
    )
    assert log_details(halved)["quarter_hour_ratio"] == 0.5
    assert 0 < halved.score_s < plain.score_s
