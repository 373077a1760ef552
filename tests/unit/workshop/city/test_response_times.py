"""The response times that ship with the embedded city, and the log they are fitted on."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.cities import harbour_city
from ideal_dispatch.forecast.response_time import ResponseModel
from tests.conftest import ROOT

pytest.importorskip("torch", reason="response times are fitted with torch")
from workshop.city.response_times import fitted, made_up_log

DAYS = (1, 2)


def test_help_is_printed() -> None:
    command = [sys.executable, "-m", "workshop.city.response_times", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Fit the response times" in done.stdout


def test_a_small_log_gives_times_of_the_same_kind(tmp_path: Path) -> None:
    """Calls of the recorded hours of two days, with all that a log has."""
    city = harbour_city()
    log = made_up_log(city, DAYS, 150, 1, tmp_path / "one")
    made_up_log(city, DAYS, 150, 1, tmp_path / "two")
    same = [(tmp_path / name / "unit_log.csv").read_bytes() for name in ("one", "two")]
    assert same[0] == same[1]
    assert set(np.unique(log.date).astype(str)) == {"2025-01-24", "2025-01-31"}
    assert set(np.unique(log.hour)) <= {6, 7, 8, 9, 16, 17, 18, 19}
    assert log.from_road.any()
    assert log.recalled.any()
    times, shipped = fitted(city, log), city.responses
    assert isinstance(shipped, ResponseModel)
    assert city.model is not None
    assert times.drive == shipped.drive == city.model.checksum
    assert times.source == f"{times.rows:,} responses of a made-up unit log"
    told, expected = (one.of(300.0, station="Kelp Point", hour=8) for one in (times, shipped))
    assert told.mean_s == pytest.approx(float(expected.mean_s), rel=0.1)


def test_the_shipped_times_find_what_was_made_up() -> None:
    """Turnout by station and at night, on the road, and what two units share."""
    shipped = harbour_city().responses
    assert isinstance(shipped, ResponseModel)
    kelp, gannet, night = (
        float(shipped.turnout.median_s(station, hour, ""))
        for station, hour in (("Kelp Point", 12), ("Gannet Bay", 12), ("Kelp Point", 23))
    )
    assert [kelp, gannet] == pytest.approx([50.0, 65.0], rel=0.1)
    assert night / kelp == pytest.approx(1.4, rel=0.1)
    assert shipped.road_turnout_s == pytest.approx(15.0, abs=1.0)
    assert shipped.shared == pytest.approx(0.12, abs=0.02)
    assert shipped.drive_scale == pytest.approx(1.0, abs=0.03)
