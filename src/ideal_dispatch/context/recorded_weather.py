"""Weather recorded in files (CSV, gzipped CSV, zips of CSV files), and how they are written."""

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

from ideal_dispatch.context.calendar import zone
from ideal_dispatch.context.context import Weather
from ideal_dispatch.context.weather import MISSING, PLAUSIBLE
from ideal_dispatch.context.weather_stations import NOWHERE, WeatherStations
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

_TRACE = frozenset({"t", "tr", "trace"})  # less rain than a gauge can measure


def _set_tuples(columns: object, *names: str) -> None:
    """Make fields tuples of names; a single name may be given as it is."""
    for name in names:
        given = getattr(columns, name)
        object.__setattr__(columns, name, (given,) if isinstance(given, str) else tuple(given))


@dataclass(frozen=True, slots=True)
class WeatherColumn:
    """Where a variable stands: column names that may be used, its unit, its quality flags.

    ``quality`` names the columns that may hold the flag, first match first.
    ``members`` are names of files in an archive that hold this variable alone:
    there its column may be called anything.
    """

    names: Sequence[str]
    unit: str
    quality: Sequence[str] = ()
    members: Sequence[str] = ()

    def __post_init__(self) -> None:
        _set_tuples(self, "names", "quality", "members")


@dataclass(frozen=True, slots=True)
class WeatherColumns:
    """How to read a weather file.

    ``time`` names one column, or several that are joined (date, then hour).
    Stamps are ISO 8601 unless ``time_format`` says otherwise (as in
    ``strptime``); those without an offset are of ``time_zone``. Values whose
    flag is not in ``good`` are unknown. ``ignored`` are further columns that hold no value.
    """

    variables: Mapping[str, WeatherColumn]
    time: Sequence[str]
    time_zone: str
    time_format: str | None = None
    station: Sequence[str] = ("station_id", "station")
    good: frozenset[str] = frozenset({"G"})
    source: str = "recorded"
    ignored: frozenset[str] = frozenset()
    delimiter: str = ","
    decimal: str = "."

    def __post_init__(self) -> None:
        zone(self.time_zone)
        _set_tuples(self, "time", "station")
        if len(self.delimiter) != 1 or len(self.decimal) != 1:
            raise InputError("weather columns: delimiter and decimal are one character each")
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
        object.__setattr__(self, "variables", MappingProxyType(dict(self.variables)))

    def moment(self, text: str) -> datetime:
        """The time a stamp means; ValueError where it means none."""
        if self.time_format is None:
            at = datetime.fromisoformat(text.replace("/", "-"))
        else:
            at = datetime.strptime(text, self.time_format)
        return at if at.tzinfo is not None else at.replace(tzinfo=zone(self.time_zone))

    def value(self, text: str, variable: str) -> float | str:
        """The number in our unit, or why it cannot be used."""
        if text.lower() in MISSING:
            return "missing"
        if variable == "rainfall_mm" and text.lower() in _TRACE:
            return 0.0
        try:
            number = float(text.replace(self.decimal, "."))
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
        found = {name: tuple(where) for name, where in reader.found.items()}
        return cls(reader.stations(places or {}), found, dict(reader.dropped))

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
        no_value = {name for column in columns.variables.values() for name in column.quality}
        no_value |= {*columns.ignored, ""}
        taken = (*time, station)
        others = [i for i, cell in enumerate(header) if i not in taken and cell not in no_value]
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
                series = self.values.setdefault((station, variable), {})
                value = self.columns.value(row[place].strip(), variable)
                # the second meaning is of the hour that comes twice when summer time ends
                at = next((second for second in seconds if second not in series), None)
                if isinstance(value, str):
                    self.dropped[f"{variable}: {value}"] += 1
                elif flag is not None and row[flag].strip() not in self.columns.good:
                    quality = row[flag].strip() or "with nothing"
                    self.dropped[f"{variable}: flagged {quality}"] += 1
                elif at is None:
                    self.dropped[f"{variable}: the same hour again"] += 1
                else:
                    series[at] = value
        if first_bad and not timed:
            raise FileFormatError(f"{where} {first_bad} is no time; say the time_format")

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
        known, source = {**self.places, **places}, self.columns.source
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
            with io.TextIOWrapper(archive.open(name), "utf-8-sig", newline="") as text:
                yield name, text


def _first(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)
