"""Target and predicted radii of replayed calls: whether the scenario sets held what came."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import get_args

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.candidate import Centre, recentred
from ideal_dispatch.dispatch.decision import Policy
from ideal_dispatch.dispatch.situation import TellsEdgeTimes
from ideal_dispatch.errors import FileFormatError
from ideal_dispatch.files import write_csv
from ideal_dispatch.forecast import Model
from ideal_dispatch.replay.log import LOG, read_log
from ideal_dispatch.scenarios import target_radius
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic


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
    equation 14) is the upper end for the drive of the primary, under
    the embeddings of that policy's scenario set: around the router's times where
    the policy's set was. Around the forecast a model's constant of a trip does not
    count as driving, as when its radius was fitted.
    """
    known = ((one.name, getattr(one, "model", None)) for one in policies)
    models = {name: model for name, model in known if isinstance(model, Model)}
    rows = []
    for entry in read_log(folder / LOG) if models else ():
        call, at = entry["incident"], datetime.fromisoformat(entry["incident"]["at"])
        (world,) = entry["hindsight"]
        targets: dict[tuple[str, str, str], float] = {}  # policies share models and drives
        for name, model in models.items():
            decision = entry["decisions"][name]
            predicted, centre = map(decision["details"].get, ("radius", "centre"))
            if predicted is None or centre not in get_args(Centre):  # it had no scenario set
                continue
            key = model.checksum, centre, decision["primary"]
            if key not in targets:
                drive = entry["drives"][decision["primary"]]
                driven_s = sum(drive[world]["seconds"])
                forecast = model.forecast(traffic.context(at), traffic.network)
                embeddings = forecast.embeddings
                if centre == "forecast":
                    driven_s = max(driven_s - model.trip_constant_s, 0.0)
                elif isinstance(traffic, TellsEdgeTimes):
                    times_s = forecast.bounds.held(traffic.router_times(at))
                    embeddings = recentred(embeddings, times_s)
                depot = entry["stations"][drive["station"]]["node"]
                found = target_radius(traffic.network, embeddings, depot, call["node"], driven_s)
                targets[key] = found.upper
            rows.append((call["name"], name, predicted, f"{targets[key]:.6g}"))
    write_csv(radii_file(folder), ("incident", "policy", "predicted", "target"), rows)


def read_radii(folder: Path, incidents: Sequence[str]) -> dict[str, Radii]:
    """The radii by policy, in the order of ``incidents``; none without the file.

    A policy that did not look at a scenario set for every call is left out.
    """
    path = radii_file(folder)
    if not path.is_file():
        return {}
    found: dict[str, dict[str, tuple[float, float]]] = {}
    with open(path, encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            try:
                pair = float(row["predicted"]), float(row["target"])
                found.setdefault(row["policy"], {})[row["incident"]] = pair
            except (KeyError, TypeError, ValueError):
                raise FileFormatError(
                    f"{path}, line {number}: no radii of a replay; remove the file and run "
                    "ideal replay again"
                ) from None
    return {
        policy: Radii(*np.array([pairs[name] for name in incidents]).T)
        for policy, pairs in found.items()
        if pairs.keys() == set(incidents)
    }
