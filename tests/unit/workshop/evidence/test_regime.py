"""What the region rule and the router's first choice make of an experiment's training days."""

from pathlib import Path

import pytest

from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import Experiment
from workshop.evidence.regime import TARGETS, figures, measured

TEXT = """
name = "A few calls"
training_days = 3
folds = 3
worlds = ["instantaneous"]

[calls]
per_day = 4
contested = 1.5

[policies.router]
kind = "router"
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    (tmp_path / "few.toml").write_text(TEXT)
    return Experiment.load(tmp_path / "few.toml")


def test_a_row_for_every_target(experiment: Experiment) -> None:
    table = measured(experiment)
    assert [row[0] for row in table.rows] == list(TARGETS)
    assert [column.name for column in table.columns] == ["figure", "target", "instantaneous"]


def test_test_days_are_not_driven(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    ground = experiment.ground()
    calls = type(ground).calls

    def noted(self: object, made: Experiment, days: range) -> object:
        asked.append(days)
        return calls(self, made, days)  # type: ignore[arg-type]

    monkeypatch.setattr(type(ground), "calls", noted)
    found = figures(experiment, World.INSTANTANEOUS)
    assert asked == [range(3)]
    assert 0 <= found["its mean regret, s"] <= found["its 99 % regret, s"] < 600
    assert 0 < found["router's first choice best, %"] <= 100
