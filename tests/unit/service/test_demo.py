"""The demonstration: nothing to configure, decisions within a minute, no torch."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch import Model
from ideal_dispatch.cities import HARBOUR_MODEL, TRAINING_DAYS, harbour_city
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.gap.warm_up import warm_up
from tests.docs.served import serving
from tests.waiting import wait_for

PATIENCE_S = 600.0


def test_the_shipped_model_is_the_citys_own_and_small() -> None:
    model = Model.load(HARBOUR_MODEL)
    assert model.network_checksum == harbour_city().network.checksum
    times = ResponseModel.load(HARBOUR_MODEL / "response_times.json")
    assert times.rows > 1000
    assert times.drive == model.checksum
    size = sum(path.stat().st_size for path in HARBOUR_MODEL.iterdir())
    assert size < 1_000_000


HEAVY = {"torch", "pandas", "matplotlib", "sklearn", "ideal_dispatch.learning"}


def test_nothing_heavy_is_imported_to_advise(tmp_path: Path) -> None:
    """No torch, no tables, and no holidays once a calendar has looked them up."""
    program = (
        "import sys\n"
        "from datetime import date\n"
        "from ideal_dispatch.service.demo import demo\n"
        "from ideal_dispatch.service.http import app, server\n"
        "from ideal_dispatch.service.deciding.engine import Engine\n"
        "engine = Engine.load(demo()[0])\n"
        "engine.warm_up()\n"
        "assert engine.ready\n"
        f"print(sorted({HEAVY} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        timeout=PATIENCE_S, env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout == "[]\n"


def test_decisions_flow_within_a_minute(tmp_path: Path) -> None:
    warm_up()  # an installation compiles its kernels once
    with serving(tmp_path) as served, served.client() as client:

        def advised() -> list[Any]:  # no unit may be free for an invented call: then another comes
            made = client.get("/v1/recommendations").json()
            return [one for one in made if one["decision"] != "no_advice"]

        assert wait_for(advised)[0]["simulated"]
        city = client.get("/v1/city").json()
        assert (city["name"], city["simulated"]) == ("Port Almery", True)
    assert (tmp_path / "ideal-dispatch" / "port_almery.db").exists()


def test_only_training_days_are_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    from ideal_dispatch.service.deciding.assets import load_assets
    from ideal_dispatch.service.deciding.live_traffic import RecordedLive
    from ideal_dispatch.service.demo import demo

    traffic = load_assets(demo()[0]).traffic
    assert isinstance(traffic, RecordedLive)
    days = traffic.recording.days
    assert 2 <= len(days) <= TRAINING_DAYS
    last = traffic.recording.stretches[-1].start
    from ideal_dispatch.cities import harbour_traffic

    whole = harbour_traffic(harbour_city())
    assert last <= whole.stretches[whole.days[TRAINING_DAYS - 1][-1]].start
