"""Target and predicted radii of replayed calls: whether the scenario sets held what came."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.candidate import Centre, recentred
from ideal_dispatch.dispatch.decision import Policy
from ideal_dispatch.dispatch.situation import TellsEdgeTimes
from ideal_dispatch.errors import FileFormatError
from ideal_dispatch.files import write_csv
from ideal_dispatch.forecast import Model
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.log import read_log
from ideal_dispatch.replay.run import LOG
from ideal_dispatch.scenarios import target_radius
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic

_COLUMNS = ("incident", "policy", "world", "predicted", "target")


@dataclass(frozen=True, slots=True, eq=False)
class Radii:
    """The radius that a policy took for each call, and the one that its primary's drive needed."""

    predicted: FloatArray
    target: FloatArray

    @property
    def coverage(self) -> float:
        """The share of calls whose target radius is within the predicted one."""
        return float((self.target <= self.predicted).mean())


def radii_file(folder: Path) -> Path:
    """Where the radii of a run are: beside its folder."""
    return folder.with_name(f"{folder.name}-radii.csv")


def write_radii(folder: Path, traffic: ReplayedTraffic, policies: Sequence[Policy]) -> None:
    """Write the radii of a finished run, of its policies that have a model.

    The predicted radius is the log's, to six decimals. The target radius ([IDEAL]
    equation 14) is the upper end for the drive of the primary in each world, under
    the embeddings of that policy's scenario set: around the router's times where
    the policy's set was. Around the forecast a model's constant of a trip does not
    count as driving, as when its radius was fitted.
    """
    known = ((one.name, getattr(one, "model", None)) for one in policies)
    models = {name: model for name, model in known if isinstance(model, Model)}
    rows = []
    for entry in read_log(folder / LOG) if models else ():
        call = _Call(entry, traffic)
        for name, model in models.items():
            decision = entry["decisions"][name]
            predicted, centre = map(decision["details"].get, ("radius", "centre"))
            if predicted is None or centre not in get_args(Centre):  # it had no scenario set
                continue
            for world in entry["hindsight"]:
                target = call.target(model, centre, decision["primary"], world)
                rows.append((entry["incident"]["name"], name, world, predicted, f"{target:.6g}"))
    write_csv(radii_file(folder), _COLUMNS, rows)


def read_radii(folder: Path, incidents: Sequence[str]) -> dict[str, dict[str, Radii]]:
    """The radii by policy and world, in the order of ``incidents``; none without the file.

    A policy that did not look at a scenario set for every call is left out.
    """
    path = radii_file(folder)
    if not path.is_file():
        return {}
    found: dict[str, dict[str, dict[str, tuple[float, float]]]] = {}
    with open(path, encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            try:
                pair = float(row["predicted"]), float(row["target"])
                world = World(row["world"])
                found.setdefault(row["policy"], {}).setdefault(world, {})[row["incident"]] = pair
            except (KeyError, TypeError, ValueError):
                raise FileFormatError(
                    f"{path}, line {number}: no radii of a replay; remove the file and run "
                    "ideal replay again"
                ) from None
    return {
        policy: {
            world: Radii(*np.array([pairs[name] for name in incidents]).T)
            for world, pairs in worlds.items()
        }
        for policy, worlds in found.items()
        if all(pairs.keys() == set(incidents) for pairs in worlds.values())
    }


class _Call:
    """A logged call, and what was worked out of it: policies share models and drives."""

    def __init__(self, entry: Mapping[str, Any], traffic: ReplayedTraffic) -> None:
        self._entry, self._traffic = entry, traffic
        self._at = datetime.fromisoformat(entry["incident"]["at"])
        self._embeddings: dict[tuple[str, str], FloatArray] = {}
        self._targets: dict[tuple[str, str, str, str], float] = {}

    def target(self, model: Model, centre: Centre, primary: str, world: str) -> float:
        entry, key = self._entry, (model.checksum, centre, primary, world)
        if key not in self._targets:
            drive = entry["drives"][primary]
            driven_s = sum(drive[world]["seconds"])
            if centre == "forecast":
                driven_s = max(driven_s - model.trip_constant_s, 0.0)
            depot = entry["stations"][drive["station"]]["node"]
            found = target_radius(
                self._traffic.network, self._around(model, centre), depot,
                entry["incident"]["node"], driven_s,
            )  # fmt: skip
            self._targets[key] = found.upper
        return self._targets[key]

    def _around(self, model: Model, centre: Centre) -> FloatArray:
        key = (model.checksum, centre)
        if key not in self._embeddings:
            traffic = self._traffic
            forecast = model.forecast(traffic.context(self._at), traffic.network)
            embeddings = forecast.embeddings
            if centre == "router" and isinstance(traffic, TellsEdgeTimes):
                times_s = forecast.bounds.held(traffic.router_times(self._at))
                embeddings = recentred(embeddings, times_s)
            self._embeddings[key] = embeddings
        return self._embeddings[key]
