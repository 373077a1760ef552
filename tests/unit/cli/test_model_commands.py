"""`ideal model card | evaluate | rescale` on a real, tiny model."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from ideal_dispatch import Model, RoadNetwork, Trips
from ideal_dispatch.cli.model import card, evaluate, rescale
from ideal_dispatch.context import ContextEncoding
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.learning.assessment import assess
from ideal_dispatch.learning.assessment import rescale as rescaled
from tests.planted import planted_trips


@pytest.fixture(scope="module")
def local(grid: RoadNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """New trips of the town, on which everything takes 1.8 times as long."""
    trips = planted_trips(grid, 60, seed=9)
    path = tmp_path_factory.mktemp("local") / "local.trips"
    replace(trips, observed_s=1.8 * trips.observed_s).save(path)
    return path


def test_card_without_torch(trained: Path) -> None:
    program = (
        "import sys; from ideal_dispatch.cli.app import main\n"
        "sys.argv = ['ideal', 'model', 'card', sys.argv[1]]\n"
        "try: main()\n"
        "finally: assert 'torch' not in sys.modules and 'matplotlib' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, trained], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (trained / "card.md").read_text() + "\n"


def test_card_of_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        card(tmp_path / "none")
    with pytest.raises(FileFormatError, match="not a model, manifest.json is missing"):
        card(tmp_path)


def test_evaluate(
    world: Path, trained: Path, local: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate(trained, world / "town.trips", world / "town.network")
    told = capsys.readouterr()
    assert "120" in told.out
    assert "80 % aimed at" in told.out
    assert "unusual contexts" in told.out
    assert "trained on these very trips" in told.err
    evaluate(trained, local, world / "town.network")
    told = capsys.readouterr()
    assert "trained on these" not in told.err
    assert "times are off by a factor of 1." in told.err
    assert f"next: ideal model rescale {trained} {local}" in told.out.replace("\n", " ")


def test_assessment_by_hand(world: Path, trained: Path) -> None:
    model = Model.load(trained)
    network, trips = RoadNetwork.load(world / "town.network"), Trips.load(world / "town.trips")
    contexts = np.array(trips.contexts[:20])
    contexts[:5, 25] = 1.0  # never a holiday in training
    contexts[:2, 0] = 30.0  # nor a known temperature, so nothing can be said
    some = replace(trips.select(np.arange(20)), contexts=contexts)
    found = assess(model, network, some)
    assert found.unusual == {"holiday (no trips)": 5}
    assert found.unusual_share == 0.25
    assert not found.transferred
    assert not found.seen
    for row in (0, 7, 19):
        forecast = model.forecast(contexts[row], network)
        seconds = network.distances(forecast.nominal_times, int(some.origin[row]))
        predicted_s = seconds[some.destination[row]] + model.trip_constant_s
        assert found.predicted_s[row] == pytest.approx(predicted_s)
    with pytest.raises(InputError, match="there are no trips in the file"):
        assess(model, network, trips.select([]))
    wider = replace(some, encoding=ContextEncoding(("ice",)), contexts=np.zeros((20, 28)))
    with pytest.raises(InputError, match="ice beside the paper's, the model has none"):
        assess(model, network, wider)


def test_rescale(
    world: Path, trained: Path, local: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "local"
    rescale(trained, local, world / "town.network", output)
    told = capsys.readouterr().out
    old, new = Model.load(trained), Model.load(output)
    factor = new.base_ratio / old.base_ratio
    assert 1.5 < factor < 2.2
    assert f"{factor:.3f}" in told
    assert "on the same trips, so a little too good" in told
    assert "each tenth of the trips with the factor of the others" in " ".join(told.split())
    assert new.details["rescaled_on"]["trips"] == 60
    network, trips = RoadNetwork.load(world / "town.network"), Trips.load(local)
    before, after = (assess(model, network, trips).scores.mae_s for model in (old, new))
    assert after < 0.7 * before
    assert f"all times rescaled by {factor:.3f}" in (output / "card.md").read_text()
    with pytest.raises(InputError, match="holds manifest.json already; add --force"):
        rescale(trained, local, world / "town.network", output)


def test_rescale_leaves_no_response_times_of_another_model(
    world: Path, trained: Path, local: Path, tmp_path: Path
) -> None:
    (tmp_path / "response_times.json").write_text("{}")
    with pytest.raises(InputError, match=r"holds response_times.json already; add --force"):
        rescale(trained, local, world / "town.network", tmp_path)
    rescale(trained, local, world / "town.network", tmp_path, force=True)
    assert not (tmp_path / "response_times.json").exists()
    assert Model.load(tmp_path).details["rescaled_on"]["trips"] == 60


def test_too_few_local_trips(world: Path, trained: Path, local: Path, tmp_path: Path) -> None:
    Trips.load(local).select(np.arange(9)).save(tmp_path / "few.trips")
    with pytest.raises(InputError, match="9 local trips: at least 10 are needed"):
        rescale(trained, tmp_path / "few.trips", world / "town.network", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_fair_error_after_rescaling_is_not_the_flattering_one(
    world: Path, trained: Path, local: Path
) -> None:
    model, network = Model.load(trained), RoadNetwork.load(world / "town.network")
    trips = Trips.load(local)
    made = rescaled(model, network, trips)
    assert made.fair_s is not None
    assert made.after_s < made.fair_s < 1.3 * made.after_s
    assert rescaled(model, network, trips.select(np.arange(19))).fair_s is None
