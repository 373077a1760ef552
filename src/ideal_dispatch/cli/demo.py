"""``ideal demo``: the whole story on the embedded city, in two minutes and without a network."""

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ideal_dispatch.cli.terminal import bars, err, out, print_next, print_table, say, stages
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Whole

if TYPE_CHECKING:
    from ideal_dispatch.cli.views.demo_story import Scale, Story
    from ideal_dispatch.evaluation.judged import Judged
    from ideal_dispatch.learning import TrainedModel
    from ideal_dispatch.records import Trips


_MARK = "Written by `ideal demo`, which writes it anew when it runs again.\n"
_NOTE = f"""{_MARK}
agency/       made-up records of an agency, messy as real ones are, and its weather
prepared/     the trips in them, the rows left out, and report.html about both
learned/      the model and all else that policies learned from past days
calibration/  log of the days on which thresholds were set
replay/       log of the days on which policies were compared
report/       report.html: tables, figures and maps of the comparison
fleet/        some years of the whole fleet, and fleet.html about them
"""
_NOTE_FILE = "README.txt"
_PARTS = ("agency", "prepared", "learned", "calibration", "replay", "report", "fleet")


def demo(output: Path = Path("out/demo"), seed: Whole = 7) -> None:
    """The whole story in two minutes: records, training, replay, one call, a report, the fleet.

    On the embedded city, a made-up one, without the internet: an agency's
    records become trips, a model learns from them, every policy is tried on
    days it has not seen, and one call is decided and explained. At last the
    whole fleet shows what second ambulances cost the other calls. Learning needs
    ideal-dispatch[train]; without, the model that comes with the city
    is used.

    Examples:
      ideal demo
      ideal demo -o out/another --seed 3
    """
    from ideal_dispatch.cli.views.demo_story import Scale

    tell(output, seed, Scale())


def tell(folder: Path, seed: int, scale: "Scale") -> None:
    """Tell the story at some scale."""
    from ideal_dispatch.cli.views.decision_view import print_answer
    from ideal_dispatch.cli.views.demo_story import OWN, WORLD, Story
    from ideal_dispatch.evaluation.call_maps import words

    _clear(folder)
    began = time.monotonic()
    with stages("Loading the embedded city"):
        story = Story(folder, seed, scale)
        city, ground = story.city, story.ground
    _say(
        f"[bold]{city.name}[/], a fictional harbour city: {city.network.num_nodes:,} junctions, "
        f"{city.network.num_edges:,} road segments, ambulances at "
        f"{' and '.join(depot.name for depot in city.depots)}, {len(ground.recording.days)} days "
        "of simulated traffic.",
        markup=True,
    )
    trips = None
    if not story.can_learn:
        out.print()
        _say(
            "Chapters 1 and 2 need pip install 'ideal-dispatch[train]'. Without it the model is "
            "the one that comes with the city. It has learned from the days that are replayed "
            "here, so it looks better than it is."
        )
    else:
        _chapter(1, "An agency's records", "ideal records prepare")
        with bars() as story.watch:
            trips, facts = story.prepare()
        _show_records(facts)
        _chapter(2, "Learning travel times", "ideal train")
        with bars() as story.watch:
            run = story.train(trips)
        _show_training(run, trips)
    unseen = "days that were not learned from" if story.can_learn else "recorded days"
    _chapter(3, f"Replaying {unseen}", "ideal replay")
    with bars() as story.watch:
        parts, judged = story.replay(trips)
    _show_replay(story, judged)
    _chapter(4, "One call", "ideal decide")
    entry = story.telling_call(judged)
    with stages("Searching other roads"):
        answer = story.decide(entry, parts, judged)
    print_answer(answer, story.city)
    out.print()
    out.print("What happened then", style="bold")
    told, _, _ = words(entry, OWN, WORLD).partition(f" {OWN}: ")  # the log's threshold is another
    _say(told)
    _chapter(5, "The report", "ideal report")
    with bars() as story.watch:
        page = story.report(judged, entry["incident"]["name"])
    say(f"wrote {page}")
    _chapter(6, "The whole fleet", "ideal fleet simulate")
    with bars() as story.watch:
        lines, page, picture = story.fleet()
    _say("\n".join(lines))
    say(f"wrote {page} and {picture}")
    took = time.monotonic() - began
    err.print(f"all of it took {took // 60:.0f} min {took % 60:02.0f} s", style="dim")
    print_next("ideal", "serve")


def _clear(folder: Path) -> None:
    """Make room for a new run; what another program wrote is left alone."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"-o {folder}: is a file; name a folder")
    note = folder / _NOTE_FILE
    there = [name for name in (*_PARTS, _NOTE_FILE) if (folder / name).exists()]
    ours = note.is_file() and note.read_text(errors="replace").startswith(_MARK)
    if there and not ours:
        raise InputError(f"-o {folder}: holds {there[0]} of something else; name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    note.write_text(_NOTE)
    for name in _PARTS:
        if (folder / name).exists():
            shutil.rmtree(folder / name)


def _say(text: str, markup: bool = False) -> None:
    out.print(text, width=min(out.width, 80), markup=markup)


def _chapter(number: int, title: str, command: str) -> None:
    out.print()
    out.print(f"[bold]{number} of 6  {title}[/]  [dim]{command}[/]")


def _show_records(facts: dict[str, Any]) -> None:
    slope = facts["floor_slope"]
    low, high = slope["confidence_95"]
    _say(
        "Made-up calls of a year, answered in the simulated traffic and noted carelessly: "
        f"{facts['rows']:,} rows became {facts['trips']:,} trips, {facts['quarantined']} cannot "
        f"be read or placed, {facts['excluded']} are left out by a rule. Where no one noted the "
        "drive, it is what remains of the time from call to CPR; a floor takes "
        f"{slope['seconds_per_floor']:.2f} s ({low:.2f} … {high:.2f}), and 1.90 s in truth.",
    )


def _show_training(run: "TrainedModel", trips: "Trips") -> None:
    from ideal_dispatch.learning.baselines import TripTable, constant
    from ideal_dispatch.learning.scores import scores

    rows, network = run.split.test, run.data.network
    test = trips.select(rows)
    learned_from = TripTable.of(network, trips.select(run.split.train))
    plain = constant().fit(learned_from).predict(TripTable.of(network, test))
    own = scores(test.observed_s, run.predicted_s[rows])
    _say(
        f"Nobody recorded routes: times of roads are learned through shortest paths. On "
        f"{own.trips} trips of other days, {test.observed_s.mean() / 60:.1f} min long in the mean, "
        f"the forecast is {own.mae_s:.1f} s off (free flow times one factor: "
        f"{scores(test.observed_s, plain).mae_s:.1f} s), and the slowest scenario is slow enough "
        f"for {100 * run.coverage(rows):.0f} % of them.",
    )


def _show_replay(story: "Story", judged: "Judged") -> None:
    from ideal_dispatch.cli.views.demo_story import CALIBRATED, LEARNED, OWN, SHARE
    from ideal_dispatch.evaluation.metrics import day_t_interval
    from ideal_dispatch.evaluation.replay_report import how_sure
    from ideal_dispatch.evaluation.result_tables import regret_table

    table, outcomes = regret_table(judged), judged.outcomes
    learned = (
        f"Thresholds were set on {len(CALIBRATED)} other days." if not story.can_learn
        else f"Policies learned from {len(LEARNED)} other days, thresholds were set on "
        f"{len(CALIBRATED)} more."
    )  # fmt: skip
    _say(
        f"{len(outcomes)} calls on {len(outcomes.days)} days, {len(outcomes.policies)} policies, "
        f"all in the same traffic. {learned}",
    )
    out.print()
    _say(f"{table.title}:")
    print_table(table.header, table.text_rows(), table.bold)
    router_s = outcomes.policy("router").primary_s
    row = judged.at(OWN, SHARE)
    sooner_s = day_t_interval(router_s - row.arrival_s, outcomes.day)
    _say(
        "Regret: seconds later than the best of the candidate drives. It is below zero where a "
        f"second on another road is sooner than all of these. {OWN} sends a second ambulance to "
        f"{100 * row.extra:.0f} % of the calls. In the mean somebody then arrives "
        f"{abs(sooner_s.mean):.1f} s {'sooner' if sooner_s.mean >= 0 else 'later'} than the "
        f"router's one ambulance ({router_s.mean():.0f} s; {how_sure(sooner_s)}). Two days show "
        "how it works, not how well: docs/evidence.md does that.",
    )
