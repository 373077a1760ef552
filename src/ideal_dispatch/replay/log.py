"""The log of a replay: one JSON line per incident.

A drive is named ``s{station}`` where the router leads from the start, and
``s{station}+{digest of the prefix}`` where the first edges are prescribed.
Times are rounded to milliseconds; a ``threshold_s`` of null is "always". Stations are the
depots and, after them, the call's units on the road.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ideal_dispatch.dispatch.decision import Decision
from ideal_dispatch.dispatch.situation import Assignment, Situation
from ideal_dispatch.errors import FileFormatError
from ideal_dispatch.files import check_source
from ideal_dispatch.network import Depot
from ideal_dispatch.replay.drive import Drive, World
from ideal_dispatch.traffic.source import RouteQuote

LOG = "incidents.jsonl"

DROPPED = b'{"dropped":'
"""How the line of an incident begins that could not be replayed."""


def drive_key(assignment: Assignment) -> str:
    """The name of an assignment's drive: the same way of driving, the same name."""
    station = f"s{assignment.station}"
    if not assignment.prefix:
        return station
    prefix = np.array(assignment.prefix, "<i4").tobytes()
    return f"{station}+{hashlib.blake2b(prefix, digest_size=4).hexdigest()}"


def incident_entry(
    situation: Situation,
    day: str,
    decisions: Sequence[Decision],
    drives: Mapping[str, tuple[Assignment, Drive]],
    hindsight: tuple[int, Drive],
    world: World,
) -> dict[str, Any]:
    """The line's object; ``drives`` are by key, ``hindsight`` is the best drive and its station."""
    incident, (station, best) = situation.incident, hindsight
    return {
        "incident": {
            "name": incident.name,
            "node": incident.node,
            "at": incident.at.isoformat(),
            "day": day,
        },
        "region": situation.region,
        "stations": [
            {
                "depot": one.depot.name,
                "node": one.depot.node,
                **({"on_road": True} if one.depot.on_road else {}),
                **({"kind": one.depot.kind} if one.depot.kind else {}),
                "units": one.units,
                "quote": _quote(one.quote),
                "alternative": _quote(one.alternative),
            }
            for one in situation.stations
        ],
        "decisions": {
            one.policy: {
                "primary": drive_key(one.primary),
                "second": None if one.second is None else drive_key(one.second),
                "score_s": round(float(one.score_s), 6),  # finer than times: it is a rank
                "threshold_s": plain(round(float(one.threshold_s), 6)),
                "reason": one.reason,
                "details": plain(one.log_facts()),
            }
            for one in decisions
        },
        "drives": {
            key: {
                "station": way.station,
                "path": way.path.edges.tolist(),
                "follow": len(way.prefix),
                world: _driven(driven) | {"expected_s": np.round(driven.expected_s, 3).tolist()},
            }
            for key, (way, driven) in drives.items()
        },
        "hindsight": {world: {"station": station} | _driven(best)},
    }


def logged_depot(station: Mapping[str, Any]) -> Depot:
    """The depot, or the unit on the road, of an entry's station."""
    known = {name: station[name] for name in ("on_road", "kind") if name in station}
    return Depot(station["depot"], station["node"], **known)


def line_text(entry: Mapping[str, Any]) -> str:
    """The object as its line, without the end of line."""
    return json.dumps(entry, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def dropped_text(name: str, reason: str) -> str:
    """The line of an incident that could not be replayed, while a replay is under way."""
    return line_text({"dropped": {"name": name, "reason": reason}})


def read_log(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The incidents of a log in their order, one at a time."""
    check_source(path)
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                entry = json.loads(line)
                entry["incident"]["name"]
            except (ValueError, KeyError, TypeError) as error:
                raise FileFormatError(
                    f"{os.fspath(path)}, line {number}: no incident of a replay "
                    f"({type(error).__name__}); repeat the replay"
                ) from None
            yield entry


def plain(value: Any) -> Any:
    """``value`` as JSON can hold it; what is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value


def _quote(quote: RouteQuote | None) -> dict[str, Any] | None:
    if quote is None:
        return None
    times = ("duration_s", "optimistic_s", "pessimistic_s")
    seconds = {name: plain(round(float(getattr(quote, name)), 3)) for name in times}
    return seconds | {"edges": quote.path.edges.tolist()}


def _driven(driven: Drive) -> dict[str, Any]:
    return {"edges": driven.edges.tolist(), "seconds": np.round(driven.seconds, 3).tolist()}
