"""Calls to replay: drawn at random, or read from a table."""

import hashlib
import os
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch import spreadsheets
from ideal_dispatch.arrays import first_where, whole_number
from ideal_dispatch.context.calendar import Calendar, zone
from ideal_dispatch.dispatch.situation import Incident
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import safe_cell, write_csv
from ideal_dispatch.network import SNAP_LIMIT_M, Depot, RoadNetwork
from ideal_dispatch.network.readers import table_rows
from ideal_dispatch.records.places import snapped
from ideal_dispatch.records.schema import TimeReader
from ideal_dispatch.toml_tables import complaints_about
from ideal_dispatch.traffic.recording import RecordedTraffic

_COLUMNS = ("name", "node", "at")
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

    Times are uniform over what is recorded of the day, to the second; the first
    ``lead_s`` and the last ``margin_s`` of a stretch that is longer get none, so
    that routers know the day and drives can be finished. Nodes are drawn in
    proportion to ``weights``, one per node. A day's calls depend on its date and
    the seed, not on the other days.
    """
    chances = _chances(weights, recording.network)
    if whole_number(per_day, "per_day") < 1:
        raise InputError(f"per_day {per_day}: at least one call a day is needed")
    for what, value in (("margin_s", margin_s), ("lead_s", lead_s)):
        if not 0.0 <= value < np.inf:
            raise InputError(f"{what} {value}: a finite number of zero or more is needed")
    incidents = []
    for numbers in recording.days:
        stretches = [recording.stretches[number] for number in numbers]
        lasts = [stretch.bins * recording.bin_s for stretch in stretches]
        longer = [last > margin_s + lead_s for last in lasts]
        begin_s = lead_s * np.array(longer)
        open_s = np.array(lasts) - begin_s - margin_s * np.array(longer)
        date = recording.calendar.local(stretches[0].start).date()
        rng = np.random.default_rng([seed, date.toordinal()])
        offsets_s = np.sort(np.floor(rng.random(per_day) * open_s.sum()))
        nodes = rng.choice(chances.size, per_day, p=chances)
        ends_s = np.cumsum(open_s)
        for number, (offset_s, node) in enumerate(zip(offsets_s, nodes, strict=True)):
            which = int(np.searchsorted(ends_s, offset_s, "right"))
            inside_s = float(np.floor(begin_s[which] + offset_s - (ends_s[which] - open_s[which])))
            at = stretches[which].start.astimezone(UTC) + timedelta(seconds=inside_s)
            name = f"{date.isoformat()}-{number + 1:04d}"
            incidents.append(Incident(name, int(node), recording.calendar.local(at)))
    return tuple(incidents)


def with_units_on_road(
    incidents: Sequence[Incident], network: RoadNetwork, count: int, seed: int
) -> tuple[Incident, ...]:
    """The same calls, each with ``count`` free units on the road, at nodes drawn at random.

    They depend on the seed and the call's name alone, so that no other draw changes.
    """
    return tuple(
        replace(call, on_road=tuple(_drawn_units(call, network, count, seed))) for call in incidents
    )


def _drawn_units(call: Incident, network: RoadNetwork, count: int, seed: int) -> Iterator[Depot]:
    rng = generator(seed, call.name, "units on the road")
    for number in range(1, count + 1):
        node = int(rng.integers(network.num_nodes - 1))
        yield Depot(f"road {number}", node + (node >= call.node), on_road=True)


def generator(seed: int, *names: str) -> np.random.Generator:
    """A generator of its own for whatever the names name; others do not change it."""
    words = (hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names)
    return np.random.default_rng([seed, *(int.from_bytes(word, "little") for word in words)])


def _chances(weights: npt.ArrayLike, network: RoadNetwork) -> npt.NDArray[np.float64]:
    values = np.asarray(weights, np.float64)
    if values.shape != (network.num_nodes,):
        raise InputError(f"weights: one per node is needed, {network.num_nodes} in all")
    wrong = first_where(~((values >= 0.0) & (values < np.inf)))
    if wrong is not None:
        raise InputError(
            f"weight of node {wrong} is {values[wrong]}; it must be finite and zero or more"
        )
    if not values.sum() > 0.0:
        raise InputError("weights: at least one node needs more than zero")
    chances: npt.NDArray[np.float64] = values / values.sum()
    return chances


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


def write_incidents(path: str | os.PathLike[str], incidents: Sequence[Incident]) -> None:
    """A CSV table with the columns name, node and at (ISO 8601 with its offset)."""
    write_csv(path, _COLUMNS, ((one.name, one.node, one.at.isoformat()) for one in incidents))


def read_incidents(source: Any) -> tuple[Incident, ...]:
    """The table of :func:`write_incidents`, a CSV or Excel file or a DataFrame.

    Other columns are left aside.
    """
    columns = {name: (name,) for name in _COLUMNS}
    where, rows = table_rows.read(source, columns, _COLUMNS, "name, node and at are needed")
    return tuple(_incident(row, f"{where}, line {line}") for line, row in rows)


def _incident(row: Mapping[str, str], where: str) -> Incident:
    try:
        name, node, at = (row.get(column, "") for column in _COLUMNS)
        return Incident(name, int(node), datetime.fromisoformat(at))
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None


# --- recorded calls -------------------------------------------------------------------

_UNREAD, _OFF, _UNREACHED = "at a time not understood", "off the network", "no depot reaches"
_TWICE, _OUTSIDE = "under a name used before", "outside the recorded time"


@dataclass(frozen=True, slots=True)
class RecordedCalls:
    """The calls of a table in order of time, and its rows that cannot be replayed.

    ``lines`` has the line of each call in the table. ``left_out`` has the line of
    each other row, its reason in a few words, and details. ``lost_units`` are rows of the
    table of units on the road that cannot be used, and why.
    """

    where: str
    incidents: tuple[Incident, ...]
    lines: tuple[int, ...]
    left_out: tuple[tuple[int, str, str], ...] = ()
    lost_units: tuple[tuple[int, str], ...] = ()

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
        on_road, lost_units = ({}, []) if units is None else _units(units, network, depots, names)
        found = [(replace(one, on_road=on_road.get(one.name, ())), line) for one, line in found]
        return cls(where, *_columns(found), tuple(lost), tuple(lost_units))._not_empty()

    def within(
        self, recording: RecordedTraffic, margin_s: float, lead_s: float = 0.0
    ) -> "RecordedCalls":
        """Those of recorded time, but for the first ``lead_s`` and last ``margin_s`` of a stretch.

        As with drawn calls, a stretch that is not longer than both is used whole: near
        the end of one, long drives alone would be lost.
        """
        kept, lost = [], list(self.left_out)
        for call, line in zip(self.incidents, self.lines, strict=True):
            try:
                stretch = recording.stretches[recording.find(call.at)[0]]
            except InputError as error:
                lost.append((line, _OUTSIDE, str(error)))
                continue
            whole_s = stretch.bins * recording.bin_s
            since_s = (call.at - stretch.start).total_seconds()
            if whole_s > margin_s + lead_s and not lead_s <= since_s < whole_s - margin_s:
                edge = f"first {lead_s:g} s" if since_s < lead_s else f"last {margin_s:g} s"
                lost.append((line, f"in the {edge} of a stretch", f"{call.at.isoformat()}"))
                continue
            kept.append((call, line))
        incidents, lines = _columns(kept)
        return replace(self, incidents=incidents, lines=lines, left_out=tuple(lost))._not_empty()

    def of_days(self, recording: RecordedTraffic, days: Sequence[int]) -> tuple[Incident, ...]:
        """The calls of the numbered days of a recording."""
        stretches = {number for day in days for number in recording.days[day]}
        return tuple(one for one in self.incidents if recording.find(one.at)[0] in stretches)

    @property
    def words(self) -> str:
        """How many rows were left out and why, in one line; empty where none was."""
        lost = ""
        if self.lost_units:
            count, (line, why) = len(self.lost_units), self.lost_units[0]
            lost = f"{count:,} units on the road left out; the first, line {line}: {why}"
        if not self.left_out:
            return lost
        counts = Counter(reason for _, reason, _ in self.left_out)
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.most_common())
        line, _, details = min(self.left_out)
        whole = len(self.incidents) + len(self.left_out)
        return (
            f"{self.where}: {len(self.left_out):,} of {whole:,} calls left out: {reasons}; the "
            f"first, line {line}: {details}" + (f"; {lost}" if lost else "")
        )

    def write_left_out(self, path: str | os.PathLike[str]) -> None:
        """A CSV with the line and the reason of every row that was left out."""
        rows = [(line, reason, safe_cell(details)) for line, reason, details in self.left_out]
        rows += [(line, "unit on the road", safe_cell(why)) for line, why in self.lost_units]
        write_csv(path, ("line", "reason", "details"), sorted(rows))

    def _not_empty(self) -> "RecordedCalls":
        if not self.incidents:
            raise InputError(self.words or f"{self.where}: no call in it; nothing to replay")
        return self


def _units(
    source: Any, network: RoadNetwork, depots: Sequence[Depot], calls: Container[str]
) -> tuple[dict[str, tuple[Depot, ...]], list[tuple[int, str]]]:
    """The units on the road of every call, and the lines of others with the reason."""
    _, rows = table_rows.read(
        source, _ON_ROAD, ("call", "unit"), "call, unit, and node or lon and lat are needed"
    )
    nodes, problems = _nodes(rows, network, table_rows.degrees_mark(rows))
    stations = {depot.name for depot in depots}
    found: dict[str, tuple[Depot, ...]] = {}
    lost: list[tuple[int, str]] = []
    for (line, row), node, problem in zip(rows, nodes, problems, strict=True):
        call, name = row.get("call", ""), row.get("unit", "")
        there = found.get(call, ())
        if call not in calls:
            problem = f"no call {call!r} is replayed"
        elif not name or name in stations or name in [unit.name for unit in there]:
            problem = f"unit {name!r} of call {call}: give every unit a name of its own"
        if problem:
            lost.append((line, problem))
        else:
            found[call] = (*there, Depot(name, node, True, row.get("kind", "")))
    return found, lost


def _columns(
    found: Sequence[tuple[Incident, int]],
) -> tuple[tuple[Incident, ...], tuple[int, ...]]:
    return tuple(call for call, _ in found), tuple(line for _, line in found)


def _nodes(rows: table_rows.Rows, network: RoadNetwork, mark: str) -> tuple[list[int], list[str]]:
    """The node of every row, and why there is none: told as such, or by its place."""
    lon, lat = (
        np.array([_degrees(row.get(field, ""), mark) for _, row in rows])
        for field in table_rows.DEGREES
    )
    nodes, why = snapped(lon, lat, network, SNAP_LIMIT_M)
    problems = [why.get(number, "") for number in range(len(rows))]
    for number, (_, row) in enumerate(rows):
        if "node" in row:
            told = row["node"].removesuffix(".0")  # as spreadsheets write whole numbers
            inside = told.isdecimal() and int(told) < network.num_nodes
            nodes[number] = int(told) if inside else -1
            problems[number] = "" if inside else (
                f"{told[:20]!r} is not a node (0 … {network.num_nodes - 1})"
            )  # fmt: skip
        elif nodes[number] < 0 and not problems[number]:
            problems[number] = "neither a node nor lon and lat of a place on Earth"
    return nodes.tolist(), problems


def _degrees(text: str, mark: str) -> float:
    try:
        return spreadsheets.number(text, mark)
    except ValueError:
        return float("nan")
