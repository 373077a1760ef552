"""Calls to replay: drawn at random, or read from a table."""

import hashlib
import os
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch import spreadsheets
from ideal_dispatch.arrays import first_where, read_only
from ideal_dispatch.context.calendar import Calendar, zone
from ideal_dispatch.dispatch.situation import Incident
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import safe_cell, write_csv
from ideal_dispatch.network import SNAP_LIMIT_M, Depot, RoadNetwork
from ideal_dispatch.network.readers import table_rows
from ideal_dispatch.ranges import COUNT, ZERO_OR_MORE
from ideal_dispatch.records.places import snapped
from ideal_dispatch.records.schema import TimeReader
from ideal_dispatch.toml_tables import complaints_about
from ideal_dispatch.traffic.recording import RecordedTraffic

_NAMES = ("name", "call_id", "incident", "id")
_RECORDED: Mapping[str, tuple[str, ...]] = {
    **table_rows.DEGREES,
    "name": _NAMES,
    "node": ("node",),
    "at": ("at", "call_at", "time", "timestamp", "notified_at"),
}
"""Columns of recorded calls, by the names that our own tables and agencies' records give them."""
_ON_ROAD: Mapping[str, tuple[str, ...]] = {
    **table_rows.DEGREES, "call": ("call", *_NAMES), "unit": ("unit",), "node": ("node",),
    "kind": ("kind",),
}  # fmt: skip
"""Columns of units that are free on the road at recorded calls."""


def sample_incidents(
    recording: RecordedTraffic,
    weights: npt.ArrayLike,
    per_day: int,
    seed: int,
    margin_s: float = 3600.0,
    lead_s: float = 0.0,
) -> tuple[Incident, ...]:
    """``per_day`` calls on every recorded day, in order of time.

    Times are uniform over what is recorded of the day, to the second, except the first
    ``lead_s`` and the last ``margin_s`` of every stretch, so that routers know the day and drives
    can be finished. Nodes are drawn in proportion to ``weights``, one per node. A day's calls
    depend on its date and the seed, not on the other days.
    """
    COUNT.check(per_day, "per_day")
    check_edges(recording, lead_s, margin_s)
    chances = read_only(weights, np.float64, (recording.network.num_nodes,), "weights")
    wrong = first_where(~((chances >= 0.0) & (chances < np.inf)))
    if wrong is not None or not chances.sum() > 0.0:
        node = "none" if wrong is None else f"node {wrong} has {chances[wrong]}"
        raise InputError(f"weights: zero or more is needed, and one above zero; {node}")
    incidents = []
    for numbers in recording.days:
        stretches = [recording.stretches[number] for number in numbers]
        open_s = np.array([one.bins * recording.bin_s - lead_s - margin_s for one in stretches])
        date = recording.calendar.local(stretches[0].start).date()
        rng = np.random.default_rng([seed, date.toordinal()])
        offsets_s = np.sort(np.floor(rng.random(per_day) * open_s.sum()))
        nodes = rng.choice(chances.size, per_day, p=chances / chances.sum())
        ends_s = np.cumsum(open_s)
        for number, (offset_s, node) in enumerate(zip(offsets_s, nodes, strict=True)):
            which = int(np.searchsorted(ends_s, offset_s, "right"))
            inside_s = float(np.floor(lead_s + offset_s - (ends_s[which] - open_s[which])))
            at = stretches[which].start.astimezone(UTC) + timedelta(seconds=inside_s)
            name = f"{date.isoformat()}-{number + 1:04d}"
            incidents.append(Incident(name, int(node), recording.calendar.local(at)))
    return tuple(incidents)


def check_edges(recording: RecordedTraffic, lead_s: float, margin_s: float) -> None:
    """Refuse edges without calls that leave nothing of a stretch."""
    for what, value in (("lead_s", lead_s), ("margin_s", margin_s)):
        ZERO_OR_MORE.check(value, what)
    for stretch in recording.stretches:
        lasts_s = stretch.bins * recording.bin_s
        if lasts_s <= lead_s + margin_s:
            raise InputError(
                f"margin_s {margin_s:g} and lead_s {lead_s:g}: the stretch of recorded traffic "
                f"from {stretch.start.isoformat()} lasts {lasts_s:g} s, so no call of it would be "
                "left; lower them"
            )


def with_units_on_road(
    incidents: Sequence[Incident], network: RoadNetwork, count: int, seed: int
) -> tuple[Incident, ...]:
    """The same calls, each with ``count`` free units on the road, at nodes drawn at random.

    They depend on the seed and the call's name alone, so that no other draw changes.
    """
    made = []
    for call in incidents:
        rng = generator(seed, call.name, "units on the road")
        nodes = [int(rng.integers(network.num_nodes - 1)) for _ in range(count)]
        road = (
            Depot(f"road {number}", node + (node >= call.node), on_road=True)
            for number, node in enumerate(nodes, 1)
        )
        made.append(replace(call, on_road=tuple(road)))
    return tuple(made)


def generator(seed: int, *names: str) -> np.random.Generator:
    """A generator for the names; draws for other names do not change it."""
    words = (hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names)
    return np.random.default_rng([seed, *(int.from_bytes(word, "little") for word in words)])


def check_incidents(
    incidents: Sequence[Incident], recording: RecordedTraffic, depots: Sequence[Depot] = ()
) -> None:
    """Refuse calls that cannot be replayed, or whose order or names would confuse a log."""
    if not incidents:
        raise InputError("no incident given: there is nothing to replay")
    names: set[str] = set()
    before, nodes = incidents[0].at, recording.network.num_nodes
    for incident in incidents:
        where = f"incident {incident.name}"
        if incident.name in names:
            raise InputError(f"{where}: the name is used twice; give every call its own")
        names.add(incident.name)
        if not 0 <= incident.node < nodes:
            raise InputError(f"{where}: {incident.node} is not a node (0 … {nodes - 1})")
        if incident.at < before:
            raise InputError(f"{where}: it comes before the one above it; sort them by time")
        before = incident.at
        taken = {depot.name for depot in depots}
        for unit in incident.on_road:
            if unit.name in taken:
                raise InputError(
                    f"{where}: unit {unit.name} on the road has the name of a depot or of another "
                    "unit; give it its own"
                )
            taken.add(unit.name)
            if not 0 <= unit.node < nodes:
                raise InputError(f"{where}: unit {unit.name}: {unit.node} is not a node")
        with complaints_about(where):
            recording.find(incident.at)


# --- recorded calls -------------------------------------------------------------------

_UNREAD, _OFF, _UNREACHED = "with an invalid time", "off the network", "no depot reaches"
_TWICE, _OUTSIDE = "under a name used before", "outside the recorded time"


@dataclass(frozen=True, slots=True)
class RecordedCalls:
    """The calls of a table in order of time, and its rows that cannot be replayed.

    ``lines`` has the line of each call in the table. ``left_out`` has the line of each other row,
    its reason in a few words, and details; rows of a table of units on the road are among them.
    """

    where: str
    incidents: tuple[Incident, ...]
    lines: tuple[int, ...]
    left_out: tuple[tuple[int, str, str], ...] = ()

    @classmethod
    def read(
        cls,
        source: Any,
        network: RoadNetwork,
        depots: Sequence[Depot],
        calendar: Calendar,
        units: Any = None,
    ) -> "RecordedCalls":
        """The calls of a CSV or Excel file or a DataFrame.

        It has the columns at, and node or lon and lat; name where there is one. A time
        without a zone is the city's own. Places go to the nearest node within the usual
        limit, as those of an agency's records do. ``units`` is a table of units that are free
        on the road: call, unit, and node or lon and lat; kind where it is known.
        """
        where, rows = table_rows.read(
            source, _RECORDED, ("at",), "at, and node or lon and lat are needed"
        )
        mark, times = table_rows.degrees_mark(rows), TimeReader(zone(calendar.time_zone))
        nodes, problems = _nodes(rows, network, mark)
        free_flow_s = network.free_flow_times_s
        nearest_s = np.min([network.distances(free_flow_s, one) for one in depots], axis=0)
        found: list[tuple[Incident, int]] = []
        lost: list[tuple[int, str, str]] = []
        names: dict[str, int] = {}
        for (line, row), node, problem in zip(rows, nodes, problems, strict=True):
            name = row.get("name", f"line {line}")
            if problem:
                lost.append((line, _OFF, problem))
            elif np.isinf(nearest_s[node]):
                lost.append((line, _UNREACHED, f"no way leads from any depot to node {node}"))
            elif name in names:
                lost.append((line, _TWICE, f"{name} is in line {names[name]} already"))
            else:
                try:
                    at = calendar.local(times.read(row.get("at", "")))
                except InputError as error:
                    lost.append((line, _UNREAD, f"at {error}"))
                    continue
                names[name] = line
                found.append((Incident(name, node, at), line))
        found.sort(key=lambda one: (one[0].at, one[1]))
        on_road, unused = ({}, []) if units is None else _units(units, network, depots, names)
        calls = tuple(replace(one, on_road=on_road.get(one.name, ())) for one, _ in found)
        lines = tuple(line for _, line in found)
        return cls(where, calls, lines, (*lost, *unused))._not_empty()

    def within(
        self, recording: RecordedTraffic, margin_s: float, lead_s: float = 0.0
    ) -> "RecordedCalls":
        """Those of recorded time, except in the first ``lead_s`` and last ``margin_s`` of it."""
        check_edges(recording, lead_s, margin_s)
        calls, lines, lost = [], [], list(self.left_out)
        for call, line in zip(self.incidents, self.lines, strict=True):
            try:
                stretch = recording.stretches[recording.find(call.at)[0]]
            except InputError as error:
                lost.append((line, _OUTSIDE, str(error)))
                continue
            since_s = (call.at - stretch.start).total_seconds()
            if lead_s <= since_s < stretch.bins * recording.bin_s - margin_s:
                calls.append(call)
                lines.append(line)
            else:
                edge = f"first {lead_s:g} s" if since_s < lead_s else f"last {margin_s:g} s"
                lost.append((line, f"in the {edge} of a stretch", f"{call.at.isoformat()}"))
        left_out = tuple(lost)
        return RecordedCalls(self.where, tuple(calls), tuple(lines), left_out)._not_empty()

    def of_days(self, recording: RecordedTraffic, days: Sequence[int]) -> tuple[Incident, ...]:
        """The calls of the numbered days of a recording."""
        stretches = {number for day in days for number in recording.days[day]}
        return tuple(one for one in self.incidents if recording.find(one.at)[0] in stretches)

    @property
    def words(self) -> str:
        """How many rows were left out and why, in one line; empty where none was."""
        if not self.left_out:
            return ""
        counts = Counter(reason for _, reason, _ in self.left_out)
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.most_common())
        line, _, details = min(self.left_out)
        return (
            f"{self.where}: {len(self.left_out):,} rows left out, {len(self.incidents):,} calls "
            f"remain: {reasons}; the first, line {line}: {details}"
        )

    def write_left_out(self, path: str | os.PathLike[str]) -> None:
        """A CSV with the line and the reason of every row that was left out."""
        rows = [(line, reason, safe_cell(details)) for line, reason, details in self.left_out]
        write_csv(path, ("line", "reason", "details"), sorted(rows))

    def _not_empty(self) -> "RecordedCalls":
        if not self.incidents:
            raise InputError(self.words or f"{self.where}: no call in it; nothing to replay")
        return self


def _units(
    source: Any, network: RoadNetwork, depots: Sequence[Depot], calls: Container[str]
) -> tuple[dict[str, tuple[Depot, ...]], list[tuple[int, str, str]]]:
    """The units on the road of every call, and the lines of others with the reason."""
    _, rows = table_rows.read(
        source, _ON_ROAD, ("call", "unit"), "call, unit, and node or lon and lat are needed"
    )
    nodes, problems = _nodes(rows, network, table_rows.degrees_mark(rows))
    stations = {depot.name for depot in depots}
    found: dict[str, tuple[Depot, ...]] = {}
    lost: list[tuple[int, str, str]] = []
    for (line, row), node, problem in zip(rows, nodes, problems, strict=True):
        call, name = row.get("call", ""), row.get("unit", "")
        there = found.get(call, ())
        if call not in calls:
            problem = f"no call {call!r} is replayed"
        elif not name or name in stations or name in [unit.name for unit in there]:
            problem = f"unit {name!r} of call {call}: give every unit a name of its own"
        if problem:
            lost.append((line, "unit on the road", problem))
        else:
            found[call] = (*there, Depot(name, node, True, row.get("kind", "")))
    return found, lost


def _nodes(rows: table_rows.Rows, network: RoadNetwork, mark: str) -> tuple[list[int], list[str]]:
    """The node of every row, as given or by its place, and the reason where there is none."""
    nodes, problems = [-1] * len(rows), [""] * len(rows)
    lon, lat = np.full((2, len(rows)), np.nan)
    for k, (_, row) in enumerate(rows):
        if "node" in row:
            given = row["node"].removesuffix(".0")  # as spreadsheets write whole numbers
            if given.isdecimal() and int(given) < network.num_nodes:
                nodes[k] = int(given)
            else:
                problems[k] = f"{given[:20]!r} is not a node (0 … {network.num_nodes - 1})"
            continue
        with suppress(ValueError):
            lon[k], lat[k] = (spreadsheets.number(row.get(one, ""), mark) for one in ("lon", "lat"))
    placed, why = snapped(lon, lat, network, SNAP_LIMIT_M)
    for k, (_, row) in enumerate(rows):
        if "node" not in row:
            nodes[k] = int(placed[k])
            if nodes[k] < 0:
                problems[k] = why.get(k, "neither a node nor lon and lat of a place on Earth")
            else:
                problems[k] = why.get(k, "")
    return nodes, problems
