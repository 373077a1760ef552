"""``ideal races``: how often and by how much a second unit came first, and who knew it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ideal_dispatch.cli.options import check_folder, read_day
from ideal_dispatch.cli.terminal import bars, print_report, say
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Seed, ZeroOrMore

if TYPE_CHECKING:
    from ideal_dispatch.learning import TrainingSettings


def races(
    responses_file: Path,
    learn_until: str,
    output: Path,
    network_file: Path | None = None,
    model_folder: Path | None = None,
    train: bool = False,
    roll: bool = False,
    by: str | None = None,
    kind: list[str] | None = None,
    together: ZeroOrMore = 5.0,
    params_file: Path | None = None,
    seed: Seed = 0,
    force: bool = False,
) -> None:
    r"""Judge on real races whether a second unit comes first, and whether one could know it.

    A race is a call to which two units were sent together from different places,
    and both arrived. Everything is learned from days before --learn-until and
    judged on the days after it. Writes races.html, races.json, races.csv, tables,
    figures, and response_times.json, which decisions can use. Needs ideal-dispatch[train].

    Options:
      RESPONSES  The file made by `ideal records responses`.
      --learn-until DATE  Learn from the days before this one, judge from this day on.
      --network FILE  Your city's .network file; without one, straight lines stand for roads.
      --model FOLDER  Drive by the times of this model, made by `ideal train` on earlier trips.
      --train  Train such a model on the arrivals before the date. It is kept in the output folder,
          and an interrupted training goes on from there. Without --model and --train, free flow
          and hour give the drive.
      --roll  Judge month by month, each by what was learned from all days before it.
      --by month|year  How far each step of --roll goes; a month by default.
      --kind NAME  Kinds of units that race each other; repeat it, such as --kind ambulance --kind
          medic. Without it, those that the log's settings name, else units of one kind.

    For specialists:
      --together SECONDS  Units sent within so many seconds of each other were sent together.
      --params FILE  A .toml file with parameters of training, as for `ideal train`.

    Examples:
      ideal races city.responses --network city.network --learn-until 2023-04-01 \
        -o out/races
      ideal races city.responses --network city.network --learn-until 2023-04-01 \
        --train --roll -o out/races
      ideal races county.responses --learn-until 2013-01-01 --roll --by year \
        --kind ambulance --kind medic -o out/races
    """
    from ideal_dispatch.evaluation.race_report import PAGE, write_races
    from ideal_dispatch.evaluation.race_study import StudySettings, study_races
    from ideal_dispatch.files import check_source
    from ideal_dispatch.forecast import Model
    from ideal_dispatch.network import RoadNetwork
    from ideal_dispatch.records.responses import Responses

    check_source(responses_file, network_file, params_file)
    if train and model_folder is not None:
        raise InputError("--train makes a model, --model gives one: choose one")
    if by not in (None, "month", "year"):
        raise InputError(f"--by {by}: choose month or year")
    if by is not None and not roll:
        raise InputError("--by goes with --roll; add it")
    if params_file is not None and not train:
        raise InputError("--params goes with --train; add it")
    settings = StudySettings(
        read_day("--learn-until", learn_until),
        cast(Any, by or "month") if roll else None,
        tuple(kind or ()),
        together,
        train,
        seed=seed,
    )
    check_folder(output, (PAGE,), force, [responses_file, network_file, params_file])
    with bars(lines=True) as show:
        study = study_races(
            Responses.load(responses_file),
            settings,
            None if network_file is None else RoadNetwork.load(network_file),
            model=None if model_folder is None else Model.load(model_folder),
            training=read_training(params_file, seed) if train else None,
            folder=output,
            watch=lambda stage, done: show(stage, done, ""),
        )
        show("tables, figures and page", 0.0, "")
        made = write_races(study, output)
    print_report(made, "volumes", "predictors")
    say(f"wrote {output / PAGE}, races.json, races.csv, response_times.json, tables and figures")


def read_training(params_file: Path | None, seed: int) -> "TrainingSettings":
    """The training that suits unit logs, with a file over it."""
    from ideal_dispatch.learning import TrainingSettings

    return TrainingSettings.read(params_file, {"seed": seed}, trips_per_road=0.0)
