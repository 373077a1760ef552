"""From an agency's records of calls to trips, with an account of every row that is not one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from importlib.metadata import version

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.context import ContextEncoding
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.context.weather import source_counts
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records.agency import FIELDS, AgencySettings
from ideal_dispatch.records.past_weather import readings, weather_provider
from ideal_dispatch.records.places import UNKNOWN, DepotBook, place, read_depot_book
from ideal_dispatch.records.raw_records import EXTRA, FileOrFrame, RawRecords, read_cells
from ideal_dispatch.records.schema import Reasons, Table, TimeReader, read_table
from ideal_dispatch.records.travel_times import (
    DepotPreparation,
    FloorSlope,
    RuleCount,
    at,
    travel_times,
)
from ideal_dispatch.records.trips import Trips
from ideal_dispatch.toml_tables import complaints_about

TIMES = ("call_at", "notified_at", "en_route_at", "on_scene_at", "cpr_at", "cancelled_at")
_NUMBERS = ("lon", "lat", "depot_lon", "depot_lat", "call_to_cpr")
_TEXTS = ("call_id", "unit", "depot", "floor", "district")
_NEEDED = (("lon",), ("lat",), ("call_at", "notified_at"), ("depot", "depot_lon"))
NEMSIS = {
    "call_id": "eResponse.03", "unit": "eResponse.13", "depot": "eResponse.14",
    "depot_place": "eResponse.17", "place": "eScene.11", "call_at": "eTimes.01",
    "notified_at": "eTimes.03", "en_route_at": "eTimes.05", "on_scene_at": "eTimes.06",
    "cancelled_at": "eTimes.14", "cpr_at": "eArrest.19",
}  # fmt: skip
"""Our field and its NEMSIS element: call sign .14 names the depot by ``[depots.aliases]``, GPS .17
places it; a place is one text "latitude,longitude"."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Trips, and why every other row is not one.

    ``table.reasons`` (rows that cannot be understood or placed) and ``excluded`` (rows left out by
    a rule) map positions in ``table`` to reasons; ``raw.broken`` are rows that have no cells.
    ``kept`` are the positions of the trips, and ``distance_m`` is along the shortest way, per trip.
    """

    trips: Trips
    raw: RawRecords
    table: Table
    book: DepotBook
    kept: IntArray
    excluded: Reasons
    rules: list[RuleCount]
    slope: FloorSlope
    preparation: Mapping[str, DepotPreparation]
    distance_m: FloatArray
    weather_counts: Mapping[str, Mapping[str, int]]
    notes: list[str]

    @property
    def quarantined(self) -> Reasons:
        return self.table.reasons


def prepare_records(
    records: FileOrFrame,
    network: RoadNetwork,
    depots: FileOrFrame,
    settings: AgencySettings,
    progress: Callable[[str], None] = lambda stage: None,
) -> Prepared:
    """The trips of a CSV, Excel or NEMSIS file, or of a pandas DataFrame, on ``network``.

    A row that cannot be used never stops the others. There may be no trips; the account says why.
    """
    progress("reading depots and weather")
    book = read_depot_book(depots, network, settings.depots)
    given = settings.preparation.seconds
    unknown = [name for name in given if book.index(name) == UNKNOWN]
    if unknown:
        where = f"{settings.path}: " if settings.path else ""
        raise InputError(f"{where}preparation.seconds: {unknown[0]!r} is not one of the depots")
    seconds = {book.names[book.index(name)]: value for name, value in given.items()}
    settings = replace(settings, preparation=replace(settings.preparation, seconds=seconds))
    provider = weather_provider(settings)
    progress("reading records")
    columns = {name: settings.columns.get(name, ()) for name in FIELDS}
    columns |= {EXTRA + name: (column,) for name, column in settings.extra.items()}
    raw = read_cells(records, settings.input, columns, needed=_NEEDED, elements=NEMSIS)
    progress("checking rows")
    table = _typed(raw, settings)
    quarantined, count = table.reasons, len(table)
    progress("placing calls")
    places = place(table, network, book, settings.depots.limit_m, settings.snapping.limit_m)
    progress("estimating preparation and floors")
    rows = travel_times(table, places, quarantined.without(count), book, settings)
    progress("reading the weather")
    good = quarantined.without(count) & rows.excluded.without(count)
    kept = np.flatnonzero(good).astype(np.int32)
    calendar, lon, lat = settings.agency.calendar(), table.numbers["lon"], table.numbers["lat"]
    call_at = at(table)[kept].astype("M8[s]")
    moments = [moment.replace(tzinfo=UTC) for moment in call_at.tolist()]
    with complaints_about(settings.path):
        weather, notes = readings(provider, settings.weather, moments, lon[kept], lat[kept])
    contexts, used = [], []
    for row, moment, reading in zip(kept.tolist(), moments, weather, strict=True):
        extra = {name: float(table.numbers[EXTRA + name][row]) for name in settings.extra}
        try:
            contexts.append(calendar.context(moment, reading, extra))
            used.append(reading)
        except InputError as error:  # no holidays are known of that year
            quarantined[row] = [f"call_at: {error}"]
    kept = kept[quarantined.without(count)[kept]]
    weather_counts, encoding = source_counts(used), ContextEncoding(tuple(settings.extra))
    on_road = int(places.away[kept].sum())
    trips = Trips(
        origin=places.origin[kept],
        destination=places.node[kept],
        observed_s=rows.seconds[kept],
        contexts=encoding.encode(contexts),
        encoding=encoding,
        at=at(table)[kept].astype("M8[s]"),
        target=rows.target[kept],
        row=table.row[kept],
        network_checksum=network.checksum,
        provenance={
            "source": raw.name,
            "source_checksum": raw.checksum,
            "settings": settings.plain(),
            "time_zone": settings.agency.time_zone,
            "weather": weather_counts,
            "rows": count + len(raw.broken),
            "quarantined": len(quarantined) + len(raw.broken),
            "excluded": len(rows.excluded),
            "road_starts": on_road,
            "ideal_dispatch": version("ideal-dispatch"),
        },
    )
    if on_road:
        notes = [f"{on_road:,} trips start on the road, where the unit was", *notes]
    return Prepared(
        trips=trips,
        raw=raw,
        table=table,
        book=book,
        kept=kept,
        excluded=rows.excluded,
        rules=rows.rules,
        slope=rows.slope,
        preparation=rows.preparation,
        distance_m=places.distance_m[kept],
        weather_counts=weather_counts,
        notes=[*rows.notes, *notes, *book.off_network],
    )


def _typed(raw: RawRecords, settings: AgencySettings) -> Table:
    """The records as values, with a reason against each row that cannot be right."""
    asked = settings.input
    table = read_table(
        raw,
        TimeReader(zone(settings.agency.time_zone), asked.date_order, asked.time_formats),
        dated=("call_at", "notified_at"),
        times=TIMES,
        numbers=(*_NUMBERS, *(EXTRA + name for name in settings.extra)),
        texts=_TEXTS,
    )
    if asked.interval_unit == "minutes":
        table.numbers["call_to_cpr"][:] *= 60
    reasons, numbers = table.reasons, table.numbers
    for name in ("lon", "lat"):
        reasons.add(np.isnan(numbers[name]), f"{name} is missing", name)
    table.check_degrees("lon", "lat", "depot_lon", "depot_lat")
    reasons.add(np.isnat(at(table)), "call_at is missing", "call_at")
    table.check_year("call_at", at(table))
    nowhere = np.isnan(numbers["depot_lon"] + numbers["depot_lat"])
    unnamed = np.array([not text for text in table.texts["depot"]], bool)
    reasons.add(nowhere & unnamed, "names no depot, neither by name nor by place")
    return table
