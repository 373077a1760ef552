"""The chapters of the demo: records, training, replay, one call, a report, the fleet."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.cities import (
    HARBOUR_RECORDS,
    TRAINING_DAYS,
    City,
    harbour_city,
    harbour_traffic,
)
from ideal_dispatch.cli.decision_view import print_answer
from ideal_dispatch.cli.terminal import bars, err, out, print_next, print_table, say, stages
from ideal_dispatch.dispatch import Answer, Ideal, decide, observe
from ideal_dispatch.dispatch.policy_tables import FittedParts, policies_from
from ideal_dispatch.dispatch.situation import Incident, Readiness
from ideal_dispatch.dispatch.survival import USUAL_CURVE, survival_curve
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.call_maps import words
from ideal_dispatch.evaluation.fleet_report import PAGE, fleet_report, over
from ideal_dispatch.evaluation.fleet_runs import FleetRuns
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import day_t_interval
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.replay_report import how_sure, replay_report
from ideal_dispatch.evaluation.result_tables import regret_table
from ideal_dispatch.evaluation.strategies import VOLUMES
from ideal_dispatch.files import write_file
from ideal_dispatch.fleet.experiment import FleetExperiment
from ideal_dispatch.fleet.run import run_fleet
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.pages import save_figure
from ideal_dispatch.records.agency import AgencySettings
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import Calls, Experiment, Ground
from ideal_dispatch.replay.fitting import fit_parts, keep_model

if TYPE_CHECKING:
    from ideal_dispatch.learning import TrainedModel, TrainingProgress
    from ideal_dispatch.records import Trips

# of the eight training days of the embedded city, each with working days and days off
LEARNED, CALIBRATED, REPLAYED = (0, 3, 4, 7), (2, 5), (1, 6)
WORLD = World.EXPERIENCED
OWN, SHARE = "ideal", VOLUMES[0]

_POLICIES: dict[str, Any] = {
    "region": {"kind": "region"},
    "router": {"kind": "router"},
    "interval": {"kind": "interval"},
    "router-dual": {"kind": "router-dual"},
    # its policy and radius on our network, to save the time of the paper's training
    "paper-ideal": {"kind": "paper", "trained": "practical", "radius": "paper"},
    OWN: {"kind": "ideal", "method": "multistart"},
    "random": {"kind": "random"},
}

_WITH_SHIPPED_MODEL = _POLICIES | {
    "paper-ideal": {"kind": "paper", "trained": "practical", "radius": "calibrated"}
}

_FLEET_POLICIES = {"always": {"kind": "always"}, "priced C": {"kind": "survival"}}
_LOADS = (0.3, 0.5, 0.7)

_MARK = "Written by `ideal demo`, which replaces it when it runs again.\n"
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

Watch = Callable[[str, float, str], None]
"""Receives the current step, the share of it that is done, and a remark."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything: what two minutes allow."""

    epochs: int = 6
    calls_per_day: int = 90
    fleet_years: int = 2


@dataclass(eq=False)
class Story:
    """One run of the demo, in its own folder."""

    folder: Path
    seed: int
    scale: Scale
    watch: Watch = lambda step, share, remark: None

    @cached_property
    def city(self) -> City:
        return harbour_city()

    @cached_property
    def ground(self) -> Ground:
        """The city with its training days; those for tests are left alone."""
        recording = harbour_traffic(self.city).only(range(TRAINING_DAYS))
        city = self.city
        return Ground(city.network, recording.calendar, city.depots, city.region, recording)

    @cached_property
    def can_learn(self) -> bool:
        """Whether the packages that the first two chapters need are installed."""
        return all(find_spec(package) for package in ("sklearn", "torch"))

    @cached_property
    def experiment(self) -> Experiment:
        return Experiment(
            "demo", TRAINING_DAYS, seed=self.seed, world=WORLD,
            policies=_POLICIES if self.can_learn else _WITH_SHIPPED_MODEL,
            calls=Calls(self.scale.calls_per_day, contested=1.25),
        )  # fmt: skip

    def prepare(self) -> "tuple[Trips, dict[str, Any]]":
        """The trips of the agency's records, and the facts of their report."""
        from ideal_dispatch.records.prepare import prepare_records
        from ideal_dispatch.records.report import write_trips

        agency, output = self.folder / "agency", self.folder / "prepared"
        step, network = "preparing records", self.city.network
        self.watch(step, 0.0, "")
        shutil.copytree(HARBOUR_RECORDS, agency)
        settings = AgencySettings.load(agency / "agency.toml")
        prepared = prepare_records(
            agency / "records.csv", network, agency / "depots.csv", settings,
            lambda stage: self.watch(step, 0.3, stage),
        )  # fmt: skip
        self.watch(step, 0.6, "writing the report")
        output.mkdir()
        _, facts = write_trips(prepared, network, settings, output)
        self.watch(step, 1.0, "")
        return prepared.trips, facts

    def train(self, trips: "Trips") -> "TrainedModel":
        """The model of the trips, kept where the policies look for it."""
        from ideal_dispatch.learning import TrainParams, fit

        # a thousand trips: a small network and small batches learn most from them
        params = TrainParams(
            seed=self.seed, epochs=self.scale.epochs, batch_size=16
        ).with_architecture(features="attributes", dimension=8, width=32)
        self.watch("training", 0.0, "")

        def watch(progress: "TrainingProgress") -> None:
            epoch = progress.epoch
            remark = "" if epoch is None else f"error {epoch.validation_mae_s:.1f} s"
            self.watch(progress.stage, progress.done, remark)

        run = fit(self.city.network, trips, params=params, watch=watch)
        keep_model(run, "practical", self.folder / "learned")
        return run

    def replay(self, trips: "Trips | None") -> tuple[FittedParts, Judged]:
        """What the policies learned from past days, and how they did on other days."""
        if trips is None:  # the model that comes with the city has learned from all days here
            parts = FittedParts(self.city.model, self.city.responses)
        else:
            parts = fit_parts(  # quick: two policies, sooner done than processes are started
                self.experiment, self.ground, trips, LEARNED, self.folder / "learned",
                report=self._report(f"learning from {len(LEARNED)} days"),
            )  # fmt: skip
        outcomes = [
            self._replayed(parts, days, self.folder / name)
            for name, days in (("calibration", CALIBRATED), ("replay", REPLAYED))
        ]
        curve = survival_curve(USUAL_CURVE)
        return parts, Judged(outcomes[1], outcomes[0], curve, self.seed)

    def _replayed(self, parts: FittedParts, days: Sequence[int], folder: Path) -> Outcomes:
        experiment = self.experiment
        policies = policies_from(experiment.policies, parts)
        report = self._report(f"{folder.name} of {len(days)} days")
        calls = self.ground.calls(experiment, days)
        self.ground.replay(experiment, calls, policies, folder, workers=None, report=report)
        return replace(Outcomes.load(folder), title=f"{self.city.name}, the demo")

    def _report(self, step: str) -> Callable[[int, int], None]:
        self.watch(step, 0.0, "")
        return lambda done, whole: self.watch(step, done / whole, f"{done} of {whole} calls")

    def telling_call(self, judged: Judged) -> dict[str, Any]:
        """The log's entry of the call in which a second ambulance saved most.

        It saves where it is ahead of our first and of the router's ambulance. Calls
        in which no other road could be faster come last: there is nothing to explain.
        """
        outcomes, sent = judged.outcomes, judged.at(OWN, SHARE)
        firsts = [outcomes.policy(name).primary_s for name in (OWN, "router")]
        saved_s = np.minimum(*firsts) - sent.arrival_s
        entries = outcomes.entries(range(len(outcomes)))

        def telling(number: int) -> tuple[bool, float]:
            gap_s = entries[number]["decisions"][OWN]["details"].get("gap_lower_s", 0.0)
            return gap_s > 0.0, float(saved_s[number])

        return entries[max(entries, key=telling)]

    def decide(self, entry: dict[str, Any], parts: FittedParts, judged: Judged) -> Answer:
        """Decide about a call of the log again, by arrivals, with the first volume's threshold."""
        said, ground = entry["incident"], self.ground
        call = Incident(said["name"], said["node"], datetime.fromisoformat(said["at"]))
        situation = observe(
            ground.traffic(self.experiment), ground.network, call,
            ground.recording.context(call.at), Readiness(ground.depots, region=entry["region"]),
        )  # fmt: skip
        limit_s = judged.at(OWN, SHARE).threshold_s
        table = {"kind": "ideal", "threshold": max(limit_s, 0.0), "time_limit_s": "none"}
        times = self.city.responses or ResponseModel.published()
        policy = policies_from({OWN: table}, FittedParts(parts.model, times))[0]
        assert isinstance(policy, Ideal)
        made = decide(situation, policy=policy, rng=np.random.default_rng(self.seed))
        return Answer.of(made, policy.threshold, situation.reasons, times)

    def report(self, judged: Judged, incident: str) -> Path:
        """One page with all tables and figures, the incident's map among them."""
        reached: list[str] = []

        def progress(stage: str) -> None:
            reached.append(stage)
            self.watch("report", min(len(reached) / 8, 1.0), stage)

        why = "the demo's chapter 4: the call in which the second ambulance saved most"
        folder, network = self.folder / "report", self.city.network
        made = replay_report(judged, network, incident, progress, why).save(folder)
        self.watch("report", 1.0, "")
        return made[-1]

    def fleet(self) -> tuple[list[str], Path, Path]:
        """What second ambulances cost the others: in words, a page, and a picture of the report."""
        folder = self.folder / "fleet"
        experiment = FleetExperiment(
            "demo", utilisation=_LOADS, seeds=(self.seed,), years=self.scale.fleet_years,
            policies=_FLEET_POLICIES, recall=("none", "first arrival"), log=False,
        )  # fmt: skip
        run_fleet(experiment, folder, watch=lambda step, share: self.watch(step, share, ""))
        runs = FleetRuns.read(folder)
        report = fleet_report(runs)
        write_file(folder / PAGE, report.html())
        (group,) = runs.by_load()
        picture = self.folder / "report" / "figures" / "fleet.png"
        save_figure(over(group), picture)
        lines = [f"{value} {label}." for label, value in report.numbers]
        return lines, folder / PAGE, picture


def tell(folder: Path, seed: int, scale: Scale) -> None:
    """Run and print all chapters at some scale."""
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
        "Records have no routes: times of roads are learned through shortest paths. On "
        f"{own.trips} trips of other days, {test.observed_s.mean() / 60:.1f} min long in the mean, "
        f"the forecast is {own.mae_s:.1f} s off (free flow times one factor: "
        f"{scores(test.observed_s, plain).mae_s:.1f} s), and the slowest scenario is slow enough "
        f"for {100 * run.coverage(rows):.0f} % of them.",
    )


def _show_replay(story: Story, judged: Judged) -> None:
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
        f"{100 * row.extra:.0f} % of the calls. On average the first unit then arrives "
        f"{abs(sooner_s.mean):.1f} s {'sooner' if sooner_s.mean >= 0 else 'later'} than the "
        f"router's one ambulance ({router_s.mean():.0f} s; {how_sure(sooner_s)}). Two days show "
        "how it works, not how well: docs/evidence.md does that.",
    )
