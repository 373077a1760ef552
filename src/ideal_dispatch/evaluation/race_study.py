"""Races of an agency's log, judged by what could be known before them.

Time runs forward: all that is fitted or chosen comes from days before the races that it is judged
on. Rolling forward, each month is judged by what was learned from the months before it.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.predictors import LONGEST_S, Arrivals, fit_predictors, judge
from ideal_dispatch.evaluation.race_judgement import OURS, JudgedRaces
from ideal_dispatch.files import atomic_write
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.model_directory import RESPONSE_TIMES
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records.responses import Races, Responses

if TYPE_CHECKING:
    from ideal_dispatch.learning import TrainingSettings

Roll = Literal["month", "year"]
Watch = Callable[[str, float], None]
"""Sees the stage of a study and which share of it is done."""

OFF_NETWORK = "an end is not near a road of the network, or both are at one junction"
NO_PLACE = "it is not known where a unit started or where it was sent"
TOO_LONG = "a unit's time is zero, or longer than an hour"


@dataclass(frozen=True, slots=True)
class Window:
    """Days that are judged: from ``start`` until before ``end``, by what was known before."""

    start: date
    end: date

    @property
    def name(self) -> str:
        """The month, the year, or the two days."""
        last = self.end - timedelta(days=1)
        month = (self.start.year, self.start.month) == (last.year, last.month)
        if (self.start.day, self.end.day) == (1, 1) and month:
            return f"{self.start:%Y-%m}"
        if (self.start, last) == (date(last.year, 1, 1), date(last.year, 12, 31)):
            return f"{self.start:%Y}"
        return f"{self.start} to {last}"


@dataclass(frozen=True, slots=True, eq=False)
class JudgedWindow:
    """A window, what was learned before it, and how all arrivals in it were predicted.

    ``learned`` counts the arrivals learned from. ``took_s`` are the arrivals of the window,
    whether they raced or not, ``predicted_s`` the predictions by predictor.
    """

    window: Window
    learned: int
    response: ResponseModel
    words: str
    took_s: FloatArray
    predicted_s: Mapping[str, FloatArray]
    day: IntArray

    def mae_s(self, predictor: str) -> float:
        """The mean absolute error of a predictor over all arrivals of the window."""
        return float(np.abs(self.predicted_s[predictor] - self.took_s).mean())


@dataclass(frozen=True, slots=True, eq=False)
class RaceStudy:
    """Races that were judged, in the order of ``judged``, and what stands beside them.

    ``straight_m`` is how far both candidates are from the scene, ``window`` the number of each
    race's window. ``left_out`` counts, by reason, calls with several units that are no race here.
    ``network`` is None where straight lines stand for roads.
    """

    judged: JudgedRaces
    races: Races
    straight_m: FloatArray
    window: IntArray
    windows: tuple[JudgedWindow, ...]
    left_out: Mapping[str, int]
    network: RoadNetwork | None

    @property
    def words(self) -> str:
        """What ours rests on."""
        return self.windows[0].words

    @property
    def responses(self) -> Responses:
        return self.races.responses

    def of_call(self, name: str) -> npt.NDArray[Any]:
        """A column of the log, the same for both candidates of a race."""
        return np.asarray(getattr(self.responses, name)[self.races.rows[:, 0]])

    def arrivals_mae_s(self, predictor: str) -> float:
        """Mean absolute error over all arrivals of the judged days, races or not."""
        sums = [one.mae_s(predictor) * one.took_s.size for one in self.windows]
        return float(sum(sums) / self.arrivals)

    @property
    def arrivals(self) -> int:
        """How many arrivals were predicted on the judged days."""
        return sum(one.took_s.size for one in self.windows)


@dataclass(frozen=True, slots=True)
class StudySettings:
    """How races are judged.

    ``roll`` judges month by month, or year by year. ``kinds`` are kinds of units that race each
    other; without, those that the log's mapping names. With ``train`` a model of roads is trained
    for every window and kept in ``folder``. ``regressions`` adds boosting to the predictors that
    ours is compared with.
    """

    learn_until: date
    roll: Roll | None = None
    kinds: tuple[str, ...] = ()
    together_s: float = 5.0
    train: bool = False
    regressions: bool = True
    seed: int = 0

    def windows(self, last: date) -> list[Window]:
        """From the day until which is learned to the last day of the log."""
        start, found = self.learn_until, []
        while start <= last:
            end = last + timedelta(days=1)
            if self.roll == "month":
                end = (start.replace(day=1) + timedelta(days=32)).replace(day=1)
            elif self.roll == "year":
                end = date(start.year + 1, 1, 1)
            found.append(Window(start, end))
            start = end
        return found


def study_races(
    responses: Responses,
    settings: StudySettings,
    network: RoadNetwork | None = None,
    *,
    model: Model | None = None,
    training: "TrainingSettings | None" = None,
    folder: str | os.PathLike[str] | None = None,
    watch: Watch = lambda stage, done: None,
) -> RaceStudy:
    """Find the races of a log and judge those from ``settings.learn_until`` on.

    Ours drives by ``model``, by one trained for each window, or by free flow × hour. Without a
    network straight lines stand for roads, without places station and hour.
    """
    check_model(model, settings.learn_until, network, settings.train)
    watch("races", 0.0)
    kinds = settings.kinds or responses.alike
    if kinds:  # what other units do says nothing about these
        responses = responses.select(np.isin(responses.kind, kinds))
    races = responses.races(settings.together_s, kinds or None)
    arrivals = Arrivals.of(responses, network)
    check_arrivals(arrivals)
    races, left_out = _raced(races, arrivals)
    last = responses.date.max().astype(object)
    windows = settings.windows(last)
    judged: list[JudgedRaces] = []
    judged_windows: list[JudgedWindow] = []
    chosen, straight_m = [], []
    days, day_of = races.date, arrivals.of_log("date")
    for number, window in enumerate(windows):
        start, end = (np.datetime64(day, "D") for day in (window.start, window.end))
        rows = np.flatnonzero((days >= start) & (days < end))
        if not rows.size:
            continue
        stage = f"{window.name} ({number + 1} of {len(windows)}): "
        past = arrivals.select(day_of < start)
        used, unseen_s = model, None
        place = Path(folder or ".") / "models" / window.name.replace(" ", "_")
        if settings.train:
            used, unseen_s = trained_model(
                past.select(past.sound), place, training, partial(_staged, watch, stage)
            )
        watch(f"{stage}fitting", 0.0)
        predictors = fit_predictors(past, used, unseen_s, regressions=settings.regressions)
        if unseen_s is not None:  # decisions by this model use these response times
            predictors.response.save(place / RESPONSE_TIMES)
        watch(f"{stage}predicting", 0.5)
        places = arrivals.places(races.rows[rows])
        judged.append(judge(arrivals, places, predictors, days[rows], settings.seed))
        chosen.append(rows)
        straight_m.append(arrivals.straight_m[places])
        now = arrivals.select((day_of >= start) & (day_of < end))
        if predictors.response.unplaced is None:  # units without a place cannot be predicted
            now = now.select(~np.isnan(predictors.drive(now)))
        predicted_s = {name: predict(now) for name, predict in predictors.others.items()}
        judged_windows.append(
            JudgedWindow(
                window, int(past.sound.sum()), predictors.response, predictors.words, now.took_s,
                {OURS: predictors.of(now).median_s, **predicted_s},
                now.of_log("date").astype("M8[D]").astype(np.int64).astype(np.int32),
            )
        )  # fmt: skip
    if not judged:
        raise InputError(
            f"--learn-until {settings.learn_until}: no race from this day on, the last call of "
            f"the log is of {last}; choose an earlier day"
        )
    number_of = np.repeat(np.arange(len(judged)), [rows.size for rows in chosen])
    return RaceStudy(
        JudgedRaces.together(judged),
        races.select(np.concatenate(chosen)),
        np.concatenate(straight_m),
        number_of.astype(np.int32),
        tuple(judged_windows),
        left_out,
        network,
    )


def _staged(watch: Watch, before: str, stage: str, done: float) -> None:
    watch(before + stage, done)


def check_model(
    model: Model | None, learn_until: date, network: RoadNetwork | None, train: bool
) -> None:
    """Refuse a model that has seen what it would be judged on, and roads without a network."""
    if model is not None:
        last = model.details.get("data", {}).get("last")
        if last is None:
            raise InputError(
                "--model: it does not say when its last trip was, so it may have seen the races; "
                "train it on trips with dates"
            )
        if date.fromisoformat(last) >= learn_until:
            raise InputError(
                f"--model: it was trained on trips up to {last}, races are judged from "
                f"{learn_until} on; give a model trained before, or a later --learn-until"
            )
    if network is None and (model is not None or train):
        raise InputError("times of roads need the network; give it with --network")


def check_arrivals(arrivals: Arrivals) -> None:
    """Refuse a log without any arrival that can be used."""
    if not len(arrivals):
        near = "" if arrivals.network is None else " near a road of this network at both ends"
        raise InputError(f"the log has no arrival{near}; check the log and the network")


def _raced(races: Races, arrivals: Arrivals) -> tuple[Races, dict[str, int]]:
    """The races whose two units can be predicted, and why other calls are none."""
    left_out = Counter(dict(races.left_out))
    took_s = races.response_s
    odd = ~((took_s > 0) & (took_s <= LONGEST_S)).all(axis=1)
    there = (arrivals.places(races.rows) >= 0).all(axis=1)
    left_out[TOO_LONG] += int(odd.sum())
    left_out[OFF_NETWORK] += int((~there & ~odd).sum())
    kept = np.asarray(there & ~odd)
    if arrivals.network is None and kept.any():
        both = arrivals.places(races.rows[kept])
        placed = ~np.isnan(arrivals.straight_m[both]).any(axis=1)
        if placed.any():  # where the log has places at all, races without are left out
            left_out[NO_PLACE] += int((~placed).sum())
            kept[np.flatnonzero(kept)[~placed]] = False
    return races.select(kept), {why: n for why, n in left_out.items() if n}


def trained_model(
    learned_from: Arrivals,
    folder: Path,
    training: "TrainingSettings | None",
    watch: Watch,
) -> tuple[Model, FloatArray]:
    """A model of roads trained on these arrivals, and the drives of those that had not seen them.

    One that is in the folder is taken from there, and an interrupted training goes on where it
    stopped.
    """
    from ideal_dispatch.forecast.model_directory import MANIFEST
    from ideal_dispatch.learning.checkpoint import checkpoints
    from ideal_dispatch.learning.cross_fitting import cross_fit, fold_params, response_settings

    network, trips = learned_from.on_roads
    settings = training or response_settings()
    drives = folder / "unseen_drives.npy"
    if (folder / MANIFEST).exists() and drives.exists():
        model = Model.load(folder)
        same = model.details.get("data", {}).get("checksum") == trips.checksum
        params, had = asdict(fold_params(settings, len(trips))), model.details.get("params", {})
        params = json.loads(json.dumps(params))  # earlier versions had further ones
        same &= {name: had.get(name) for name in params} == params
        if same and model.network_checksum == network.checksum:
            return model, np.load(drives, allow_pickle=False)
        raise InputError(
            f"{folder}: holds a model of other trips, parameters or roads; remove it, or choose "
            "another folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    model, unseen_s = cross_fit(
        network, trips, settings, folder=folder,
        watch=lambda progress: watch(progress.stage, progress.done),
    )  # fmt: skip
    with atomic_write(drives) as file:
        np.save(file, unseen_s, allow_pickle=False)
    model.save(folder)
    for done in checkpoints(folder):
        done.unlink()
    return model, unseen_s
