"""All that policies learn from past days, fitted on some of them and kept in files."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from ideal_dispatch.dispatch.decision import Decision, Policy
from ideal_dispatch.dispatch.policy_tables import (
    USUAL,
    FittedParts,
    Form,
    NeededParts,
    Trained,
    needed_parts,
)
from ideal_dispatch.dispatch.situation import Assignment, Situation
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.model_directory import MANIFEST, RESPONSE_TIMES
from ideal_dispatch.forecast.response_time import Effects, ResponseModel
from ideal_dispatch.records import Trip, Trips
from ideal_dispatch.replay.drive import DriveError, drive
from ideal_dispatch.replay.experiment import Experiment, Ground
from ideal_dispatch.replay.incidents import sample_incidents
from ideal_dispatch.replay.log import LOG, read_log
from ideal_dispatch.toml_tables import built

if TYPE_CHECKING:
    from ideal_dispatch.learning import TrainedModel, TrainParams

_AT_ONCE = Effects(1.0, 0.0)
"""The turnout in a replay: every unit begins to drive when it is sent."""


def collect_trips(experiment: Experiment, ground: Ground, days: range, file: Path) -> Trips:
    """What an agency would have recorded on the days: ends, moment and whole time, no route.

    The trips are kept in ``file``, and read from it where it exists.
    """
    if file.exists():
        return Trips.load(file)
    past, recording = experiment.past, ground.recording
    traffic, network = ground.traffic(experiment), ground.network
    nearest = ground.free_flow_s.argmin(axis=0)
    calls = sample_incidents(
        recording.only(days), (ground.free_flow_s.min(axis=0) > 0).astype(float),
        past.trips_per_day, experiment.seed + 1, experiment.calls.margin_s, experiment.calls.lead_s,
    )  # fmt: skip
    rng = np.random.default_rng([experiment.seed, 1])
    trips = []
    for call in calls:
        own = rng.random() < past.own_share
        station = int(nearest[call.node]) if own else int(rng.integers(len(ground.depots)))
        try:
            route = traffic.quote(ground.depots[station].node, call.node, call.at).path
            way = Assignment(station, route)
            driven = drive(traffic, network, way, call.node, call.at, experiment.world)
        except (DriveError, UnreachableError):
            continue  # it left the recorded time: no agency has a record of it
        if driven.total_s > 0:
            trips.append(Trip(route.origin, call.node, recording.context(call.at), driven.total_s))
    table = Trips.of(
        trips,
        network_checksum=network.checksum,
        provenance={"time_zone": recording.calendar.time_zone},
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    table.save(file)
    return table


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


@dataclass(frozen=True, eq=False)
class Training:
    """Some training days to learn from; a part of a plug-in is fitted by ``fit(training)``.

    ``how`` has ``workers``, ``cluster`` and ``report`` of
    :func:`~ideal_dispatch.replay.run.run_replay`.
    """

    experiment: Experiment
    ground: Ground
    trips: Trips
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

    def entries(self, policies: Sequence[Policy]) -> list[dict[str, Any]]:
        """The log of the days' calls, decided by these policies."""
        folder = self.folder / "-".join(["replay", *(policy.name for policy in policies)])
        calls = self.ground.calls(self.experiment, self.days)
        self.ground.replay(self.experiment, calls, policies, folder, **self.how)
        return list(read_log(folder / LOG))

    def saved_s(self, entry: Mapping[str, Any], decision: Mapping[str, Any]) -> float:
        """T₁ − T₂ of a decision of an entry."""
        first, second = (
            sum(entry["drives"][decision[who]][self.experiment.world]["seconds"])
            for who in ("primary", "second")
        )
        return float(first - second)

    def train(self) -> None:
        """The asked forms of the model and the response times, from the trips of the days.

        A network is trained once, in our practical mode or by the paper's Algorithm 1.
        """
        for trained in sorted({form[0] for form in _forms(self.needed)}):
            if (model_folder(self.folder, (trained, "paper")) / MANIFEST).exists():
                continue
            from ideal_dispatch.learning import fit, split
            from ideal_dispatch.learning.splits import local_days

            wanted = [date.fromisoformat(day).toordinal() for day in self.dates]
            chosen = self.trips.select(np.flatnonzero(np.isin(local_days(self.trips), wanted)))
            parts = split(chosen, (0.8, 0.2, 0.0), self.experiment.seed, "day")
            params = _params(self.experiment, trained)
            fitted = fit(self.ground.network, chosen, params=params, parts=parts)
            keep_model(fitted, trained, self.folder)


def fit_parts(
    experiment: Experiment,
    ground: Ground,
    trips: Trips,
    days: Collection[int],
    folder: Path,
    **how: Any,
) -> FittedParts:
    """What the experiment's policies ask for, learned from the numbered days alone.

    All is kept in ``folder``; what is there is not fitted again. ``how`` is that of
    :class:`Training`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    training = Training(experiment, ground, trips, sorted(days), folder, how)
    training.train()
    for part in training.needed.learned:
        if not (folder / _part_file(part)).exists():
            part.fit(training).save(folder / _part_file(part))
    return load_parts(experiment, folder)


def missing_parts(experiment: Experiment, folder: Path) -> list[str]:
    """Names of files that :func:`fit_parts` has still to write."""
    needed = needed_parts(experiment.policies)
    names = [RESPONSE_TIMES] if needed.responses else []
    names += [_part_file(part) for part in needed.learned]
    return [name for name in names if not (folder / name).exists()]


def load_parts(experiment: Experiment, folder: Path) -> FittedParts:
    """What was fitted for the experiment's policies, or for those of another experiment."""
    needed = needed_parts(experiment.policies)
    models = {form: Model.load(model_folder(folder, form)) for form in sorted(_forms(needed))}
    return FittedParts(
        models.pop(USUAL, None),
        ResponseModel.load(folder / RESPONSE_TIMES) if needed.responses else None,
        models,
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


def keep_model(fitted: "TrainedModel", trained: Trained, folder: Path) -> None:
    """Write what a training gives: the model with its radius by either loss, and response times.

    Response times are those of our practical mode; in a replay units leave at once.
    """
    from ideal_dispatch.learning import RadiusParams

    fitted.model.save(model_folder(folder, (trained, "calibrated")))
    if trained == "practical":
        times = replace(fitted.responses, turnout=_AT_ONCE)
        if times.rows:
            times = replace(times, source=f"{times.rows:,} trips; units leave at once")
        times.save(folder / RESPONSE_TIMES)
    # the last: where it is, all is
    by_mean = fitted.with_radius(RadiusParams(loss="mean_absolute", coverage=None))
    by_mean.save(model_folder(folder, (trained, "paper")))


def _forms(needed: NeededParts) -> set[Form]:
    """The forms of the model to train: what is asked for, and the usual one."""
    return {USUAL, *needed.models} if needed.models or needed.responses else set()


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


def _part_file(part: type[Any]) -> str:
    return f"{part.__module__}.{part.__qualname__}"
