"""Which column of a weather file is what, in which unit, and which flags are good."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from ideal_dispatch.context.calendar import zone
from ideal_dispatch.context.weather import MISSING, PLAUSIBLE
from ideal_dispatch.errors import InputError

UNITS: Mapping[str, Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        "temperature_c": {"C": (1, 0), "F": (5 / 9, -160 / 9), "K": (1, -273.15)},
        "rainfall_mm": {"mm": (1, 0), "cm": (10, 0), "inch": (25.4, 0)},
        "humidity_percent": {"percent": (1, 0), "fraction": (100, 0)},
        "wind_kmh": {"km/h": (1, 0), "m/s": (3.6, 0), "knot": (1.852, 0), "mph": (1.609344, 0)},
        "pressure_hpa": {"hPa": (1, 0), "Pa": (0.01, 0), "kPa": (10, 0), "inHg": (33.8638866, 0)},
    }
)
"""Units a variable may be in: value × the first number + the second is our unit."""

_TRACE = frozenset({"t", "tr", "trace"})  # less rain than a gauge can measure


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
        for name in ("names", "quality", "members"):
            given = getattr(self, name)
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given))


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
        for name in ("time", "station"):
            given = getattr(self, name)
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given))
        if len(self.delimiter) != 1 or len(self.decimal) != 1:
            raise InputError("weather columns: delimiter and decimal are one character each")
        if not self.time or not self.variables:
            raise InputError("weather columns: a time column and at least one variable are needed")
        for variable, column in self.variables.items():
            if variable not in UNITS:
                known = f"variables: {', '.join(UNITS)}"
                raise InputError(f"weather columns: no variable {variable!r}; {known}")
            if column.unit not in UNITS[variable]:
                known = f"units: {', '.join(UNITS[variable])}"
                raise InputError(
                    f"weather columns: {variable} cannot be in {column.unit!r}; {known}"
                )
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
