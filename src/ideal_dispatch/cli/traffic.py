"""``ideal traffic``: simulated and synthetic traffic."""

from pathlib import Path
from typing import TYPE_CHECKING

from ideal_dispatch.cli.help import CommandLine
from ideal_dispatch.cli.options import check_clock, check_file, read_day, read_network
from ideal_dispatch.cli.terminal import bars, out, print_facts, print_table, say, stages, warn
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Count, Whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ideal_dispatch.context import Calendar
    from ideal_dispatch.network import RoadNetwork
    from ideal_dispatch.traffic.recording import RecordedTraffic
    from ideal_dispatch.traffic.sumo.plan import DayPlan

app = CommandLine("Make and look at traffic: how long each road takes, minute by minute.")


@app.command()
def simulate(
    output: Path,
    engine: str = "synthetic",
    days: Count = 6,
    first: str = "2023-05-08",
    seed: Whole = 0,
    hours: str = "6-10,16-20",
    whole_days: Whole | None = None,
    demand: float | None = None,
    regime: str | None = None,
    network_file: Path | None = None,
    time_zone: str | None = None,
    country: str | None = None,
    work: Path | None = None,
    workers: Count | None = None,
    force: bool = False,
) -> None:
    r"""Make up traffic: how long each road takes, minute by minute, in one file.

    SUMO is a free traffic simulator (needs ideal-dispatch[sumo]).

    Options:
      -o, --output FILE  The .traffic file to write.
      --engine synthetic|sumo  synthetic: computed from formulas, takes seconds. sumo: every vehicle
          is simulated, takes minutes for each day.
      --days NUMBER  How many days.
      --first DAY  The first of the synthetic days. SUMO takes only the year from it and draws its
          days from the whole year.
      --hours FROM-TO,...  Hours of each day, in local time.
      --whole-days NUMBER  SUMO: how many of the days have all 24 hours; one in six by default.
      --regime calm|volatile  SUMO: what the days are like. calm, the default: ordinary days.
          volatile: weekdays with as much demand as the streets can carry, and many accidents on
          main roads; vehicles move from queue to queue, which is quicker to simulate.
      --demand FACTOR  SUMO: how busy the roads are; 1 is usual in the embedded city. By default,
          what the streets of other cities can carry is measured first, which takes some minutes;
          calm days have 80 % of that.
      --time-zone ZONE  The city's time zone; --network needs it.
      --country CODE  The country, in two letters, for its holidays; --network needs it.
      --work FOLDER  SUMO: where finished days are kept; beside the output by default. After an
          interruption the same command continues from there.
      --workers NUMBER  SUMO: days simulated at once; one per processor core by default.

    Examples:
      ideal traffic simulate --engine synthetic --days 6 -o city.traffic
      ideal traffic simulate --engine sumo --days 3 -o days.traffic --work out/sumo
      ideal traffic simulate --engine sumo --network leeds.network \
        --time-zone Europe/London --country GB --hours 17-19 --whole-days 0 \
        --regime volatile -o evenings.traffic
    """
    from dataclasses import replace

    from ideal_dispatch import __version__
    from ideal_dispatch.context import Calendar

    check_file(output, force, [network_file])
    check_clock(network_file, time_zone, country)
    time_zone, country = time_zone or "Asia/Hong_Kong", country or "HK"
    network, calendar = read_network(network_file), Calendar(time_zone, country)
    begin, periods = read_day("--first", first), _periods(hours)
    if engine == "synthetic":
        for name, value in (
            ("--demand", demand), ("--regime", regime), ("--whole-days", whole_days),
        ):  # fmt: skip
            if value is not None:
                raise InputError(f"{name} is for SUMO: leave it out, or give --engine sumo")
        from ideal_dispatch.traffic.synthetic import SyntheticParams, synthetic_traffic

        with stages("Simulating"):
            params = SyntheticParams(days=days, first=begin, hours=periods, seed=seed)
            recording = synthetic_traffic(network, calendar, params)
    elif engine == "sumo":
        from ideal_dispatch.traffic.sumo.campaign import broken_rules, capacity
        from ideal_dispatch.traffic.sumo.network import turns_left_out
        from ideal_dispatch.traffic.sumo.plan import REGIMES, plan_days

        folder = work or output.with_suffix(".days")
        regime = regime or "calm"
        if regime not in REGIMES:
            raise InputError(f"--regime {regime}: choose {' or '.join(REGIMES)}")
        how = REGIMES[regime]
        if demand is None and network_file is None and how is REGIMES["calm"]:
            demand = 1.0
        elif demand is None:
            with stages("Finding how much traffic the streets can carry"):
                demand = how.capacity_share * capacity(network, folder)
            out.print(f"demand {demand:.2f}: {how.capacity_share:.0%} of what the streets carry")
        whole_days = days // 6 if whole_days is None else whole_days
        plans = plan_days(
            network, calendar, seed, year=begin.year, days=days, hours=periods,
            demand=demand, whole_days=whole_days, regime=how,
        )  # fmt: skip
        recording = _sumo(network, calendar, plans, folder, workers)
        unknown = turns_left_out(network)
        if unknown:
            warn(
                f"SUMO's drivers may make {unknown} forbidden turns of three or more roads", "note"
            )
        for line in broken_rules(recording):
            warn(f"not plausible: {line}")
    else:
        raise InputError(f"--engine {engine}: choose synthetic or sumo")
    command = f"ideal traffic simulate --engine {engine} --days {days} --first {begin} "
    command += f"--seed {seed} --hours {hours} --time-zone {time_zone} --country {country}"
    if engine == "sumo":
        command += f" --regime {regime} --demand {demand:g} --whole-days {whole_days}"
    if network_file is not None:
        command += f" --network {network_file.name}"
    made = {"software": f"ideal-dispatch {__version__}", "seed": seed, "command": command}
    recording = replace(recording, provenance={**recording.provenance, **made})
    recording.save(output)
    _show(recording, output)
    say(f"wrote {output} ({output.stat().st_size / 1e6:.1f} MB)")


@app.command()
def info(file: Path, network_file: Path | None = None) -> None:
    """Show what a recording holds: days, hours, how many roads were seen, how slow they were.

    Options:
      FILE  A .traffic file.

    Example:
      ideal traffic info city.traffic
    """
    from ideal_dispatch.traffic.recording import RecordedTraffic

    recording = RecordedTraffic.load(file, read_network(network_file))
    _show(recording, file)


def _periods(text: str) -> tuple[tuple[int, int], ...]:
    try:
        ends = [tuple(map(int, period.split("-"))) for period in text.split(",")]
        return tuple((first, last) for first, last in ends)
    except ValueError:
        raise InputError(f"--hours {text}: write them as 6-10,16-20") from None


def _sumo(
    network: "RoadNetwork",
    calendar: "Calendar",
    plans: "Sequence[DayPlan]",
    folder: Path,
    workers: int | None,
) -> "RecordedTraffic":
    from ideal_dispatch.traffic.sumo.campaign import simulate as campaign

    took: list[float] = []
    with bars() as show:

        def report(plan: "DayPlan", cpu_s: float) -> None:
            took.append(cpu_s)
            show("simulating days", len(took) / len(plans), f"{plan.date}: {cpu_s:.0f} CPU s")

        recording = campaign(network, calendar, plans, folder, workers=workers, report=report)
    simulated = [cpu_s for cpu_s in took if cpu_s]
    if simulated:
        mean = sum(simulated) / len(simulated)
        many = "1 day" if len(simulated) == 1 else f"{len(simulated)} days"
        out.print(f"{many} simulated, {mean:.0f} CPU s each")
    return recording


def _show(recording: "RecordedTraffic", file: Path) -> None:
    import numpy as np

    from ideal_dispatch.traffic.recording import RATIOS

    arrays = {id(a): a for s in recording.stretches for a in (s.codes, s.truth) if a is not None}
    megabytes = sum(array.nbytes for array in arrays.values()) / 1e6
    made = recording.provenance
    engine = " ".join(str(made[name]) for name in ("engine", "version") if name in made)
    print_facts(
        file.name,
        {
            "engine": engine or "not stated",
            "made by": str(made.get("command", "not stated")),
            "edges": f"{recording.network.num_edges:,}",
            "bin": f"{recording.bin_s} s",
            "days": str(len(recording.days)),
            "in memory": f"{megabytes:.0f} MB",
        },
        justify="left",
    )
    rows = []
    for stretch in recording.stretches:
        local = recording.calendar.local(stretch.start)
        seen, end = stretch.codes > 0, recording.calendar.local(recording.end(stretch))
        until = "24:00" if end.date() > local.date() and end.hour == 0 else f"{end:%H:%M}"
        rows.append((
            f"{local:%a %d %b %Y}",
            f"{local:%H:%M}–{until}",
            f"{stretch.weather[1:, 1].sum():.0f}",  # the first row is of the hour before
            f"{seen.mean():.0%}",
            f"{np.mean(RATIOS[stretch.codes[seen]]):.2f}" if seen.any() else "–",
        ))  # fmt: skip
    header = ("day", "hours", "rain mm", "edge-minutes seen", "time / free flow")
    print_table(header, rows, bold=())
