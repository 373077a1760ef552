"""Weather recorded in files: CSV, gzipped CSV, zips of CSV files."""

import csv
import gzip
import io
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import IO

from ideal_dispatch.context.calendar import zone
from ideal_dispatch.context.context import Weather
from ideal_dispatch.context.weather import NOWHERE, PLAUSIBLE, WeatherStations
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.spreadsheets import opened

UNITS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "temperature_c": {"C": (1, 0), "F": (5 / 9, -160 / 9), "K": (1, -273.15)},
    "rainfall_mm": {"mm": (1, 0), "cm": (10, 0), "inch": (25.4, 0)},
    "humidity_percent": {"percent": (1, 0), "fraction": (100, 0)},
    "wind_kmh": {"km/h": (1, 0), "m/s": (3.6, 0), "knot": (1.852, 0), "mph": (1.609344, 0)},
    "pressure_hpa": {"hPa": (1, 0), "Pa": (0.01, 0), "kPa": (10, 0), "inHg": (33.8638866, 0)},
}
"""Units a variable may be in: value × the first number + the second is our unit."""

_MISSING = frozenset(
    {"", "n/a", "na", "m", "////", "nan", "null", "none", "-", "--", "***", "#n/a"}
)
_TRACE = frozenset({"t", "tr", "trace"})  # less rain than a gauge can measure
_LARGEST = 2_000_000_000  # bytes of one file inside a zip
_SKIPPED = "rows in an hour that summer time skips; is the file in standard time?"
_LON, _LAT = ("longitude", "lon", "lng"), ("latitude", "lat")

Names = str | Sequence[str]
"""One name of a column, or several of which the first that the file has counts."""


@dataclass(frozen=True, slots=True)
class WeatherColumn:
    """Where a variable stands: its column, its unit, and the column of its quality flags.

    ``members`` are names of files in an archive that hold this variable alone: there its column
    may be called anything.
    """

    names: Names
    unit: str
    quality: Names = ()
    members: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class WeatherColumns:
    """How to read a weather file.

    ``time`` names one column, or several that are joined (date, then hour). Stamps are ISO 8601
    unless ``time_format`` says otherwise (as in ``strptime``); those without an offset are of
    ``time_zone``. Values whose flag is not in ``good`` are unknown. ``ignored`` are further
    columns that hold no value.
    """

    variables: Mapping[str, WeatherColumn]
    time: Names
    time_zone: str
    time_format: str | None = None
    station: Names = ("station_id", "station")
    good: frozenset[str] = frozenset({"G"})
    source: str = "recorded"
    ignored: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        zone(self.time_zone)
        if not self.time or not self.variables:
            raise InputError("weather columns: a time column and at least one variable are needed")
        for variable, column in self.variables.items():
            units = UNITS.get(variable)
            if units is None:
                problem = f"no variable {variable!r}; variables: {', '.join(UNITS)}"
                raise InputError(f"weather columns: {problem}")
            if column.unit not in units:
                problem = f"{variable} cannot be in {column.unit!r}; units: {', '.join(units)}"
                raise InputError(f"weather columns: {problem}")

    def seconds(self, stamp: str) -> tuple[int, int] | str:
        """UTC seconds of a stamp, for its first and its second meaning, or why it has none."""
        try:
            if self.time_format is None:
                at = datetime.fromisoformat(stamp.replace("/", "-"))
            else:
                at = datetime.strptime(stamp, self.time_format)
            at = at if at.tzinfo is not None else at.replace(tzinfo=zone(self.time_zone))
            first, second = int(at.timestamp()), int(at.replace(fold=1).timestamp())
        except (ValueError, OverflowError):
            return "rows without a time"
        # in the hour that summer time skips, the second meaning is the earlier
        return (first, second) if first <= second else _SKIPPED

    def value(self, text: str, variable: str) -> float | str:
        """The number in our unit, or why it cannot be used."""
        if text.lower() in _MISSING:
            return "missing"
        if variable == "rainfall_mm" and text.lower() in _TRACE:
            return 0.0
        try:
            number = float(text)
        except ValueError:
            return "not a number"
        scale, shift = UNITS[variable][self.variables[variable].unit]
        number = number * scale + shift
        low, high = PLAUSIBLE[variable]
        return number if low <= number <= high else "not plausible"


COWIN = WeatherColumns(
    variables={
        "temperature_c": WeatherColumn(
            "Air Temperature in degree C", "C", ("qcscore_temp", "qcscore")
        ),
        "rainfall_mm": WeatherColumn(
            "Past 60-Minutes Rainfall in mm", "mm", ("qcscore_60rf", "qcscore"), ("60rf.csv",)
        ),
        "humidity_percent": WeatherColumn(
            "Relative Humidity in %", "percent", ("qcscore_rh", "qcscore")
        ),
        "wind_kmh": WeatherColumn("Wind Speed in km/hr", "km/h", ("qcscore_ws", "qcscore")),
    },
    time="obstime",
    time_zone="Asia/Hong_Kong",
    source="cowin",
    ignored=frozenset({"date", "time"}),
)
"""The HKU Community Weather Information Network: a station's file, or a year's zip. No pressure."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RecordedWeather:
    """Readings of stations, from files; ``dropped`` counts what was not used, by reason."""

    stations: WeatherStations
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
        for file in files:
            path, used = os.fspath(file), False
            check_source(path)
            try:
                for member, text in _tables(path):
                    used |= reader.read(path, member, text)
            except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
                raise FileFormatError(f"{path}: truncated or damaged ({error})") from None
            except (NotImplementedError, RuntimeError) as error:  # encrypted, odd compression
                raise FileFormatError(f"{path}: cannot be unpacked ({error})") from None
            if not used:
                wanted = ", ".join(", ".join(_each(c.names)) for c in columns.variables.values())
                raise InputError(
                    f"{path}: no weather in it; looked for the time in "
                    f"{', '.join(_each(columns.time))} and for {wanted}; map your columns"
                )
        if not any(reader.values.values()):
            reasons = ", ".join(f"{count} {reason}" for reason, count in reader.dropped.items())
            raise InputError(f"recorded weather: no value can be used ({reasons or 'no rows'})")
        known = {**reader.places, **(places or {})}
        stations = WeatherStations(
            reader.values, columns.source, lambda name, _: known.get(name, NOWHERE)
        )
        return cls(stations, MappingProxyType(dict(reader.dropped)))

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        """The recorded weather of the nearest hour at the nearest station that has it."""
        return self.stations.reading(at, lon, lat)


class _Reader:
    """Collects the values of all files."""

    def __init__(self, columns: WeatherColumns) -> None:
        self.columns = columns
        self.values: dict[tuple[str, str], dict[int, float]] = {}
        self.places: dict[str, tuple[float, float]] = {}
        self.dropped: Counter[str] = Counter()

    def read(self, path: str, member: str, text: IO[str]) -> bool:
        """Read one table; False where it holds no weather of ours."""
        where, name = f"{path}:{member}" if member else path, os.path.basename(member)
        columns, rows = self.columns, csv.reader(text, strict=True)
        try:
            header = [cell.strip() for cell in next(rows, [])]
            time = [header.index(one) for one in _each(columns.time) if one in header]
            station = _first(header, columns.station)
            lower = [cell.lower() for cell in header]
            lon, lat = _first(lower, _LON), _first(lower, _LAT)
            if lon is not None and lat is not None and not time:
                self._read_places(rows, station or 0, lon, lat)
                return False
            no_value = {one for c in columns.variables.values() for one in _each(c.quality)}
            no_value |= {*columns.ignored, ""}
            others = [
                i
                for i, cell in enumerate(header)
                if i not in (*time, station) and cell not in no_value
            ]
            places = {}
            for variable, column in columns.variables.items():
                place = _first(header, column.names)
                if place is None and name.lower() in column.members and len(others) == 1:
                    place = others[0]
                if place is not None:
                    places[variable] = place, _first(header, column.quality)
            if len(time) < len(_each(columns.time)) or not places:
                self.dropped[f"{name or os.path.basename(path)}: no column of ours"] += 1
                return False
            stem = os.path.basename(path).split(".")[0]
            self._read_rows(where, stem, rows, time, station, places)
        except (UnicodeDecodeError, csv.Error) as error:
            line = rows.line_num + 1
            raise FileFormatError(f"{where} line {line}: not UTF-8 CSV ({error})") from None
        return True

    def _read_places(self, rows: Iterator[list[str]], name: int, lon: int, lat: int) -> None:
        for row in rows:
            try:
                place = float(row[lon]), float(row[lat])
            except (ValueError, IndexError):
                self.dropped["stations without a place"] += 1
                continue
            if abs(place[0]) <= 180 and abs(place[1]) <= 90:
                self.places[row[name].strip()] = place
            else:
                self.dropped["stations not on Earth"] += 1

    def _read_rows(
        self,
        where: str,
        stem: str,
        rows: Iterator[list[str]],
        time: list[int],
        station: int | None,
        places: Mapping[str, tuple[int, int | None]],
    ) -> None:
        columns, first_bad, timed = self.columns, "", False
        cells = [place or 0 for pair in places.values() for place in pair]
        width = 1 + max(*time, station or 0, *cells)
        moments: dict[str, tuple[int, int] | str] = {}  # all stations share the stamps
        for row in rows:
            if len(row) < width:
                self.dropped["rows that are cut short"] += any(row)
                continue
            stamp = " ".join(row[i].strip() for i in time)
            if stamp not in moments:
                moments[stamp] = columns.seconds(stamp)
            seconds = moments[stamp]
            if isinstance(seconds, str):
                self.dropped[seconds] += 1
                first_bad = first_bad or repr(stamp)
                continue
            timed = True
            at_station = row[station].strip() if station is not None else stem
            for variable, (place, flag) in places.items():
                series = self.values.setdefault((at_station, variable), {})
                value = columns.value(row[place].strip(), variable)
                # the second meaning is of the hour that comes twice when summer time ends
                at = next((second for second in seconds if second not in series), None)
                if isinstance(value, str):
                    self.dropped[f"{variable}: {value}"] += 1
                elif flag is not None and row[flag].strip() not in columns.good:
                    quality = row[flag].strip() or "with nothing"
                    self.dropped[f"{variable}: flagged {quality}"] += 1
                elif at is None:
                    self.dropped[f"{variable}: the same hour again"] += 1
                else:
                    series[at] = value
        if first_bad and not timed:
            raise FileFormatError(f"{where}: {first_bad} is not a time; give the time_format")


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
            with io.TextIOWrapper(archive.open(name), "utf-8-sig", newline="") as text:
                yield name, text


def _each(names: Names) -> Sequence[str]:
    return (names,) if isinstance(names, str) else names


def _first(header: Sequence[str], names: Names) -> int | None:
    return next((header.index(name) for name in _each(names) if name in header), None)
