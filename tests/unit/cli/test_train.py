"""`ideal train`: a model from trips, whole or not at all, however often it is killed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the train extra is not installed")


from ideal_dispatch import Model, RoadNetwork, Trips
from ideal_dispatch.cli.train import _check_output, train
from ideal_dispatch.cluster import on_cluster
from ideal_dispatch.errors import FileFormatError, InputError, MissingExtraError
from ideal_dispatch.learning import TrainingProgress, TrainingSettings, TrainParams, fit
from ideal_dispatch.learning.cross_fitting import response_settings
from tests.unit.cli.conftest import EPOCHS

IDEAL = Path(sys.executable).with_name("ideal")
CHECKPOINT = "checkpoint.pt"


def _command(world: Path, output: Path, *options: str) -> list[str]:
    return [
        str(IDEAL), "train", str(world / "town.trips"), "--network", str(world / "town.network"),
        "--params", str(world / "small.toml"), "-o", str(output), *options,
    ]  # fmt: skip


def _run(command: list[str], code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == code, done.stderr
    return done


def _kill_in_training(command: list[str]) -> bytes:
    """Run the command on a terminal, kill it once it shows the time left; all that it showed."""
    terminal, end = os.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, stderr=end, env=env) as process:
        os.close(end)
        shown = b""
        while not re.search(rb"\d:\d\d:\d\d", shown):
            shown += os.read(terminal, 4096)
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=60) == -signal.SIGKILL
    os.close(terminal)
    return shown


def _train(world: Path, output: Path, **options: Any) -> None:
    train(
        world / "town.trips", world / "town.network", output,
        **{"params_file": world / "small.toml"} | options,
    )  # fmt: skip


# --- what it writes -----------------------------------------------------------------


def test_a_directory_with_model_report_and_numbers(world: Path, trained: Path) -> None:
    model = Model.load(trained)
    assert sorted(path.name for path in trained.iterdir()) == [
        "card.md", "manifest.json", "report.html", "report.json",
        *(path.name for path in trained.glob("weights-*.safetensors")),
    ]  # fmt: skip
    facts = json.loads((trained / "report.json").read_text())
    names = [row["name"] for row in facts["scores"]]
    assert names[0] == "IDEAL"
    assert len(names) == 5
    assert model.details["scores"] == facts["scores"]
    card = (trained / "card.md").read_text()
    assert all(f"| {name} |" in card for name in names)
    assert facts["model"] == model.checksum
    assert model.checksum in (trained / "report.html").read_text()
    assert facts["params"]["epochs"] == EPOCHS
    assert Trips.load(world / "town.trips").checksum == facts["data"]["checksum"]


def test_the_papers_training_leaves_its_steps(
    world: Path, few_baselines: None, tmp_path: Path
) -> None:
    output = tmp_path / "paper"
    _train(world, output, paper=True, head="plain", params_file=None, epochs=2)
    facts = json.loads((output / "report.json").read_text())
    header, *rows = (output / "steps.csv").read_text().splitlines()
    assert header == "step,step_size,perturbation_radius,batch_objective,direction_norm,weight_norm"
    batches = -(-facts["data"]["train"] // facts["params"]["batch_size"])
    assert len(rows) == batches * len(facts["history"])
    assert all(float(cell) > 0 for row in rows for cell in row.split(",")[1:])
    assert "steps.csv" in (output / "report.html").read_text()
    _train(world, output, force=True)
    assert not (output / "steps.csv").exists(), "they belong to the other model"


def test_several_trainings_make_one_model(
    world: Path, trained: Path, few_baselines: None, tmp_path: Path
) -> None:
    output = tmp_path / "distilled"
    _train(world, output, combine="distil")
    model, single = Model.load(output), Model.load(trained)
    assert not list(output.glob("checkpoint*"))
    assert model.details["params"]["combine"] == "distil"
    assert model.checksum != single.checksum
    assert {n: w.shape for n, w in model.weights.items()} == {
        n: w.shape for n, w in single.weights.items()
    }, "no larger than one of a single training"


def test_python_makes_the_directory_of_the_command(
    world: Path, trained: Path, few_baselines: None, tmp_path: Path
) -> None:
    seen: list[TrainingProgress] = []
    settings, folder = TrainingSettings.read(world / "small.toml"), tmp_path / "model"
    made = fit(
        RoadNetwork.load(world / "town.network"), Trips.load(world / "town.trips"),
        params=settings.params, radius=settings.radius, watch=seen.append,
    )  # fmt: skip
    made.save(folder)
    assert made.checksum == Model.load(trained).checksum
    assert {path.name for path in folder.iterdir()} == {p.name for p in trained.iterdir()}
    for path in trained.iterdir():
        assert (folder / path.name).read_bytes() == path.read_bytes(), path.name
    assert [now.epoch.epoch for now in seen if now.epoch] == list(range(1, EPOCHS + 1))


def test_killed_and_resumed_is_bit_for_bit_uninterrupted(
    world: Path, trained: Path, few_baselines: None, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    output = tmp_path / "model"
    shown = _kill_in_training(_command(world, output))
    for part in (b"training", b", loss ", b"held-out error"):
        assert part in shown
    (output / ".0123456789abcdef.part").touch()  # as if killed while writing
    kept = sorted(path.name for path in output.iterdir() if not path.name.endswith(".part"))
    assert kept == [CHECKPOINT], "no half-written model"
    with pytest.raises(InputError, match="interrupted training; add --resume to continue it or"):
        _train(world, output)
    with pytest.raises(InputError, match="made with other trips, network or parameters"):
        _train(world, output, resume=True, seed=3)
    _train(world, output, resume=True)
    told = capsys.readouterr()
    resumed = [int(number) for number in re.findall(r"^epoch (\d+) of", told.err, re.M)]
    last = int(re.findall(rb"epoch (\d+), loss", shown)[-1])
    assert resumed == list(range(EPOCHS + 1))[-len(resumed) :]
    assert min(resumed, default=EPOCHS + 1) > last, "no finished epoch is lost"
    assert {path.name for path in output.iterdir()} == {path.name for path in trained.iterdir()}
    for path in trained.iterdir():
        assert (output / path.name).read_bytes() == path.read_bytes(), path.name
    assert not (output / CHECKPOINT).exists()
    for text in ("free flow × hour of week", "80 % promised", "next: ideal model card"):
        assert text in told.out
    assert "warning: 24 test trips are few" in told.err
    assert "\x1b" not in told.out + told.err, "no colours or bars in a pipe"


@pytest.mark.slow
def test_the_city_killed_at_any_time_ends_in_the_same_directory(tmp_path: Path) -> None:
    from ideal_dispatch.cities import harbour_city
    from tests.planted import planted_trips

    network = harbour_city().network
    network.save(tmp_path / "town.network")
    planted_trips(network, 900, seed=6).save(tmp_path / "town.trips")
    (tmp_path / "small.toml").write_text("epochs = 6\n")
    _run(_command(tmp_path, tmp_path / "whole"))
    output, rng, kills = tmp_path / "killed", np.random.default_rng(0), 0
    while True:
        began = time.monotonic()
        with subprocess.Popen(_command(tmp_path, output, "--resume"), stderr=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL) as process:  # fmt: skip
            try:
                process.wait(timeout=float(rng.uniform(4, 16)) * (1 + kills / 4))
                assert process.returncode == 0
                break
            except subprocess.TimeoutExpired:
                process.kill()
                kills += 1
        assert time.monotonic() - began < 600
        if (output / "manifest.json").exists():
            Model.load(output)
            break
    assert kills >= 2
    for path in (tmp_path / "whole").iterdir():
        assert (output / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.slow
def test_a_cluster_finds_the_same_radii(world: Path, trained: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the cluster extra is not installed")
    program = (
        "import subprocess, sys\n"
        "from distributed import LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c:\n"
        "        subprocess.run([*sys.argv[1:], '--cluster', c.scheduler_address], check=True)\n"
    )
    (tmp_path / "cluster.py").write_text(program)
    _run([sys.executable, str(tmp_path / "cluster.py"), *_command(world, tmp_path / "model")])
    assert Model.load(tmp_path / "model").checksum == Model.load(trained).checksum


# --- what it refuses ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "holds manifest.json already; add --force to overwrite it"),
        ({"resume": True}, "training is finished; add --force"),
        ({"resume": True, "force": True}, "choose one"),
        ({"force": True, "split": "week"}, "split by 'week': it must be 'trip' or 'day'"),
        ({"force": True, "params_file": Path("none.toml")}, "none.toml: no such file"),
    ],
)
def test_a_model_is_not_lost_to_a_mistake(
    world: Path, trained: Path, options: dict[str, Any], message: str
) -> None:
    before = (trained / "manifest.json").read_bytes()
    with pytest.raises(InputError, match=message):
        _train(world, trained, **options)
    assert (trained / "manifest.json").read_bytes() == before
    assert not (trained / CHECKPOINT).exists()


def test_bad_input_is_one_line_on_stderr(world: Path, trained: Path) -> None:
    done = _run(_command(world, trained), code=2)
    assert done.stderr.startswith("error: -o ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_folders_of_something_else(trained: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    report.write_text("of the records")
    for force in (False, True):
        with pytest.raises(InputError, match="holds report.html of something else"):
            _check_output(tmp_path, [], resume=False, force=force)
    with pytest.raises(InputError, match="is a file; name a folder"):
        _check_output(report, [], resume=False, force=True)
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    _check_output(copy, [], resume=False, force=True)
    with pytest.raises(InputError, match="card.md would be overwritten"):
        _check_output(copy, [copy / "card.md"], resume=False, force=True)
    (copy / CHECKPOINT).touch()
    _check_output(copy, [], resume=True, force=False)
    _check_output(tmp_path / "new", [], resume=True, force=False)


def test_a_checkpoint_that_is_none(world: Path, tmp_path: Path) -> None:
    (tmp_path / CHECKPOINT).write_bytes(b"not one")
    with pytest.raises(FileFormatError, match="truncated or damaged checkpoint"):
        _train(world, tmp_path, resume=True)


def test_a_cluster_that_is_not_there() -> None:
    try:
        import distributed  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtraError, match="ideal-dispatch.cluster"), on_cluster("x:1"):
            pass
        return
    with pytest.raises(InputError, match="no dask scheduler answers"), on_cluster("127.0.0.1:9"):
        pass


# --- settings -----------------------------------------------------------------------


def test_settings_of_file_and_options(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(
        "epochs = 3\nloss = 'relative'\n[architecture]\nwidth = 8\n[radius]\nwidth = 4\n"
    )
    options = {
        "epochs": 7, "seed": 2, "architecture": {"features": "attributes", "head": None},
        "radius": {"coverage": 0.9},
    }  # fmt: skip
    made = TrainingSettings.read(file, options)
    params, radius = made.params, made.radius
    assert (params.epochs, params.loss, params.seed) == (7, "relative", 2)
    assert (params.architecture.width, params.architecture.features) == (8, "attributes")
    assert params.architecture.head == "polar"
    assert (radius.width, radius.coverage, radius.level, radius.seed) == (4, 0.9, 0.9, 2)
    made = TrainingSettings.read(options={"radius": {"coverage": 0.0}}, paper=True)
    assert made.params == TrainParams.paper()
    assert (made.radius.coverage, made.radius.level) == (None, 0.8)
    file.write_text("[radius]\ncoverage = 0.7\nlevel = 0.6\n")
    assert TrainingSettings.read(file).radius.level == 0.6
    assert TrainingSettings.read() == TrainingSettings()


def test_few_trips_for_many_roads_have_defaults_of_their_own(tmp_path: Path) -> None:
    """Those of `ideal races --train`; a file wins over them, and the paper's stay the paper's."""
    file = tmp_path / "own.toml"
    file.write_text("huber_log = 0.2\n")
    assert TrainingSettings.read(trips_per_road=0.05, options={"seed": 3}) == response_settings(3)
    assert TrainingSettings.read(trips_per_road=0.5) == TrainingSettings()
    told = TrainingSettings.read(file, trips_per_road=0.05).params
    assert (told.huber_log, told.architecture.location_waves) == (0.2, 8)
    assert TrainingSettings.read(paper=True, trips_per_road=0.05).params == TrainParams.paper()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs = [", "a.toml: not TOML"),
        ("epoks = 3", "a.toml: epoks is not known; did you mean epochs?"),
        ("epochs = 2.5", "a.toml: epochs 2.5: a whole number is needed"),
        ("epochs = 'many'", "a.toml: epochs 'many': a whole number is needed"),
        ("learning_rate = nan", "a.toml: learning_rate nan: a number is needed"),
        ("architecture = 3", r"a.toml: \[architecture\] must be a table"),
        ("radius = 3", r"a.toml: \[radius\] must be a table"),
        ("[radius]\nlos = 'quantile'", "a.toml: radius.los is not known; did you mean loss?"),
        ("[radius]\nloss = 'x'", "a.toml: radius.loss 'x': one of 'mean_absolute', 'quantile'"),
        ("[radius]\ncoverage = 1.5", "radius coverage 1.5: more than 0 and less than 1"),
        ("[radius]\ncoverage = 'all'", "a.toml: radius.coverage 'all': a number is needed"),
        ("[radius]\nlearning_rate = -1", "radius learning_rate -1.0: more than 0 is needed"),
        ("[radius]\nlearning_rate = 'x'", "a.toml: radius.learning_rate 'x': a number"),
        ("[radius]\nweight_decay = nan", "a.toml: radius.weight_decay nan: a number"),
        ("[radius]\nseed = -1", "radius seed -1: 0 to 4294967295 is needed"),
        ("[radius]\nuses_trip = 'no'", "a.toml: radius.uses_trip 'no': true or false"),
        ("learning_rate = 'fast'", "a.toml: learning_rate 'fast': a number is needed"),
        ("huber_s = true", "a.toml: huber_s True: a number is needed"),
    ],
)
def test_bad_settings(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises((InputError, FileFormatError), match=message):
        TrainingSettings.read(tmp_path / "a.toml")


def test_bad_options_do_not_blame_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("epochs = 3")
    bad: Any
    for bad, message in (
        ({"architecture": {"features": "x"}}, "^architecture.features 'x': one of 'attributes', "),
        ({"epochs": 0}, "^epochs 0: at least 1"),
        ({"radius": {"coverage": 2.0}}, r"^\[radius\] radius coverage 2.0"),
    ):
        with pytest.raises(InputError, match=message):
            TrainingSettings.read(tmp_path / "a.toml", bad)


def test_trips_of_another_network(world: Path, tmp_path: Path) -> None:
    other = RoadNetwork.from_arrays([0, 1], [1, 0], [100.0, 100.0], [7.0, 7.001], [43.0, 43.0])
    other.save(tmp_path / "other.network")
    with pytest.raises(InputError, match="the trips belong to another network"):
        train(world / "town.trips", tmp_path / "other.network", tmp_path / "model")
