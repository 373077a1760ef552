"""What `ideal` decided in 2,000 situations, and what other policies' units took, as stored.

The situations are drawn by seed in the embedded city, from its recorded traffic or from its
model's own times; `ideal` decides with the city's model and the response times beside it. A
change that is meant to change decisions makes the two files again and says so:

    python -m tests.golden.test_decisions
"""

import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.cities import City, harbour_city, harbour_traffic
from ideal_dispatch.dispatch import Assignment, Ideal, Readiness, Situation, observe
from ideal_dispatch.dispatch.decision import Decision, decided
from ideal_dispatch.dispatch.policy_tables import FittedParts, policies_from, threshold_from
from ideal_dispatch.dispatch.situation import ForecastRouter
from ideal_dispatch.network import Depot, Path
from ideal_dispatch.replay import sample_incidents
from ideal_dispatch.replay.drive import World, drive
from ideal_dispatch.replay.incidents import generator
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic

FOLDER = FilePath(__file__).parent / "data"
DECISIONS, ARRIVALS = FOLDER / "decisions.json.gz", FOLDER / "arrivals.json.gz"
SITUATIONS, CALLS_PER_DAY, DAYS = 2_000, 20, range(8, 11)
POLICIES = {
    "region": {"kind": "region"},
    "router": {"kind": "router"},
    "router-dual": {"kind": "router-dual"},
    "interval": {"kind": "interval", "threshold": 0},
    "paper": {"kind": "paper", "threshold": 0},
    "random": {"kind": "random", "threshold": 0.5},
    "router-alternative": {"kind": "workshop.policies:RouterAlternative", "threshold": -60},
    "quote-difference": {"kind": "workshop.policies:QuoteDifference", "threshold": -60},
    "gap-other-depot": {
        "kind": "workshop.policies:GapOtherDepot",
        "threshold": 0,
        "time_limit_s": "none",
    },
    "nominal-gap": {"kind": "workshop.policies:NominalGap", "time_limit_s": "none"},
}


def situations(city: City, traffic: ReplayedTraffic) -> Iterator[Situation]:
    """Calls of all hours, with any number of units, and often an ambulance that was sent."""
    network, model = city.network, city.model
    assert model is not None
    calls = sample_incidents(traffic.recording, np.ones(network.num_nodes), 120, 7, 2400.0)
    rng = np.random.default_rng(34)
    for number in range(SITUATIONS):
        incident = replace(calls[int(rng.integers(len(calls)))], name=f"call {number}")
        context, depots = traffic.context(incident.at), list(city.depots)
        for unit in range(int(rng.choice([0, 0, 1, 2]))):
            rolling, node = bool(rng.random() < 0.3), int(rng.integers(network.num_nodes))
            depots.append(Depot(f"road {unit}", node, on_road=True, rolling=rolling))
        free = rng.choice([0, 1, 2, 3], len(depots), p=[0.35, 0.3, 0.3, 0.05])
        free[len(city.depots) :] = 1
        sent, sent_ago_s, driven_s = None, 0.0, 0.0
        if rng.random() < 0.5:
            station = int(rng.integers(len(depots)))
            path = _way(network, rng, depots[station].node, incident.node)
            sent = Assignment(station, path)
            sent_ago_s = round(float(rng.choice([0.0, 20.0, 60.0, 150.0]) * rng.random()), 1)
            if depots[station].rolling:
                driven_s, free[station] = round(0.5 * sent_ago_s, 1), 0
        elif not free.any():
            free[int(rng.integers(len(depots)))] = 1
        ids = [[f"{depot.name} {one}" for one in range(count)]
               for depot, count in zip(depots, free, strict=True)]  # fmt: skip
        ready = Readiness(
            depots, free.tolist(), sent=sent, sent_ago_s=sent_ago_s, driven_s=driven_s, ids=ids
        )
        own = rng.random() < 0.3
        source: Any = ForecastRouter(model, network, context) if own else traffic
        yield observe(source, network, incident, context, ready)


def _way(network: RoadNetwork, rng: np.random.Generator, origin: int, target: int) -> Path:
    """A way that an ambulance may have been sent by: not always the shortest."""
    times_s = network.free_flow_times_s
    if rng.random() < 0.3:
        times_s = times_s * rng.uniform(0.7, 1.5, times_s.size)
    return network.shortest_path(times_s, origin, target)


def row_of(made: Decision) -> list[Any]:
    """What is kept of a decision of `ideal`: who goes by which way, why, and the seconds."""
    assert made.arrivals is not None
    first, second = made.arrivals
    worth, gap, sooner = made.worth, made.gap, made.sooner
    return [
        [_sent(made.primary), _sent(made.second), made.send_second],
        [
            "alone" if worth is None else worth.candidate.source,
            None if sooner is None else [sooner.depot, sooner.unit],
            None if gap is None else gap.status,
            sorted(one.candidate.source for one in made.considered),
        ],
        [
            first.turnout_s, first.drive_s, first.p90_s,
            *([] if second is None else [second.turnout_s, second.drive_s, second.p90_s]),
            *([] if worth is None else [worth.gain_s, worth.second_first, worth.survival_gain]),
            *([] if gap is None else [gap.lower_s, gap.upper_s]),
            *([] if sooner is None else [sooner.seconds, sooner.probability]),
            made.score_s, made.threshold_s, made.primary_s,
        ],
    ]  # fmt: skip


def _sent(one: Assignment | None) -> list[Any] | None:
    """The station, how far the way is prescribed, and a digest of its edges."""
    if one is None:
        return None
    edges = np.asarray(one.path.edges, "<i4").tobytes()
    return [one.station, one.follow, hashlib.blake2b(edges, digest_size=6).hexdigest()]


def decisions() -> list[list[Any]]:
    city = harbour_city()
    policy = Ideal(
        city.model, city.responses, threshold=threshold_from({"cost": 0.001}), time_limit_s=None
    )
    traffic = ReplayedTraffic(harbour_traffic(city))
    return [
        row_of(decided(policy, situation, np.random.default_rng(0)))
        for situation in situations(city, traffic)
    ]


def arrivals() -> dict[str, list[Any]]:
    """Who goes by every policy, and when they arrive in both kinds of traffic."""
    city = harbour_city()
    traffic = ReplayedTraffic(harbour_traffic(city))
    policies = policies_from(POLICIES, FittedParts(city.model))
    calls = sample_incidents(
        traffic.recording.only(DAYS), np.ones(city.network.num_nodes), CALLS_PER_DAY, 5, 2400.0
    )
    rows: dict[str, list[Any]] = {policy.name: [] for policy in policies}
    for call in calls:
        assert city.region is not None
        ready = Readiness(city.depots, region=int(city.region[call.node]))
        situation = observe(traffic, city.network, call, traffic.context(call.at), ready)
        for policy in policies:
            made = decided(policy, situation, generator(0, call.name, policy.name))
            ways = [one for one in (made.primary, made.second) if one is not None]
            seconds = [
                drive(traffic, city.network, way, call.node, call.at, world).total_s
                for way in ways
                for world in World
            ]
            rows[policy.name].append([[*map(_sent, ways), made.send_second], [], seconds])
    return rows


def _same(found: list[Any], kept: list[Any], where: str) -> None:
    """Exactly the same, seconds within 1e-9."""
    assert found[:2] == kept[:2], where
    assert found[2] == pytest.approx(kept[2], rel=0.0, abs=1e-9), where


def _read(file: FilePath) -> Any:
    return json.loads(gzip.decompress(file.read_bytes()))


def test_ideal_decides_as_it_did() -> None:
    kept = _read(DECISIONS)
    for number, (row, was) in enumerate(zip(decisions(), kept, strict=True)):
        _same(row, was, f"situation {number}")


def test_units_of_other_policies_arrive_as_they_did() -> None:
    kept = _read(ARRIVALS)
    found = arrivals()
    assert found.keys() == kept.keys()
    for name, rows in found.items():
        for number, (row, was) in enumerate(zip(rows, kept[name], strict=True)):
            _same(row, was, f"{name}, call {number}")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, content in ((DECISIONS, decisions()), (ARRIVALS, arrivals())):
        text = json.dumps(content, separators=(",", ":"))
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
