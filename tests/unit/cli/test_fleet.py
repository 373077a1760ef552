"""`ideal fleet simulate` on a small fleet, on the embedded city's, and on a JEMSS folder."""

import json
from pathlib import Path

import pytest

from ideal_dispatch.cli import fleet as fleet_command
from ideal_dispatch.cli.help import described
from ideal_dispatch.errors import InputError
from tests.unit.evaluation.fleet_rows import row
from tests.unit.fleet.small_runs import SmallExperiment

simulate, _, _ = described(fleet_command.simulate)
AUCKLAND = Path(__file__).parents[4] / "shared" / "data" / "jemss" / "auckland" / "models" / "1"
FILE = """\
years = 1
days = 2
recall = ["first arrival"]
[policies.always]
kind = "always"
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(FILE)
    return tmp_path / "small.toml"


def test_an_experiment_is_simulated_and_printed(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(
        "ideal_dispatch.fleet.experiment.FleetExperiment.city", SmallExperiment.city
    )
    simulate(file=experiment, output=tmp_path / "out", jobs=1)
    told = capsys.readouterr()
    assert "Smallville: 4 units, calls as they are, 20.0% entitled, 1 year" in told.out
    assert f"wrote {tmp_path / 'out' / 'summary.json'}, runs.json and manifest.json" in told.out
    assert "note: everything is invented" in told.err
    lines = [line.split() for line in told.out.splitlines() if line.startswith(("never", "always"))]
    (never, always) = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert lines[0][:3] == ["never", "none", "0"]
    assert lines[1][:3] == ["always", "first", "arrival"]
    saved = never["deaths_per_1000"] - always["deaths_per_1000"]
    assert lines[1][4:6] == [f"{saved:.2f}", f"{always['paired_se']:.2f}"]


def test_a_fleet_without_other_calls_is_told_with_dashes() -> None:
    (cells,) = fleet_command.tables_of([row("always", others_mean_s=None)]).values()
    assert cells[0][-3:-1] == ["–", "–"]
    (cells,) = fleet_command.tables_of([row("always", others_se_s=0.25)]).values()
    assert cells[0][-3:-1] == ["420.0", "0.25"]


def test_lines_of_the_command_are_an_experiment() -> None:
    told = fleet_command.usual_experiment(
        Path("a/models/1"), 3, [0.3, 0.7], [0.3], [12], fixed_cost=0.002, seed=5,
        price=Path("price.json"),
    )  # fmt: skip
    assert told.price == "price.json"
    assert told.cities == {"": {"jemss": "a/models/1"}}
    assert (told.years, told.seeds, told.utilisation, told.entitled, told.units) == (
        3, (5,), (0.3, 0.7), (0.3,), (12,)
    )  # fmt: skip
    assert told.policies["fixed C"] == {"kind": "survival", "threshold": {"cost": 0.002}}


def test_a_city_of_jemss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not AUCKLAND.exists():
        pytest.skip(f"no JEMSS data in {AUCKLAND}")
    (tmp_path / "x.toml").write_text(f'{FILE}[city]\njemss = "{AUCKLAND}"\ncells = 60\n')
    simulate(file=tmp_path / "x.toml", output=tmp_path / "out", jobs=1)
    told = capsys.readouterr()
    assert "Auckland: 16 units" in told.out
    assert "junctions within 500 m" in told.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "-o is missing: which folder"),
        ({"file": "small.toml", "output": "out", "years": 3}, "--years goes without a file; write"),
        ({"output": "out", "jemss": "nowhere"}, "nowhere: no such folder; give a model folder"),
        ({"output": "out", "utilisation": [1.5]}, r"utilisation 1\.5: 0\.01 to 0\.95 is needed"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    experiment: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, object], message: str
) -> None:
    monkeypatch.chdir(experiment.parent)
    paths = {name: Path(str(options[name])) for name in ("file", "output", "jemss")
             if name in options}  # fmt: skip
    with pytest.raises(InputError, match=message):
        simulate(**(options | paths))
