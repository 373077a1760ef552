"""What an agency would have collected on past days: trips without routes, and a log of quotes."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.situation import Assignment
from ideal_dispatch.errors import UnreachableError
from ideal_dispatch.records import Trip, Trips
from ideal_dispatch.replay.drive import DriveError, World, drive, edge_shown_s
from ideal_dispatch.replay.experiment import Experiment, Ground
from ideal_dispatch.replay.incidents import sample_incidents
from ideal_dispatch.traffic.quote_log import QuoteLog
from ideal_dispatch.traffic.quote_recorder import Schedule, record_quotes
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic


@dataclass(frozen=True, slots=True, eq=False)
class PastDays:
    """Trips and quotes of the training days in one kind of traffic."""

    trips: Trips
    quotes: QuoteLog
    world: World


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    """Instantaneous traffic: an edge takes what the router shows when it is entered."""

    traffic: ReplayedTraffic

    def realised(self, edge: int, at: datetime) -> float:
        return edge_shown_s(self.traffic, self.traffic.network, edge, at)


def collect_past(
    experiment: Experiment,
    ground: Ground,
    world: World,
    folder: Path,
    watch: Callable[[str], object] = lambda step: None,
) -> PastDays:
    """Trips and quotes of all training days, kept in a folder; ``watch`` is told what comes."""
    folder.mkdir(parents=True, exist_ok=True)
    given = experiment, ground, world, experiment.learning_days
    watch("trips of the past")
    trips = collect_trips(*given, folder / "trips.trips")
    watch("quotes of the past")
    quotes = collect_quotes(*given, folder / "quotes.jsonl")
    return PastDays(trips, quotes, world)


def collect_trips(
    experiment: Experiment, ground: Ground, world: World, days: range, file: Path
) -> Trips:
    """Trips of ambulances on the training days: ends, moment and whole time, no route.

    They are kept in ``file``, and read from it where it is there.
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
            driven = drive(traffic, network, Assignment(station, route), call.node, call.at, world)
        except (DriveError, UnreachableError):
            continue  # it left the recorded time: no agency has a record of it
        if driven.total_s > 0:
            trips.append(Trip(route.origin, call.node, recording.context(call.at), driven.total_s))
    table = Trips.of(
        trips,
        network_checksum=network.checksum,
        provenance={"time_zone": recording.calendar.time_zone},
    )
    table.save(file)
    return table


def collect_quotes(
    experiment: Experiment, ground: Ground, world: World, days: range, file: Path
) -> QuoteLog:
    """What the router said about the same trips again and again, and what came of it."""
    past, recording = experiment.past, ground.recording
    traffic = ground.traffic(experiment)
    truth = traffic if world is World.EXPERIENCED else _Shown(traffic)
    rng = np.random.default_rng([experiment.seed, 2])
    weights: FloatArray = ground.weights(experiment.calls)
    places = rng.choice(weights.size, min(past.places, int(weights.sum())), replace=False,
                        p=weights / weights.sum())  # fmt: skip
    pairs = [(depot.node, int(place)) for depot in ground.depots for place in np.sort(places)]
    for day in days:
        for number in recording.days[day]:
            stretch = recording.stretches[number]
            last_s = stretch.bins * recording.bin_s - experiment.calls.margin_s
            rounds = max(int(last_s // past.every_s), 1)
            start = stretch.start + timedelta(seconds=past.every_s)
            schedule = Schedule(rounds, start, past.every_s)
            record_quotes(traffic, pairs, file, schedule, truth=truth)
    return QuoteLog.load(file, ground.network)
