"""Rewrite the model that ships with the embedded city.

``python -m workshop.city.model experiments/port_almery.toml out/port_almery``

It is what the experiment learned from all its training days in experienced traffic, and
from no other day. What the experiment's folder already has is not trained again. Its response
times are fitted by :mod:`workshop.city.response_times`.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from ideal_dispatch.cities import HARBOUR_MODEL
from ideal_dispatch.dispatch.policy_tables import USUAL
from ideal_dispatch.forecast import Model
from ideal_dispatch.replay.experiment import Experiment
from ideal_dispatch.replay.fitting import Training, collect_trips, model_folder
from ideal_dispatch.replay.study import ALL, TRIPS


def write_city_model(experiment_file: Path, folder: Path, shipped: Path = HARBOUR_MODEL) -> None:
    """Train on the training days in ``folder``, and write the model where the city has it."""
    experiment = Experiment.load(experiment_file)
    experiment = replace(experiment, policies={"ideal": {"kind": "ideal"}})  # no other model
    ground, days = experiment.ground(), experiment.learning_days
    trips = collect_trips(experiment, ground, days, folder / TRIPS)
    Training(experiment, ground, trips, days, folder / ALL, {}).train()
    Model.load(model_folder(folder / ALL, USUAL)).save(shipped)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("experiment", type=Path, help="an experiment file of the embedded city")
    parser.add_argument("folder", type=Path, help="where what it learns is kept")
    given = parser.parse_args()
    write_city_model(given.experiment, given.folder)
    print(f"wrote {HARBOUR_MODEL}")


if __name__ == "__main__":
    main()
