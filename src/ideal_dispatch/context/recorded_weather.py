"""Weather recorded in files: CSV, gzipped CSV, or zips of CSV files."""

import csv
import gzip
import io
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import IO, Any, NamedTuple

from ideal_dispatch.context.context import Weather
from ideal_dispatch.context.weather_columns import COWIN, WeatherColumns
from ideal_dispatch.context.weather_stations import NOWHERE, WeatherStations
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.spreadsheets import opened

_LARGEST = 2_000_000_000  # bytes of one file inside a zip
_SKIPPED = "rows in an hour that summer time skips; is the file in standard time?"
_LON, _LAT = ("longitude", "lon", "lng"), ("latitude", "lat")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RecordedWeather:
    """Readings of stations, from files.

    ``found`` says which column each variable was read from, ``dropped`` counts
    what was not used and why.
    """

    stations: WeatherStations
    found: Mapping[str, tuple[str, ...]]
    dropped: Mapping[str, int]

    @classmethod
    def read(
        cls,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        columns: WeatherColumns = COWIN,
        *,
        places: Mapping[str, tuple[float, float]] | None = None,
    ) -> "RecordedWeather":
        """Read one file or several, such as one for each year.

        A station is called as its column says, or as its file. ``places`` gives
        longitude and latitude of stations; a file with these columns, such as
        CoWIN's ``available.csv``, gives them too. A single file without any is
        taken to be of the city.
        """
        files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        if not files:
            raise InputError("recorded weather: no file is given")
        reader = _Reader(columns)
        for path in files:
            reader.read(os.fspath(path))
        return cls(
            reader.stations(places or {}),
            MappingProxyType({name: tuple(where) for name, where in reader.found.items()}),
            MappingProxyType(dict(reader.dropped)),
        )

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        """The recorded weather of the nearest hour at the nearest station that has it."""
        return self.stations.reading(at, lon, lat)

    def __iter__(self) -> Iterator[Weather]:
        """Every recorded hour of every station, as :meth:`Climatology.fit` takes them."""
        return self.stations.hours()


class _Layout(NamedTuple):
    """Positions of the columns in one file: value and flag of each variable."""

    time: list[int]
    station: int | None
    variables: dict[str, tuple[int, int | None]]


@dataclass(slots=True)
class _Reader:
    """Collects the values of all files."""

    columns: WeatherColumns
    values: dict[tuple[str, str], dict[int, float]] = field(default_factory=dict)
    places: dict[str, tuple[float, float]] = field(default_factory=dict)
    found: dict[str, list[str]] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    _seconds: dict[str, tuple[int, int] | str] = field(default_factory=dict)

    def read(self, path: str) -> None:
        check_source(path)
        try:
            used = [self._read_table(path, *table) for table in _tables(path)]
        except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise FileFormatError(f"{path}: truncated or damaged ({error})") from None
        except (NotImplementedError, RuntimeError) as error:  # encrypted, odd compression
            raise FileFormatError(f"{path}: cannot be unpacked ({error})") from None
        if not any(used):
            wanted = [name for c in self.columns.variables.values() for name in c.names]
            raise InputError(
                f"{path}: no weather in it; looked for the time in {', '.join(self.columns.time)} "
                f"and for {', '.join(wanted)}; map your columns"
            )

    def _read_table(self, path: str, member: str, text: IO[str]) -> bool:
        """Read one table; False where it holds no weather of ours."""
        where = f"{path}:{member}" if member else path
        name = os.path.basename(member)
        reader = csv.reader(text, delimiter=self.columns.delimiter, strict=True)
        try:
            header = [cell.strip() for cell in next(reader, [])]
            if self._read_places(header, reader):
                return False
            layout = self._layout(header, name)
            if layout is None:
                self.dropped[f"{name or os.path.basename(path)}: no column of ours"] += 1
                return False
            self._read_rows(where, os.path.basename(path).split(".")[0], layout, reader)
        except (UnicodeDecodeError, csv.Error) as error:
            line = reader.line_num + 1
            raise FileFormatError(f"{where} line {line}: not UTF-8 CSV ({error})") from None
        for variable, (place, _) in layout.variables.items():
            self.found.setdefault(variable, []).append(f"{where} column {header[place]!r}")
        return True

    def _read_places(self, header: list[str], reader: Any) -> bool:
        """Read a table of stations; False where it is none."""
        lower = [cell.lower() for cell in header]
        lon, lat = _first(lower, _LON), _first(lower, _LAT)
        if lon is None or lat is None or _first(header, self.columns.time) is not None:
            return False
        name = _first(header, self.columns.station) or 0
        for row in reader:
            try:
                place = float(row[lon]), float(row[lat])
            except (ValueError, IndexError):
                self.dropped["stations without a place"] += 1
                continue
            if abs(place[0]) <= 180 and abs(place[1]) <= 90:
                self.places[row[name].strip()] = place
            else:
                self.dropped["stations not on Earth"] += 1
        return True

    def _layout(self, header: list[str], member: str) -> _Layout | None:
        columns = self.columns
        time = [header.index(name) for name in columns.time if name in header]
        if len(time) != len(columns.time):
            return None
        station = _first(header, columns.station)
        flags = {name for column in columns.variables.values() for name in column.quality}
        no_value = {*flags, *columns.ignored, ""}
        others = [
            i for i, cell in enumerate(header) if i not in (*time, station) and cell not in no_value
        ]
        variables = {}
        for variable, column in columns.variables.items():
            place = _first(header, column.names)
            if place is None and member.lower() in column.members and len(others) == 1:
                place = others[0]
            if place is not None:
                variables[variable] = place, _first(header, column.quality)
        return _Layout(time, station, variables) if variables else None

    def _read_rows(self, where: str, stem: str, layout: _Layout, reader: Any) -> None:
        first_bad, timed = "", False
        values = [place for pair in layout.variables.values() for place in pair]
        width = 1 + max(place or 0 for place in (*layout.time, layout.station, *values))
        for row in reader:
            if len(row) < width:
                self.dropped["rows that are cut short"] += any(row)
                continue
            stamp = " ".join(row[i].strip() for i in layout.time)
            seconds = self._moment(stamp)
            if isinstance(seconds, str):
                self.dropped[seconds] += 1
                first_bad = first_bad or f"line {reader.line_num}: {stamp!r}"
                continue
            timed = True
            station = row[layout.station].strip() if layout.station is not None else stem
            for variable, (place, flag) in layout.variables.items():
                quality = None if flag is None else row[flag].strip()
                series = self.values.setdefault((station, variable), {})
                problem = self._keep(series, seconds, row[place].strip(), variable, quality)
                if problem:
                    self.dropped[f"{variable}: {problem}"] += 1
        if first_bad and not timed:
            raise FileFormatError(f"{where} {first_bad} is no time; say the time_format")

    def _keep(
        self, series: dict[int, float], at: tuple[int, int], text: str, variable: str,
        quality: str | None,
    ) -> str:  # fmt: skip
        """Add a value to its series, or say why it is not used."""
        value = self.columns.value(text, variable)
        if isinstance(value, str):
            return value
        if quality is not None and quality not in self.columns.good:
            return f"flagged {quality or 'with nothing'}"
        first, second = at
        if first in series:
            first = second  # the hour that comes twice when summer time ends
        if first in series:
            return "the same hour again"
        series[first] = value
        return ""

    def _moment(self, stamp: str) -> tuple[int, int] | str:
        """UTC seconds of a stamp, for its first and its second meaning, or why it has none."""
        if stamp not in self._seconds:  # all stations share the stamps
            try:
                at = self.columns.moment(stamp)
                first, second = int(at.timestamp()), int(at.replace(fold=1).timestamp())
                # in the hour that summer time skips, the second meaning is the earlier
                self._seconds[stamp] = (first, second) if first <= second else _SKIPPED
            except (ValueError, OverflowError):
                self._seconds[stamp] = "rows without a time"
        return self._seconds[stamp]

    def stations(self, places: Mapping[str, tuple[float, float]]) -> WeatherStations:
        if not any(self.values.values()):
            reasons = ", ".join(f"{count} {reason}" for reason, count in self.dropped.items())
            raise InputError(f"recorded weather: no value can be used ({reasons or 'no rows'})")
        known = {**self.places, **places}
        source = self.columns.source
        return WeatherStations(self.values, source, lambda name, _: known.get(name, NOWHERE))


def _tables(path: str) -> Iterator[tuple[str, IO[str]]]:
    """The texts of a file's tables, and the name of each inside a zip."""
    with open(path, "rb") as file:
        start = file.read(4)
    if start != b"PK\x03\x04":
        with opened(path, "rt", encoding="utf-8-sig", newline="") as text:
            yield "", text
        return
    with zipfile.ZipFile(path) as archive:
        for name in sorted(name for name in archive.namelist() if name.lower().endswith(".csv")):
            if archive.getinfo(name).file_size > _LARGEST:
                raise FileFormatError(f"{path}:{name}: larger than {_LARGEST:,} bytes; not read")
            with (
                archive.open(name) as inner,
                io.TextIOWrapper(inner, "utf-8-sig", newline="") as text,
            ):
                yield name, text


def _first(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)
