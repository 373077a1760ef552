"""The optimistic gap of a situation: the scenario set of its context, and who may go second."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.decision import gap_facts, outlook_facts
from ideal_dispatch.dispatch.situation import Assignment, Situation
from ideal_dispatch.forecast import Forecast, Model
from ideal_dispatch.gap import DcaStep, OptimisticGap, dca_steps, optimistic_gap
from ideal_dispatch.gap.optimistic_gap import Method
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.depot import Depot
from ideal_dispatch.scenarios import ScenarioSet

Centre = Literal["forecast", "router"]


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """The scenario set of a call, its forecast, and where its nominal times come from."""

    scenarios: ScenarioSet
    forecast: Forecast
    centre: Centre


def outlook_of(
    situation: Situation,
    model: Model,
    *,
    path: Path | None = None,
    centre: Centre = "forecast",
) -> Outlook:
    """The travel times that are plausible at the call.

    They lie around the forecast, or around the edge times of a "router" that states them. No
    scenario leaves the model's bounds.
    """
    with situation.trace.step("forecast") as facts:
        forecast = model.forecast(situation.context, situation.network, path)
        facts |= {"dimension": forecast.embeddings.shape[1], "radius": round(forecast.radius, 6)}
    with situation.trace.step("scenario set") as facts:
        embeddings, times = forecast.embeddings, situation.router_times_s
        anchored = centre == "router" and times is not None
        if anchored and times is not None:
            embeddings = recentred(embeddings, forecast.bounds.held(times))
        scenarios = ScenarioSet(embeddings, forecast.radius)
        if anchored:  # the forecast's own radius leaves no bound
            most = forecast.bounds.greatest_radius(scenarios.nominal_times)
            scenarios = replace(scenarios, radius=min(scenarios.radius, most))
        outlook = Outlook(scenarios, forecast, "router" if anchored else "forecast")
        facts |= outlook_facts(outlook)
    return outlook


def recentred(embeddings: FloatArray, times_s: FloatArray) -> FloatArray:
    """The embeddings with the same directions and the given nominal times.

    An edge without a direction, of zero seconds, gets the first one.
    """
    nominal = np.einsum("ij,ij->i", embeddings, embeddings)
    nowhere = nominal == 0.0
    moved: FloatArray = embeddings * np.sqrt(times_s / np.where(nowhere, 1.0, nominal))[:, None]
    moved[nowhere, 0] = np.sqrt(times_s[nowhere])
    return moved


def situation_gap(
    situation: Situation,
    outlook: Outlook,
    primary: Assignment,
    rng: np.random.Generator,
    method: Method,
    time_limit_s: float | None,
) -> OptimisticGap | None:
    """The gap over all depots that still have a unit; None where none has."""
    question = _question(situation, outlook, primary)
    if question is None:
        return None
    seed = _dca_seed(rng) if method == "dca" else 0
    with situation.trace.step("gap search") as facts:
        gap = optimistic_gap(*question, method=method, time_limit_s=time_limit_s, seed=seed)
        facts |= {"method": method, "labels": len(gap.proof), **gap_facts(gap)}
    return gap


def situation_steps(
    situation: Situation, outlook: Outlook, primary: Assignment, rng: np.random.Generator
) -> tuple[DcaStep, ...]:
    """The steps of Algorithm 2 to the gap of :func:`situation_gap`; none where there is no gap.

    With a generator in the same state, the random restarts are the same.
    """
    question = _question(situation, outlook, primary)
    return () if question is None else dca_steps(*question, seed=_dca_seed(rng))


def _question(
    situation: Situation, outlook: Outlook, primary: Assignment
) -> tuple[RoadNetwork, ScenarioSet, list[Depot], int, Path, Depot] | None:
    """What the gap is asked about: the depots that still have a unit; None where none has."""
    network, node, stations = situation.network, situation.incident.node, situation.stations
    depots = [stations[number].depot for number in situation.second_stations(primary.station)]
    first = stations[primary.station].depot
    return (network, outlook.scenarios, depots, node, primary.path, first) if depots else None


def _dca_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def on_path(situation: Situation, primary: int, path: Path, follow: int) -> Assignment:
    """A second told to keep to the first ``follow`` edges of a path the gap gave.

    Of several depots at its origin, the one with the least way there is taken, if possible not
    the primary's.
    """
    there = [
        number
        for number in situation.second_stations(primary)
        if situation.stations[number].depot.node == path.origin
    ]
    station = min(
        there, key=lambda number: (situation.stations[number].ahead_s, number == primary, number)
    )  # fmt: skip
    return Assignment(station, path, min(follow, len(path)))
