"""Quote logs: what a source said about the same trips, again and again.

A log is a text file, one JSON object a line: a header, then one line for each
quote or for its failure. Lines are only ever added. A line without a trip
counts requests to a paid source that came to no line of their own.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.archive import JsonKind
from ideal_dispatch.context.context import require_zone
from ideal_dispatch.errors import FileFormatError
from ideal_dispatch.files import check_source
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.traffic.source import TIMES, RouteQuote

KIND = JsonKind(
    "ideal-dispatch quote log", 2, "quote log", "make one with `ideal traffic record`", oldest=2
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One asking: the round it belongs to, the trip, and what came of it.

    ``error`` says why there is no quote, ``realised_s`` what the quoted path
    took where a world knows it, and ``realised_error`` why it does not.
    ``requests`` were sent to a source that counts them.
    """

    due: datetime
    origin: int
    destination: int
    asked_at: datetime
    times: Mapping[str, float]
    edges: tuple[int, ...]
    fell_back: str = ""
    error: str = ""
    realised_s: float = np.nan
    realised_error: str = ""
    requests: int = 0

    @property
    def key(self) -> tuple[datetime, int, int]:
        """What tells one asking from another."""
        return self.due, self.origin, self.destination

    @classmethod
    def of(cls, due: datetime, quote: RouteQuote) -> "LogLine":
        """The line of a quote."""
        times = {name: float(getattr(quote, name)) for name in TIMES}
        edges = tuple(quote.path.edges.tolist())
        origin, destination = quote.path.origin, quote.path.destination
        return cls(due, origin, destination, quote.asked_at, times, edges, quote.fell_back)

    def text(self) -> str:
        """The line as it is written, without its end."""
        row: dict[str, Any] = {
            "due": self.due.isoformat(),
            "asked_at": self.asked_at.isoformat(),
            "origin": self.origin,
            "destination": self.destination,
        }
        if self.error:
            row["error"] = self.error
        else:
            row |= {name: _null(value) for name, value in self.times.items()}
            row |= {"edges": self.edges, "fell_back": self.fell_back}
            row["realised_s"] = _null(self.realised_s)
            if self.realised_error:
                row["realised_error"] = self.realised_error
        if self.requests:
            row["requests"] = self.requests
        return row_text(row)

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> "LogLine":
        """The line of a parsed row; ``KeyError``, ``TypeError`` or ``ValueError`` if damaged."""
        error = str(row.get("error", ""))
        return cls(
            due=_moment(row["due"]),
            origin=int(row["origin"]),
            destination=int(row["destination"]),
            asked_at=_moment(row["asked_at"]),
            times=dict.fromkeys(TIMES, np.nan) if error else {n: _number(row[n]) for n in TIMES},
            edges=() if error else tuple(int(edge) for edge in row["edges"]),
            fell_back=str(row.get("fell_back", "")),
            error=error,
            realised_s=_number(row.get("realised_s")),
            realised_error=str(row.get("realised_error", "")),
            requests=_count(row.get("requests", 0)),
        )


@dataclass(frozen=True, eq=False, repr=False)
class QuoteLog:
    """A log: one line for each quote, in the order they were written.

    ``failures`` are the lines without a quote. ``notes`` says what was wrong
    with the file and could be helped; ``whole_bytes`` is where its last whole
    line ends. It was begun to ask at ``start`` and each ``every_s`` after it, and
    ``requests`` were sent for it so far.
    """

    network_checksum: str
    source: Mapping[str, Any]
    lines: tuple[LogLine, ...]
    failures: tuple[LogLine, ...] = ()
    notes: tuple[str, ...] = ()
    whole_bytes: int = 0
    start: datetime | None = None
    every_s: float = np.nan
    requests: int = 0

    @classmethod
    def load(cls, path: str | os.PathLike[str], network: RoadNetwork | None = None) -> "QuoteLog":
        """Read a log, of this very network where one is given.

        A last line without its end, left by an interruption, is dropped with a note.
        """
        check_source(path)
        content = Path(path).read_bytes()
        whole = content.rfind(b"\n") + 1
        notes = (f"{os.fspath(path)}: its last line was interrupted and is dropped",)
        rows = map(_row, content[:whole].splitlines())
        lines: list[LogLine] = []
        requests = 0
        with KIND.complaints(path):
            header = KIND.checked(next(rows, None))
            checksum, source = header["network"], header["source"]
            schedule = header["schedule"]
            start, every_s = _moment(schedule["start"]), float(schedule["every_s"])
            if not isinstance(checksum, str) or not isinstance(source, dict) or every_s <= 0:
                raise FileFormatError("line 1: the header is damaged")
            if network is not None and checksum != network.checksum:
                raise FileFormatError(
                    f"recorded on another network (checksum {checksum}, this one has "
                    f"{network.checksum})"
                )
            for number, row in enumerate(rows, 2):
                try:
                    if not isinstance(row, dict):
                        raise TypeError("no JSON object")
                    if row.keys() == {"requests"}:
                        requests += _count(row["requests"])
                    else:
                        lines.append(LogLine.read(row))
                except (KeyError, TypeError, ValueError, OverflowError) as error:
                    raise FileFormatError(
                        f"line {number}: damaged ({type(error).__name__}: {error})"
                    ) from None
        return cls(
            checksum,
            source,
            lines=tuple(line for line in lines if not line.error),
            failures=tuple(line for line in lines if line.error),
            notes=notes if whole < len(content) else (),
            whole_bytes=whole,
            start=start,
            every_s=every_s,
            requests=requests + sum(line.requests for line in lines),
        )

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def keys(self) -> frozenset[tuple[datetime, int, int]]:
        """Every asking in the log, answered or not."""
        return frozenset(line.key for line in (*self.lines, *self.failures))


def row_text(row: Mapping[str, Any]) -> str:
    """A row of the log as text, without its end."""
    return json.dumps(row, allow_nan=False, separators=(",", ":"))


def _moment(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    require_zone(at)
    return at


def _row(line: bytes) -> Any:
    """What a line holds; nothing where that is no JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _null(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _number(value: Any) -> float:
    return np.nan if value is None else float(value)


def _count(value: Any) -> int:
    if int(value) < 0:
        raise ValueError(f"{value} requests")
    return int(value)
