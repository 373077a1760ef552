"""Past trips: where from, where to, under which context, how long."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.archive import ArchiveKind
from ideal_dispatch.arrays import FloatArray, IntArray, first_where, read_only
from ideal_dispatch.context import Context, ContextEncoding
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.frames import DataFrame, frame
from ideal_dispatch.network import RoadNetwork

KIND = ArchiveKind("ideal-dispatch trips", 1, "trips file", "make one with `ideal records prepare`")

STAMPS, SUBTRACTION, GIVEN, RESPONSE = "stamps", "subtraction", "given", "response"
TARGETS = (STAMPS, SUBTRACTION, GIVEN, RESPONSE)
"""How a travel time was obtained: on scene − en route; the paper's subtraction; as given; on
scene − dispatched, with the turnout in it."""

_COLUMNS = ("origin", "destination", "observed_s", "contexts", "target", "row", "at")


@dataclass(frozen=True, slots=True)
class Trip:
    """One past trip ([IDEAL] sample i)."""

    origin: int
    destination: int
    context: Context
    observed_s: float


@dataclass(frozen=True, eq=False, repr=False)
class Trips:
    """Past trips on one network, a row each; the arrays are read-only.

    ``contexts`` has the columns of ``encoding``. ``at`` is the call's UTC time
    (NaT where unknown), ``target`` says per row how the time was obtained, an
    index into :data:`TARGETS`, and ``row`` is the row of the source file. No
    name, address or age is ever in here.
    """

    origin: IntArray
    destination: IntArray
    observed_s: FloatArray
    contexts: FloatArray
    encoding: ContextEncoding = field(default_factory=ContextEncoding)
    at: npt.NDArray[np.datetime64] | None = None
    target: npt.NDArray[np.uint8] | None = None
    row: npt.NDArray[np.int64] | None = None
    network_checksum: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        origin = read_only(self.origin, np.int32, (None,), "origin")
        n = origin.size
        at = np.full(n, "NaT", "M8[s]") if self.at is None else np.array(self.at, "M8[s]")
        at.flags.writeable = False
        if at.shape != (n,):
            raise InputError(f"at: expected {n} values, got {at.size}")
        target = np.full(n, TARGETS.index(GIVEN)) if self.target is None else self.target
        columns = {
            "origin": origin,
            "destination": read_only(self.destination, np.int32, (n,), "destination"),
            "observed_s": read_only(self.observed_s, np.float64, (n,), "observed_s"),
            "contexts": read_only(
                self.contexts, np.float64, (n, len(self.encoding.columns)), "contexts"
            ),
            "at": at,
            "target": read_only(target, np.uint8, (n,), "target"),
            "row": read_only(np.arange(n) if self.row is None else self.row, np.int64, (n,), "row"),
            "provenance": MappingProxyType(dict(self.provenance)),
        }
        for name, value in columns.items():
            object.__setattr__(self, name, value)
        checks: tuple[tuple[str, Any], ...] = (
            ("origin is not a node", self.origin < 0),
            ("destination is not a node", self.destination < 0),
            ("travel time must be a positive number of seconds",
             ~((self.observed_s > 0) & np.isfinite(self.observed_s))),
            ("context holds an infinite value", np.isinf(self.contexts).any(axis=1)),
            ("target must be one of the known kinds", np.asarray(self.target) >= len(TARGETS)),
        )  # fmt: skip
        for what, bad in checks:
            index = first_where(bad)
            if index is not None:
                raise InputError(f"trip {index}: {what}")

    @classmethod
    def of(
        cls, trips: Sequence[Trip], encoding: ContextEncoding | None = None, **columns: Any
    ) -> "Trips":
        """A table of single trips."""
        encoding = encoding or ContextEncoding()
        contexts = [trip.context for trip in trips]
        instants = [context.at.timestamp() for context in contexts]
        return cls(
            origin=np.array([trip.origin for trip in trips], np.int32),
            destination=np.array([trip.destination for trip in trips], np.int32),
            observed_s=np.array([trip.observed_s for trip in trips], float),
            contexts=encoding.encode(contexts),
            encoding=encoding,
            at=np.array(instants, np.int64).astype("M8[s]"),
            **columns,
        )

    @property
    def time_zone(self) -> str:
        """The city's zone, in which days begin and end; UTC where it is not stated."""
        return str(self.provenance.get("time_zone", "UTC"))

    @property
    def weather_sources(self) -> dict[str, tuple[str, ...]]:
        """Where the values of each weather variable came from, as far as that is stated."""
        stated = self.provenance.get("weather")
        if not isinstance(stated, Mapping):
            return {}
        named = {variable: tuple(s for s in sources if s) for variable, sources in stated.items()}
        return {variable: sources for variable, sources in named.items() if sources}

    @property
    def weather_source(self) -> str:
        """The same in words."""
        variables: dict[str, list[str]] = {}
        for variable, sources in self.weather_sources.items():
            for source in sources:
                variables.setdefault(source, []).append(variable)
        if not variables:
            return str(self.provenance.get("weather") or "not stated")
        if len(variables) == 1:
            return next(iter(variables))
        return "; ".join(f"{source} ({', '.join(names)})" for source, names in variables.items())

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: the columns without what was derived from them."""
        values = (getattr(self, column.name) for column in fields(self))
        return type(self), tuple(dict(v) if isinstance(v, Mapping) else v for v in values)

    def __len__(self) -> int:
        return int(self.origin.size)

    def __repr__(self) -> str:
        return f"Trips({len(self):,} trips)"

    @cached_property
    def checksum(self) -> str:
        """Hash of what a model is learned from: ends, times, contexts, encoding."""
        digest = hashlib.blake2b(self.encoding.checksum.encode(), digest_size=16)
        for name, kind in (("origin", "<i4"), ("destination", "<i4"), ("observed_s", "<f8")):
            digest.update(getattr(self, name).astype(kind).tobytes())
        contexts = np.where(np.isnan(self.contexts), np.nan, self.contexts)
        digest.update(contexts.astype("<f8").tobytes())
        return digest.hexdigest()

    def select(self, index: npt.ArrayLike) -> "Trips":
        """The rows of ``index``, numbers or a mask."""
        rows = np.asarray(index)
        rows = rows if rows.size else rows.astype(np.int64)
        return replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame: ends, seconds, UTC time, then the columns of the context."""
        names = ("origin", "destination", "observed_s", "at")
        columns = {name: getattr(self, name) for name in names}
        return frame(columns | dict(zip(self.encoding.columns, self.contexts.T, strict=True)))

    def check(self, network: RoadNetwork) -> None:
        """Refuse trips of another network."""
        if self.network_checksum and self.network_checksum != network.checksum:
            raise InputError(
                "the trips belong to another network "
                f"(checksum {self.network_checksum}, this one has {network.checksum}); "
                "prepare the records again with this network"
            )
        for what, nodes in (("origin", self.origin), ("destination", self.destination)):
            wrong = first_where(nodes >= network.num_nodes)
            if wrong is not None:
                raise InputError(f"trip {wrong}: {what} {nodes[wrong]} is not in the network")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file that :meth:`load` turns into equal trips."""
        manifest = {
            "extra": self.encoding.extra,
            "encoding": self.encoding.checksum,
            "network": self.network_checksum,
            "targets": TARGETS,
            "provenance": dict(self.provenance),
        }
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _COLUMNS}
        KIND.write(path, manifest, arrays | {"at": np.asarray(self.at).astype(np.int64)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Trips":
        """Read trips, or say in one line why the file holds none."""
        with KIND.reading(path) as (manifest, arrays):
            encoding = ContextEncoding(tuple(manifest["extra"]))
            if encoding.checksum != manifest["encoding"]:
                raise FileFormatError(f"contexts are encoded otherwise; {KIND.advice} again")
            return cls(
                **arrays | {"at": arrays["at"].astype("M8[s]")},
                encoding=encoding,
                network_checksum=manifest["network"],
                provenance=manifest["provenance"],
            )
