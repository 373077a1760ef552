"""``ideal fleet price``: what one unit away costs the others, and how right that price is."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ideal_dispatch.cli.options import check_file
from ideal_dispatch.cli.terminal import bars, out, print_table, say, warn
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Count, Seed

if TYPE_CHECKING:
    from ideal_dispatch.fleet.calibration import Calibration
    from ideal_dispatch.fleet.city import FleetCity

_HOURS = (0, 4, 8, 12, 16, 20)


def price(
    file: Path | None = None,
    jemss: Path | None = None,
    utilisation: float | None = None,
    moments: Count = 200,
    futures: Count = 200,
    output: Path | None = None,
    seed: Seed = 0,
    force: bool = False,
) -> None:
    r"""Say what one ambulance away costs all other calls, in lives and late arrivals.

    Prices are worked out from who is free, where, and how many calls come in. They are compared
    with the truth of the simulation: the same future with the unit and without it. One half
    of the moments corrects the prices, the other half tells how right they are.

    Options:
      EXPERIMENT  A .toml file as for `ideal fleet simulate`; its first city and load count.
          Without one and without --jemss, the embedded city's fleet.
      --jemss FOLDER  A model folder of JEMSS, such as auckland/models/1.
      --utilisation SHARE  Scale the calls until units are busy for this share of their time.
      -o, --output FILE  A .json file for the correction of the prices, which policies can use.

    For specialists:
      --moments NUMBER  Moments to learn from, and as many to check by; take 1000 for a correction
          that is kept.
      --futures NUMBER  Futures of every moment, each with the unit and without it.

    Examples:
      ideal fleet price --utilisation 0.5
      ideal fleet price --jemss auckland/models/1 --moments 1000 -o price.json
    """
    from ideal_dispatch.fleet.calibration import calibrate

    if output is not None:
        check_file(output, force, [file])
    city = _city(file, jemss, utilisation)
    with bars() as bar:
        found = calibrate(
            city, count=moments, futures=futures, seed=seed,
            watch=lambda stage, share: bar(stage, share, ""),
        )  # fmt: skip
    say(f"{city.name}: {city.num_units} units, {city.calls_per_day:.0f} calls a day")
    _print_prices(city, found, seed)
    _print_checks(found)
    for note in city.notes:
        warn(note, "note")
    if output is not None:
        found.save(output)
        say(f"wrote {output}")


def _city(file: Path | None, jemss: Path | None, utilisation: float | None) -> "FleetCity":
    from ideal_dispatch.fleet.experiment import FleetExperiment
    from ideal_dispatch.fleet.load import at_utilisation

    if file is not None:
        told = {"--jemss": jemss, "--utilisation": utilisation}
        for name, value in told.items():
            if value is not None:
                raise InputError(f"{name} goes without a file; write it into {file}")
        experiment = FleetExperiment.load(file)
        found = {name: experiment.city(name) for name in experiment.cities}
        return next(iter(experiment.ready(found).values()))
    table = {} if jemss is None else {"jemss": str(jemss)}
    experiment = FleetExperiment.of({"city": table})
    city = experiment.city(next(iter(experiment.cities)))
    return city if utilisation is None else at_utilisation(city, utilisation)


def _print_prices(city: "FleetCity", found: "Calibration", seed: int) -> None:
    """A table for every absence: by hour and number of free units."""
    from ideal_dispatch.fleet.calibration import HOLDS_S, price_grid

    most = city.num_units
    free = sorted({1, 2, *(round(most * part) for part in (0.25, 0.5, 0.75, 1.0))} - {0})
    free = [count for count in free if count <= most]
    lives, late = (
        price_grid(city, harm, factors, free, _HOURS, seed=seed)
        for harm, factors in found.factors.items()
    )
    for k, hold_s in enumerate(HOLDS_S):
        for what, grid in (("lives lost, × 10⁻⁴", 1e4 * lives), ("late arrivals", late)):
            out.print(f"one unit away for {hold_s / 60:.0f} min: {what}", style="bold")
            rows = [[f"{hour:02d}:00", *(_cell(value) for value in grid[row, :, k])]
                    for row, hour in enumerate(_HOURS)]  # fmt: skip
            print_table(("hour, free units", *map(str, free)), rows, bold=())


def _cell(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def _print_checks(found: "Calibration") -> None:
    """How the prices compare with the referee, before and after the correction."""
    out.print("price / referee, at moments that were not learned from", style="bold")
    rows = [
        [f"{'lives' if one.harm == 'deaths' else 'late arrivals'}, {one.hold_s / 60:.0f} min",
         f"{one.referee:.2e}", f"{one.referee_error:.0e}",
         _ratio(one.before, one.referee), _ratio(one.after, one.referee),
         f"{one.r2_before:.2f}", f"{one.r2_after:.2f}"]
        for one in found.checks
    ]  # fmt: skip
    print_table(
        ("cost, away", "referee", "±", "before", "after", "R² before", "R² after"), rows, bold=()
    )


def _ratio(price: float, referee: float) -> str:
    return f"{price / referee:.2f}" if referee > 0.0 else "–"
