"""``ideal model``: what a model is, how well it does, and how to carry it elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING

from ideal_dispatch.cli.help import CommandLine
from ideal_dispatch.cli.options import check_folder
from ideal_dispatch.cli.terminal import bars, out, print_facts, print_next, say, stages, warn
from ideal_dispatch.ranges import Count

if TYPE_CHECKING:
    from ideal_dispatch.forecast import Model
    from ideal_dispatch.network import RoadNetwork
    from ideal_dispatch.records import Trips

app = CommandLine("Look at, test and carry over what `ideal train` has learned.")

_SHOWN = 5
_FAR_OFF = 1.1


@app.command()
def card(model: Path) -> None:
    """Print what a model is, learned from, and good for.

    Options:
      MODEL  A folder made by `ideal train`.

    Example:
      ideal model card model/
    """
    from ideal_dispatch.forecast import Model
    from ideal_dispatch.forecast.model_directory import model_card

    text = model_card(Model.load(model))
    if out.is_terminal:
        from rich.markdown import Markdown

        out.print(Markdown(text))
    else:
        say(text)


@app.command()
def evaluate(
    model_folder: Path, trips_file: Path, network_file: Path, jobs: Count | None = None
) -> None:
    """Test a model on trips: how far it is off, how often by more than it thought possible.

    Trips at hours or in weather that it has not learned from are counted, too.

    Options:
      MODEL  A folder made by `ideal train`.
      TRIPS  The file trips.trips of `ideal records prepare`.
      --network FILE  The .network file of these trips.

    Example:
      ideal model evaluate model/ newer/trips.trips --network city.network
    """
    from ideal_dispatch.learning.assessment import assess

    model, network, trips = _load(model_folder, network_file, trips_file)
    with bars() as show:
        found = assess(
            model, network, trips, jobs=jobs, report=lambda done: show("predicting", done, "")
        )
    rule, own = model.radius_rule, found.scores
    aim = "" if rule.level is None else f", {100 * rule.level:g} % aimed at"
    print_facts(
        f"{model_folder} on {trips_file.name}",
        {
            "trips": f"{own.trips:,}",
            "mean absolute error": f"{own.mae_s:.1f} s ({own.mape_percent:.1f} %)",
            "median, 90th percentile": f"{own.median_s:.1f} s, {own.p90_s:.1f} s",
            "observed over predicted": f"{found.ratio:.3f} in the median",
            "explained by the set": f"{100 * found.coverage:.1f} %{aim}",
            "unusual contexts": f"{100 * found.unusual_share:.1f} %",
        },
        justify="left",
    )
    if found.unusual:
        rows = {reason: f"{count:,}" for reason, count in found.unusual.most_common(_SHOWN)}
        print_facts("Unlike training, trips by reason", rows)
    if found.seen:
        warn("the model was trained on these very trips; its report has the error on test trips")
    if found.transferred:
        warn("this is another network than the one the model was trained on")
    if not 1 / _FAR_OFF < found.ratio < _FAR_OFF:
        warn(f"times are off by a factor of {found.ratio:.2f} in the median")
        print_next(
            "ideal", "model", "rescale", model_folder, trips_file, "--network", network_file,
            "-o", model_folder.with_name(f"{model_folder.name}-local"),
        )  # fmt: skip


@app.command()
def rescale(
    model_folder: Path,
    trips_file: Path,
    network_file: Path,
    output: Path,
    force: bool = False,
    jobs: Count | None = None,
) -> None:
    """Multiply all times of a model by one number, learned from a few local trips.

    A model carried to another city needs it. The number is the one with the
    least mean error on the given trips: at least ten are needed, a few hundred
    are better. How far the model thinks it may be off, in percent, stays.

    Options:
      MODEL  A folder made by `ideal train`.
      TRIPS  The file trips.trips of `ideal records prepare`.
      --network FILE  The .network file of these trips.

    Example:
      ideal model rescale model/ local.trips --network town.network -o local/
    """
    from ideal_dispatch.forecast.model_directory import FILES, MANIFEST
    from ideal_dispatch.learning.assessment import rescale

    check_folder(output, FILES, force, [model_folder / MANIFEST])
    inputs = _load(model_folder, network_file, trips_file)
    with bars() as show:
        made = rescale(*inputs, jobs=jobs, report=lambda done: show("predicting", done, ""))
    made.model.save(output)
    before, fair_s = made.before, made.fair_s
    print_facts(
        f"{model_folder} on {trips_file.name}",
        {
            "trips": f"{before.scores.trips:,}",
            "factor on all times": f"{made.factor:.3f}",
            "mean absolute error before": f"{before.scores.mae_s:.1f} s",
            "after": f"{made.after_s:.1f} s on the same trips, so a little too good",
            "after, judged fairly": "too few trips to say"
            if fair_s is None
            else f"{fair_s:.1f} s, each tenth of the trips with the factor of the others",
        },
        justify="left",
    )
    if fair_s is not None and fair_s >= before.scores.mae_s:
        warn("the factor does not help on trips it was not learned from; keep the old model")
    if before.seen:
        warn("the model was trained on these very trips; a local scale needs trips of its own")
    say(f"wrote {output}")
    print_next("ideal", "model", "card", output)


def _load(
    model_folder: Path, network_file: Path, trips_file: Path
) -> tuple["Model", "RoadNetwork", "Trips"]:
    from ideal_dispatch.files import check_source
    from ideal_dispatch.forecast.model import Model
    from ideal_dispatch.network import RoadNetwork
    from ideal_dispatch.records import Trips

    check_source(network_file, trips_file)
    with stages("Loading"):
        return Model.load(model_folder), RoadNetwork.load(network_file), Trips.load(trips_file)
