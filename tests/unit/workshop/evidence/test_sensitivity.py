"""What the sensitivity runs vary, and the table of two of them."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from ideal_dispatch.dispatch.policy_tables import needed_parts
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.fleet.experiment import FleetExperiment
from ideal_dispatch.replay.experiment import Experiment
from tests.conftest import ROOT
from tests.unit.evaluation.logs import town_run
from workshop.evidence.sensitivity import BASE, OF_POLICIES, Size, _compared, small, worlds_of


def test_runs_stay_on_training_days_and_change_one_thing() -> None:
    experiment = Experiment.load(ROOT / "experiments" / "port_almery.toml")
    base = small(experiment, Size(), "experienced")
    assert set(base.learning_days) <= set(experiment.learning_days)
    assert (len(base.learning_days), base.calls.per_day) == (4, 40)
    variants = list(worlds_of(base, {"0.8": ROOT / "evenings.traffic"}))
    assert len({what for what, _, _ in variants}) == 5
    assert variants[0][1] == "0.8"
    assert variants[0][2].city.traffic == str(ROOT / "evenings.traffic")
    assert all(other != base for _, _, other in variants)
    assert [other.training["architecture"] for *_, other in variants[-2:]] == [
        {"dimension": 8}, {"dimension": 32}
    ]  # fmt: skip
    every = BASE | {name: table for group in OF_POLICIES.values() for name, table in group.items()}
    assert len(needed_parts(every).models) == 4
    assert not needed_parts(every).drift


def test_differences_are_at_the_same_volume(tmp_path: Path) -> None:
    outcomes = Outcomes.load(town_run(tmp_path / "run"))
    alone, first, second = _compared(outcomes, "interval", "instantaneous")
    assert alone == outcomes.policy("router").drives["instantaneous"].primary_s.mean()
    assert (first.mean, second.mean) == (0.0, 0.0)
    assert _compared(outcomes, "ideal", "instantaneous")[1].mean != 0.0


def test_all_experiment_files_can_be_read() -> None:
    files = sorted((ROOT / "experiments").glob("*.toml"))
    fleets = {file for file in files if file.name.startswith("fleet_")}
    assert fleets
    assert all(FleetExperiment.load(file).name == file.stem for file in fleets)
    names = {Experiment.load(file).name for file in set(files) - fleets}
    islands = {"North-west Hong Kong Island (undirected)", "Sha Tin (undirected)"}
    assert islands | {"Port Almery", "Manhattan"} <= names
