"""A small town with trips, and a model of it made by the command."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ideal_dispatch import RoadNetwork
from tests.planted import planted_trips

EPOCHS = 8
SETTINGS = """\
batch_size = 4
epochs = 8
[architecture]
features = "attributes"
dimension = 4
width = 16
"""


@pytest.fixture(scope="package")
def world(grid: RoadNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with town.network, town.trips and small.toml; nothing in it is changed."""
    folder = tmp_path_factory.mktemp("world")
    grid.save(folder / "town.network")
    planted_trips(grid, 120, seed=5).save(folder / "town.trips")
    (folder / "small.toml").write_text(SETTINGS)
    return folder


@pytest.fixture(scope="package")
def few_baselines() -> Iterator[None]:
    """Baselines with one setting each, to save the time of choosing."""
    pytest.importorskip("torch", reason="the train extra is not installed")
    from ideal_dispatch.learning import baselines

    few = tuple(kind[:1] for kind in baselines.CANDIDATES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "CANDIDATES", few)
        yield


@pytest.fixture(scope="package")
def trained(world: Path, few_baselines: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model directory of an uninterrupted `ideal train`."""
    from ideal_dispatch.cli.train import train

    folder = tmp_path_factory.mktemp("trained") / "model"
    train(world / "town.trips", world / "town.network", folder, params_file=world / "small.toml")
    return folder
