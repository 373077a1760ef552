"""From an agency's unit log to responses, with an account of every row that is none."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.errors import InputError, MissingExtraError
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.records.places import UNKNOWN, DepotBook, read_depot_book
from ideal_dispatch.records.raw_records import FileOrFrame, RawRecords, read_cells
from ideal_dispatch.records.reasons import Reasons, general
from ideal_dispatch.records.response_columns import STAMPS, TEXTS, seconds
from ideal_dispatch.records.response_log import DURATIONS, GRID, LogSettings
from ideal_dispatch.records.responses import (
    NEGATIVE_DRIVE,
    NEGATIVE_TURNOUT,
    REMARKS,
    TOO_SHORT,
    Responses,
)
from ideal_dispatch.records.schema import (
    EARLIEST,
    LATEST,
    TimeReader,
    read_numbers,
    read_times,
    time_reader,
)
from ideal_dispatch.records.unit_rows import CELLS, one_a_unit
from ideal_dispatch.toml_tables import complaints_about

_NUMBERS = ("lon", "lat", "start_lon", "start_lat", *GRID, *DURATIONS, "attending")
NO_UNIT = "names no unit"


@dataclass(frozen=True, slots=True, eq=False)
class ReadLog:
    """Responses, and why every other row of the log is none.

    ``rows`` and ``calls`` count those of the file. ``left_out`` has the source row and the reasons
    of each unit, or of a row without any, that could not be used; ``notes`` what is to be known.
    """

    responses: Responses
    raw: RawRecords
    rows: int
    calls: int
    left_out: tuple[tuple[int, tuple[str, ...]], ...]
    stations: DepotBook | None
    notes: tuple[str, ...]

    @property
    def reasons(self) -> dict[str, int]:
        """How many rows each reason leaves out, the most frequent first."""
        return _counted(self.left_out)


def read_responses(
    log: FileOrFrame,
    settings: LogSettings,
    stations: FileOrFrame | None = None,
    *,
    insist: bool = False,
) -> ReadLog:
    """The responses of a CSV, Excel or NEMSIS file, or of a pandas DataFrame.

    A row that cannot be used never stops the others. A column that tells the order of arrival is
    refused unless you ``insist``.
    """
    with complaints_about(settings.path):
        for column in () if insist else settings.leaks():
            raise InputError(
                f"column {column!r} tells the order of arrival, which nobody knows at the call; "
                "leave it out, or insist on it (--insist; in Python insist=True)"
            )
        epsg = settings.grid.epsg
        grid = partial(to_degrees, epsg=epsg) if epsg else None
        book = None if stations is None else read_depot_book(stations, None, settings.depots, grid)
    raw = read_cells(log, settings.input, settings.wanted())
    reader = time_reader(settings.input, settings.agency)
    table, no_unit = one_a_unit(raw, settings, reader)
    reasons: Reasons = defaultdict(list)
    columns = _typed(table, reader, reasons)
    with complaints_about(settings.path):
        _from_grid(columns, epsg)
    _named(columns, table, settings)
    strangers = _placed(columns, book, settings.depots.limit_m)
    _check(columns, settings, book, reasons)
    good = np.ones(len(table.row), bool)
    good[list(reasons)] = False
    left_out: list[tuple[int, tuple[str, ...]]] = [
        (row, (why,)) for row, why in (*raw.broken, *((row, NO_UNIT) for row in no_unit))
    ]
    left_out += [(table.row[at], tuple(why)) for at, why in reasons.items()]
    kept = {name: values[good] for name, values in columns.items() if name not in DURATIONS}
    kept["remark"] = _remarks(kept, settings.doubts.faster_than_kmh)
    calls = len(set(filter(None, raw.cells["incident"])))
    notes = [*settings.notes, *_notes(kept, book, strangers)]
    responses = Responses(
        **kept,
        time_zone=settings.agency.time_zone,
        provenance={
            "source": raw.name,
            "source_checksum": raw.checksum,
            "agency": settings.plain()["agency"],
            "settings": settings.plain(),
            "rows": len(raw.row) + len(raw.broken),
            "calls": calls,
            "left_out": _counted(left_out),
            "notes": notes,
            "ideal_dispatch": version("ideal-dispatch"),
        },
    ).in_order()
    return ReadLog(
        responses, raw, len(raw.row) + len(raw.broken), calls, tuple(sorted(left_out)), book,
        tuple(notes),
    )  # fmt: skip


def _counted(left_out: Any) -> dict[str, int]:
    counts = Counter(general(reason) for _, reasons in left_out for reason in reasons)
    return dict(counts.most_common())


# --- cells into values ----------------------------------------------------------------


def _typed(table: RawRecords, reader: TimeReader, reasons: Reasons) -> dict[str, Any]:
    """Columns of times, numbers and texts; what cannot be read has a reason."""
    empty = [""] * len(table.row)
    texts = {name: table.cells.get(name, empty) for name in CELLS}
    dated = ("date", "received", "dispatched")
    times = read_times({name: texts[name] for name in ("date", *STAMPS)}, reader, dated, reasons)
    columns: dict[str, Any] = {name: times[name].astype("M8[s]") for name in STAMPS}
    for name in _NUMBERS:
        columns[name] = read_numbers(texts[name], name, table.decimal, reasons)
    columns |= {name: np.array([t.strip() for t in texts[name]], str) for name in TEXTS}
    columns["row"] = np.array(table.row, np.int64)
    turnout, drive, response = (_as_time(columns[name]) for name in DURATIONS)
    for name, other in (
        ("en_route", columns["dispatched"] + turnout),
        ("on_scene", columns["dispatched"] + response),
    ):
        columns[name] = np.where(np.isnat(columns[name]), other, columns[name])
    driven = columns["en_route"] + drive
    columns["on_scene"] = np.where(np.isnat(columns["on_scene"]), driven, columns["on_scene"])
    columns["attending"] = np.nan_to_num(columns["attending"]).clip(0, 2**31 - 1).astype(np.int32)
    return columns


def _as_time(seconds: FloatArray) -> Any:
    known = np.isfinite(seconds)
    return np.where(
        known, np.where(known, seconds, 0).round().astype("m8[s]"), np.timedelta64("NaT")
    )


def _from_grid(columns: dict[str, Any], epsg: int) -> None:
    """Degrees in place of metres on a grid, where the log has no degrees."""
    for start in ("", "start_"):
        east, north = columns.pop(f"{start}easting"), columns.pop(f"{start}northing")
        lon, lat = columns[f"{start}lon"], columns[f"{start}lat"]
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


def _named(columns: dict[str, Any], table: RawRecords, settings: LogSettings) -> None:
    """Kinds in lower case, and what a unit's name tells where the log does not say it."""
    names, unit = settings.units, columns["unit"].tolist()
    kinds = {name: names.kind_of(name) for name in set(unit)}
    homes = {name: names.station_of(name) for name in set(unit)}
    for field, told in (("kind", kinds), ("station", homes)):
        given = columns[field].tolist()
        columns[field] = np.array(
            [own or told[name] for own, name in zip(given, unit, strict=True)], str
        )
    columns["kind"] = np.char.lower(columns["kind"])


def _placed(columns: dict[str, Any], book: DepotBook | None, limit_m: float) -> Counter[str]:
    """Where each unit started; gives the stations that the table does not have."""
    lon, lat = columns.pop("start_lon"), columns.pop("start_lat")
    own = ~np.isnan(lon + lat)
    from_lon, from_lat = np.where(own, lon, np.nan), np.where(own, lat, np.nan)
    station, strangers = columns["station"].astype(object), Counter[str]()
    from_road = own.copy()
    if book is not None:
        index = np.array([book.index(name) for name in station], np.int64)
        for at in np.flatnonzero(own & (np.abs(lon) <= 180) & (np.abs(lat) <= 90)).tolist():
            far_m = great_circle_m(lon[at], lat[at], book.lon, book.lat)
            nearest = int(far_m.argmin()) if index[at] == UNKNOWN else int(index[at])
            if far_m[nearest] <= limit_m:
                from_road[at], index[at] = False, nearest
        known = index != UNKNOWN
        station[known] = np.array(book.names, object)[index[known]]
        strangers.update(name for name in station[~known] if name)
        at_station = known & ~own
        from_lon[at_station] = book.lon[index[at_station]]
        from_lat[at_station] = book.lat[index[at_station]]
    columns |= {"station": station.astype(str), "from_lon": from_lon, "from_lat": from_lat}
    columns["from_road"] = from_road
    return strangers


# --- checks ---------------------------------------------------------------------------


def _check(
    columns: dict[str, Any], settings: LogSettings, book: DepotBook | None, reasons: Reasons
) -> None:
    """Add the reasons of rows that cannot be right."""
    unread = {(row, text.partition(" ")[0]) for row, texts in reasons.items() for text in texts}

    def add(bad: BoolArray, text: str, name: str = "") -> None:
        for row in np.flatnonzero(bad).tolist():
            if not name or (row, name) not in unread:
                reasons[row].append(text)

    add(columns["incident"] == "", "incident is missing")
    for name, limit in (("lon", 180), ("lat", 90), ("from_lon", 180), ("from_lat", 90)):
        swapped = "; are latitude and longitude swapped?" if limit == 90 else ""
        say = f"{name} is not within ±{limit} degrees{swapped}"
        add(np.abs(columns[name]) > limit, say, name)
    unknown = [np.isnat(columns[name]) for name in STAMPS]
    for row in np.flatnonzero(np.all(unknown, axis=0)).tolist():
        if not reasons.get(row):
            reasons[row].append("has no time")
    for name in STAMPS:
        far = (columns[name] < EARLIEST) | (columns[name] > LATEST)
        add(far, f"{name} is not between 1970 and 2100")
    if settings.depots.only and book is not None:
        wanted = [book.names[book.index(name)] for name in settings.depots.only]
        add(~np.isin(columns["station"], wanted), "of a station that depots.only leaves out")
    seen: set[tuple[str, str]] = set()
    for row, key in enumerate(zip(columns["incident"], columns["unit"], strict=True)):
        if key[1] and row not in reasons:
            if key in seen:
                reasons[row].append("the same call and unit as in an earlier row")
            seen.add(key)


def _remarks(columns: Mapping[str, Any], faster_than_kmh: float) -> Any:
    """What the times of each row say against it, an index into REMARKS."""
    sent, left, there = (columns[name] for name in ("dispatched", "en_route", "on_scene"))
    turnout, drive, response = seconds(sent, left), seconds(left, there), seconds(sent, there)
    lasted = np.where(np.isnan(drive), response, drive)
    far_m = great_circle_m(columns["from_lon"], columns["from_lat"], columns["lon"], columns["lat"])
    limit_s = 3.6 * far_m / faster_than_kmh
    remark = np.zeros(lasted.size, np.uint8)
    remark[~columns["from_road"] & ((lasted < limit_s) | (lasted == 0))] = REMARKS.index(TOO_SHORT)
    remark[(drive < 0) | (response < 0)] = REMARKS.index(NEGATIVE_DRIVE)
    remark[turnout < 0] = REMARKS.index(NEGATIVE_TURNOUT)
    return remark


def _notes(
    kept: Mapping[str, Any], book: DepotBook | None, strangers: Counter[str]
) -> Iterator[str]:
    """What is to be known of the responses."""
    counts = np.bincount(kept["remark"], minlength=len(REMARKS)).tolist()
    for remark, count in zip(REMARKS[1:], counts[1:], strict=True):
        if count:
            yield f"{count:,} rows: {remark}"
    if strangers:
        named = ", ".join(f"{name} ({count:,})" for name, count in strangers.most_common(5))
        yield f"stations that the table of stations does not have: {named}"
    if book is None and kept["station"].size and (kept["station"] != "").any():
        yield "no table of stations: units start at no known place unless the log has positions"
