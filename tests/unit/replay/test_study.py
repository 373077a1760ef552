import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the train extra is not installed")


from ideal_dispatch import Calendar, Depot, Model, ResponseModel, RoadNetwork
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.cli.replay import replay
from ideal_dispatch.dispatch.policy_tables import FittedParts
from ideal_dispatch.dispatch.threshold import PricedThreshold
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.replay_report import caveats
from ideal_dispatch.evaluation.result_tables import arrival_table
from ideal_dispatch.experiment.engine import read_manifest
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import Experiment, Ground
from ideal_dispatch.replay.fitting import collect_trips
from ideal_dispatch.replay.log import LOG, read_log
from ideal_dispatch.replay.run import KIND
from ideal_dispatch.replay.study import KIND as EXPERIMENT
from ideal_dispatch.replay.study import calibration_of, run_experiment
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.source import RouteQuote
from ideal_dispatch.traffic.synthetic import SyntheticParams, synthetic_traffic
from tests.conftest import ROOT
from tests.unit.traffic.small import recording

SOURCE = "tests.unit.replay.test_study:KnowsLittle"

TEXT = """
name = "a small town"
training_days = 4
warm_up_days = 1
seed = 5
folds = 3
world = "{world}"
[city]
network = "town.network"
depots = "depots.csv"
traffic = "town.traffic"
only = ["W", "e"]
[calls]
per_day = {per_day}
margin_s = 1800
contested = 3.0
[past]
trips_per_day = 40
[training]
epochs = 2
trip_constant = true
[training.architecture]
features = "attributes"
[paper_training]
epochs = 1
[policies.router]
kind = "router"
[policies.interval]
kind = "interval"
[policies.paper]
kind = "paper"
[policies.paper-practical]
kind = "paper"
trained = "practical"
[policies.ideal]
kind = "ideal"
method = "multistart"
[policies.learned]
kind = "workshop.learned_trigger:LearnedTrigger"
"""
CARRIED = """
[transfer]
run = "run"
"""


@pytest.fixture(scope="module")
def town(grid: RoadNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a town")
    grid.save(folder / "town.network")
    recording(grid, days=6).save(folder / "town.traffic")
    places = (("W", 0), ("E", 119), ("Other", 60))
    rows = [f"{name},{grid.lon[node]},{grid.lat[node]}" for name, node in places]
    (folder / "depots.csv").write_text("\n".join(["name,lon,lat", *rows]))
    for world in World:
        (folder / f"{world}.toml").write_text(TEXT.format(world=world, per_day=15))
    return folder


@pytest.fixture(scope="module")
def run(town: Path) -> Path:
    steps: list[str] = []
    made = run_experiment(
        Experiment.load(town / "experienced.toml"),
        town / "run",
        watch=lambda step, _: steps.append(step),
    )
    assert steps[0] == "trips of the past"
    assert steps[-1] == "replaying 2 test days"
    return made


def test_training_and_test_days_are_kept_apart(run: Path) -> None:
    days = {
        part: {entry["incident"]["day"] for entry in read_log(run / part / "incidents.jsonl")}
        for part in ("training", "test")
    }
    assert len(days["training"]) == 3
    assert len(days["test"]) == 2
    assert max(days["training"]) < min(days["test"])


def test_a_day_is_decided_by_what_the_other_days_taught(run: Path) -> None:
    policies = json.loads((run / "training" / "manifest.json").read_text())["policies"]
    by_day = policies["learned"]["policies"]
    assert len({json.dumps(one) for one in by_day.values()}) == 3
    own = {
        entry["incident"]["day"]
        for entry in read_log(run / "fold-1/replay-quote-difference/incidents.jsonl")
    }
    assert own == set(by_day) - {min(by_day)}  # the first fold leaves the first day out


def test_nothing_is_fitted_that_nobody_asked_for(town: Path, tmp_path: Path) -> None:
    """Few calls are enough where no policy learns from replays."""
    text = TEXT.format(world="experienced", per_day=3)
    (town / "few.toml").write_text(text[: text.index("[policies.paper]")])
    run_experiment(Experiment.load(town / "few.toml"), tmp_path / "run")
    assert len([*read_log(tmp_path / "run" / "test" / "incidents.jsonl")]) == 6
    assert not [*(tmp_path / "run").rglob("response*"), *(tmp_path / "run").rglob("*Trigger")]


def test_policies_take_the_prices_of_the_fleet(town: Path) -> None:
    text = TEXT.format(world="experienced", per_day=3)
    text = text[: text.index("[policies.paper]")] + 'threshold = "priced"\n'
    file = town / "fleet.toml"
    file.write_text(text)
    with pytest.raises(
        InputError, match='interval.threshold "priced": no fleet is known; describe'
    ):
        Experiment.load(file)
    file.write_text(text + "[fleet]\nunits = { W = 2, E = 2 }\ncalls_per_day = 20\n")
    experiment = Experiment.load(file)
    policy: Any = experiment.policies_with(FittedParts(), experiment.ground())[-1]
    assert isinstance(policy.threshold, PricedThreshold)
    file.write_text(text + "[fleet]\nunits = { W = 2 }\ncalls_per_day = 20\n")
    experiment = Experiment.load(file)
    with pytest.raises(InputError, match=r"fleet.toml: \[fleet\] units of E are missing"):
        experiment.policies_with(FittedParts(), experiment.ground())


def test_going_on_changes_nothing(town: Path, run: Path) -> None:
    log = run / "test" / "incidents.jsonl"
    before = log.read_bytes()
    (
        run / "all" / "workshop.learned_trigger.Trigger"
    ).unlink()  # as if interrupted before it was written
    for name in ("incidents.jsonl", "manifest.json"):
        (run / "test" / name).unlink()
    run_experiment(Experiment.load(town / "experienced.toml"), run)
    assert log.read_bytes() == before


def test_the_manifest_has_inputs_and_starts(town: Path, run: Path) -> None:
    manifest = read_manifest(run, EXPERIMENT)
    digest = hashlib.blake2b((town / "experienced.toml").read_bytes(), digest_size=16).hexdigest()
    assert manifest["experiment_file"] == digest
    assert set(manifest["inputs"]) == {"depots.csv"}
    assert len(manifest["recording"]) == len(manifest["network"]) > 0
    assert all(datetime.fromisoformat(start).tzinfo is not None for start in manifest["starts"])
    assert calibration_of(run) == run / "training"


def test_another_run_is_carried_over(town: Path, run: Path) -> None:
    file = town / "carried.toml"
    text = TEXT.format(world="experienced", per_day=6).replace("seed = 5", "seed = 6")
    file.write_text(text + CARRIED)
    made = run_experiment(Experiment.load(file), town / "carried")
    kept = sorted(path.name for path in made.iterdir())
    assert kept == ["manifest.json", "test"]
    policies, others = (
        json.loads((folder / "test" / "manifest.json").read_text())["policies"]
        for folder in (made, run)
    )
    assert policies == others  # the very same networks, gains and forest
    assert calibration_of(made).resolve() == (run / "training").resolve()
    with pytest.raises(InputError, match="nothing is fitted, so there are no training days"):
        run_experiment(Experiment.load(file), town / "carried", test=False)
    file.write_text(text + CARRIED.replace('"run"', '"nowhere"'))
    with pytest.raises(
        InputError,
        match="nowhere has no response_times.json, workshop.*Trigger of all",
    ):
        run_experiment(Experiment.load(file), town / "carried-2")


def test_response_times_are_those_of_trips_of_the_other_days(run: Path) -> None:
    """A unit leaves at once, and drives vary as held-out trips did about the model."""
    fitted = [
        ResponseModel.load(run / part / "response_times.json")
        for part in ("all", "fold-1", "fold-2", "fold-3")
    ]
    for part, times in zip(("all", "fold-1", "fold-2", "fold-3"), fitted, strict=True):
        assert times.drive in ("", Model.load(run / part / "model").checksum)
        assert times.leaving().mean_s == pytest.approx(1.0)
    policies = read_manifest(run / "test", KIND)["policies"]
    assert policies["ideal"]["responses"]["source"] == fitted[0].source
    assert policies["ideal"]["model"]["checksum"] == Model.load(
        run / "all" / "model"
    ).checksum  # fmt: skip


def test_depots_that_are_not_there(town: Path) -> None:
    file = town / "depots.toml"
    text = TEXT.format(world="experienced", per_day=6)
    file.write_text(text.replace('"e"]', '"North"]'))
    with pytest.raises(InputError, match="'North': no such depot on the network; there are: W, E"):
        Experiment.load(file).ground()


def test_another_experiment_is_not_mixed_in(town: Path, run: Path) -> None:
    other = town / "other.toml"
    other.write_text(TEXT.format(world="experienced", per_day=16))
    with pytest.raises(InputError, match="another experiment .*not the same experiment"):
        run_experiment(Experiment.load(other), run)
    with pytest.raises(InputError, match="holds other files and no experiment"):
        run_experiment(Experiment.load(other), town)


def test_trips_tell_the_whole_time_and_no_route(town: Path) -> None:
    experiment = Experiment.load(town / "experienced.toml")
    ground = experiment.ground()
    trips = {
        world: collect_trips(
            replace(experiment, world=world), ground, range(2), town / f"{world}.trips"
        )
        for world in World
    }
    assert len(trips[World.EXPERIENCED]) == 80
    np.testing.assert_array_equal(
        trips[World.INSTANTANEOUS].destination, trips[World.EXPERIENCED].destination
    )
    assert (trips[World.INSTANTANEOUS].observed_s != trips[World.EXPERIENCED].observed_s).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("folds = 3", "folds = 4"), "folds 4 of 3 training days"),
        (("folds = 3", "folds = 2"), "folds 2 of 3 training days"),
        (('kind = "router"', 'kind = "rooter"'), "policies.router.kind 'rooter': choose one of"),
        (('method = "multistart"', 'methode = "dca"'), "policies.ideal.methode is not known; did"),
        (
            ('trained = "practical"', 'trained = "quickly"'),
            "'quickly': one of 'practical'",
        ),
        (('traffic = "town.traffic"', ""), "traffic is missing: a network of your own needs it"),
        (("warm_up_days = 1", "warm_up_days = 5"), "warm_up_days 5 of 4 training days"),
        (('world = "experienced"', 'world = "B"'), "world 'B'"),
        (('world = "experienced"', 'worlds = ["experienced"]'), "did you mean world"),
        (("per_day = 15", "perday = 15"), "perday is not known; did you mean per_day?"),
        (("seed = 5", "seed = "), "not TOML"),
        (("per_day = 15", "on_road = -1"), "on_road -1"),
        (
            ("per_day = 15", 'on_road = 1\nfile = "x.csv"'),
            "on_road is for drawn calls; with a file",
        ),
        (("per_day = 15", 'units = "x.csv"'), "units belong to the calls of a file"),
    ],
)
def test_a_wrong_file_is_one_line(town: Path, change: tuple[str, str], message: str) -> None:
    file = town / "wrong.toml"
    file.write_text(TEXT.format(world="experienced", per_day=15).replace(*change))
    with pytest.raises((InputError, FileFormatError), match=message):
        Experiment.load(file)


def test_all_is_checked_before_any_work(town: Path, run: Path) -> None:
    text = TEXT.format(world="experienced", per_day=15)
    for change, message in (
        (("[training]\nepochs", "[training]\nepoks"), "[training] epoks is not known"),
        (("[paper_training]\nepochs = 1", "[paper_training]\nepochs = 0"), "[paper_training] epo"),
        (("per_day = 15", "per_day = 0"), "per_day 0"),
        (("margin_s = 1800", "margin_s = 7200"), "margin_s 7200"),
        (("depots.csv", "none.csv"), "none.csv: no such file"),
        (
            ("[calls]", f'[traffic]\nsource = "{SOURCE}"\noptions = {{eash = 2}}\n[calls]'),
            "checked.toml: traffic.options.eash is not known; did you mean ease",
        ),
    ):
        (town / "checked.toml").write_text(text.replace(*change))
        with pytest.raises(InputError, match=re.escape(message)):
            run_experiment(Experiment.load(town / "checked.toml"), town / "checked")
        assert not (town / "checked").exists()
    other = text.replace('world = "experienced"', 'world = "instantaneous"')
    (town / "checked.toml").write_text(other + CARRIED)
    with pytest.raises(InputError, match="experienced traffic, this experiment of instantaneous"):
        run_experiment(Experiment.load(town / "checked.toml"), town / "checked")
    assert not (town / "checked").exists()


class KnowsLittle:
    """The stand-in router, which knows no way to every fifth node."""

    def __init__(self, recorded: ReplayedTraffic, ease: float = 1.0) -> None:
        self.recorded = recorded

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        if destination % 5 == 0:
            raise InputError("closed")
        return self.recorded.quote(origin, destination, at)


def test_calls_that_are_left_out_are_told(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = TEXT.format(world="experienced", per_day=15)
    told = f'[traffic]\nsource = "{SOURCE}"\n[policies.router]\nkind = "router"\n'
    (town / "left.toml").write_text(text[: text.index("[policies.router]")] + told)
    replay(town / "left.toml", town / "left", workers=1)
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(r"\d+ of 30 calls could not be replayed .* the first, .*: .*closed", said)


def test_recorded_calls_replace_drawn_ones(town: Path, tmp_path: Path) -> None:
    days = [f"2023-05-{day:02d}" for day in range(9, 15)]
    rows = [f"{day}-{node},{node},{day} 06:{node}" for day in days for node in (17, 31, 54)]
    rows += ["far,17,2024-01-01 06:00", "off,500,2023-05-10 06:00"]
    (town / "calls.csv").write_text("\n".join(["name,node,at", *rows]))
    text = TEXT.format(world="experienced", per_day=15)
    text = text[: text.index("[policies.router]")] + '[policies.router]\nkind = "router"\n'
    file = town / "recorded.toml"
    file.write_text(text.replace("[calls]", '[calls]\nfile = "calls.csv"'))
    with pytest.warns(UserWarning, match="calls.csv: 2 rows left out, .*left_out_calls"):
        run = run_experiment(Experiment.load(file), tmp_path / "run")
    names = {
        part: [one["incident"]["name"] for one in read_log(run / part / LOG)]
        for part in ("training", "test")
    }
    made = [f"{day}-{node}" for day in days for node in (17, 31, 54)]
    assert names == {"training": made[3:12], "test": made[12:]}  # the first day is the warm-up
    assert len((run / "left_out_calls.csv").read_text().splitlines()) == 3
    with (town / "calls.csv").open("a") as table:
        table.write("\nmore,18,2023-05-14 06:00")
    with pytest.raises(InputError, match="another experiment .*not the same inputs"):
        run_experiment(Experiment.load(file), tmp_path / "run")
    (town / "calls.csv").write_text("name,node,at\n" + rows[5])
    with pytest.raises(InputError, match="none of its calls is of the 2 days"):
        run_experiment(Experiment.load(file), tmp_path / "other")


@pytest.mark.parametrize("recorded", [False, True])
def test_units_on_the_road_are_replayed(town: Path, tmp_path: Path, recorded: bool) -> None:
    """Drawn or of a file; the calls and all that is drawn for them stay as they are."""
    text = TEXT.format(world="experienced", per_day=15)
    text = text[: text.index("[policies.router]")] + '[policies.chance]\nkind = "random"\n'
    plain, road = "", "on_road = 1"
    if recorded:
        days = [f"2023-05-{day:02d}" for day in range(10, 15)]
        calls = [f"{day},17,{day} 06:17" for day in days]
        (town / "calls.csv").write_text("\n".join(["name,node,at", *calls]))
        (town / "units.csv").write_text(
            "\n".join(["call,unit,node", *(f"{d},A7,18" for d in days)])
        )
        plain = 'file = "calls.csv"'
        road = f'{plain}\nunits = "units.csv"'
    logs = []
    for name, keys in (("plain", plain), ("road", road)):
        file = town / f"{name}.toml"
        file.write_text(text.replace("[calls]", f"[calls]\n{keys}"))
        run = run_experiment(Experiment.load(file), tmp_path / name)
        logs.append(list(read_log(run / "test" / LOG)))
    assert [one["incident"] for one in logs[0]] == [one["incident"] for one in logs[1]]
    for before, after in zip(*logs, strict=True):
        assert [one["depot"] for one in after["stations"]] == [
            "W", "E", "A7" if recorded else "road 1",
        ]  # fmt: skip
        assert after["stations"][:2] == before["stations"]
        scores = [one["decisions"]["chance"]["score_s"] for one in (before, after)]
        assert scores[0] == scores[1], "no other draw changes"
    manifest = read_manifest(run / "test", KIND)
    assert manifest["incidents"]["units_on_road"] == len(logs[1])
    lines = caveats(Judged(Outcomes.load(run / "test")))
    assert any("units were free on the road" in line for line in lines)


def test_the_next_command_runs_as_printed(town: Path, run: Path) -> None:
    ideal = Path(sys.executable).with_name("ideal")
    clone = {**os.environ, "PYTHONPATH": str(ROOT)}  # it has a policy of the workshop
    done = subprocess.run(
        [ideal, "replay", "experienced.toml", "-o", "run"],
        cwd=town, env=clone, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (printed,) = re.findall("next: (.*)", done.stdout)
    words = shlex.split(printed)
    assert words[words.index("--network") + 1] == "town.network"
    shown = subprocess.run(
        [ideal, *words[1:]], cwd=town, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr
    assert "No maps" not in (town / "run/report/report.html").read_text()


def test_no_policy_and_no_test_day_are_refused(town: Path, tmp_path: Path) -> None:
    text = TEXT.format(world="experienced", per_day=15)
    file = town / "none.toml"
    file.write_text(text[: text.index("[policies.router]")])
    with pytest.raises(InputError, match="nothing to replay"):
        Experiment.load(file)
    file.write_text(text.replace("training_days = 4", "training_days = 6"))
    with pytest.raises(InputError, match="the recording has 6 days, and at least one must be left"):
        run_experiment(Experiment.load(file), tmp_path / "x")


def test_an_agencys_own_territories(town: Path, grid: RoadNetwork, tmp_path: Path) -> None:
    rows = [f"{node},{'W' if node == 0 else 'e'}" for node in range(grid.num_nodes)]
    (town / "territories.csv").write_text("\n".join(["node,depot", *rows]))
    text = TEXT.format(world="experienced", per_day=3)
    text = text[: text.index("[policies.router]")] + '[policies.region]\nkind = "region"\n'
    (town / "nearest.toml").write_text(text)
    (town / "own.toml").write_text(text.replace("only", 'territories = "territories.csv"\nonly'))
    labels = {}
    for name in ("nearest", "own"):
        run = run_experiment(Experiment.load(town / f"{name}.toml"), tmp_path / name)
        table = arrival_table(Judged(Outcomes.load(run / "test")))
        labels[name] = table.rows[0][0]
        told = any("territories are unknown: region" in line for line in
                   caveats(Judged(Outcomes.load(run / "test"))))  # fmt: skip
        assert told == (name == "nearest")
    assert labels == {"nearest": "region, nearest at free flow", "own": "region"}
    entries = list(read_log(run / "test" / LOG))
    assert {one["decisions"]["region"]["primary"] for one in entries} == {"s1"}
    inputs = {name: read_manifest(tmp_path / name, EXPERIMENT)["inputs"] for name in labels}
    assert set(inputs["own"]) - set(inputs["nearest"]) == {"territories.csv"}
    (town / "territories.csv").write_text("node,depot\n3,Wst\n")
    with pytest.raises(InputError, match="line 2: depot .*Wst"):
        run_experiment(Experiment.load(town / "own.toml"), tmp_path / "other")


def test_two_depots_must_compete(grid: RoadNetwork, town: Path) -> None:
    experiment = Experiment.load(town / "experienced.toml")
    made = recording(grid, days=2)
    with pytest.raises(InputError, match="1 depots on the network: at least two"):
        Ground(grid, made.calendar, (Depot("W", 0),))
    ground = Ground(grid, made.calendar, (Depot("W", 0), Depot("E", 119)))
    weights = ground.weights(experiment.calls)
    assert 0 < weights.sum() < grid.num_nodes
    assert weights[0] == 0  # the depot's own door


def test_the_embedded_city_with_other_days(tmp_path: Path) -> None:
    city = harbour_city()
    synthetic_traffic(
        city.network, Calendar(city.time_zone, city.country),
        SyntheticParams(days=2, hours=((8, 9),)),
    ).save(tmp_path / "other.traffic")  # fmt: skip
    (tmp_path / "other.toml").write_text(
        'name = "other"\ntraining_days = 0\n[transfer]\nrun = "run"\n'
        '[city]\ntraffic = "other.traffic"\n[policies.router]\nkind = "router"\n'
    )
    ground = Experiment.load(tmp_path / "other.toml").ground()
    assert ground.dates() == ["2023-05-08", "2023-05-09"]
    assert ground.depots == city.depots
    np.testing.assert_array_equal(np.asarray(ground.region), city.region)
