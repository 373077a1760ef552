"""`ideal races` and `ideal backtest` on a made-up log."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.cli import backtest as backtest_command
from ideal_dispatch.cli import races as races_command
from ideal_dispatch.cli.help import described
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation import predictors
from ideal_dispatch.evaluation.predictors import by_hour
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel
from tests.unit.evaluation.race_logs import town_log

races, _, _ = described(races_command.races)
backtest, _, _ = described(backtest_command.backtest)


@pytest.fixture(scope="module")
def folder(grid: RoadNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("log")
    grid.save(made / "town.network")
    town_log(grid).save(made / "town.responses")
    (made / "small.toml").write_text(
        "epochs = 2\n[architecture]\nfeatures = 'attributes'\ndimension = 4\nwidth = 8\n"
    )
    return made


@pytest.fixture(autouse=True)
def no_regressions(monkeypatch: pytest.MonkeyPatch) -> None:
    """To save the time of choosing their settings."""
    monkeypatch.setattr(predictors, "boosted", lambda known: by_hour(known, "road_m")[0])


def test_races_from_the_command_line(folder: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("ideal"), "races", folder / "town.responses",
         "--learn-until", "2023-02-01", "-o", tmp_path / "out"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "straight lines × hour: no network was given" in " ".join(done.stdout.split())
    assert "races.html" in done.stdout
    told = json.loads((tmp_path / "out" / "races.json").read_text())
    assert told["races"] > 100
    assert {"ideal", "random", "straight line"} <= set(told["saved_s"])


def test_a_model_is_trained_and_kept(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {
        "responses_file": folder / "town.responses", "network_file": folder / "town.network",
        "learn_until": "2023-02-01", "output": tmp_path, "train": True,
        "params_file": folder / "small.toml",
    }  # fmt: skip
    races(**given)
    told = json.loads((tmp_path / "races.json").read_text())
    assert "quote difference" in told["auc"]
    kept = tmp_path / "models" / "2023-02-01_to_2023-03-02"
    model = Model.load(kept)
    assert model.details["data"]["last"] == "2023-01-31"
    assert ResponseModel.load(kept / "response_times.json").rows > 100
    unseen = np.load(kept / "unseen_drives.npy")
    assert (unseen > 0).all()
    stamp = (kept / "manifest.json").stat().st_mtime_ns
    races(**given, force=True)  # the model is there: it is not trained again
    assert (kept / "manifest.json").stat().st_mtime_ns == stamp
    assert json.loads((tmp_path / "races.json").read_text()) == told
    with pytest.raises(InputError, match="a model of other trips, parameters or roads; remove it"):
        races(**given, force=True, seed=5)
    with pytest.raises(InputError, match="trained on trips up to 2023-01-31, races are judged"):
        races(**given | {"train": False, "params_file": None, "learn_until": "2023-01-20",
                         "model_folder": kept, "output": tmp_path / "other"})  # fmt: skip
    races(
        **given
        | {
            "train": False,
            "params_file": None,
            "learn_until": "2023-02-15",
            "model_folder": kept,
            "output": tmp_path / "other",
        }
    )
    assert "edge times learned from trips" in " ".join(capsys.readouterr().out.split())
    backtest(
        responses_file=folder / "town.responses", network_file=folder / "town.network",
        month="2023-02", model_folder=kept, threshold=10.0, output=tmp_path / "back",
    )  # fmt: skip
    assert (tmp_path / "back" / "backtest.html").is_file()
    assert "from 10.0 s on" in capsys.readouterr().out


def test_bad_input_is_one_line(folder: Path, tmp_path: Path) -> None:
    given = {"responses_file": folder / "town.responses", "learn_until": "2023-02-01",
             "output": tmp_path}  # fmt: skip
    for changes, message in (
        ({"train": True, "model_folder": tmp_path}, "--train makes a model, --model gives one"),
        ({"by": "year"}, "--by goes with --roll"),
        ({"by": "week", "roll": True}, "--by week: choose month or year"),
        ({"params_file": folder / "small.toml"}, "--params goes with --train"),
        ({"learn_until": "soon"}, "--learn-until soon: write it as"),
        ({"responses_file": tmp_path / "no.responses"}, "no.responses: no such file"),
        ({"kind": ["tram"]}, "no unit is of kind 'tram'"),
    ):
        with pytest.raises(InputError, match=message):
            races(**given | changes)
    month: dict[str, Any] = {
        "responses_file": folder / "town.responses",
        "month": "2023-02",
        "output": tmp_path,
    }
    wrong: dict[str, Any]
    for wrong, message in (
        ({"month": "May"}, "--month May: write it as 2023-06"),
        ({"threshold": 3.0, "share": 0.5}, "--threshold and --share exclude each other"),
        ({"train": True, "model_folder": tmp_path}, "--train makes a model, --model gives one"),
        ({"params_file": folder / "small.toml"}, "--params goes with --train"),
    ):
        with pytest.raises(InputError, match=message):
            backtest(**month | wrong)
    (tmp_path / "races.html").write_text("")
    with pytest.raises(InputError, match="holds races.html already; add --force"):
        races(**given)
