"""Rewrite the model that ships with the embedded city.

``python -m workshop.city.model experiments/port_almery.toml out/port_almery``

It is what the experiment learned from all its training days in experienced traffic, and
from no other day. What the experiment's folder already has is not fitted again.
"""

import sys
from pathlib import Path

from ideal_dispatch.cities import harbour_gain_file, harbour_model_folder
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import Experiment
from ideal_dispatch.replay.fitting import fit_parts
from ideal_dispatch.replay.past import collect_past
from ideal_dispatch.replay.study import ALL


def write_city_model(experiment_file: Path, folder: Path) -> None:
    """Fit on the training days in ``folder``, and write model and gain where the city has them."""
    experiment = Experiment.load(experiment_file)
    ground, world = experiment.ground(), World.EXPERIENCED
    place = folder / world
    past = collect_past(experiment, ground, world, place)
    parts = fit_parts(experiment, ground, past, experiment.learning_days, place / ALL)
    assert parts.model is not None
    assert parts.gain is not None
    parts.model.save(harbour_model_folder())
    parts.gain.save(harbour_gain_file())


if __name__ == "__main__":
    write_city_model(Path(sys.argv[1]), Path(sys.argv[2]))
    print(f"wrote {harbour_model_folder()}")
