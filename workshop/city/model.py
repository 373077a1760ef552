"""Rewrite the model that ships with the embedded city.

``python -m workshop.city.model experiments/port_almery.toml out/port_almery``

It is what the experiment learned from all its training days in experienced traffic, and
from no other day. What the experiment's folder already has is not fitted again.
"""

import argparse
from pathlib import Path

from ideal_dispatch.cities import HARBOUR_MODEL
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
    parts.model.save(HARBOUR_MODEL)
    parts.gain.save(HARBOUR_MODEL / "gain.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("experiment", type=Path, help="an experiment file of the embedded city")
    parser.add_argument("folder", type=Path, help="where what it learns is kept")
    given = parser.parse_args()
    write_city_model(given.experiment, given.folder)
    print(f"wrote {HARBOUR_MODEL}")


if __name__ == "__main__":
    main()
