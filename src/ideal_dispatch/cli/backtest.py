"""``ideal backtest``: the advice that the calls of a past month would have got."""

from datetime import date
from pathlib import Path

from ideal_dispatch.cli.options import check_folder
from ideal_dispatch.cli.races import read_training
from ideal_dispatch.cli.terminal import bars, print_report, say
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Seed, Share, ZeroOrMore


def backtest(
    responses_file: Path,
    month: str,
    output: Path,
    network_file: Path | None = None,
    model_folder: Path | None = None,
    train: bool = False,
    threshold: ZeroOrMore | None = None,
    share: Share | None = None,
    kind: list[str] | None = None,
    params_file: Path | None = None,
    seed: Seed = 0,
    force: bool = False,
) -> None:
    r"""Show the advice that the calls of a past month would have got, beside what was done.

    For every call: who is expected first, whether a second unit would have been
    sent and from where, what the log says was sent, and who arrived when. Writes
    backtest.html, backtest.csv, tables and figures. All that the advice knows is learned
    from days before the month. Needs ideal-dispatch[train].

    Options:
      RESPONSES  The file made by `ideal records responses`.
      --month MONTH  The month, such as 2023-06.
      --network FILE  Your city's .network file; without one, straight lines stand for roads.
      --model FOLDER  Drive by the times of this model, made by `ideal train` on earlier trips.
      --train  Train such a model on the arrivals before the month; kept in the output folder.
      --threshold SECONDS  Advise a second unit where it is expected to be so much sooner.
      --share SHARE  Without --threshold: the threshold that would have sent a second unit to this
          share of the calls of the month before; 0.25 by default.
      --kind NAME  The kinds of units that count; the most frequent one by default.

    For specialists:
      --params FILE  A .toml file with parameters of training, as for `ideal train`.

    Examples:
      ideal backtest city.responses --network city.network --month 2023-06 \
        -o out/backtest
      ideal backtest city.responses --network city.network --month 2023-06 \
        --model model/ --threshold 20 -o out/backtest
    """
    from ideal_dispatch.evaluation import backtest as judged
    from ideal_dispatch.files import check_source
    from ideal_dispatch.forecast import Model
    from ideal_dispatch.network import RoadNetwork
    from ideal_dispatch.records.responses import Responses

    check_source(responses_file, network_file, params_file)
    if train and model_folder is not None:
        raise InputError("--train makes a model, --model gives one: choose one")
    if threshold is not None and share is not None:
        raise InputError("--threshold and --share exclude each other: choose one")
    if params_file is not None and not train:
        raise InputError("--params goes with --train; add it")
    settings = judged.BacktestSettings(
        _first_day(month),
        threshold,
        judged.SHARE if share is None else share,
        tuple(kind or ()),
        train,
    )
    check_folder(output, (judged.PAGE,), force, [responses_file, network_file, params_file])
    network = None if network_file is None else RoadNetwork.load(network_file)
    with bars(lines=True) as show:
        found = judged.backtest(
            Responses.load(responses_file),
            settings,
            network,
            model=None if model_folder is None else Model.load(model_folder),
            training=read_training(params_file, seed) if train else None,
            folder=output,
            watch=lambda stage, done: show(stage, done, ""),
        )
        show("tables, figures and page", 0.0, "")
        made = judged.write_backtest(found, output, network)
    print_report(made, "done")
    say(f"wrote {output / judged.PAGE}, backtest.csv, tables and figures")


def _first_day(month: str) -> date:
    try:
        return date.fromisoformat(f"{month}-01")
    except ValueError:
        raise InputError(f"--month {month}: write it as 2023-06") from None
