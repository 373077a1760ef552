"""``ideal fleet``: a whole fleet over years, and what a second ambulance costs the others."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ideal_dispatch.cli import fleet_price
from ideal_dispatch.cli.help import CommandLine
from ideal_dispatch.cli.options import check_file
from ideal_dispatch.cli.terminal import bars, out, print_next, print_table, say, stages, warn
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Count, Seed

if TYPE_CHECKING:
    from ideal_dispatch.fleet.experiment import FleetExperiment

app = CommandLine(
    "Simulate a whole fleet over years: what does a second ambulance cost the others?"
)

_HEADER = (
    "policy", "recall", "second %", "saved", "±", "mean s", "P90 s", "others s", "±", "min",
)  # fmt: skip
_WORDS = (
    "second: share of the entitled calls that get one. saved: fewer deaths per 1,000 arrests than "
    "with never, ± its standard error. mean, P90: first arrivals at all calls. others: mean of "
    "calls that are not entitled, ± the standard error of its difference to never, from five years "
    "on. min: minutes for which the unit that took no patient was held."
)


@app.command()
def report(run: Path, output: Path | None = None, force: bool = False) -> None:
    """Make one HTML page of a simulated fleet: what seconds bring, and what they cost the others.

    Tables and figures of survival, first arrivals by priority, and unit hours, over load and
    fleet size where the run has several; from which load on always sending two does harm; what
    one more ambulance would bring instead. A run that is not finished can be reported, too.

    Options:
      RUN  A folder made by `ideal fleet simulate`.
      -o, --output FILE  The page to write; fleet.html in the run's folder by default, where it
          is always overwritten.

    Examples:
      ideal fleet report out/fleet
      ideal fleet report out/fleet -o fleet.html
    """
    from ideal_dispatch.evaluation.fleet_report import PAGE, fleet_report
    from ideal_dispatch.evaluation.fleet_runs import FleetRuns
    from ideal_dispatch.files import write_file

    page = output or run / PAGE
    check_file(page, force or output is None)
    with stages("Reporting"):
        made = fleet_report(FleetRuns.read(run))
        write_file(page, made.html())
    for line in made.caveats:
        warn(line)
    say(f"wrote {page}")


@app.command()
def simulate(
    file: Path | None = None,
    output: Path | None = None,
    jemss: Path | None = None,
    years: Count | None = None,
    utilisation: list[float] | None = None,
    entitled: list[float] | None = None,
    units: list[int] | None = None,
    fixed_cost: float | None = None,
    price: Path | None = None,
    seed: Seed | None = None,
    jobs: Count | None = None,
    cluster: str | None = None,
) -> None:
    r"""Simulate years of a whole fleet, with and without second ambulances.

    Calls come in, units drive, treat, transport and return, and every policy meets the same
    calls with the same luck. The policies are those of the file; without one: never a second
    unit, always, at random for half, by a fixed cost, and by the price of the unit
    at that moment. The unit that will not be first is stood down never, when the other
    arrives, or as soon as it is not worth its price any more. Deaths are per 1,000 cardiac arrests.

    Writes summary.json, runs.json, the log of the first year, and a manifest. After an
    interruption the same command continues. The number of jobs does not change the result.

    Options:
      EXPERIMENT  A .toml file that says which cities, fleets, loads and policies; without one
          and without --jemss, the embedded city's fleet.
      -o, --output FOLDER  The folder to write to.
      --jemss FOLDER  A model folder of JEMSS, such as auckland/models/1.
      --years NUMBER  Years of every policy; 20 by default.
      --utilisation SHARE  Scale the calls until units are busy for this share of their time;
          repeat it for several loads. Without it, calls as they are.
      --entitled SHARE  The share of calls that are considered for a second unit; repeat it for
          several. Without it, cardiac arrests alone.
      --units NUMBER  Fleet sizes that answer the same calls; repeat it for several.
      --fixed-cost CHANCE  What a second unit must save under the policy "fixed C", as a chance of
          death; 0.001 by default.
      --price FILE  A file of `ideal fleet price` for this city, which corrects the prices.

    Examples:
      ideal fleet simulate --years 5 --utilisation 0.5 -o out/fleet
      ideal fleet simulate --jemss auckland/models/1 --years 20 --utilisation 0.5 \
        -o out/auckland
      ideal fleet simulate experiments/fleet_port_almery.toml -o out/almery
    """
    from ideal_dispatch.fleet.experiment import FleetExperiment
    from ideal_dispatch.fleet.run import run_fleet

    told = {"jemss": jemss, "years": years, "utilisation": utilisation, "entitled": entitled,
            "units": units, "fixed-cost": fixed_cost, "price": price, "seed": seed}  # fmt: skip
    given = [f"--{name}" for name, value in told.items() if value not in (None, [])]
    if output is None:
        raise InputError("-o is missing: which folder shall the results be written to?")
    if file is not None and given:
        raise InputError(f"{given[0]} goes without a file; write it into {file}")
    experiment = (
        FleetExperiment.load(file) if file is not None
        else usual_experiment(jemss, years, utilisation, entitled, units, fixed_cost, seed, price)
    )  # fmt: skip
    with bars() as bar:
        run_fleet(
            experiment, output, workers=jobs, cluster=cluster,
            watch=lambda step, share: bar(step, share, ""),
        )  # fmt: skip
    show(output)
    say(f"wrote {output / 'summary.json'}, runs.json and manifest.json")
    if experiment.log:
        say(f"wrote {output / 'log'}: every call of the first year, and who went there")
    print_next("ideal", "fleet", "report", output)


app.command()(fleet_price.price)


def usual_experiment(
    jemss: Path | None,
    years: int | None,
    utilisation: list[float] | None,
    entitled: list[float] | None,
    units: list[int] | None,
    fixed_cost: float | None,
    seed: int | None,
    price: Path | None = None,
) -> "FleetExperiment":
    """The experiment of a command without a file."""
    from ideal_dispatch.fleet.experiment import USUAL_POLICIES, FleetExperiment

    tables: dict[str, Any] = {
        "city": {} if jemss is None else {"jemss": str(jemss)},
        "utilisation": utilisation or [], "entitled": entitled or [], "units": units or [],
        "policies": dict(USUAL_POLICIES),
    }  # fmt: skip
    if price is not None:
        tables["price"] = str(price)
    if years is not None:
        tables["years"] = years
    if seed is not None:
        tables["seeds"] = [seed]
    if fixed_cost is not None:
        tables["policies"]["fixed C"] = {"kind": "survival", "threshold": {"cost": fixed_cost}}
    return FleetExperiment.of(tables)


def show(folder: Path) -> None:
    """Print the tables of a run, one for each city, fleet and load."""
    from ideal_dispatch.fleet.run import read_runs

    rows, notes = read_runs(folder)
    for title, cells in tables_of(rows).items():
        out.print(title, style="bold", markup=False)
        print_table(_HEADER, cells)
    out.print(_WORDS, style="dim")
    out.print()
    for note in notes:
        warn(note, "note")


def tables_of(rows: list[dict[str, Any]]) -> dict[str, list[list[str]]]:
    """Cells of the table of every case, by its title."""
    tables: dict[str, list[list[str]]] = {}
    for row in rows:
        load = "calls as they are" if row["load"] is None else f"{row['load']:.0%} busy"
        years = "1 year" if row["years"] == 1 else f"{row['years']} years"
        title = (
            f"{row['city']}: {row['units']} units, {load}, {row['entitled']:.1%} entitled, {years}"
        )
        never = row["policy"] == "never"
        tables.setdefault(title, []).append([
            row["policy"], row["recall"], f"{100 * row['second_share']:.0f}",
            "" if never else f"{-row['deaths_difference']:.2f}",
            "" if never else f"{row['paired_se']:.2f}",
            _number(row["mean_first_s"]), _number(row["p90_first_s"], 0),
            _number(row["others_mean_s"]),
            "" if never else _number(row.get("others_se_s"), 2),
            _number(row["second_unit_minutes"]),
        ])  # fmt: skip
    return tables


def _number(value: float | None, decimals: int = 1) -> str:
    return "–" if value is None else f"{value:.{decimals}f}"
