import json
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import Depot, RoadNetwork
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import Experiment, Ground
from ideal_dispatch.replay.log import read_log
from ideal_dispatch.replay.past import collect_quotes, collect_trips
from ideal_dispatch.replay.study import run_experiment
from tests.unit.traffic.small import recording

TEXT = """
name = "a small town"
training_days = 3
seed = 5
folds = 3
worlds = ["{world}"]
[city]
network = "town.network"
depots = "depots.csv"
traffic = "town.traffic"
[calls]
per_day = {per_day}
margin_s = 1800
contested = 3.0
[past]
trips_per_day = 40
places = 3
every_s = 900
[training]
epochs = 2
[policies.router]
kind = "router"
[policies.interval]
kind = "interval"
[policies.paper]
kind = "paper-ideal"
radius = "paper"
[policies.ideal]
kind = "ideal"
method = "multistart"
[policies.learned]
kind = "learned-trigger"
"""


@pytest.fixture(scope="module")
def town(grid: RoadNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("town")
    grid.save(folder / "town.network")
    recording(grid, days=5).save(folder / "town.traffic")
    rows = [f"{name},{grid.lon[node]},{grid.lat[node]}" for name, node in (("W", 0), ("E", 119))]
    (folder / "depots.csv").write_text("\n".join(["name,lon,lat", *rows]))
    for world in World:
        (folder / f"{world}.toml").write_text(TEXT.format(world=world, per_day=15))
    return folder


@pytest.fixture(scope="module")
def run(town: Path) -> Path:
    steps: list[str] = []
    made = run_experiment(
        Experiment.load(town / "B.toml"), town / "run", watch=lambda step, _: steps.append(step)
    )
    assert steps[0] == "B: trips of the past"
    assert steps[-1] == "B: replaying 2 test days"
    return made


def test_training_and_test_days_are_kept_apart(run: Path) -> None:
    days = {
        part: {entry["incident"]["day"] for entry in read_log(run / "B" / part / "incidents.jsonl")}
        for part in ("training", "test")
    }
    assert len(days["training"]) == 3
    assert len(days["test"]) == 2
    assert max(days["training"]) < min(days["test"])


def test_a_day_is_decided_by_what_the_other_days_taught(run: Path) -> None:
    policies = json.loads((run / "B" / "training" / "run.json").read_text())["policies"]
    by_day = policies["learned"]["policies"]
    assert len({json.dumps(one) for one in by_day.values()}) == 3
    own = {entry["incident"]["day"] for entry in read_log(run / "B/fold-1/replay/incidents.jsonl")}
    assert own == set(by_day) - {min(by_day)}  # the first fold leaves the first day out


def test_every_policy_decides_about_every_call(run: Path) -> None:
    for entry in read_log(run / "B" / "test" / "incidents.jsonl"):
        assert list(entry["decisions"]) == ["router", "interval", "paper", "ideal", "learned"]
        details = entry["decisions"]["ideal"]["details"]
        assert details.get("times_from", "quotes") == "quotes"


def test_going_on_changes_nothing(town: Path, run: Path) -> None:
    log = run / "B" / "test" / "incidents.jsonl"
    before = log.read_bytes()
    (run / "B" / "all" / "calls.trigger").unlink()  # as if interrupted before it was written
    for name in ("incidents.jsonl", "run.json"):
        (run / "B" / "test" / name).unlink()
    run_experiment(Experiment.load(town / "B.toml"), run)
    assert log.read_bytes() == before


def test_another_experiment_is_not_mixed_in(town: Path, run: Path) -> None:
    other = town / "other.toml"
    other.write_text(TEXT.format(world="B", per_day=16))
    with pytest.raises(InputError, match="holds another experiment, or other traffic; name a new"):
        run_experiment(Experiment.load(other), run)
    with pytest.raises(InputError, match="holds other files and no experiment"):
        run_experiment(Experiment.load(other), town)


def test_trips_tell_the_whole_time_and_no_route(town: Path) -> None:
    experiment = Experiment.load(town / "B.toml")
    ground = experiment.ground()
    trips = {
        world: collect_trips(experiment, ground, world, range(2), town / f"{world}.trips")
        for world in World
    }
    assert len(trips[World.B]) == 80
    np.testing.assert_array_equal(trips[World.A].destination, trips[World.B].destination)
    assert (trips[World.A].observed_s != trips[World.B].observed_s).any()


def test_quotes_of_world_a_come_true_as_shown(town: Path) -> None:
    experiment = Experiment.load(town / "A.toml")
    ground = experiment.ground()
    log = collect_quotes(experiment, ground, World.A, range(1), town / "a.jsonl")
    world = ground.world(experiment)
    line = log.lines[0]
    first_bin_s = 60 - line.asked_at.second
    shown = world.router_times(line.asked_at)[list(line.edges)]
    inside = np.cumsum(shown) - shown < first_bin_s  # entered before the router changes its mind
    assert inside.any()
    assert line.realised_s >= shown[inside].sum() - 1e-6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("folds = 3", "folds = 4"), "folds 4 of 3 training days"),
        (('["B"]', '["C"]'), r"worlds \['C'\]: choose of A and B"),
        (("per_day = 15", "perday = 15"), "perday is not known; did you mean per_day?"),
        (("seed = 5", "seed = "), "not TOML"),
    ],
)
def test_a_wrong_file_is_one_line(town: Path, change: tuple[str, str], message: str) -> None:
    file = town / "wrong.toml"
    file.write_text(TEXT.format(world="B", per_day=15).replace(*change))
    with pytest.raises((InputError, FileFormatError), match=message):
        Experiment.load(file)


def test_no_policy_and_no_test_day_are_refused(town: Path, tmp_path: Path) -> None:
    text = TEXT.format(world="B", per_day=15)
    file = town / "none.toml"
    file.write_text(text[: text.index("[policies.router]")])
    with pytest.raises(InputError, match="nothing to replay"):
        Experiment.load(file)
    file.write_text(text.replace("training_days = 3", "training_days = 5"))
    with pytest.raises(InputError, match="the recording has 5 days, and at least one must be left"):
        run_experiment(Experiment.load(file), tmp_path / "x")


def test_two_depots_must_compete(grid: RoadNetwork, town: Path) -> None:
    experiment = Experiment.load(town / "B.toml")
    made = recording(grid, days=2)
    with pytest.raises(InputError, match="1 depots on the network: at least two"):
        Ground(made, (Depot("W", 0),))
    ground = Ground(made, (Depot("W", 0), Depot("E", 119)))
    weights = ground.weights(experiment.calls)
    assert 0 < weights.sum() < grid.num_nodes
    assert weights[0] == 0  # the depot's own door
