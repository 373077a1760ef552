"""All that policies learn from past days, fitted on some of them and kept in files."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from ideal_dispatch.dispatch.candidate import ALL_KINDS, OTHER_DEPOT, SecondKind
from ideal_dispatch.dispatch.controls import ROUTER_FEATURES, QuoteDifferencePolicy
from ideal_dispatch.dispatch.decision import Decision, Policy
from ideal_dispatch.dispatch.expected_gain import GainFeatures, GainModel
from ideal_dispatch.dispatch.fitted import USUAL, FittedParts, Form, SecondKinds, Trained, in_order
from ideal_dispatch.dispatch.ideal import Ideal
from ideal_dispatch.dispatch.quarter_hours import QuarterHours
from ideal_dispatch.dispatch.settings import NeededParts, needed_parts
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.drift import DriftModel
from ideal_dispatch.forecast.model_directory import MANIFEST
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import Experiment, Ground
from ideal_dispatch.replay.log import read_log
from ideal_dispatch.replay.past import PastDays
from ideal_dispatch.replay.run import LOG
from ideal_dispatch.traffic.quote_log import QuoteLog

if TYPE_CHECKING:
    from ideal_dispatch.learning import TrainParams
    from ideal_dispatch.learning.trigger import Trigger

_DRIFT, _HOURS, _HOURS_GAIN, _TRIGGER = "drift", "hours.json", "hours-gain.json", "calls.trigger"
_ROUTER = "router"
_USUAL_GAIN: tuple[SecondKinds, bool] = (in_order(ALL_KINDS), False)
_FEATURES = [field.name for field in fields(GainFeatures)]
_LEAST_DAYS = 2  # a drift is fitted on one day and stops with another


@dataclass(frozen=True, slots=True)
class ByDay:
    """One policy by the date of the call: each was fitted without that day."""

    name: str
    policies: Mapping[str, Policy]

    @property
    def role(self) -> str:
        """That of all of them."""
        return str(getattr(next(iter(self.policies.values())), "role", ""))

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        return self.policies[situation.incident.at.date().isoformat()].decide(situation, rng)


def fit_parts(
    experiment: Experiment,
    ground: Ground,
    past: PastDays,
    days: Collection[int],
    folder: Path,
    **how: Any,
) -> FittedParts:
    """What the experiment's policies ask for, learned from the numbered days alone.

    The gain of corrected quotes is fitted on days that the correction was not:
    each half of the days with what the other half taught, where both have
    enough. All is kept in ``folder``; what is there is not fitted again. ``how``
    has ``workers``, ``cluster`` and ``report`` of :func:`~ideal_dispatch.replay.run.run_replay`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dates = [ground.dates()[day] for day in sorted(days)]
    fit = _Fit(experiment, ground, past, needed_parts(experiment.policies), folder)
    fit.train(dates)
    if fit.needed.drift:
        fit.drift(dates, _DRIFT)
    if fit.needed.hours and not (folder / _HOURS).exists():
        fit.hours(dates).save(folder / _HOURS)
    if missing_parts(experiment, folder):
        fit.from_replay(dates, sorted(days), how)
    return load_parts(experiment, folder)


def missing_parts(experiment: Experiment, folder: Path) -> list[str]:
    """Names of files that :func:`fit_parts` has still to write after it has trained."""
    needed = needed_parts(experiment.policies)
    names = [_gain_file(*gain) for gain in sorted(needed.gains)]
    names += [_HOURS_GAIN] if needed.hours else []
    names += [_TRIGGER] if needed.trigger else []
    return [name for name in names if not (folder / name).exists()]


def load_parts(experiment: Experiment, folder: Path) -> FittedParts:
    """What was fitted for the experiment's policies, or for those of another experiment."""
    needed = needed_parts(experiment.policies)
    models = _load_models(needed, folder)
    gains = {gain: GainModel.load(folder / _gain_file(*gain)) for gain in needed.gains}
    return FittedParts(
        models.pop(USUAL, None),
        DriftModel.load(folder / _DRIFT) if needed.drift else None,
        gains.get(_USUAL_GAIN),
        _load_trigger(folder / _TRIGGER) if needed.trigger else None,
        gains.get((_USUAL_GAIN[0], True)),
        models,
        gains,
        QuarterHours.load(folder / _HOURS) if needed.hours else None,
        GainModel.load(folder / _HOURS_GAIN) if needed.hours else None,
    )


def check_training(experiment: Experiment) -> None:
    """Refuse parameters of training that would be refused once the past is collected."""
    for trained in get_args(Trained):
        table = "paper_training" if trained == "paper" else "training"
        try:
            _params(experiment, trained)
        except InputError as error:
            raise InputError(f"[{table}] {error}") from None


def model_folder(folder: Path, form: Form) -> Path:
    """Where a form of the model is kept."""
    return folder / ("model" if form == USUAL else "model-{}-{}".format(*form))


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """One fit: what is needed, from which past, and where it is kept."""

    experiment: Experiment
    ground: Ground
    past: PastDays
    needed: NeededParts
    folder: Path

    def train(self, dates: Collection[str]) -> None:
        """The asked forms of the model and the usual one, from the trips of some dates.

        A network is trained once, in our practical mode or by the paper's
        Algorithm 1; its radius is fitted by both losses.
        """
        for trained in sorted({form[0] for form in _forms(self.needed)}):
            ours, papers = (
                model_folder(self.folder, (trained, r)) for r in ("calibrated", "paper")
            )
            if (papers / MANIFEST).exists():
                continue
            from ideal_dispatch.learning import RadiusParams, TrainingSettings, split, train
            from ideal_dispatch.learning.splits import local_days

            trips, experiment = self.past.trips, self.experiment
            wanted = [date.fromisoformat(day).toordinal() for day in dates]
            chosen = trips.select(np.flatnonzero(np.isin(local_days(trips), wanted)))
            parts = split(chosen, (0.8, 0.2, 0.0), experiment.seed, "day")
            settings = TrainingSettings(_params(experiment, trained))
            run = train(self.ground.network, chosen, settings, parts=parts)
            run.model.save(ours)
            run.with_radius(RadiusParams(loss="mean_absolute", coverage=None)).save(papers)

    def drift(self, dates: Collection[str], name: str) -> DriftModel:
        """The drift of the quotes of some dates."""
        if not (self.folder / name / MANIFEST).exists():
            from ideal_dispatch.learning.drift_training import fit_drift

            context = self.ground.recording.context
            made = fit_drift(
                self.ground.network, self._quotes(dates), context, seed=self.experiment.seed
            )
            made.save(self.folder / name)
        return DriftModel.load(self.folder / name)

    def hours(self, dates: Collection[str]) -> QuarterHours:
        """What the quotes of some dates missed, by quarter hour."""
        lines, local = self._quotes(dates).lines, self.ground.recording.calendar.local
        return QuarterHours.fit(
            [local(line.asked_at) for line in lines],
            [line.times["duration_s"] for line in lines],
            [line.realised_s for line in lines],
        )

    def _quotes(self, dates: Collection[str]) -> QuoteLog:
        local, log = self.ground.recording.calendar.local, self.past.quotes
        kept = tuple(one for one in log.lines if local(one.asked_at).date().isoformat() in dates)
        if not kept:
            raise InputError("no quote of the training days is in the log; repeat the experiment")
        return replace(log, lines=kept)

    def from_replay(
        self, dates: Sequence[str], days: Sequence[int], how: Mapping[str, Any]
    ) -> None:
        """Gains and trigger, from what seconds would have saved on the days themselves."""
        drifts, hours = self._apart(dates)
        world, place = self.past.convention, self.folder / "replay"
        calls = self.ground.calls(self.experiment, days)
        self.ground.replay(self.experiment, calls, self._observers(drifts), place, **how)
        entries = list(read_log(place / LOG))
        for seconds, corrected in sorted(self.needed.gains):
            names = [_observer_name(kind, corrected) for kind in seconds]
            _gain(entries, names, world).save(self.folder / _gain_file(seconds, corrected))
        if self.needed.hours:
            names = [_observer_name(kind, False) for kind in OTHER_DEPOT]
            _gain(entries, names, world, hours).save(self.folder / _HOURS_GAIN)
        if self.needed.trigger:
            _trigger(entries, world, self.experiment.seed).save(self.folder / _TRIGGER)

    def _apart(self, dates: Sequence[str]) -> tuple[dict[str, DriftModel], dict[str, QuarterHours]]:
        """Drift and ratios of each half of the dates by the other, or by all if they are few."""
        halves = [dates[0::2], dates[1::2]]
        enough = len(halves[1]) >= _LEAST_DAYS
        drifts: dict[str, DriftModel] = {}
        hours: dict[str, QuarterHours] = {}
        for number, own in enumerate(halves):
            others = halves[1 - number] if enough else dates
            if self.needed.drift:
                name = f"{_DRIFT}-half-{number + 1}" if enough else _DRIFT
                drifts |= dict.fromkeys(own, self.drift(others, name))
            if self.needed.hours:
                hours |= dict.fromkeys(own, self.hours(others))
        return drifts, hours

    def _observers(self, drifts: Mapping[str, DriftModel]) -> list[Policy]:
        """Policies whose log has the rows to fit gains and a trigger on: one per kind of second."""
        found: list[Policy] = [QuoteDifferencePolicy(name=_ROUTER)]
        wanted = self.needed.gains | ({(OTHER_DEPOT, False)} if self.needed.hours else set())
        model = _load_models(self.needed, self.folder).get(USUAL)
        for kind, corrected in sorted({(kind, c) for seconds, c in wanted for kind in seconds}):
            name = _observer_name(kind, corrected)
            made = partial(
                Ideal, model, None, seconds=(kind,), report_gap=False, method="multistart",
                name=name,
            )  # fmt: skip
            if corrected:
                found.append(ByDay(name, {day: made(drift=one) for day, one in drifts.items()}))
            else:
                found.append(made())
        return found


def _forms(needed: NeededParts) -> set[Form]:
    """The forms of the model to train: what is asked for, and the usual one to observe with."""
    return {USUAL, *needed.models} if needed.models or needed.gains or needed.hours else set()


def _load_models(needed: NeededParts, folder: Path) -> dict[Form, Model]:
    return {form: Model.load(model_folder(folder, form)) for form in sorted(_forms(needed))}


def _load_trigger(file: Path) -> "Trigger":
    from ideal_dispatch.learning.trigger import Trigger

    return Trigger.load(file)


def _params(experiment: Experiment, trained: Trained) -> "TrainParams":
    from ideal_dispatch.learning import TrainParams

    if trained == "paper":
        usual, changes = TrainParams.paper(seed=experiment.seed), experiment.paper_training
    else:
        usual, changes = TrainParams(seed=experiment.seed), experiment.training
    values = usual.as_dict()
    shape = values["architecture"] | dict(changes.get("architecture", {}))
    return TrainParams.from_dict(values | dict(changes) | {"architecture": shape})


def _gain_file(seconds: SecondKinds, corrected: bool) -> str:
    words = [] if seconds == _USUAL_GAIN[0] else [*seconds]
    return "-".join([*(["drift"] if corrected else []), "gain", *words]) + ".json"


def _observer_name(kind: SecondKind, corrected: bool) -> str:
    return f"{kind}, corrected" if corrected else kind


def _gain(
    entries: Iterable[dict[str, Any]],
    policies: Sequence[str],
    convention: World,
    hours: dict[str, QuarterHours] | None = None,
) -> GainModel:
    """The spread of T₁ − T₂ over the seconds that the named policies considered.

    With ``hours``, of quotes that are multiplied by the ratio of their date and
    quarter hour: features are seconds of quotes, and so are multiplied alike.
    """
    rows, differences = [], []
    for entry in entries:
        incident, ratio = entry["incident"], 1.0
        if hours is not None:
            ratio = hours[incident["day"]].ratio(datetime.fromisoformat(incident["at"]))
        for decision in map(entry["decisions"].__getitem__, policies):
            if decision["second"] is None:
                continue
            details = decision["details"]
            rows.append([np.nan if details[n] is None else ratio * details[n] for n in _FEATURES])
            differences.append(_saved_s(entry, decision, convention))
    if not rows:
        raise InputError("no call of the training days has a second way; nothing to fit a gain on")
    return GainModel.fit(GainFeatures(*np.array(rows).T), differences)


def _trigger(entries: Iterable[dict[str, Any]], convention: World, seed: int) -> "Trigger":
    from ideal_dispatch.learning.trigger import fit_trigger

    rows, saved = [], []
    for entry in entries:
        decision = entry["decisions"][_ROUTER]
        if decision["second"] is not None:
            rows.append(decision["details"]["router_features"])
            saved.append(_saved_s(entry, decision, convention))
    return fit_trigger(np.array(rows), saved, seed, ROUTER_FEATURES)


def _saved_s(entry: dict[str, Any], decision: dict[str, Any], convention: World) -> float:
    first, second = (
        sum(entry["drives"][decision[who]][convention]["seconds"]) for who in ("primary", "second")
    )
    return float(first - second)
