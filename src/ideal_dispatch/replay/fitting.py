"""All that policies learn from past days, fitted on some of them and kept in files."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from ideal_dispatch.dispatch.candidate import ALL_KINDS, SecondKind
from ideal_dispatch.dispatch.controls import QuoteDifferencePolicy
from ideal_dispatch.dispatch.decision import Decision, Policy
from ideal_dispatch.dispatch.expected_gain import GainFeatures, GainModel
from ideal_dispatch.dispatch.ideal import Ideal
from ideal_dispatch.dispatch.policy_tables import (
    USUAL,
    FittedParts,
    Form,
    NeededParts,
    SecondKinds,
    Trained,
    in_order,
    needed_parts,
)
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.drift import DriftModel
from ideal_dispatch.forecast.model_directory import MANIFEST
from ideal_dispatch.replay.experiment import Experiment, Ground
from ideal_dispatch.replay.log import read_log
from ideal_dispatch.replay.past import PastDays
from ideal_dispatch.replay.run import LOG
from ideal_dispatch.toml_tables import built
from ideal_dispatch.traffic.quote_log import QuoteLog

if TYPE_CHECKING:
    from ideal_dispatch.learning import TrainParams

ROUTER = "router"
"""The observer of training days whose second is the next shortest quote's."""

_DRIFT = "drift"
_ALL = in_order(ALL_KINDS)
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
    training = Training(experiment, ground, past, sorted(days), folder, how)
    training.train()
    if training.needed.drift:
        training.drift(training.dates, _DRIFT)
    for file, fit in _fits(training.needed).items():
        if not (folder / file).exists():
            fit(training).save(folder / file)
    return load_parts(experiment, folder)


def missing_parts(experiment: Experiment, folder: Path) -> list[str]:
    """Names of files that :func:`fit_parts` has still to write after it has trained."""
    names = _fits(needed_parts(experiment.policies))
    return [name for name in names if not (folder / name).exists()]


def load_parts(experiment: Experiment, folder: Path) -> FittedParts:
    """What was fitted for the experiment's policies, or for those of another experiment."""
    needed = needed_parts(experiment.policies)
    models = _load_models(needed, folder)
    gains = {gain: GainModel.load(folder / _gain_file(*gain)) for gain in needed.gains}
    return FittedParts(
        models.pop(USUAL, None),
        gains.get((_ALL, False)),
        DriftModel.load(folder / _DRIFT) if needed.drift else None,
        models,
        gains,
        {part: part.load(folder / _part_file(part)) for part in needed.learned},
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


@dataclass(frozen=True, eq=False)
class Training:
    """Some training days to learn from; a part of a plug-in is fitted by ``fit(training)``."""

    experiment: Experiment
    ground: Ground
    past: PastDays
    days: Sequence[int]
    folder: Path
    how: Mapping[str, Any]

    @cached_property
    def needed(self) -> NeededParts:
        return needed_parts(self.experiment.policies)

    @cached_property
    def dates(self) -> list[str]:
        """The local dates of the days."""
        dates = self.ground.dates()
        return [dates[day] for day in self.days]

    @cached_property
    def entries(self) -> list[dict[str, Any]]:
        """The log of the days' calls, decided by observers: see :meth:`_observers`."""
        folder, calls = self.folder / "replay", self.ground.calls(self.experiment, self.days)
        self.ground.replay(self.experiment, calls, self._observers(), folder, **self.how)
        return list(read_log(folder / LOG))

    def saved_s(self, entry: Mapping[str, Any], decision: Mapping[str, Any]) -> float:
        """T₁ − T₂ of a decision of an entry."""
        drives = (entry["drives"][decision[who]] for who in ("primary", "second"))
        first, second = (sum(one[self.past.world]["seconds"]) for one in drives)
        return float(first - second)

    def quotes(self, dates: Collection[str]) -> QuoteLog:
        """What the router said on some dates, and what came of it."""
        local, log = self.ground.recording.calendar.local, self.past.quotes
        kept = tuple(one for one in log.lines if local(one.asked_at).date().isoformat() in dates)
        if not kept:
            raise InputError("no quote of the training days is in the log; repeat the experiment")
        return replace(log, lines=kept)

    def gain(
        self,
        observers: Sequence[str],
        scale: Callable[[Mapping[str, Any]], float] = lambda incident: 1.0,
    ) -> GainModel:
        """The spread of T₁ − T₂ over the seconds that the named observers considered.

        Their quotes are multiplied by the ``scale`` of the incident: features are
        seconds of quotes, and so are multiplied alike.
        """
        rows, differences = [], []
        for entry in self.entries:
            ratio = scale(entry["incident"])
            for decision in map(entry["decisions"].__getitem__, observers):
                if decision["second"] is None:
                    continue
                known = map(decision["details"].__getitem__, _FEATURES)
                rows.append([np.nan if value is None else ratio * value for value in known])
                differences.append(self.saved_s(entry, decision))
        if not rows:
            raise InputError(
                "no call of the training days has a second way; nothing to fit a gain on"
            )
        return GainModel.fit(GainFeatures(*np.array(rows).T), differences)

    def train(self) -> None:
        """The asked forms of the model and the usual one, from the trips of the days.

        A network is trained once, in our practical mode or by the paper's
        Algorithm 1; its radius is fitted by both losses.
        """
        for trained in sorted({form[0] for form in _forms(self.needed)}):
            ours, papers = (
                model_folder(self.folder, (trained, r)) for r in ("calibrated", "paper")
            )
            if (papers / MANIFEST).exists():
                continue
            from ideal_dispatch.learning import RadiusParams, fit, split
            from ideal_dispatch.learning.splits import local_days

            trips, experiment = self.past.trips, self.experiment
            wanted = [date.fromisoformat(day).toordinal() for day in self.dates]
            chosen = trips.select(np.flatnonzero(np.isin(local_days(trips), wanted)))
            parts = split(chosen, (0.8, 0.2, 0.0), experiment.seed, "day")
            run = fit(self.ground.network, chosen, params=_params(experiment, trained), parts=parts)
            run.model.save(ours)
            run.with_radius(RadiusParams(loss="mean_absolute", coverage=None)).save(papers)

    def drift(self, dates: Collection[str], name: str) -> DriftModel:
        """The drift of the quotes of some dates."""
        if not (self.folder / name / MANIFEST).exists():
            from ideal_dispatch.learning.drift_training import fit_drift

            context = self.ground.recording.context
            made = fit_drift(
                self.ground.network, self.quotes(dates), context, seed=self.experiment.seed
            )
            made.save(self.folder / name)
        return DriftModel.load(self.folder / name)

    def halves(self) -> list[tuple[Sequence[str], Sequence[str], str]]:
        """Each half of the dates, the dates that teach about it, and a name of these.

        The other half teaches, or all dates where they are few.
        """
        first, second = self.dates[0::2], self.dates[1::2]
        if len(second) < _LEAST_DAYS:
            return [(self.dates, self.dates, "")]
        return [(first, second, "-half-1"), (second, first, "-half-2")]

    def _observers(self) -> list[Policy]:
        """Policies whose log has the rows to fit on: the router's, and one per kind of second.

        The kinds are those of the gains, and ``seconds`` of the parts of plug-ins.
        """
        found: list[Policy] = [QuoteDifferencePolicy(name=ROUTER)]
        model = _load_models(self.needed, self.folder).get(USUAL)
        for kind, corrected in _observed(self.needed):
            name = _observer_name(kind, corrected)
            made = partial(
                Ideal, model, None, seconds=(kind,), report_gap=False, method="multistart",
                name=name,
            )  # fmt: skip
            if not corrected:
                found.append(made())
                continue
            by_day: dict[str, Policy] = {}
            for own, others, half in self.halves():
                by_day |= dict.fromkeys(own, made(drift=self.drift(others, _DRIFT + half)))
            found.append(ByDay(name, by_day))
        return found


def _observed(needed: NeededParts) -> list[tuple[SecondKind, bool]]:
    """The kinds of second to observe, with and without the drift's correction."""
    found = {(kind, corrected) for seconds, corrected in needed.gains for kind in seconds}
    found |= {(kind, False) for part in needed.learned for kind in getattr(part, "seconds", ())}
    return sorted(found)


def _forms(needed: NeededParts) -> set[Form]:
    """The forms of the model to train: what is asked for, and the usual one to observe with."""
    return {USUAL, *needed.models} if needed.models or _observed(needed) else set()


def _load_models(needed: NeededParts, folder: Path) -> dict[Form, Model]:
    return {form: Model.load(model_folder(folder, form)) for form in sorted(_forms(needed))}


def _params(experiment: Experiment, trained: Trained) -> "TrainParams":
    from ideal_dispatch.learning import TrainParams

    if trained == "paper":
        usual, changes = TrainParams.paper(seed=experiment.seed), experiment.paper_training
    else:
        # a replayed trip is a drive alone: it has no turnout
        usual = TrainParams(seed=experiment.seed, trip_constant=False)
        changes = experiment.training
    values = asdict(usual)
    shape = values["architecture"] | dict(changes.get("architecture", {}))
    return built(TrainParams, values | dict(changes) | {"architecture": shape}, "")


def _fits(needed: NeededParts) -> dict[str, Callable[[Training], Any]]:
    """How each part is fitted that the training days' calls teach, by its file."""
    fits: dict[str, Callable[[Training], Any]] = {}
    for seconds, corrected in sorted(needed.gains):
        observers = [_observer_name(kind, corrected) for kind in seconds]
        fits[_gain_file(seconds, corrected)] = partial(Training.gain, observers=observers)
    return fits | {_part_file(part): part.fit for part in needed.learned}


def _gain_file(seconds: SecondKinds, corrected: bool) -> str:
    words = [] if seconds == _ALL else [*seconds]
    return "-".join([*(["drift"] if corrected else []), "gain", *words]) + ".json"


def _part_file(part: type[Any]) -> str:
    return f"{part.__module__}.{part.__qualname__}"


def _observer_name(kind: SecondKind, corrected: bool) -> str:
    return f"{kind}, corrected" if corrected else kind
