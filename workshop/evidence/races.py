"""Real races: docs/evidence/london.md and docs/evidence/lancaster.md.

The protocol, the aims and all settings were fixed before the judged months were looked at;
they were developed on London's January to March. `make race-evidence` does it all
again; trained models are kept and not trained anew.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ideal_dispatch import __version__
from ideal_dispatch.evaluation.predictors import (
    BOOSTING,
    Arrivals,
    Predictors,
    fit_predictors,
    judge,
)
from ideal_dispatch.evaluation.race_judgement import OURS
from ideal_dispatch.evaluation.race_report import races_report, write_races
from ideal_dispatch.evaluation.race_study import (
    RaceStudy,
    StudySettings,
    study_races,
    trained_model,
)
from ideal_dispatch.files import write_file
from ideal_dispatch.learning.assessment import local_scale
from ideal_dispatch.learning.cross_fitting import response_settings
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.pages import save_figure
from ideal_dispatch.records.responses import NEVER, Responses
from ideal_dispatch.report import Cell, Column, Interval, Table
from workshop.evidence.pages import FOLDER, shown

IMAGES = Path("docs/images")
LONDON = StudySettings(date(2023, 4, 1), "month", train=True)
LANCASTER = StudySettings(date(2012, 1, 1), "year")
TRANSFER = date(2023, 6, 1)
LOCAL_ARRIVALS = 200
HALF, QUARTER, ERROR = 0.88, 0.55, 0.03
"""What half and a quarter of the second engines shall bring, and how far ours shall be ahead."""

THAMES = np.array(
    [(-0.34, 51.405), (-0.308, 51.41), (-0.307, 51.46), (-0.28, 51.487), (-0.23, 51.488),
     (-0.215, 51.467), (-0.18, 51.478), (-0.125, 51.487), (-0.121, 51.507), (-0.075, 51.506),
     (-0.05, 51.503), (-0.03, 51.509), (-0.018, 51.486), (0.0, 51.484), (0.005, 51.505),
     (0.03, 51.495), (0.1, 51.505)]
)  # fmt: skip
"""The river from Kingston to Woolwich, roughly."""

PROTOCOL = (
    "**Question.** Two units are sent together from different stations. Could one have known at "
    "the call in which of these calls the second would be worth it, and how much does it save?",
    "**Protocol**, fixed beforehand. Time runs forward: each part is judged by what all days "
    "before it taught. The primary of a race is the unit that our model "
    "expects first, for every ranking alike. Each ranking sends a second unit to exactly the same "
    "share of races. Intervals hold 95 %, whole days drawn again. An aim counts as met where the "
    "point estimate reaches it; a calibration holds where its interval contains 1.",
    "**Words.** AUC says how well a ranking puts the calls in which the second was first before "
    "the others: 0.5 is chance, 1 is perfect. MAE is the mean error in seconds. E[(T₁ − T₂)⁺] are "
    "the seconds that a second unit is expected to save.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--london", type=Path, help="the .responses file of London")
    parser.add_argument("--network", type=Path, help="London's .network file")
    parser.add_argument("--lancaster", type=Path, help="the .responses file of Lancaster County")
    parser.add_argument("--docs", type=Path, default=FOLDER, help="folder of the pages")
    parser.add_argument("-o", "--output", type=Path, default=Path("out/races"))
    given = parser.parse_args()
    if given.london:
        log, network = Responses.load(given.london), RoadNetwork.load(given.network)
        folder = given.output / "london"
        study = study_races(log, LONDON, network, folder=folder, watch=_say)
        write_races(study, folder)
        carried = transfer(log, network, given.output / "transfer")
        write_page(given.docs, "london", london_words(study), study, [carried])
    if given.lancaster:
        study = study_races(Responses.load(given.lancaster), LANCASTER, watch=_say)
        write_races(study, given.output / "lancaster")
        write_page(given.docs, "lancaster", lancaster_words(study), study, [])


def _say(stage: str, done: float) -> None:
    if done in (0.0, 1.0):
        print(stage, flush=True)


# --- the aims -------------------------------------------------------------------------


def aims(study: RaceStudy) -> Table:
    """What was aimed at, what came out, and whether that is enough."""
    judged = study.judged
    quarter, half = judged.shares_kept(OURS, (0.25, 0.5))
    others = [name for name in judged.expected_s if name != OURS]
    best = min(others, key=lambda name: judged.mean_primary_s(name).mean)
    boosted = [name for name in judged.predicted_s if name.startswith(BOOSTING)]
    rival = min(boosted, key=study.arrivals_mae_s)
    later, ahead = judged.primary_beyond(OURS, best), error_ahead(study, rival)
    ratio = judged.gain_ratio
    rows: list[tuple[Cell, ...]] = [
        ("half of the second engines bring of all", f"{HALF:.0%}", _percent(half),
         _met(half.mean >= HALF)),
        ("a quarter brings of all", f"{QUARTER:.0%}", _percent(quarter),
         _met(quarter.mean >= QUARTER)),
        ("expected over saved seconds", "interval holds 1", _number(ratio),
         _met(ratio.low <= 1.0 <= ratio.high)),
        (f"mean primary later than by the best other ({best})", "no later, s", _number(later),
         _met(later.mean <= 0.0)),
        (f"error below the best boosting's ({rival}), all arrivals", f"{ERROR:.0%}",
         _percent(ahead), _met(ahead.mean >= ERROR)),
    ]  # fmt: skip
    columns = tuple(Column(name) for name in ("aim", "at least", "came out", "met"))
    return Table("aims", "Aims, set beforehand", columns, tuple(rows))


def error_ahead(study: RaceStudy, rival: str) -> Interval:
    """By which share our mean absolute error over all arrivals is below the rival's, by days."""
    ours, theirs = (
        np.concatenate([np.abs(one.predicted_s[name] - one.took_s) for one in study.windows])
        for name in (OURS, rival)
    )
    day = np.concatenate([one.day for one in study.windows])
    _, number = np.unique(day, return_inverse=True)
    sums = np.column_stack([np.bincount(number, values) for values in (ours, theirs)])
    days = len(sums)
    drawn = np.random.default_rng(0).multinomial(days, np.full(days, 1 / days), 2000) @ sums
    low, high = np.quantile(1.0 - drawn[:, 0] / drawn[:, 1], (0.025, 0.975))
    return Interval(float(1.0 - ours.sum() / theirs.sum()), float(low), float(high))


def _met(reached: bool) -> str:
    return "yes" if reached else "no"


def _percent(found: Interval) -> str:
    return f"{100 * found.mean:.1f} % [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def _number(found: Interval) -> str:
    return f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]".replace("-", "−")


# --- transfer -------------------------------------------------------------------------


def north_of_the_thames(
    lon: npt.NDArray[np.float64], lat: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    return np.asarray(lat > np.interp(lon, *THAMES.T))


def transfer(log: Responses, network: RoadNetwork, folder: Path) -> Table:
    """Learned north of the river before June, judged south of it from June on."""
    arrivals = Arrivals.of(log, network)
    sides = [
        north_of_the_thames(arrivals.of_log(lon), arrivals.of_log(lat))
        for lon, lat in (("lon", "lat"), ("from_lon", "from_lat"))
    ]
    north, south = sides[0] & sides[1], ~sides[0] & ~sides[1]
    before = arrivals.of_log("date") < np.datetime64(TRANSFER)
    taught = arrivals.select(north & before & arrivals.sound)
    local = arrivals.select(south & before & arrivals.sound)
    settings = response_settings()
    settings = replace(settings, params=settings.params.with_architecture(features="attributes"))
    model, unseen_s = trained_model(taught, folder, settings, _say)
    carried = fit_predictors(taught, model, unseen_s)
    some = local.select(np.arange(max(len(local) - LOCAL_ARRIVALS, 0), len(local)))
    scaled = _scaled(carried, some)
    factor = scaled.response.drive_scale / carried.response.drive_scale
    home = fit_predictors(local)
    races = log.races()
    races = races.select(races.date >= np.datetime64(TRANSFER))
    places = arrivals.places(races.rows)
    places = places[(places >= 0).all(axis=1)]
    places = places[south[places].all(axis=1)]
    days = arrivals.of_log("date")[places[:, 0]]
    columns = (
        Column("what ours rests on"), Column("AUC", 2), Column("saved s, +25 %"),
        Column("saved s, +50 %"), Column("% of all, +50 %", 0, percent=True),
        Column("expected / saved", 2), Column("mean primary s"), Column("MAE s"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for name, predictors in (
        ("learned north, as it is", carried),
        (f"learned north, drives × {factor:.2f} from {len(some)} southern arrivals", scaled),
        ("free flow × hour and response times learned south", home),
    ):
        judged = judge(arrivals, places, predictors, days)
        rows.append(
            (name, judged.auc(OURS), *judged.saved_at(OURS, (0.25, 0.5)).tolist(),
             judged.shares_kept(OURS, (0.5,))[0], judged.gain_ratio,
             judged.mean_primary_s(OURS), judged.mae_s(OURS))
        )  # fmt: skip
    note = (
        f"Learned from {len(taught):,} arrivals north of the Thames before {TRANSFER}; "
        f"{len(places):,} races south of it from then on. Units and scenes are on one side. The "
        f"factor has the least error on the last {len(some)} southern arrivals before June; an "
        "error that is larger with it than without says that it did not hold afterwards."
    )
    title = "Transfer: learned north of the Thames, judged south of it"
    return Table("transfer", title, columns, tuple(rows), note=note)


def _scaled(carried: Predictors, local: Arrivals) -> Predictors:
    """The same with one factor on all drives, learned from a few local arrivals."""
    response = carried.response
    expected_s = carried.of(local).median_s
    drives_s = response.drive_scale * carried.drive(local)
    factor = local_scale(local.took_s - (expected_s - drives_s), drives_s)
    return replace(carried, response=replace(response, drive_scale=response.drive_scale * factor))


# --- the pages ------------------------------------------------------------------------


def london_words(study: RaceStudy) -> list[str]:
    """What is said of London before the tables."""
    dates = study.races.date
    return [
        "# London: fire engines",
        *PROTOCOL,
        "The judged months were looked at once, when everything was fixed, but for this: while "
        "training was made faster, two runs printed errors on days of January to May. Nothing was "
        "chosen by them.",
        "**Data.** London Fire Brigade, January to August 2023 (Open Government Licence): the "
        "first and the second engine's station and attendance time. A race has exactly two "
        f"engines of two stations. {len(study.judged):,} races with both ends on the network, "
        f"{dates.min()} to {dates.max()}, on {study.judged.days:,} days. Roads: OpenStreetMap, "
        "88,259 edges, minor streets thinned.",
        "**Traps.** Attendance counts from each engine's own mobilisation. Engines that were "
        "turned back leave no arrival: not observed, not lost. The station an engine was deployed "
        "from may not be where it was. The sample of incidents is of unknown design. **Engines "
        "are no ambulances**: other crews, other vehicles, other calls.",
        "**Ours.** Edge times learned from arrivals, without any route: five networks, each "
        "trained without a fifth of the days, averaged. Response times (turnout by station, hour "
        "and kind, spread of the drive, what the engines of one incident share) are fitted on what "
        "each network says of the days that it has not seen. The ranking is the expected gain "
        "E[(T₁ − T₂)⁺]. Settings were chosen on January to March.",
        "**Rivals.** Boosting and linear regression see each trip's roads, ends, hour and date; "
        "their settings are chosen on the last fifth of the days before each part, and they learn "
        "whole responses, so that no constant is wrongly taken away.",
    ]


def lancaster_words(study: RaceStudy) -> list[str]:
    """What is said of Lancaster before the tables."""
    judged = study.judged
    return [
        "# Lancaster County: ambulances, without places",
        *PROTOCOL,
        "**Data.** Calls of the rural departments of Lancaster County, Nebraska, 2010 to 2016 "
        "(MIT licence): every unit's dispatch, en route, arrival and clear times. The log has no "
        "places. So all that can be known at the call is who is sent, and when. A race is between "
        f"a county ambulance and a city medic, or two of them, dispatched within five seconds: "
        f"{len(judged):,} races in {len(study.windows)} years, each year judged by the years "
        "before it.",
        "**Traps.** Times are times of day; dates are carried over midnight. Units that never "
        "pressed the button on arrival are not observed. County ambulances are staffed by "
        "volunteers, whose turnout is long and varies; city medics have farther to drive.",
        "**Ours.** The whole response by station, hour and kind of unit, shrunk to the agency's "
        "own, with a part that the units of one call share; recalled units count as not yet there "
        "when another one was.",
    ]


def short_london(study: RaceStudy) -> list[str]:
    """What fell short in London, and what explains it; worked out after the races were judged."""
    judged = study.judged
    late = np.asarray((judged.took_s > 2.0 * judged.predicted_s[OURS]).any(axis=1))
    promising = judged.gain_s >= np.median(judged.gain_s)
    rest = judged.select(np.logical_not(late))
    largest = np.sort(judged.saved_s)[::-1][:10].sum() / judged.saved_s.sum()
    told = {name: judged.shares_kept(name, (0.25, 0.5)) for name in judged.scores if name != OURS}
    quarter, half = (max(both[place].mean for both in told.values()) for place in (0, 1))
    kept = rest.shares_kept(OURS, (0.25, 0.5))
    return [
        "**The shares of the benefit.** A few races decide them. In "
        f"{int(late.sum())} of {len(judged):,} races ({late.mean():.0%}) a unit took more than "
        f"twice what was expected of it; they carry "
        f"{judged.saved_s[late].sum() / judged.saved_s.sum():.0%} of all seconds saved, and the "
        f"ten largest savings alone {largest:.0%}. Nothing that the log knows at the call tells "
        f"these races apart: {int((late & promising).sum())} are in the half with the larger "
        f"expected gain and {int((late & ~promising).sum())} in the other. No "
        f"ranking gets far beyond ours (the best of the others keeps {half:.0%} with half and "
        f"{quarter:.0%} with a quarter), and all that know a distance rank alike within chance. "
        f"Without the late ones ours keeps {kept[1].mean:.0%} and {kept[0].mean:.0%}; that is "
        "hindsight, and no result.",
        "**The mean primary.** Every predictor that knows roads chooses a primary within two "
        "seconds of every other one's, which is within chance (table below). Ours is not the "
        "earliest.",
        "**The error.** Boosting here learns whole responses by absolute error, a stronger rival "
        "than the boosting of the ratio to free flow that prototypes were compared with. "
        "Ours is level with it, not 3 % ahead. What is left is noise of the single response: "
        f"half of all errors are below {_median_error_s(study):.0f} s.",
        "**The expected seconds** are right within the interval, and a little low: late units are "
        "later than a log-normal with rare surprises has them.",
    ]


def _median_error_s(study: RaceStudy) -> float:
    off = [np.abs(one.predicted_s[OURS] - one.took_s) for one in study.windows]
    return float(np.median(np.concatenate(off)))


def short_lancaster(study: RaceStudy) -> list[str]:
    """What fell short in Lancaster, and what may explain it."""
    auc, ratio = study.judged.auc(OURS), study.judged.gain_ratio
    judged = study.judged
    others = [name for name in judged.expected_s if name != OURS]
    best = min(others, key=lambda name: judged.mean_primary_s(name).mean)
    later = judged.primary_beyond(OURS, best)
    return [
        "**Not a first look.** Prototypes had been tried on these years. And a first run learned "
        "from all units, fire engines among them: AUC 0.57, expected seconds 3.2 times what was "
        "saved, mean primary 742 s. That was a mistake, for the question is about ambulances; the "
        "figures here are learned from the kinds that race. The ranking and the expected seconds "
        "became better, the choice of the primary worse: what a station's engines do says "
        "something about its ambulances, and is not used now. A later run took the time until "
        "which a recalled unit had not arrived from all units of its call, not only from those "
        "that are learned from; our AUC, the seconds saved and the primary stayed as they were.",
        f"**The primary** arrives {later.mean:.0f} s [{later.low:.0f}, {later.high:.0f}] later "
        f"than the one that the best other predictor ({best}) chooses. Units turned back make a "
        "station look slow here, whether they were slow or not needed.",
        f"**The ranking** has an AUC of {auc.mean:.2f} [{auc.low:.2f}, {auc.high:.2f}] by station, "
        "kind and hour alone. A part of it is the point above: where the primary is badly chosen, "
        "it is easy to see that a second would help.",
        f"**The expected seconds** are {ratio.mean:.1f} times what was saved "
        f"[{ratio.low:.2f}, {ratio.high:.2f}]. The races that can be seen are a selection: "
        f"{study.left_out.get(NEVER, 0):,} calls are no race because a unit was turned back or "
        "never pressed the button.",
    ]


def write_page(
    folder: Path, stem: str, words: Sequence[str], study: RaceStudy, more: Iterable[Table]
) -> None:
    """The page of an agency, its figures beside the other images, its tables as CSV."""
    report = races_report(study)
    tables = report.tables
    made = f"*Made by `make race-evidence`, ideal-dispatch {__version__}.*"
    blocks = [words[0], made, *words[1:]]
    if stem == "london":
        blocks += ["## Aims", *shown(aims(study))]
    short = short_london if stem == "london" else short_lancaster
    blocks += ["## What fell short, and why", *short(study)]
    names: dict[str, str] = {
        "volumes": "Seconds saved per call over the share of calls with a second unit",
        "reliability": "What was expected, and what happened",
        "map": "Every race on its place",
    }
    for name, one in report.figures.items():
        save_figure(one.figure, IMAGES / f"races_{stem}_{name}.png")

    def image(name: str) -> str:
        return f"![{names[name]}](../images/races_{stem}_{name}.png)"

    blocks += ["## What a second unit saves", image("volumes"), *shown(tables["volumes"])]
    blocks += ["## Can the numbers be trusted?", image("reliability")]
    blocks += shown(tables["probability"], tables["gain"])
    blocks += ["## Who expects arrivals best?", *shown(tables["predictors"])]
    blocks += ["## Part by part", *shown(tables["windows"])]
    blocks += ["## Where and when"]
    if not np.isnan(study.of_call("lon")).any():
        blocks.append(image("map"))
    blocks += shown(*(t for name, t in tables.items() if name.startswith("by-")))
    for table in more:
        blocks += [f"## {table.title.partition(':')[0]}", *shown(table)]
    left = sorted(study.left_out.items(), key=lambda item: -item[1])
    blocks += ["## Calls that are no race here"]
    blocks.append("\n".join(f"- {n:,}: {why}" for why, n in left))
    write_file(folder / f"{stem}.md", "\n\n".join(blocks) + "\n")


if __name__ == "__main__":
    main()
