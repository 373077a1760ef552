"""From an agency's unit log to responses, with a reason for every row that is left out."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.errors import InputError, MissingExtraError
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.records.places import UNKNOWN, DepotBook, read_depot_book
from ideal_dispatch.records.raw_records import FileOrFrame, RawRecords
from ideal_dispatch.records.response_log import DURATIONS, FIELDS, GRID, LogSettings
from ideal_dispatch.records.responses import (
    NEGATIVE_DRIVE,
    NEGATIVE_TURNOUT,
    REMARKS,
    STAMPS,
    TEXTS,
    TOO_SHORT,
    Responses,
    seconds_between,
)
from ideal_dispatch.records.schema import Table, TimeReader, general, read_table
from ideal_dispatch.toml_tables import complaints_about

_CELLS = tuple(name for name in FIELDS if not name.endswith("place"))
_NUMBERS = ("lon", "lat", "start_lon", "start_lat", *GRID, *DURATIONS, "attending")
NO_UNIT = "names no unit"


@dataclass(frozen=True, slots=True, eq=False)
class ReadLog:
    """Responses, and why every other row of the log was left out.

    ``rows`` and ``calls`` count those of the file. ``left_out`` has the source row and the reasons
    of each unit, or of a row without any, that could not be used; ``notes`` what is to be known.
    """

    responses: Responses
    raw: RawRecords
    rows: int
    calls: int
    left_out: tuple[tuple[int, tuple[str, ...]], ...]
    notes: tuple[str, ...]

    @property
    def reasons(self) -> dict[str, int]:
        """How many rows each reason leaves out, the most frequent first."""
        return dict(self.responses.provenance["left_out"])


def read_responses(
    log: FileOrFrame,
    settings: LogSettings,
    stations: FileOrFrame | None = None,
    *,
    insist: bool = False,
) -> ReadLog:
    """The responses of a CSV, Excel or NEMSIS file, or of a pandas DataFrame.

    A row that cannot be used never stops the others. A column with the order of arrival is
    refused unless you ``insist``.
    """
    asked, epsg = settings.input, settings.grid.epsg
    with complaints_about(settings.path):
        for column in () if insist else settings.leaks():
            raise InputError(
                f"column {column!r} holds the order of arrival, which is unknown at the call; "
                "leave it out, or insist on it (--insist; in Python insist=True)"
            )
        grid = partial(to_degrees, epsg=epsg) if epsg else None
        book = None if stations is None else read_depot_book(stations, None, settings.depots, grid)
    raw = settings.cells(log)
    reader = TimeReader(zone(settings.agency.time_zone), asked.date_order, asked.time_formats)
    by_unit, no_unit = _row_per_unit(raw, settings, reader)
    table = read_table(
        by_unit,
        reader,
        dated=("date", "received", "dispatched"),
        times=("date", *STAMPS),
        numbers=_NUMBERS,
        texts=TEXTS,
    )
    columns = _columns(table)
    with complaints_about(settings.path):
        _from_grid(table, columns, epsg)
    strangers = _kinds_and_starts(table, columns, book, settings)
    _check(table, columns, settings, book)
    good = table.reasons.without(len(table))
    left_out: list[tuple[int, tuple[str, ...]]] = [
        (row, (why,)) for row, why in (*raw.broken, *((row, NO_UNIT) for row in no_unit))
    ]
    left_out += [(int(table.row[at]), tuple(why)) for at, why in table.reasons.items()]
    kept = {name: values[good] for name, values in columns.items()}
    kept["remark"] = _remarks(kept, settings.doubts.faster_than_kmh)
    rows, calls = len(raw.row) + len(raw.broken), len(set(filter(None, raw.cells["incident"])))
    notes = [*settings.notes, *_notes(kept, book, strangers)]
    counts = Counter(general(reason) for _, reasons in left_out for reason in reasons)
    plain = settings.plain()
    responses = Responses(
        **kept,
        time_zone=settings.agency.time_zone,
        provenance={
            "source": raw.name,
            "source_checksum": raw.checksum,
            "agency": plain["agency"],
            "settings": plain,
            "rows": rows,
            "calls": calls,
            "left_out": dict(counts.most_common()),
            "notes": notes,
            "ideal_dispatch": version("ideal-dispatch"),
        },
    ).in_order()
    return ReadLog(responses, raw, rows, calls, tuple(sorted(left_out)), tuple(notes))


# --- several units in a row -----------------------------------------------------------


def _row_per_unit(
    raw: RawRecords, settings: LogSettings, reader: TimeReader
) -> tuple[RawRecords, list[int]]:
    """The same cells with a row for each unit, and the rows that name none."""
    if not settings.unit_columns and not settings.lists:
        return raw, []
    table, without = replace(raw, row=[], cells={name: [] for name in _CELLS}), list[int]()
    for at, row in enumerate(raw.row):
        cells = {name: column[at] for name, column in raw.cells.items()}
        beside = (
            {name: cells[f"{number}.{name}"] for name in own}
            for number, own in enumerate(settings.unit_columns)
        )
        units = [own for own in beside if any(own.values())] or list(_listed(cells, reader))
        for unit in units:
            table.add(row, cells | unit)
        if not units:
            without.append(row)
    return table, without


def _listed(cells: Mapping[str, str], reader: TimeReader) -> Iterator[dict[str, str]]:
    """The units of lists such as ``M5=07:05:17``; of a unit that is listed again the first counts.

    The date is that of the call at the first dispatch, after which all other times are.
    """
    units: dict[str, dict[str, str]] = {}
    clocks: dict[str, list[str]] = {}
    for name, text in cells.items():
        if name.startswith("list."):
            for entry in filter(None, map(str.strip, text.split(","))):
                unit, clock = (part.strip() for part in f"{entry}=".split("=")[:2])
                units.setdefault(unit, {"unit": unit}).setdefault(name[5:], clock)
                clocks.setdefault(name[5:], []).append(clock)
    date = cells.get("date", "")
    with suppress(InputError):  # the reason of the row
        first = clocks.get("dispatched", ["00:00:00"])[0]
        date = f"{reader.read(date).astimezone(reader.zone):%Y-%m-%d} {first}"
    return ({**unit, "date": date} for unit in units.values())


# --- from values to columns -----------------------------------------------------------


def _columns(table: Table) -> dict[str, Any]:
    """The columns of responses as far as cells have them; durations stand in for times."""
    columns: dict[str, Any] = {name: table.times[name].astype("M8[s]") for name in STAMPS}
    columns |= {name: np.array(table.texts[name], str) for name in TEXTS}
    columns |= {name: table.numbers[name] for name in ("lon", "lat")}
    columns["row"] = table.row
    turnout, drive, response = (
        np.where(np.isnan(s), np.timedelta64("NaT"), np.nan_to_num(s).round().astype("m8[s]"))
        for s in (table.numbers[name] for name in DURATIONS)
    )
    for name, start, after in (
        ("en_route", "dispatched", turnout),
        ("on_scene", "dispatched", response),
        ("on_scene", "en_route", drive),
    ):
        unknown = np.isnat(columns[name])
        columns[name] = np.where(unknown, columns[start] + after, columns[name])
    attending = np.nan_to_num(table.numbers["attending"]).clip(0, 2**31 - 1)
    return columns | {"attending": attending.astype(np.int32)}


def _from_grid(table: Table, columns: dict[str, Any], epsg: int) -> None:
    """Degrees in place of metres on a grid, where the log has no degrees."""
    numbers = table.numbers
    for start in ("", "start_"):
        east, north = numbers[f"{start}easting"], numbers[f"{start}northing"]
        lon, lat = numbers[f"{start}lon"], numbers[f"{start}lat"]
        wanted = np.isnan(lon + lat) & ~np.isnan(east + north)
        if not wanted.any():
            continue
        if not epsg:
            raise InputError(
                "eastings and northings need grid.epsg, the number of their projection"
            )
        lon[wanted], lat[wanted] = to_degrees(east[wanted], north[wanted], epsg)


def to_degrees(easting: FloatArray, northing: FloatArray, epsg: int) -> tuple[Any, Any]:
    """Longitude and latitude (WGS84) of places on the grid of an EPSG number."""
    try:
        from pyproj import CRS, Transformer
        from pyproj.exceptions import CRSError
    except ImportError:
        raise MissingExtraError("reading grid coordinates", "geo") from None
    try:
        transformer = Transformer.from_crs(CRS.from_epsg(epsg), 4326, always_xy=True)
    except CRSError:
        raise InputError(f"grid.epsg {epsg} is not a known projection") from None
    lon, lat = transformer.transform(easting, northing)
    unknown = ~np.isfinite(lon + lat)  # outside the projection
    return np.where(unknown, np.nan, lon), np.where(unknown, np.nan, lat)


def _kinds_and_starts(
    table: Table, columns: dict[str, Any], book: DepotBook | None, settings: LogSettings
) -> Counter[str]:
    """Kinds, stations and starts of units; gives the stations that the book does not have."""
    units, strangers = table.texts["unit"], Counter[str]()
    by_name = {unit: settings.units.of(unit) for unit in set(units)}
    pairs = zip(table.texts["kind"], table.texts["station"], units, strict=True)
    own = [(kind or by_name[unit][0], station or by_name[unit][1]) for kind, station, unit in pairs]
    columns["kind"] = np.char.lower(np.array([kind for kind, _ in own], str))
    station = np.array([station for _, station in own], object)
    lon, lat = table.numbers["start_lon"], table.numbers["start_lat"]
    known_place = ~np.isnan(lon + lat)
    from_lon, from_lat = (np.where(known_place, axis, np.nan) for axis in (lon, lat))
    from_road = known_place
    if book is not None:
        index, from_road = book.starts(station.tolist(), lon, lat, settings.depots.limit_m)
        known = index != UNKNOWN
        strangers.update(name for name in station[~known] if name)
        station[known] = np.array(book.names, object)[index[known]]
        at_station = known & ~known_place
        from_lon[at_station] = book.lon[index[at_station]]
        from_lat[at_station] = book.lat[index[at_station]]
    columns |= {
        "station": station.astype(str), "from_lon": from_lon, "from_lat": from_lat,
        "from_road": from_road,
    }  # fmt: skip
    return strangers


# --- checks ---------------------------------------------------------------------------


def _check(
    table: Table, columns: dict[str, Any], settings: LogSettings, book: DepotBook | None
) -> None:
    """Add the reasons of rows that cannot be right."""
    reasons = table.reasons
    reasons.add(columns["incident"] == "", "incident is missing")
    table.check_degrees("lon", "lat", "start_lon", "start_lat")
    no_time = np.all([np.isnat(columns[name]) for name in STAMPS], axis=0)
    reasons.add(no_time & reasons.without(len(table)), "has no time")
    for name in STAMPS:
        table.check_year(name, columns[name])
    if settings.depots.only and book is not None:
        wanted = [book.names[book.index(name)] for name in settings.depots.only]
        others = ~np.isin(columns["station"], wanted)
        reasons.add(others, "of a station that depots.only leaves out")
    again = table.repeated("incident", "unit", reasons.without(len(table)))
    reasons.add(again, "the same call and unit as in an earlier row")


def _remarks(columns: Mapping[str, Any], faster_than_kmh: float) -> Any:
    """What the times of each row say against it, an index into REMARKS."""
    sent, left, there = (columns[name] for name in ("dispatched", "en_route", "on_scene"))
    drive, response = seconds_between(left, there), seconds_between(sent, there)
    lasted = np.where(np.isnan(drive), response, drive)
    far_m = great_circle_m(columns["from_lon"], columns["from_lat"], columns["lon"], columns["lat"])
    limit_s = 3.6 * far_m / faster_than_kmh
    remark = np.zeros(lasted.size, np.uint8)
    remark[~columns["from_road"] & ((lasted < limit_s) | (lasted == 0))] = REMARKS.index(TOO_SHORT)
    remark[(drive < 0) | (response < 0)] = REMARKS.index(NEGATIVE_DRIVE)
    remark[seconds_between(sent, left) < 0] = REMARKS.index(NEGATIVE_TURNOUT)
    return remark


def _notes(
    kept: Mapping[str, Any], book: DepotBook | None, strangers: Counter[str]
) -> Iterator[str]:
    """Notes on the responses."""
    counts = np.bincount(kept["remark"], minlength=len(REMARKS)).tolist()
    for remark, count in zip(REMARKS[1:], counts[1:], strict=True):
        if count:
            yield f"{count:,} rows: {remark}"
    if strangers:
        named = ", ".join(f"{name} ({count:,})" for name, count in strangers.most_common(5))
        yield f"stations that the table of stations does not have: {named}"
    if book is None and kept["station"].size and (kept["station"] != "").any():
        yield "no table of stations: units start at no known place unless the log has positions"
