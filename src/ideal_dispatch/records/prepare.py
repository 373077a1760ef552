"""From an agency's file to trips, with an account of every row that is not one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from importlib.metadata import version

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.context import Context, ContextEncoding
from ideal_dispatch.context.weather import WeatherProvider, source_counts
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import targets
from ideal_dispatch.records.agency import AgencySettings
from ideal_dispatch.records.past_weather import readings, weather_provider
from ideal_dispatch.records.places import UNKNOWN, DepotBook, place, read_depot_book
from ideal_dispatch.records.raw_records import FileOrFrame, RawRecords, read_records
from ideal_dispatch.records.reasons import Reasons
from ideal_dispatch.records.schema import RecordTable, typed
from ideal_dispatch.records.travel_times import RuleCount, travel_times
from ideal_dispatch.records.trips import Trips
from ideal_dispatch.toml_tables import complaints_about


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Trips, and why every other row is not one.

    ``quarantined`` (rows that cannot be understood or placed) and ``excluded`` (rows left out by a
    rule) map positions in ``table`` to reasons; ``broken`` are rows that have no cells. ``kept``
    are the positions of the trips, and ``distance_m`` is along the shortest way, per trip.
    """

    trips: Trips
    raw: RawRecords
    table: RecordTable
    book: DepotBook
    kept: IntArray
    quarantined: Mapping[int, list[str]]
    excluded: Mapping[int, list[str]]
    rules: list[RuleCount]
    slope: targets.FloorSlope
    preparation: Mapping[str, targets.DepotPreparation]
    intervals: targets.Intervals
    distance_m: FloatArray
    weather_counts: Mapping[str, Mapping[str, int]]
    notes: list[str]

    @property
    def broken(self) -> list[tuple[int, str]]:
        return self.raw.broken

    @property
    def total(self) -> int:
        """Rows of the file, broken ones included."""
        return len(self.table) + len(self.broken)


def prepare_records(
    records: FileOrFrame,
    network: RoadNetwork,
    depots: FileOrFrame,
    settings: AgencySettings,
    progress: Callable[[str], None] = lambda stage: None,
) -> Prepared:
    """The trips of a CSV, Excel or NEMSIS file, or of a pandas DataFrame, on ``network``.

    A row that cannot be used never stops the others. Trips may be none; the
    account says why.
    """
    progress("reading depots and weather")
    book = read_depot_book(depots, network, settings.depots)
    with complaints_about(settings.path):
        settings = _with_depot_names(settings, book)
        provider = weather_provider(settings.weather, settings.agency.time_zone, settings.folder)
    progress("reading records")
    raw = read_records(records, settings)
    progress("checking rows")
    table, quarantined = typed(raw, settings)
    progress("placing calls")
    places = place(table, network, book, settings, quarantined)
    good = _without(len(table), quarantined)
    progress("estimating preparation and floors")
    rows = travel_times(table, places, good, book, settings)
    progress("reading the weather")
    kept = np.flatnonzero(_without(len(table), quarantined, rows.excluded)).astype(np.int32)
    contexts, weather_counts, notes = _contexts(table, kept, settings, provider, quarantined)
    kept = kept[_without(len(table), quarantined)[kept]]
    encoding = ContextEncoding(tuple(settings.extra))
    trips = Trips(
        origin=places.origin[kept],
        destination=places.node[kept],
        observed_s=rows.seconds[kept],
        contexts=encoding.encode(contexts),
        encoding=encoding,
        at=table.at[kept].astype("M8[s]"),
        target=rows.target[kept],
        row=table.row[kept],
        network_checksum=network.checksum,
        provenance={
            "source": raw.name,
            "source_checksum": raw.checksum,
            "settings": settings.plain(),
            "time_zone": settings.agency.time_zone,
            "weather": weather_counts,
            "rows": len(table) + len(raw.broken),
            "quarantined": len(quarantined) + len(raw.broken),
            "excluded": len(rows.excluded),
            "road_starts": int(places.away[kept].sum()),
            "ideal_dispatch": version("ideal-dispatch"),
        },
    )
    return Prepared(
        trips=trips,
        raw=raw,
        table=table,
        book=book,
        kept=kept,
        quarantined=dict(quarantined),
        excluded=dict(rows.excluded),
        rules=rows.rules,
        slope=rows.slope,
        preparation=rows.preparation,
        intervals=rows.intervals,
        distance_m=places.distance_m[kept],
        weather_counts=weather_counts,
        notes=[*rows.notes, *_on_the_road(places.away[kept]), *notes, *book.off_network],
    )


def _with_depot_names(settings: AgencySettings, book: DepotBook) -> AgencySettings:
    """Preparation seconds under the depots' own names."""
    given = settings.preparation.seconds
    unknown = [name for name in given if book.index(name) == UNKNOWN]
    if unknown:
        raise InputError(f"preparation.seconds: {unknown[0]!r} is not one of the depots")
    seconds = {book.names[book.index(name)]: value for name, value in given.items()}
    return replace(settings, preparation=replace(settings.preparation, seconds=seconds))


def _without(count: int, *left_out: Reasons) -> BoolArray:
    good = np.ones(count, bool)
    for reasons in left_out:
        good[list(reasons)] = False
    return good


def _on_the_road(away: BoolArray) -> list[str]:
    count = int(away.sum())
    return [f"{count:,} trips start on the road, where the unit was"] if count else []


def _contexts(
    table: RecordTable,
    rows: IntArray,
    settings: AgencySettings,
    provider: WeatherProvider | None,
    quarantined: Reasons,
) -> tuple[list[Context], dict[str, dict[str, int]], list[str]]:
    """Contexts of the rows; a date without a calendar goes into ``quarantined``."""
    calendar = settings.agency.calendar()
    moments = [at.replace(tzinfo=UTC) for at in table.at[rows].astype("M8[s]").tolist()]
    lon, lat = table.numbers["lon"][rows], table.numbers["lat"][rows]
    with complaints_about(settings.path):
        weather, notes = readings(provider, settings.weather, moments, lon, lat)
    contexts, used = [], []
    for row, at, reading in zip(rows.tolist(), moments, weather, strict=True):
        extra = {name: float(values[row]) for name, values in table.extra.items()}
        try:
            contexts.append(calendar.context(at, reading, extra))
            used.append(reading)
        except InputError as error:
            quarantined[row] = [f"call_at: {error}"]
    return contexts, source_counts(used), notes
