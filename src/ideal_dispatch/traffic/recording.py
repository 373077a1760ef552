"""Recorded traffic: edge times over time bins, in one file.

A cell holds the logarithm of the edge's time over its free-flow time in one
byte (steps of 2 %, from half to a hundredfold), or 0 where no vehicle was seen.
"""

import hashlib
import json
import math
import os
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ideal_dispatch.archive import ArchiveKind
from ideal_dispatch.arrays import FloatArray, read_only, whole_number
from ideal_dispatch.context import WEATHER_VARIABLES, Calendar, Context, Weather, WeatherValue
from ideal_dispatch.context.context import require_zone
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.network import RoadNetwork

KIND = ArchiveKind(
    "ideal-dispatch traffic", 2, "traffic file", "make one with `ideal traffic simulate`", 2,
    tight=True,
)  # fmt: skip
LEAST_RATIO, GREATEST_RATIO = 0.5, 100.0
_PAST, _TO_COME = timedelta(hours=1), timedelta(minutes=10)  # of a replayed moment, at least
_STEP = np.log(GREATEST_RATIO / LEAST_RATIO) / 254
RATIOS: npt.NDArray[np.float32] = np.concatenate(
    [[np.nan], LEAST_RATIO * np.exp(_STEP * np.arange(255))]
).astype(np.float32)
"""The ratio to free flow that each code stands for; code 0 is "not seen"."""

Codes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Unbroken recorded time: ``codes`` has one row per bin and one column per edge.

    ``start`` is aware and begins the first bin; its offset from UTC is kept, its
    zone is not. ``codes`` count a passage in the
    bin in which it ended: known when the bin is over, and so what a router may
    see. ``truth`` has the same shape and says what met those who entered in the
    bin (:func:`counted_by` gives it where only ``codes`` were recorded); it is
    ``codes`` where nothing is given. ``weather`` holds the five
    variables as they are known when each hour begins, from the hour of ``start``
    on: those of the hour before, and so a row more where the last hour's own are
    known, too. ``notes`` are what else is known about the day, such as demand and
    closures.
    """

    start: datetime
    codes: Codes
    weather: FloatArray
    notes: Mapping[str, Any] = field(default_factory=dict)
    truth: Codes | None = None

    def __post_init__(self) -> None:
        offset = self.start.utcoffset()
        if offset is None:
            raise InputError(f"stretch start {self.start.isoformat()} has no zone")
        # in a zone whose clocks change, adding to a time would move its hands, not time itself
        object.__setattr__(self, "start", self.start.replace(tzinfo=timezone(offset), fold=0))
        object.__setattr__(self, "codes", read_only(self.codes, np.uint8, (None, None), "codes"))
        truth = self.codes if self.truth is None else self.truth
        object.__setattr__(self, "truth", read_only(truth, np.uint8, self.codes.shape, "truth"))
        weather = read_only(self.weather, np.float64, (None, len(WEATHER_VARIABLES)), "weather")
        object.__setattr__(self, "weather", weather)

    @property
    def bins(self) -> int:
        return len(self.codes)


def encode(times_s: npt.ArrayLike, network: RoadNetwork) -> Codes:
    """Codes of edge times, (bins, edges); NaN is "not seen"."""
    ratios = np.asarray(times_s, np.float64) / network.free_flow_times_s
    if (ratios < 0).any():
        raise InputError("edge times below zero; what was not seen is NaN")
    codes = np.zeros(ratios.shape, np.uint8)
    seen = ~np.isnan(ratios)
    codes[seen] = _levels(ratios[seen])
    return codes


def _levels(ratios: FloatArray) -> Codes:
    with np.errstate(divide="ignore"):
        level = np.rint(np.log(ratios / LEAST_RATIO) / _STEP)
    levels: Codes = (np.clip(level, 0, 254) + 1).astype(np.uint8)
    return levels


def counted_by(
    end: Literal["entry", "exit"], codes: Codes, network: RoadNetwork, bin_s: int
) -> Codes:
    """Passages counted in the bin of their other end, counted in the bin of this one.

    Vehicles enter or leave in the middle of the bin in which they were counted. Who
    enters before the first bin or leaves after the last is left out. Where vehicles
    of several bins come together, their times are averaged.
    """
    row, edge = np.nonzero(codes)
    ratios = RATIOS[codes[row, edge]]
    lasted = ratios * (network.free_flow_times_s / bin_s)[edge]
    other = row + (np.floor(lasted + 0.5) if end == "exit" else -np.ceil(lasted - 0.5)).astype(int)
    inside = (other >= 0) & (other < len(codes))
    cell = (other * codes.shape[1] + edge)[inside]
    count = np.bincount(cell, minlength=codes.size)
    total = np.bincount(cell, ratios[inside], minlength=codes.size)
    moved = np.zeros(codes.size, np.uint8)
    moved[cell] = codes[row, edge][inside]
    several = count > 1
    moved[several] = _levels(total[several] / count[several])
    return moved.reshape(codes.shape)


@dataclass(frozen=True, eq=False, repr=False)
class RecordedTraffic:
    """What the edges of one network took, in bins of ``bin_s`` seconds, in order of time."""

    network: RoadNetwork
    calendar: Calendar
    bin_s: int
    stretches: tuple[Stretch, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    _found: tuple[datetime, datetime, tuple[int, int]] = field(init=False)  # the last bin asked for

    def __post_init__(self) -> None:
        if not self.stretches:
            raise InputError("recorded traffic needs at least one stretch of time")
        if whole_number(self.bin_s, "bin_s") < 1:
            raise InputError(f"bins of {self.bin_s} s: at least one second is needed")
        before = datetime.min.replace(tzinfo=UTC)
        for stretch in self.stretches:
            if stretch.codes.shape[1] != self.network.num_edges:
                raise InputError(
                    f"stretch {stretch.start}: {stretch.codes.shape[1]} edges, "
                    f"the network has {self.network.num_edges}"
                )
            if stretch.start < before:
                raise InputError(f"stretch {stretch.start} begins before the one before it ends")
            hours = math.ceil((self.end(stretch) - _hour_of(stretch.start)) / timedelta(hours=1))
            if len(stretch.weather) < hours:
                raise InputError(
                    f"stretch of {stretch.start.isoformat()}: weather of {len(stretch.weather)} "
                    f"hours, {hours} are recorded"
                )
            before = self.end(stretch)
        object.__setattr__(self, "_found", (self.starts[0], self.starts[0], (0, 0)))

    def __repr__(self) -> str:
        hours = sum(s.bins for s in self.stretches) * self.bin_s / 3600
        return f"RecordedTraffic({len(self.stretches)} stretches, {hours:.0f} h)"

    @cached_property
    def checksum(self) -> str:
        """Hash of all that was recorded: times, weather and notes."""
        digest = hashlib.blake2b(f"{self.network.checksum} {self.bin_s}".encode(), digest_size=16)
        for stretch in self.stretches:
            digest.update(str(stretch.start.timestamp()).encode())
            digest.update(json.dumps(dict(stretch.notes), sort_keys=True).encode())
            for values in (stretch.codes, np.asarray(stretch.truth), stretch.weather):
                digest.update(values.tobytes())
        return digest.hexdigest()

    def end(self, stretch: Stretch) -> datetime:
        return stretch.start + timedelta(seconds=stretch.bins * self.bin_s)

    @cached_property
    def days(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the stretches of each local calendar day, in order."""
        local = [self.calendar.local(stretch.start).date() for stretch in self.stretches]
        return tuple(
            tuple(i for i, day in enumerate(local) if day == one) for one in dict.fromkeys(local)
        )

    def only(self, days: Sequence[int]) -> "RecordedTraffic":
        """The same recording with the numbered days alone."""
        for day in days:
            if not 0 <= day < len(self.days):
                raise InputError(f"day {day}: there are 0 … {len(self.days) - 1}")
        kept = tuple(self.stretches[i] for day in sorted(days) for i in self.days[day])
        return replace(self, stretches=kept)

    @cached_property
    def starts(self) -> list[datetime]:
        """When the stretches begin, in UTC."""
        return [stretch.start.astimezone(UTC) for stretch in self.stretches]

    def find(self, at: datetime) -> tuple[int, int]:
        """Number of the stretch and of its bin that holds ``at``."""
        require_zone(at)
        since, until, found = self._found
        if since <= at < until:  # most ask about the bin just found
            return found
        number = bisect_right(self.starts, at) - 1
        if number >= 0:
            present = int((at - self.starts[number]).total_seconds() // self.bin_s)
            if present < self.stretches[number].bins:
                since = self.starts[number] + timedelta(seconds=present * self.bin_s)
                until = since + timedelta(seconds=self.bin_s)
                object.__setattr__(self, "_found", (since, until, (number, present)))
                return number, present
        raise InputError(
            f"{at.isoformat()} is not in the recording; it has "
            f"{self.stretches[0].start.isoformat()} … {self.end(self.stretches[-1]).isoformat()} "
            f"in {len(self.stretches)} stretches"
        )

    def standing_for(self, now: datetime) -> datetime:
        """The recorded moment that stands for another one.

        It has the same time of day, on another day of the recording each day; where none has
        that time, all recorded hours take turns. Every stretch keeps some past, and some time
        to come.
        """
        local, windows = self.calendar.local(now), []
        for stretch in self.stretches:
            whole = self.end(stretch) - stretch.start
            past, to_come = min(_PAST, whole / 2), min(_TO_COME, 0.25 * whole)
            last = self.calendar.local(self.end(stretch) - to_come)
            windows.append((self.calendar.local(stretch.start + past), last))
        same = [
            at for first, last in windows
            if first <= (at := datetime.combine(first, local.time(), first.tzinfo)) < last
        ]  # fmt: skip
        if same:
            return same[local.toordinal() % len(same)]
        turn = timedelta(seconds=now.timestamp())
        turn %= sum((last - first for first, last in windows), timedelta())
        for first, last in windows:
            if turn < last - first:
                break
            turn -= last - first
        return first + turn

    def context(self, at: datetime) -> Context:
        """Calendar of a recorded moment, and the weather of the last complete hour."""
        stretch = self.stretches[self.find(at)[0]]
        hour = int((at - _hour_of(stretch.start)).total_seconds() // 3600)
        source = str(self.provenance.get("engine", "recording"))
        observed_at = _hour_of(stretch.start) + timedelta(hours=hour)
        values = (float(value) for value in stretch.weather[hour])
        weather = Weather(*(WeatherValue(value, source, "", observed_at) for value in values))
        return self.calendar.context(at, weather)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file that :meth:`load` turns into an equal recording."""
        calendar = self.calendar
        manifest = {
            "network": self.network.checksum,
            "bin_s": self.bin_s,
            "calendar": [calendar.time_zone, calendar.country, calendar.subdivision,
                         calendar.categories],
            "stretches": [
                {"start": s.start.isoformat(), "notes": dict(s.notes)} for s in self.stretches
            ],
            "provenance": dict(self.provenance),
        }  # fmt: skip
        arrays: dict[str, npt.NDArray[Any]] = {}
        for number, stretch in enumerate(self.stretches):
            codes, truth = stretch.codes, np.asarray(stretch.truth)
            arrays[f"codes_{number}"] = np.ascontiguousarray(codes.T)  # a quarter smaller
            if not np.array_equal(truth, counted_by("entry", codes, self.network, self.bin_s)):
                arrays[f"truth_{number}"] = np.ascontiguousarray(truth.T)
            arrays[f"weather_{number}"] = stretch.weather
        KIND.write(path, manifest, arrays)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], network: RoadNetwork, *, driven: bool = True
    ) -> "RecordedTraffic":
        """Read a recording of this very network.

        Without ``driven`` it is for a router's quotes alone, which rest on ``codes``: what met
        those who entered is not derived from them.
        """
        with KIND.reading(path) as (manifest, arrays):
            if manifest["network"] != network.checksum:
                raise FileFormatError(
                    f"recorded on another network (checksum {manifest['network']}, this one has "
                    f"{network.checksum})"
                )
            bin_s, stretches = manifest["bin_s"], []
            for number, row in enumerate(manifest["stretches"]):
                stored, own = arrays[f"codes_{number}"], arrays.get(f"truth_{number}")
                if stored.dtype != np.uint8 or stored.ndim != 2 or len(stored) != network.num_edges:
                    raise FileFormatError(
                        f"stretch {number}: codes are {stored.dtype} of shape {stored.shape}, not "
                        f"a byte for each of {network.num_edges} edges and every bin"
                    )
                codes, start = stored.T, datetime.fromisoformat(row["start"])
                truth = None if own is None else own.T
                if truth is None and driven:
                    truth = counted_by("entry", codes, network, bin_s)
                weather = arrays[f"weather_{number}"]
                stretches.append(Stretch(start, codes, weather, row["notes"], truth))
            zone, country, part, categories = manifest["calendar"]
            calendar = Calendar(zone, country, part, tuple(categories) if categories else None)
            return cls(network, calendar, bin_s, tuple(stretches), manifest["provenance"])


def _hour_of(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)
