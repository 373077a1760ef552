"""Calls to replay: drawn at random, or read from a table."""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import first_where, whole_number
from ideal_dispatch.dispatch.situation import Incident
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import write_csv
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.readers import table_rows
from ideal_dispatch.toml_tables import complaints_about
from ideal_dispatch.traffic.recording import RecordedTraffic

_COLUMNS = ("name", "node", "at")


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


def check_incidents(incidents: Sequence[Incident], recording: RecordedTraffic) -> None:
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
