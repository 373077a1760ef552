"""What a replay came to: when the ambulances of every policy arrived, read from its log.

A log holds every policy's second ambulance whether it was sent or not, so one
replay serves every threshold: see :mod:`ideal_dispatch.evaluation.strategies`.
"""

import json
import math
import os
from array import array
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.evaluation.roles import claims_of, players
from ideal_dispatch.frames import DataFrame, frame
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import EXPERIMENT
from ideal_dispatch.replay.log import read_log
from ideal_dispatch.replay.manifest import read_manifest
from ideal_dispatch.replay.run import LOG

Benchmark = Literal["paper", "common", "hindsight"]
BENCHMARKS: tuple[Benchmark, ...] = ("paper", "common", "hindsight")
"""What arrivals are measured against, the best of each incident:

``paper``: every available depot's adaptive drive and the printed policy's second;
``common``: every drive of the log, whoever thought of it;
``hindsight``: the fastest drive for one who knows what the streets will do.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Drives:
    """What the two ambulances of a policy took in one world; NaN where there is no second.

    ``overlap`` is the share of the second's driving time on roads that the
    first drove too; ``same_road`` where they drove the very same edges.
    """

    primary_s: FloatArray
    second_s: FloatArray
    overlap: FloatArray
    same_road: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class PolicyOutcomes:
    """What one policy decided about every incident, and what came of it in each world.

    ``second_drive`` numbers the drives of an incident: two policies with the
    same number send the same second. ``proved`` is 1 where its gap is exact, 0
    where it is not, and NaN where it has none.
    """

    name: str
    score_s: FloatArray
    threshold_s: FloatArray
    has_second: BoolArray
    same_depot: BoolArray
    second_drive: IntArray
    proved: FloatArray
    drives: Mapping[str, Drives]

    def sent_above(self, threshold_s: float | FloatArray) -> BoolArray:
        """Where a second ambulance goes: there is one, and its score exceeds the threshold."""
        sent: BoolArray = self.has_second & (self.score_s > threshold_s)
        return sent


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """A run in arrays, an entry per incident: some hundred bytes each, no paths.

    ``day`` numbers the local days of ``days``. ``best_s`` has the time of the
    best drive by world and benchmark; a benchmark that the log lacks is absent.
    ``claims`` has the role of every policy, ``roles`` who plays each part of
    :data:`~ideal_dispatch.evaluation.roles.STORY`. ``name`` is for messages; ``title``
    is the experiment's name and days, empty where the run is part of none. A log has
    drives in both worlds; ``worlds`` are those that the experiment names. ``thresholds_given``
    names the policies whose tables give a threshold.
    """

    name: str
    folder: Path
    manifest: Mapping[str, Any]
    incidents: tuple[str, ...]
    day: IntArray
    days: tuple[str, ...]
    policies: Mapping[str, PolicyOutcomes]
    best_s: Mapping[str, Mapping[Benchmark, FloatArray]]
    claims: Mapping[str, str]
    roles: Mapping[str, str]
    worlds: tuple[str, ...]
    title: str = ""
    thresholds_given: frozenset[str] = frozenset()

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Outcomes":
        """Read a folder written by ``ideal replay``, line by line."""
        where = Path(folder)
        reader = _Reader(read_manifest(where))
        log = where / LOG
        if not log.is_file():
            raise InputError(f"{where}: the replay is not finished; run it again to go on")
        for number, entry in enumerate(read_log(log), 1):
            try:
                reader.add(entry)
            except InputError as error:
                raise FileFormatError(f"{log}, line {number}: {error}") from None
            except (KeyError, ValueError, TypeError, AttributeError) as error:
                said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                raise FileFormatError(
                    f"{log}, line {number}: no incident of a replay ({said}); repeat the replay"
                ) from None
        if not reader.names:
            raise InputError(f"{log}: no incident in it; there is nothing to judge")
        return reader.outcomes(where)

    def __len__(self) -> int:
        return len(self.incidents)

    @property
    def free(self) -> tuple[str, ...]:
        """The policies without a role, such as a user's own."""
        return tuple(name for name, claim in self.claims.items() if not claim)

    def only(self, world: str) -> "Outcomes":
        """The same run judged in one world alone."""
        found = next((one for one in self.best_s if world in (one, World(one).letter)), None)
        if found is None:
            raise InputError(f"{self.name}: no world {world}; it has {', '.join(self.best_s)}")
        return replace(self, worlds=(found,))

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame with a row per incident, policy and world.

        ``sent`` says whether a second ambulance went, ``arrival_s`` when the first of
        those that went arrived; ``second_s`` is NaN where there is no second.
        """
        columns: dict[str, list[FloatArray]] = {}
        for name, policy in self.policies.items():
            sent = policy.sent_above(policy.threshold_s)
            for world in self.worlds:
                drives = policy.drives[world]
                arrival_s = np.where(
                    sent, np.fmin(drives.primary_s, drives.second_s), drives.primary_s
                )
                part = {
                    "incident": np.array(self.incidents),
                    "day": np.array(self.days)[self.day],
                    "policy": np.full(len(self), name),
                    "world": np.full(len(self), world),
                    "sent": sent,
                    "score_s": policy.score_s,
                    "threshold_s": policy.threshold_s,
                    "primary_s": drives.primary_s,
                    "second_s": drives.second_s,
                    "arrival_s": arrival_s,
                }
                for key, values in part.items():
                    columns.setdefault(key, []).append(values)
        return frame({key: np.concatenate(parts) for key, parts in columns.items()})

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


# --- reading ------------------------------------------------------------------------


class _Reader:
    """Columns that grow by one incident at a time."""

    def __init__(self, manifest: dict[str, Any]) -> None:
        self._manifest = manifest
        self.names: dict[str, None] = {}
        self._days: dict[str, int] = {}
        self._day = array("i")
        self._policies: tuple[str, ...] = ()
        self._worlds: tuple[str, ...] = ()
        self._claims: dict[str, str] = {}
        self._roles: dict[str, str] = {}
        self._columns: defaultdict[tuple[str, ...], array[float]] = defaultdict(lambda: array("d"))

    def add(self, entry: dict[str, Any]) -> None:
        incident, decisions, drives = entry["incident"], entry["decisions"], entry["drives"]
        if not self.names:
            self._begin(entry)
        if tuple(decisions) != self._policies:
            raise InputError("other policies than the lines before; runs must not be mixed")
        if incident["name"] in self.names:
            raise InputError(f"incident {incident['name']} is there twice; names must differ")
        date.fromisoformat(incident["day"])
        for world in self._worlds:
            self._add_best(entry, world)
        for policy, decision in decisions.items():
            self._add_decision(policy, decision, drives)
        self.names[incident["name"]] = None
        self._day.append(self._days.setdefault(incident["day"], len(self._days)))

    def _begin(self, entry: dict[str, Any]) -> None:
        self._policies = tuple(entry["decisions"])
        known = next(iter(entry["drives"].values()))
        self._worlds = tuple(world for world in World if known.get(world))
        if not self._policies or not self._worlds:
            raise InputError("no policy or no drive; nothing can be judged")
        self._claims = claims_of(self._manifest, self._policies)
        self._roles = players(self._claims)

    def _add_best(self, entry: dict[str, Any], world: str) -> None:
        times = {key: _total_s(drive[world]) for key, drive in entry["drives"].items()}
        candidates = [seconds for key, seconds in times.items() if "+" not in key]
        if "paper" in self._roles:
            second = entry["decisions"][self._roles["paper"]]["second"]
            candidates += [] if second is None else [times[second]]
        self._columns["best", world, "paper"].append(min(candidates))
        self._columns["best", world, "common"].append(min(times.values()))
        known = (entry.get("hindsight") or {}).get(world)
        self._columns["best", world, "hindsight"].append(_total_s(known) if known else math.nan)

    def _add_decision(
        self, policy: str, decision: dict[str, Any], drives: Mapping[str, Any]
    ) -> None:
        primary, second = decision["primary"], decision["second"]
        score, threshold = float(decision["score_s"]), decision["threshold_s"]
        if not math.isfinite(score):
            raise InputError(f"policy {policy}: its score is {score}; scores are finite")
        status = (decision.get("details") or {}).get("gap_status")
        stations = [drives[key]["station"] for key in (primary, second) if key is not None]
        values = {
            "score": score,
            "threshold": -math.inf if threshold is None else float(threshold),
            "second": second is not None,
            "same_depot": len(stations) == 2 and stations[0] == stations[1],
            "drive": -1 if second is None else list(drives).index(second),
            "proved": math.nan if status is None else status == "exact",
        }
        for name, value in values.items():
            self._columns[policy, name].append(value)
        for world in self._worlds:
            first = drives[primary][world]
            other = None if second is None else drives[second][world]
            overlap = math.nan if other is None else _overlap(first, other)
            taken = math.nan if other is None else _total_s(other)
            same = other is not None and first["edges"] == other["edges"]
            for name, value in (("primary", _total_s(first)), ("second", taken),
                                ("overlap", overlap), ("same", same)):  # fmt: skip
                self._columns[policy, world, name].append(value)

    def outcomes(self, folder: Path) -> Outcomes:
        experiment = _experiment(folder)
        named = [World(name) for name in experiment.get("worlds", World)]
        tables = experiment.get("policies", {})
        return Outcomes(
            name=_run_name(folder),
            folder=folder,
            manifest=MappingProxyType(self._manifest),
            incidents=tuple(self.names),
            day=np.array(self._day, np.int32),
            days=tuple(self._days),
            policies=MappingProxyType({name: self._policy(name) for name in self._policies}),
            best_s=MappingProxyType({world: self._best(world) for world in self._worlds}),
            claims=MappingProxyType(self._claims),
            roles=MappingProxyType(self._roles),
            worlds=tuple(world for world in self._worlds if world in named),
            title=f"{experiment['name']}, {folder.resolve().name} days" if experiment else "",
            thresholds_given=frozenset(n for n, table in tables.items() if "threshold" in table),
        )

    def _best(self, world: str) -> Mapping[Benchmark, FloatArray]:
        found = {one: self._column("best", world, one) for one in BENCHMARKS}
        return MappingProxyType({k: v for k, v in found.items() if not np.isnan(v).any()})

    def _policy(self, name: str) -> PolicyOutcomes:
        drives = {
            world: Drives(
                self._column(name, world, "primary"),
                self._column(name, world, "second"),
                self._column(name, world, "overlap"),
                self._column(name, world, "same") > 0,
            )
            for world in self._worlds
        }
        return PolicyOutcomes(
            name,
            self._column(name, "score"),
            self._column(name, "threshold"),
            self._column(name, "second") > 0,
            self._column(name, "same_depot") > 0,
            self._column(name, "drive").astype(np.int32),
            self._column(name, "proved"),
            MappingProxyType(drives),
        )

    def _column(self, *key: str) -> FloatArray:
        values: FloatArray = np.array(self._columns[key], np.float64)
        values.flags.writeable = False
        return values


def _run_name(folder: Path) -> str:
    """The last two parts of its path, for "test" alone says little."""
    return "/".join(folder.resolve().parts[-2:]).lstrip("/")


def _experiment(folder: Path) -> dict[str, Any]:
    """The experiment that the run is part of; empty where it is part of none."""
    file = folder.resolve().parent.parent / EXPERIMENT
    if not file.is_file():
        return {}
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        found["name"]  # or it is something else
    except (KeyError, ValueError, TypeError):
        raise FileFormatError(f"{file}: not the experiment of a replay; repeat it") from None
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
