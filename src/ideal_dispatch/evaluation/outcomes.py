"""What a replay came to: when the ambulances of every policy arrived, read from its log.

A log holds every policy's second ambulance whether it was sent or not, so one replay serves every
threshold: see :mod:`ideal_dispatch.evaluation.strategies`.

Every policy of a run plays a part in tables and figures: the one that its ``role`` names. A policy
without a role is shown like our own. A part in :data:`STORY` is played by a single policy: by the
one of that name, else by the first that claims it. All others that claim it, and those with the
role "control", stand apart.
"""

import math
import os
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.experiment.engine import read_manifest
from ideal_dispatch.frames import DataFrame, frame
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.log import LOG, read_log
from ideal_dispatch.replay.run import KIND
from ideal_dispatch.replay.study import experiment_of

STORY = ("region", "router", "interval", "router-dual", "paper", "ideal")
"""The parts that tables and figures refer to, in the order of the page."""

BASELINES = STORY[:4]
"""The parts of those that the paper compares itself with."""

Benchmark = Literal["paper", "common", "hindsight"]
BENCHMARKS: tuple[Benchmark, ...] = ("paper", "common", "hindsight")
"""What arrivals are measured against, the best of each incident:

``paper``: every available depot's adaptive drive and the printed policy's second;
``common``: every drive of the log, of any policy;
``hindsight``: the fastest drive for one who knows what the streets will do.
"""


@dataclass(frozen=True, slots=True, eq=False)
class PolicyOutcomes:
    """What one policy decided about every incident, and what its two ambulances took.

    ``second_s`` is NaN where there is no second. ``overlap`` is the share of the second's driving
    time on roads that the first drove too; ``same_road`` where they drove the very same edges.
    """

    name: str
    score_s: FloatArray
    threshold_s: FloatArray
    has_second: BoolArray
    same_depot: BoolArray
    primary_s: FloatArray
    second_s: FloatArray
    overlap: FloatArray
    same_road: BoolArray

    def sent_above(self, threshold_s: float | FloatArray) -> BoolArray:
        """Where a second ambulance goes: there is one, and its score exceeds the threshold."""
        sent: BoolArray = self.has_second & (self.score_s > threshold_s)
        return sent

    def arrival_s(self, sent: BoolArray) -> FloatArray:
        """When the first ambulance arrives: the sooner of the two where a second was sent."""
        return np.where(sent, np.fmin(self.primary_s, self.second_s), self.primary_s)


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """A run in arrays, an entry per incident: some hundred bytes each, no paths.

    ``day`` numbers the local days of ``days``. ``best_s`` has the time of the best drive by
    benchmark; a benchmark that the log lacks is absent. ``claims`` has the role of every policy,
    ``roles`` the policy that plays each part of :data:`STORY`. ``name`` is for messages; ``title``
    is the experiment's name and days, empty where the run is part of none. ``thresholds_given``
    names the policies whose tables give a threshold. ``nearest_region`` says that the agency's
    territories are unknown: the region is that of the nearest depot at free flow.
    """

    name: str
    folder: Path
    manifest: Mapping[str, Any]
    world: World
    incidents: tuple[str, ...]
    day: IntArray
    days: tuple[str, ...]
    policies: Mapping[str, PolicyOutcomes]
    best_s: Mapping[Benchmark, FloatArray]
    claims: Mapping[str, str]
    roles: Mapping[str, str]
    title: str = ""
    thresholds_given: frozenset[str] = frozenset()
    nearest_region: bool = False

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Outcomes":
        """Read a folder written by ``ideal replay``, line by line."""
        where = Path(folder)
        manifest, log, experiment = read_manifest(where, KIND), where / LOG, experiment_of(where)
        if not log.is_file():
            raise InputError(f"{where}: the replay is not finished; run it again to go on")
        reader = None
        for number, entry in enumerate(read_log(log), 1):
            try:
                reader = reader or _Reader(manifest, entry)
                reader.add(entry)
            except InputError as error:
                raise FileFormatError(f"{log}, line {number}: {error}") from None
            except (KeyError, ValueError, TypeError, AttributeError) as error:
                said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                raise FileFormatError(
                    f"{log}, line {number}: no incident of a replay ({said}); repeat the replay"
                ) from None
        if reader is None:
            raise InputError(f"{log}: no incident in it; there is nothing to judge")
        incidents, tables = tuple(reader.names), experiment.get("policies", {})
        city = experiment.get("city", {})
        best = reader.arrays("")
        return cls(
            name="/".join(where.resolve().parts[-2:]).lstrip("/"),  # "test" alone says little
            folder=where,
            manifest=manifest,
            world=reader.world,
            incidents=incidents,
            day=np.array(reader.day, np.int32),
            days=tuple(reader.days),
            policies={name: PolicyOutcomes(name, **reader.arrays(name)) for name in reader.claims},
            best_s={one: best[one] for one in BENCHMARKS if not np.isnan(best[one]).any()},
            claims=reader.claims,
            roles=reader.roles,
            title=f"{experiment['name']}, {where.resolve().name} days" if experiment else "",
            thresholds_given=frozenset(n for n, table in tables.items() if "threshold" in table),
            nearest_region=bool(city.get("network")) and not city.get("territories"),
        )

    def __len__(self) -> int:
        return len(self.incidents)

    @property
    def free(self) -> tuple[str, ...]:
        """The policies without a role, such as a user's own."""
        return tuple(name for name, claim in self.claims.items() if not claim)

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame with a row per incident and policy.

        ``sent`` says whether a second ambulance went, ``arrival_s`` when the first of those that
        went arrived; ``second_s`` is NaN where there is no second.
        """
        columns: defaultdict[str, list[npt.NDArray[Any]]] = defaultdict(list)
        for name, policy in self.policies.items():
            sent = policy.sent_above(policy.threshold_s)
            columns["incident"].append(np.array(self.incidents))
            columns["day"].append(np.array(self.days)[self.day])
            columns["policy"].append(np.full(len(self), name))
            columns["sent"].append(sent)
            for one in ("score_s", "threshold_s", "primary_s", "second_s"):
                columns[one].append(getattr(policy, one))
            columns["arrival_s"].append(policy.arrival_s(sent))
        return frame({name: np.concatenate(parts) for name, parts in columns.items()})

    def policy(self, name: str) -> PolicyOutcomes:
        """The outcomes of a policy by its name."""
        try:
            return self.policies[name]
        except KeyError:
            known = ", ".join(self.policies)
            raise InputError(f"{self.name}: no policy {name}; it has {known}") from None

    def number(self, incident: str) -> int:
        """The place of an incident by its name."""
        try:
            return self.incidents.index(incident)
        except ValueError:
            raise InputError(
                f"{self.name}: no incident {incident}; they are named like {self.incidents[0]}"
            ) from None

    def entries(self, numbers: Collection[int]) -> dict[int, dict[str, Any]]:
        """The log's whole lines about some incidents, paths included, by their number."""
        lines = enumerate(read_log(self.folder / LOG))
        return {number: entry for number, entry in lines if number in numbers}


def players(claims: Mapping[str, str]) -> dict[str, str]:
    """The policy that plays each part of :data:`STORY`, of parts that are claimed."""
    found = {}
    for role in STORY:
        able = [name for name, claim in claims.items() if claim == role]
        if able:
            found[role] = role if role in able else able[0]
    return found


def first_of(described: Any) -> Mapping[str, Any]:
    """What a manifest says of a policy; of one that differs by day, of its first."""
    if not isinstance(described, dict):
        return {}
    by_day = described.get("policies")
    if isinstance(by_day, dict) and by_day:
        return first_of(next(iter(by_day.values())))
    return described


# --- reading ------------------------------------------------------------------------


class _Reader:
    """Columns that grow by one incident at a time, by policy; those of "" are of benchmarks."""

    def __init__(self, manifest: Mapping[str, Any], first: Mapping[str, Any]) -> None:
        if not first["decisions"] or not first["drives"]:
            raise InputError("no policy, or no drive to be judged")
        self.world = World(manifest["world"])
        roles = manifest.get("roles", {})
        self.claims = {name: str(roles.get(name, "")) for name in first["decisions"]}
        self.roles = players(self.claims)
        self.names: dict[str, None] = {}
        self.days: dict[str, int] = {}
        self.day: list[int] = []
        self._rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)

    def add(self, entry: Mapping[str, Any]) -> None:
        incident, decisions, drives = entry["incident"], entry["decisions"], entry["drives"]
        if tuple(decisions) != tuple(self.claims):
            raise InputError("other policies than the lines before; runs must not be mixed")
        if incident["name"] in self.names:
            raise InputError(f"incident {incident['name']} is there twice; names must differ")
        date.fromisoformat(incident["day"])
        times = {key: _total_s(drive[self.world]) for key, drive in drives.items()}
        candidates = [seconds for key, seconds in times.items() if "+" not in key]
        printed = decisions[self.roles["paper"]]["second"] if "paper" in self.roles else None
        best = (entry.get("hindsight") or {}).get(self.world)
        self._rows[""].append({
            "paper": min([*candidates, *([] if printed is None else [times[printed]])]),
            "common": min(times.values()),
            "hindsight": _total_s(best) if best else math.nan,
        })  # fmt: skip
        for policy, decision in decisions.items():
            self._rows[policy].append(_decided(policy, decision, drives, times, self.world))
        self.names[incident["name"]] = None
        self.day.append(self.days.setdefault(incident["day"], len(self.days)))

    def arrays(self, policy: str) -> dict[str, Any]:
        """The columns of a policy, read-only."""
        rows = self._rows[policy]
        made = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        for values in made.values():
            values.flags.writeable = False
        return made


def _decided(
    policy: str,
    decision: Mapping[str, Any],
    drives: Mapping[str, Any],
    times: Mapping[str, float],
    world: World,
) -> dict[str, Any]:
    """The fields of :class:`PolicyOutcomes` for one incident."""
    primary, second, threshold = decision["primary"], decision["second"], decision["threshold_s"]
    score = float(decision["score_s"])
    if not math.isfinite(score):
        raise InputError(f"policy {policy}: its score is {score}; scores are finite")
    found = {
        "score_s": score,
        "threshold_s": -math.inf if threshold is None else float(threshold),
        "has_second": second is not None,
        "same_depot": False,
        "primary_s": times[primary],
        "second_s": math.nan,
        "overlap": math.nan,
        "same_road": False,
    }
    if second is not None:
        one, two = drives[primary], drives[second]
        found |= {
            "same_depot": one["station"] == two["station"],
            "second_s": times[second],
            "overlap": _overlap(one[world], two[world]),
            "same_road": one[world]["edges"] == two[world]["edges"],
        }
    return found


def _total_s(drive: Mapping[str, Any]) -> float:
    """Seconds from depot to incident; rounded as the log is, so that equal drives are equal."""
    return round(math.fsum(drive["seconds"]), 3)


def _overlap(first: Mapping[str, Any], second: Mapping[str, Any]) -> float:
    driven = set(first["edges"])
    pairs = zip(second["edges"], second["seconds"], strict=True)
    shared = math.fsum(seconds for edge, seconds in pairs if edge in driven)
    total = math.fsum(second["seconds"])
    return shared / total if total > 0 else 1.0
