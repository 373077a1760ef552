"""What a replay came to: when the ambulances of every policy arrived, read from its log.

A log holds every policy's second ambulance whether it was sent or not, so one
replay serves every threshold: see :mod:`ideal_dispatch.evaluation.strategies`.
"""

import json
import math
import os
from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.evaluation.roles import claims_of, players
from ideal_dispatch.frames import DataFrame, frame
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import EXPERIMENT
from ideal_dispatch.replay.log import read_log
from ideal_dispatch.replay.radii import Radii, read_radii
from ideal_dispatch.replay.run import LOG
from ideal_dispatch.replay.run_folder import read_manifest

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

    ``second_drive`` names the second's drive as the log does, and is empty where
    there is none. ``proved`` is 1 where its gap is exact, 0 where it is not, and
    NaN where it has none.
    """

    name: str
    score_s: FloatArray
    threshold_s: FloatArray
    has_second: BoolArray
    same_depot: BoolArray
    second_drive: npt.NDArray[np.str_]
    proved: FloatArray
    drives: Mapping[str, Drives]

    def sent_above(self, threshold_s: float | FloatArray) -> BoolArray:
        """Where a second ambulance goes: there is one, and its score exceeds the threshold."""
        sent: BoolArray = self.has_second & (self.score_s > threshold_s)
        return sent

    def arrival_s(self, sent: BoolArray, world: str) -> FloatArray:
        """When somebody arrives: the sooner of the two where a second was sent."""
        drives = self.drives[world]
        return np.where(sent, np.fmin(drives.primary_s, drives.second_s), drives.primary_s)


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """A run in arrays, an entry per incident: some hundred bytes each, no paths.

    ``day`` numbers the local days of ``days``. ``best_s`` has the time of the
    best drive by world and benchmark; a benchmark that the log lacks is absent.
    ``claims`` has the role of every policy, ``roles`` who plays each part of
    :data:`~ideal_dispatch.evaluation.roles.STORY`. ``name`` is for messages; ``title``
    is the experiment's name and days, empty where the run is part of none. ``worlds`` are
    those of the log that the experiment names. ``thresholds_given`` names the policies whose
    tables give a threshold. ``nearest_region`` says that nobody knew the agency's territories:
    the region is that of the nearest depot at free flow. ``radii`` are by policy and world, of
    policies with a model, where the replay worked them out.
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
    nearest_region: bool = False
    radii: Mapping[str, Mapping[str, Radii]] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Outcomes":
        """Read a folder written by ``ideal replay``, line by line."""
        where = Path(folder)
        manifest, log = read_manifest(where), where / LOG
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
        columns: defaultdict[str, list[npt.NDArray[Any]]] = defaultdict(list)
        for name, policy in self.policies.items():
            sent = policy.sent_above(policy.threshold_s)
            for world in self.worlds:
                columns["incident"].append(np.array(self.incidents))
                columns["day"].append(np.array(self.days)[self.day])
                columns["policy"].append(np.full(len(self), name))
                columns["world"].append(np.full(len(self), world))
                columns["sent"].append(sent)
                columns["score_s"].append(policy.score_s)
                columns["threshold_s"].append(policy.threshold_s)
                columns["primary_s"].append(policy.drives[world].primary_s)
                columns["second_s"].append(policy.drives[world].second_s)
                columns["arrival_s"].append(policy.arrival_s(sent, world))
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


# --- reading ------------------------------------------------------------------------


class _Reader:
    """Columns that grow by one incident at a time, by the names of the fields they become."""

    def __init__(self, manifest: dict[str, Any], first: dict[str, Any]) -> None:
        known: dict[str, Any] = next(iter(first["drives"].values()), {})
        self._policies = tuple(first["decisions"])
        self._worlds: tuple[str, ...] = tuple(world for world in World if known.get(world))
        if not self._policies or not self._worlds:
            raise InputError("no policy or no drive; nothing can be judged")
        self._manifest = manifest
        self._claims = claims_of(manifest, self._policies)
        self._roles = players(self._claims)
        self._names: dict[str, None] = {}
        self._days: dict[str, int] = {}
        self._day: list[int] = []
        self._columns: defaultdict[Hashable, defaultdict[str, list[Any]]] = defaultdict(
            lambda: defaultdict(list)
        )

    def add(self, entry: dict[str, Any]) -> None:
        incident, decisions, drives = entry["incident"], entry["decisions"], entry["drives"]
        if tuple(decisions) != self._policies:
            raise InputError("other policies than the lines before; runs must not be mixed")
        if incident["name"] in self._names:
            raise InputError(f"incident {incident['name']} is there twice; names must differ")
        date.fromisoformat(incident["day"])
        for world in self._worlds:
            self._grow(("", world), self._best_of(entry, world))
        for policy, decision in decisions.items():
            self._grow(policy, _decided(policy, decision, drives))
            for world in self._worlds:
                self._grow((policy, world), _driven(decision, drives, world))
        self._names[incident["name"]] = None
        self._day.append(self._days.setdefault(incident["day"], len(self._days)))

    def _grow(self, whose: Hashable, values: Mapping[str, float | str]) -> None:
        for name, value in values.items():
            self._columns[whose][name].append(value)

    def _arrays(self, whose: Hashable) -> dict[str, Any]:
        made = {name: np.array(values) for name, values in self._columns[whose].items()}
        for values in made.values():
            values.flags.writeable = False
        return made

    def _best_of(self, entry: dict[str, Any], world: str) -> dict[str, float]:
        times = {key: _total_s(drive[world]) for key, drive in entry["drives"].items()}
        candidates = [seconds for key, seconds in times.items() if "+" not in key]
        if "paper" in self._roles:
            second = entry["decisions"][self._roles["paper"]]["second"]
            candidates += [] if second is None else [times[second]]
        known = (entry.get("hindsight") or {}).get(world)
        return {
            "paper": min(candidates),
            "common": min(times.values()),
            "hindsight": _total_s(known) if known else math.nan,
        }

    def outcomes(self, folder: Path) -> Outcomes:
        experiment = _experiment(folder)
        named = [World(name) for name in experiment.get("worlds", World)]
        tables, city = experiment.get("policies", {}), experiment.get("city", {})
        return Outcomes(
            name="/".join(folder.resolve().parts[-2:]).lstrip("/"),  # "test" alone says little
            folder=folder,
            manifest=MappingProxyType(self._manifest),
            incidents=tuple(self._names),
            day=np.array(self._day, np.int32),
            days=tuple(self._days),
            policies=MappingProxyType({name: self._policy(name) for name in self._policies}),
            best_s=MappingProxyType({world: self._best(world) for world in self._worlds}),
            claims=MappingProxyType(self._claims),
            roles=MappingProxyType(self._roles),
            worlds=tuple(world for world in self._worlds if world in named),
            title=f"{experiment['name']}, {folder.resolve().name} days" if experiment else "",
            thresholds_given=frozenset(n for n, table in tables.items() if "threshold" in table),
            nearest_region=bool(city.get("network")) and not city.get("territories"),
            radii=MappingProxyType(read_radii(folder, tuple(self._names))),
        )

    def _policy(self, name: str) -> PolicyOutcomes:
        drives = {world: Drives(**self._arrays((name, world))) for world in self._worlds}
        return PolicyOutcomes(name, **self._arrays(name), drives=MappingProxyType(drives))

    def _best(self, world: str) -> Mapping[Benchmark, FloatArray]:
        found = self._arrays(("", world))
        whole = [one for one in BENCHMARKS if not np.isnan(found[one]).any()]
        return MappingProxyType({one: found[one] for one in whole})


def _decided(
    policy: str, decision: Mapping[str, Any], drives: Mapping[str, Any]
) -> dict[str, float | str]:
    """The fields of :class:`PolicyOutcomes` for one incident."""
    primary, second = decision["primary"], decision["second"]
    score, threshold = float(decision["score_s"]), decision["threshold_s"]
    if not math.isfinite(score):
        raise InputError(f"policy {policy}: its score is {score}; scores are finite")
    status = (decision.get("details") or {}).get("gap_status")
    stations = [drives[key]["station"] for key in (primary, second) if key is not None]
    return {
        "score_s": score,
        "threshold_s": -math.inf if threshold is None else float(threshold),
        "has_second": second is not None,
        "same_depot": len(stations) == 2 and stations[0] == stations[1],
        "second_drive": second or "",
        "proved": math.nan if status is None else float(status == "exact"),
    }


def _driven(decision: Mapping[str, Any], drives: Mapping[str, Any], world: str) -> dict[str, float]:
    """The fields of :class:`Drives` for one incident."""
    first = drives[decision["primary"]][world]
    found = {"primary_s": _total_s(first)}
    if decision["second"] is None:
        return found | {"second_s": math.nan, "overlap": math.nan, "same_road": False}
    second = drives[decision["second"]][world]
    found |= {"second_s": _total_s(second), "overlap": _overlap(first, second)}
    return found | {"same_road": first["edges"] == second["edges"]}


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
