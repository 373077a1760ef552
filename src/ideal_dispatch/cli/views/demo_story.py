"""The chapters of the demo: records, training, replay, one call, a report, the fleet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.cities import (
    HARBOUR_RECORDS,
    TRAINING_DAYS,
    City,
    harbour_city,
    harbour_traffic,
)
from ideal_dispatch.dispatch.policy_tables import FittedParts, policies_from
from ideal_dispatch.dispatch.situation import Incident, Readiness
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.strategies import VOLUMES
from ideal_dispatch.files import write_file
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.pages import save_figure
from ideal_dispatch.records.agency import AgencySettings
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import Calls, Experiment, Ground
from ideal_dispatch.replay.fitting import fit_parts, keep_model

if TYPE_CHECKING:
    from ideal_dispatch.dispatch import Answer
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

Watch = Callable[[str, float, str], None]
"""Told the current step, the share of it that is done, and a remark."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything: what two minutes allow."""

    epochs: int = 6
    calls_per_day: int = 90
    fleet_years: int = 2


@dataclass(eq=False)
class Story:
    """One telling of the demo, in a folder of its own."""

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
        copytree(HARBOUR_RECORDS, agency)
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
        from ideal_dispatch.dispatch.survival import USUAL_CURVE, survival_curve

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

    def decide(self, entry: dict[str, Any], parts: FittedParts, judged: Judged) -> "Answer":
        """Decide about a call of the log again, by arrivals, with the first volume's threshold."""
        from ideal_dispatch.dispatch import Answer, Ideal, decide, observe

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
        from ideal_dispatch.evaluation.replay_report import replay_report

        stages: list[str] = []

        def progress(stage: str) -> None:
            stages.append(stage)
            self.watch("report", min(len(stages) / 8, 1.0), stage)

        why = "the demo's chapter 4: the call in which the second ambulance saved most"
        folder, network = self.folder / "report", self.city.network
        made = replay_report(judged, network, incident, progress, why).save(folder)
        self.watch("report", 1.0, "")
        return made[-1]

    def fleet(self) -> tuple[list[str], Path, Path]:
        """What second ambulances cost the others: in words, a page, and a picture of the report."""
        from ideal_dispatch.evaluation.fleet_report import PAGE, fleet_report, over
        from ideal_dispatch.evaluation.fleet_runs import FleetRuns
        from ideal_dispatch.fleet.experiment import FleetExperiment
        from ideal_dispatch.fleet.run import run_fleet

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
