"""The data report: what was read, kept and left out, as JSON and as one HTML page."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.files import write_file
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.drawing import draw_network
from ideal_dispatch.network.geodesy import LocalPlane
from ideal_dispatch.pages import (
    ACCENT,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    figure_url,
    named_bars,
    plain_axes,
    save_page,
)
from ideal_dispatch.records.agency import AgencySettings
from ideal_dispatch.records.left_out_rows import shown, unknown_words, write_quarantine
from ideal_dispatch.records.prepare import Prepared
from ideal_dispatch.records.reasons import general
from ideal_dispatch.records.targets import FloorSlope
from ideal_dispatch.records.travel_times import speed_kmh
from ideal_dispatch.records.trips import SUBTRACTION, TARGETS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FILES = ("trips.trips", "quarantine.csv", "report.json", "report.html")
"""What :func:`write_outputs` writes into its folder."""

PRIVACY = (
    "Only mapped columns were read; names, addresses, ages and all other columns were not kept. "
    "The trips hold a road junction, a time and the context, and no call number. The list of rows "
    "left out has coordinates to three decimals (about 100 m); it quotes only depot, floor and "
    "district. Time and junction together can still point to a person for someone who knows of "
    "the call: keep these files as you keep the records."
)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_CELL_M = 1000.0
_PERCENTS = (5, 25, 50, 75, 95)


def summary(prepared: Prepared, network: RoadNetwork, settings: AgencySettings) -> dict[str, Any]:
    """Everything countable, in the types of JSON; no row of the source is in it."""
    trips, slope = prepared.trips, prepared.slope
    reasons = [reason for _, reason in prepared.broken]
    reasons += [reason for found in prepared.quarantined.values() for reason in found]
    targets = np.bincount(np.asarray(trips.target), minlength=len(TARGETS)).tolist()
    calls = np.sort(np.asarray(trips.at))
    return {
        "source": prepared.raw.name,
        "source_checksum": prepared.raw.checksum,
        "form": prepared.raw.form,
        "network_checksum": network.checksum,
        "rows": prepared.total,
        "trips": len(trips),
        "quarantined": len(prepared.quarantined) + len(prepared.broken),
        "excluded": len(prepared.excluded),
        "columns_not_read": prepared.raw.dropped,
        "quarantine_reasons": dict(Counter(map(general, reasons)).most_common()),
        "unknown_words": [
            asdict(one) | {"setting": list(one.setting)}
            for one in unknown_words(prepared, settings.floors)
        ],
        "exclusion_rules": [asdict(rule) for rule in prepared.rules],
        "targets": dict(zip(TARGETS, targets, strict=True)),
        "floor_slope": {
            "seconds_per_floor": slope.seconds_per_floor,
            "method": slope.method,
            "rows": slope.rows,
            "standard_error": _finite(slope.standard_error),
            "confidence_95": [_finite(slope.lower), _finite(slope.upper)],
        },
        "preparation": {
            name: asdict(depot) | {"seconds": _finite(depot.seconds)}
            for name, depot in prepared.preparation.items()
        },
        "travel_time_s": _quantiles(trips.observed_s),
        "speed_kmh": _quantiles(speed_kmh(prepared.distance_m, trips.observed_s)),
        "distance_m": _quantiles(prepared.distance_m),
        "first_call": f"{calls[0]}Z" if len(calls) else None,
        "last_call": f"{calls[-1]}Z" if len(calls) else None,
        "weather": prepared.weather_counts,
        "areas": dict(_areas(prepared, network)[1]),
        "notes": prepared.notes,
        "privacy": PRIVACY,
        "settings": settings.plain(),
    }


def write_outputs(
    prepared: Prepared,
    network: RoadNetwork,
    settings: AgencySettings,
    folder: str | os.PathLike[str],
) -> dict[str, Any]:
    """Write :data:`FILES` into an existing folder, each whole or not at all; gives the summary."""
    where = Path(folder)
    facts = summary(prepared, network, settings)
    prepared.trips.save(where / "trips.trips")
    write_quarantine(prepared, where / "quarantine.csv")
    numbers = json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False)
    write_file(where / "report.json", numbers)
    save_page(
        where / "report.html",
        "data_report.html",
        agency=settings.agency.name,
        told=facts,
        floors=_floors(prepared),
        **(_drawn(prepared, network) if len(prepared.trips) else {}),
    )
    return facts


def _drawn(prepared: Prepared, network: RoadNetwork) -> dict[str, Any]:
    """The figures of the trips, and what their captions say."""
    trips = prepared.trips
    contexts, columns = trips.contexts, trips.encoding.columns
    subtracted = np.asarray(trips.target) == TARGETS.index(SUBTRACTION)
    hour, monday = contexts[:, columns.index("hour")].astype(np.int32), columns.index("monday")
    weekday = contexts[:, monday : monday + 7].argmax(axis=1).astype(np.int32)
    area, areas = _areas(prepared, network)
    speeds = speed_kmh(prepared.distance_m, trips.observed_s)
    destinations = _draw_destinations(network, prepared.book.depots, trips.destination)
    return {
        "subtracted": int(subtracted.sum()),
        "quiet_hours": int((np.bincount(hour, minlength=24) == 0).sum()),
        "area": area,
        "travel": figure_url(_draw_travel(trips.observed_s / 60, speeds, subtracted)),
        "week": figure_url(_draw_week(weekday, hour)),
        "destinations": figure_url(destinations),
        "areas": figure_url(_draw_areas(areas)),
    }


def _floors(prepared: Prepared) -> str:
    """The figure of the floor regression; empty where there was none."""
    slope, intervals = prepared.slope, prepared.intervals
    paired = slope.method == "paired"
    seconds = intervals.call_to_cpr_s - (intervals.drive_s if paired else 0.0)
    known = intervals.usable & ~np.isnan(seconds + intervals.storeys)
    if slope.method not in {"paired", "paper"} or not known.any():
        return ""
    what = "call-to-CPR − driving (s)" if paired else "call-to-CPR (s)"
    return figure_url(_draw_floor_regression(intervals.storeys[known], seconds[known], slope, what))


def _areas(prepared: Prepared, network: RoadNetwork) -> tuple[str, list[tuple[str, int]]]:
    """Trips by the records' district, or by squares of a kilometre, most first."""
    districts = [prepared.table.texts["district"][i] for i in prepared.kept.tolist()]
    if any(districts):
        named = Counter(shown(name, "district") or "(not named)" for name in districts)
        return "district", named.most_common()
    nodes = prepared.trips.destination
    plane = LocalPlane(float(network.lat.mean()))
    corner = plane.to_metres(np.array([network.lon.min(), network.lat.min()]))
    places = plane.to_metres(np.column_stack([network.lon[nodes], network.lat[nodes]]))
    squares = ((places - corner) // _CELL_M).astype(int)
    counts = Counter(f"{x} km east, {y} km north" for x, y in squares.tolist())
    what = "square kilometre, counted from the south-west corner of the network"
    return what, counts.most_common()


def _quantiles(values: Any) -> dict[str, float]:
    if not len(values):
        return {}
    found = {f"p{percent:02d}": np.quantile(values, percent / 100) for percent in _PERCENTS}
    found = {"mean": np.mean(values), **found}
    return {name: round(float(value), 2) for name, value in found.items()}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


# --- figures ------------------------------------------------------------------------


def _draw_travel(minutes: FloatArray, speeds_kmh: FloatArray, subtracted: BoolArray) -> "Figure":
    """Travel times, by how they were obtained, and speeds along the shortest way."""
    figure, (left, right) = plain_axes(2, 3.4)
    parts = [minutes[~subtracted], minutes[subtracted]]
    left.hist(parts, bins=_bins(np.quantile(minutes, 0.998)), stacked=True, color=[ACCENT, ORANGE],
              label=["stamps", "subtraction"])  # fmt: skip
    _median(left, minutes, "min")
    left.set(xlabel="travel time (min)", ylabel="trips")
    if parts[0].size and parts[1].size:
        left.legend(frameon=False, fontsize=9)
    right.hist(speeds_kmh, bins=_bins(speeds_kmh.max()), color=ACCENT)
    _median(right, speeds_kmh, "km/h")
    right.set(xlabel="speed along the shortest way (km/h)", ylabel="trips")
    return figure


def _draw_week(weekday: IntArray, hour: IntArray) -> "Figure":
    """Trips by day of the week and hour of the day, on the city's clock."""
    counts = np.zeros((7, 24), int)
    np.add.at(counts, (weekday, hour), 1)
    figure, (axes,) = plain_axes(1, 3.3)
    image = axes.imshow(counts, cmap="Blues", aspect="auto", vmin=0)
    axes.set_yticks(range(7), _DAYS)
    axes.set_xticks(range(0, 24, 2), [f"{h:02d}" for h in range(0, 24, 2)])
    axes.set_xlabel("hour of the day")
    axes.set_xticks(np.arange(-0.5, 24), minor=True)
    axes.set_yticks(np.arange(-0.5, 7), minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    figure.colorbar(image, ax=axes, label="trips", pad=0.01).outline.set_visible(False)
    return figure


def _draw_destinations(network: RoadNetwork, depots: Sequence[Depot], node: IntArray) -> "Figure":
    """A map of where the trips went; the larger the dot, the more trips end at a node."""
    figure = draw_network(network, depots, title="Where the trips went")
    axes = figure.axes[0]
    for collection in axes.collections:
        collection.set_alpha(0.45)
    ends, counts = np.unique(node, return_counts=True)
    axes.scatter(network.lon[ends], network.lat[ends], s=7 + 6 * counts, color=GREEN, alpha=0.6,
                 linewidths=0.4, edgecolors="white", zorder=3)  # fmt: skip
    return figure


def _draw_floor_regression(
    storeys: FloatArray, seconds: FloatArray, slope: FloorSlope, ylabel: str
) -> "Figure":
    """The rows of the floor regression, their means by floor, and the line."""
    figure, (axes,) = plain_axes(1, 3.8)
    axes.scatter(storeys, seconds, s=7, color=MUTED, alpha=0.25, linewidths=0, rasterized=True)
    floors, index = np.unique(storeys, return_inverse=True)
    counts = np.bincount(index)
    means = np.bincount(index, seconds) / counts
    enough = counts >= 5
    axes.scatter(floors[enough], means[enough], s=np.sqrt(counts[enough]) * 4, color=ACCENT,
                 zorder=3, label="mean of a floor")  # fmt: skip
    ends = np.array([floors[0], floors[-1]])
    centre_x, centre_y = storeys.mean(), seconds.mean()
    line = centre_y + slope.seconds_per_floor * (ends - centre_x)
    label = f"{slope.seconds_per_floor:.2f} s per floor"
    if np.isfinite(slope.lower):
        label += f" (95 %: {slope.lower:.2f} … {slope.upper:.2f})"
        for bound in (slope.lower, slope.upper):
            edge = centre_y + bound * (ends - centre_x)
            axes.plot(ends, edge, color=ORANGE, linewidth=1, linestyle=(0, (4, 2)))
    axes.plot(ends, line, color=ORANGE, linewidth=2.2, label=label)
    low, high = np.quantile(seconds, [0.002, 0.998])
    axes.set_ylim(low - 0.08 * (high - low), high + 0.08 * (high - low))
    axes.set(xlabel="floors from the street", ylabel=ylabel)
    axes.legend(frameon=False, fontsize=9)
    return figure


def _draw_areas(trips: Sequence[tuple[str, int]]) -> "Figure":
    """Trips of the first 24 districts or areas, the first on top."""
    names, counts = zip(*trips[:24], strict=True)
    figure, (axes,) = plain_axes(1, 0.8 + 0.28 * len(names))
    named_bars(axes, names, counts, [f"{count:,}" for count in counts], ACCENT)
    axes.set_xlabel("trips")
    axes.margins(x=0.06)
    return figure


def _bins(highest: float) -> list[float]:
    return [float(edge) for edge in np.linspace(0, max(float(highest), 1.0), 41)]


def _median(axes: "Axes", values: FloatArray, unit: str) -> None:
    median = float(np.median(values))
    axes.set_ylim(0, 1.12 * axes.get_ylim()[1])
    axes.axvline(median, color=INK, linewidth=1.2, linestyle=(0, (3, 2)))
    axes.annotate(f"median {median:.1f} {unit}", (median, 1), xycoords=("data", "axes fraction"),
                  xytext=(5, -3), textcoords="offset points", va="top", fontsize=9,
                  color=INK)  # fmt: skip
