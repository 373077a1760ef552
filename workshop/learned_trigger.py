"""A control: a forest, grown on replays, that predicts what a second ambulance saves.

``kind = "workshop.learned_trigger:LearnedTrigger"`` in an experiment file.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ideal_dispatch.archive import ArchiveKind
from ideal_dispatch.arrays import FloatArray, first_where, numbers, read_only, whole_number
from ideal_dispatch.dispatch.decision import Decision, by_score
from ideal_dispatch.dispatch.policies import router_pair
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.threshold import AT_ZERO, Threshold
from ideal_dispatch.errors import InputError
from ideal_dispatch.replay.fitting import Training
from workshop.policies import ROUTER_FEATURES, QuoteDifference, router_features

KIND = ArchiveKind("ideal-dispatch trigger", 1, "trigger file", "fit and save one again")
LEAST_ROWS = 20
_FOREST = {"n_estimators": 300, "min_samples_leaf": 10, "max_features": 0.5, "n_jobs": 1}


@dataclass(frozen=True, eq=False, repr=False)
class Trigger:
    """Expected seconds saved by a second ambulance, from features of the router's quotes.

    It keeps the table it learned from, a row per call and ``names`` of its
    columns, and grows the same forest from it wherever it is loaded: no code
    is ever read from a file. Another version of scikit-learn may grow a
    slightly different one.
    """

    features: FloatArray
    saved_s: FloatArray
    seed: int
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        features = read_only(self.features, np.float64, (None, None), "trigger features")
        rows, columns = features.shape
        saved_s = read_only(self.saved_s, np.float64, (rows,), "seconds saved")
        if rows < LEAST_ROWS or not columns:
            raise InputError(
                f"trigger: {rows} calls with {columns} features; at least {LEAST_ROWS} calls "
                "and one feature are needed"
            )
        for what, fine in (
            ("a feature is infinite", ~np.isinf(features).any(axis=1)),
            ("seconds saved must be finite and zero or more", (saved_s >= 0) & (saved_s < np.inf)),
        ):
            row = first_where(~fine)
            if row is not None:
                raise InputError(f"trigger, call {row}: {what}")
        if not 0 <= whole_number(self.seed, "seed") < 2**32:
            raise InputError(f"seed {self.seed}: it must be from 0 to 2**32 − 1")
        names = tuple(self.names)
        if names and len(names) != columns:
            raise InputError(f"trigger: {len(names)} names for {columns} features")
        for name, value in (("features", features), ("saved_s", saved_s), ("names", names)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"Trigger({self.saved_s.size:,} calls, {self.features.shape[1]} features)"

    def predict(self, features: npt.ArrayLike) -> FloatArray:
        """Expected seconds saved, one per row of features; NaN features are allowed."""
        columns = self.features.shape[1]
        rows = numbers(features, np.float64, "trigger features")
        if rows.ndim != 2 or rows.shape[1] != columns or np.isinf(rows).any():
            raise InputError(f"trigger: rows of {columns} finite or unknown features are needed")
        predicted: FloatArray = self._forest.predict(rows)
        return predicted

    def describe(self) -> dict[str, Any]:
        """What a manifest should know: how the forest grows, and from what."""
        grown = {"type": "Trigger", "parameters": _FOREST, "seed": self.seed, "names": self.names}
        forests = {"scikit-learn": version("scikit-learn")}  # which grows it wherever it is loaded
        return grown | forests | {"features": self.features, "saved_s": self.saved_s}

    @classmethod
    def fit(cls, training: Training) -> "Trigger":
        """From what a second on the next shortest quote saved on the training days."""
        rows, saved = [], []
        observer = QuoteDifference()
        for entry in training.entries([observer]):
            decision = entry["decisions"][observer.name]
            if decision["second"] is not None:
                rows.append(decision["details"]["router_features"])
                saved.append(training.saved_s(entry, decision))
        return fit_trigger(np.array(rows), saved, training.experiment.seed, ROUTER_FEATURES)

    @cached_property
    def _forest(self) -> Any:
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(**_FOREST, random_state=self.seed)
        return forest.fit(self.features, self.saved_s)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file that :meth:`load` turns into an equal trigger."""
        manifest = {"seed": self.seed, "names": self.names}
        KIND.write(path, manifest, {"features": self.features, "saved_s": self.saved_s})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Trigger":
        """Read a trigger, or say in one line why the file holds none."""
        with KIND.reading(path) as (manifest, arrays):
            return cls(**arrays, seed=manifest["seed"], names=tuple(manifest["names"]))


def fit_trigger(
    features: npt.ArrayLike, saved_s: npt.ArrayLike, seed: int = 0, names: Sequence[str] = ()
) -> Trigger:
    """A trigger from replayed calls.

    ``features`` has a row per call, NaN where one is unknown; ``saved_s`` is
    T₁ − T₂ of the call, and below zero nothing is saved.
    """
    differences = numbers(saved_s, np.float64, "seconds saved")
    trigger = Trigger(
        numbers(features, np.float64, "trigger features"),
        np.maximum(differences, 0.0),
        seed,
        tuple(names),
    )
    trigger._forest  # noqa: B018 - grown now, not at the first call
    return trigger


@dataclass(frozen=True, slots=True)
class LearnedTrigger:
    """A second from the depot with the next shortest quote, where a regressor says it saves.

    ``trigger`` was fitted on :data:`ROUTER_FEATURES` of replayed training
    days, to the seconds that the second then saved.
    """

    role: ClassVar[str] = "control"
    learns: ClassVar[Mapping[str, type]] = {"trigger": Trigger}
    trigger: Any
    threshold: Threshold = AT_ZERO
    name: str = "learned-trigger"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        primary, second = router_pair(situation)
        score_s = 0.0
        if second is not None:
            quotes = situation.quote(primary.station), situation.quote(second.station)
            row = router_features(situation, *quotes)
            score_s = float(np.ravel(self.trigger.predict(row[None, :]))[0])
            if not math.isfinite(score_s):
                raise InputError(f"policy {self.name}: its trigger predicts {score_s}; fit again")
        return by_score(
            self.name, situation, (primary, second), score_s, self.threshold, "predicted saving"
        )
