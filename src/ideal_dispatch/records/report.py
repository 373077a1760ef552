"""What was read of an agency's files: JSON for programs, a page for people, the rows left out.

What is said of a row left out is safe to open and to pass on: coordinates have three decimals
(about 100 m), and cells that a spreadsheet would run as a formula are defused.
"""

import json
import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.files import safe_cell, write_csv, write_file
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.drawing import draw_network, map_legend, map_of_places
from ideal_dispatch.pages import (
    ACCENT,
    GREEN,
    INK,
    ORANGE,
    SMALL_PT,
    VERMILLION,
    figure_url,
    plain_axes,
    save_page,
)
from ideal_dispatch.records.agency import AgencySettings, Floors
from ideal_dispatch.records.floors import read_floor
from ideal_dispatch.records.places import UNKNOWN, plain_name
from ideal_dispatch.records.prepare import TIMES, Prepared
from ideal_dispatch.records.response_reading import ReadLog
from ideal_dispatch.records.responses import REMARKS, STAMPS, Responses
from ideal_dispatch.records.schema import general, shape
from ideal_dispatch.records.travel_times import speed_kmh
from ideal_dispatch.records.trips import SUBTRACTION, TARGETS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FILES = ("trips.trips", "quarantine.csv", "report.json", "report.html")
"""What :func:`write_trips` writes into its folder."""

_PRIVATE = (
    "Only mapped columns were read; names, addresses, ages and all other columns were not kept. "
)
TRIPS_PRIVACY = _PRIVATE + (
    "The trips hold a road junction, a time and the context, and no call number. The list of rows "
    "left out has coordinates to three decimals (about 100 m); it quotes only depot, floor and "
    "district. Time and junction together can still point to a person for someone who knows of "
    "the call: keep these files as you keep the records."
)
RESPONSES_PRIVACY = _PRIVATE + (
    "The responses hold the number, the place and the times of every call: together they can "
    "point to a person. Keep the file as you keep the log."
)
_LONGEST = {"depot": 40, "floor": 12, "district": 40}
"""Longer texts are free text, which may say anything: they are left out."""
_FORM = re.compile(r"(?P<field>\w+) is not a known form .*\(it looks like (?P<shape>.*)\)")
_PARTS = {"turnout_s": "turnout", "drive_s": "drive", "response_s": "dispatch to scene"}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


# --- trips ------------------------------------------------------------------------------


def write_trips(
    prepared: Prepared,
    network: RoadNetwork,
    settings: AgencySettings,
    folder: str | os.PathLike[str],
) -> dict[str, Any]:
    """Write :data:`FILES` into an existing folder, each whole or not at all; gives the facts."""
    where, trips, facts = Path(folder), prepared.trips, trips_facts(prepared, network, settings)
    trips.save(where / "trips.trips")
    write_quarantine(prepared, where / "quarantine.csv")
    _write_json(where / "report.json", facts)
    drawn: dict[str, Any] = {}
    if len(trips):
        minutes = trips.observed_s / 60
        subtracted = np.asarray(trips.target) == TARGETS.index(SUBTRACTION)
        figure, (left, right) = plain_axes(2, 3.4)
        parts = {"stamps": minutes[~subtracted], "subtraction": minutes[subtracted]}
        _histogram(left, parts, (ACCENT, ORANGE), "travel time (min)", "trips")
        speeds = {"": speed_kmh(prepared.distance_m, trips.observed_s)}
        _histogram(right, speeds, (ACCENT,), "speed along the shortest way (km/h)", "trips")
        drawn |= {
            "subtracted": int(subtracted.sum()),
            "travel": figure_url(figure),
            "destinations": figure_url(
                _draw_destinations(network, prepared.book.depots, trips.destination)
            ),
        }
    save_page(
        where / "report.html", "data_report.html", agency=settings.agency.name, told=facts, **drawn
    )
    return facts


def trips_facts(
    prepared: Prepared, network: RoadNetwork, settings: AgencySettings
) -> dict[str, Any]:
    """Everything countable, in the types of JSON; no row of the source is in it."""
    trips, slope, raw = prepared.trips, prepared.slope, prepared.raw
    reasons = [reason for _, reason in raw.broken]
    reasons += [reason for found in prepared.quarantined.values() for reason in found]
    targets = np.bincount(np.asarray(trips.target), minlength=len(TARGETS)).tolist()
    calls = np.sort(np.asarray(trips.at))
    columns, week = trips.encoding.columns, np.zeros((7, 24), int)
    monday, hour = columns.index("monday"), trips.contexts[:, columns.index("hour")]
    weekday = trips.contexts[:, monday : monday + 7].argmax(axis=1)
    np.add.at(week, (weekday, hour.astype(int)), 1)
    districts = (prepared.table.texts["district"][row] for row in prepared.kept.tolist())
    return {
        "source": raw.name,
        "source_checksum": raw.checksum,
        "form": raw.form,
        "network_checksum": network.checksum,
        "rows": len(prepared.table) + len(raw.broken),
        "trips": len(trips),
        "quarantined": len(prepared.quarantined) + len(raw.broken),
        "excluded": len(prepared.excluded),
        "columns_not_read": raw.dropped,
        "quarantine_reasons": dict(Counter(map(general, reasons)).most_common()),
        "unknown_words": unknown_words(prepared, settings.floors),
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
        "by_weekday_and_hour": dict(zip(_DAYS, week.tolist(), strict=True)),
        "weather": prepared.weather_counts,
        "districts": dict(Counter(_shown(name, "district") for name in districts).most_common()),
        "notes": prepared.notes,
        "privacy": TRIPS_PRIVACY,
        "settings": settings.plain(),
    }


def write_quarantine(prepared: Prepared, path: str | os.PathLike[str]) -> None:
    """Write the rows that became no trips, in the order of the file they are from."""
    table = prepared.table
    header = ("row", "verdict", "reasons", *TIMES, "lon", "lat", *_LONGEST)
    no_cells = [""] * (len(header) - 3)
    rows = [(row, "quarantined", reason, no_cells) for row, reason in prepared.raw.broken]
    verdicts = {"quarantined": prepared.quarantined, "excluded": prepared.excluded}
    for verdict, found in verdicts.items():
        for row, reasons in found.items():
            times = [table.times[name][row] for name in TIMES]
            cells = ["" if np.isnat(at) else f"{at.astype('M8[s]')}Z" for at in times]
            places = [table.numbers[name][row] for name in ("lon", "lat")]
            cells += ["" if np.isnan(value) else f"{value:.3f}" for value in places]
            cells += [_shown(table.texts[name][row], name) for name in _LONGEST]
            rows.append((int(table.row[row]), verdict, "; ".join(reasons), cells))
    lines = [
        [row, verdict, *map(safe_cell, [reasons, *cells])]
        for row, verdict, reasons, cells in sorted(rows, key=lambda entry: entry[0])
    ]
    write_csv(path, header, lines)


def unknown_words(prepared: Prepared, floors: Floors) -> list[dict[str, Any]]:
    """Depots, floors and times that were not understood, the most frequent first.

    Of a time only the pattern is known; floors of one pattern count together. ``nearest`` is the
    most similar depot, and ``setting`` the table and line of the settings that explain the word.
    """
    book, texts = prepared.book, prepared.table.texts
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row, reasons in prepared.quarantined.items():
        depot = texts["depot"][row]
        if depot and book.index(depot) == UNKNOWN:
            found["depot", _shown(depot, "depot")].append("")
        for form in filter(None, map(_FORM.match, reasons)):
            if form["field"] in TIMES:
                found[form["field"], form["shape"].strip("'\"")].append("")
    for row in prepared.excluded:
        floor = texts["floor"][row]
        if floor and math.isnan(read_floor(floor, floors)):
            found["floor", shape(floor)].append(_shown(floor, "floor"))
    words = []
    for (field, word), cells in found.items():
        nearest, setting = "", ("[input]", 'time_formats = [""]')
        if field == "depot":
            near = get_close_matches(plain_name(word), book.keys, 1)
            nearest = book.names[book.keys[near[0]]] if near else ""
            setting = "[depots.aliases]", f"{_quoted(word)} = {_quoted(nearest)}"
        elif field == "floor":
            setting = "[floors.words]", f'{_quoted(min(cells))} = ""'
            word = cells[0] if len(set(cells)) == 1 else word
        told = {"field": field, "word": word, "rows": len(cells)}
        words.append(told | {"nearest": nearest, "setting": list(setting)})
    return sorted(words, key=lambda one: (-one["rows"], one["field"], one["word"]))


# --- responses ----------------------------------------------------------------------------


def report_files(responses: str | os.PathLike[str]) -> tuple[Path, Path, Path]:
    """The page, its numbers and the rows left out, beside the file of responses."""
    stem = Path(responses).with_suffix("")
    page, numbers, left_out = (
        stem.with_name(f"{stem.name}{end}") for end in (".html", ".json", ".left_out.csv")
    )
    return page, numbers, left_out


def write_responses(
    log: ReadLog, path: str | os.PathLike[str], network: RoadNetwork | None = None
) -> dict[str, Any]:
    """Write the responses, and :func:`report_files` beside them; gives the facts."""
    page, numbers, left_out = report_files(path)
    found, facts = log.responses, responses_facts(log, network)
    found.save(path)
    rows = [(row, safe_cell("; ".join(reasons))) for row, reasons in log.left_out]
    write_csv(left_out, ("row", "reasons"), rows)
    _write_json(numbers, facts)
    placed = bool((~np.isnan(found.lon + found.lat)).any())
    save_page(
        page, "responses_report.html", told=facts, parts=_PARTS, left_out_file=left_out.name,
        places=figure_url(_draw_places(found, network)) if placed else "",
    )  # fmt: skip
    return facts


def responses_facts(log: ReadLog, network: RoadNetwork | None = None) -> dict[str, Any]:
    """Everything countable, in the types of JSON; no row of the source is in it."""
    found, told = log.responses, log.responses.provenance
    races, at = found.races(), np.sort(found.at)
    names = {
        column: [name for name, _ in Counter(sorted(getattr(found, column))).most_common() if name]
        for column in ("kind", "station")
    }
    known = {name: ~np.isnat(getattr(found, name)) for name in STAMPS}
    known |= {name: getattr(found, name) != "" for name in ("unit", "kind", "station", "call_kind")}
    known["place of the call"] = ~np.isnan(found.lon + found.lat)
    known["place of the start"] = ~np.isnan(found.from_lon + found.from_lat)
    facts = {
        "agency": told["agency"]["name"],
        "source": log.raw.name,
        "source_checksum": log.raw.checksum,
        "form": log.raw.form,
        "time_zone": found.time_zone,
        "rows": log.rows,
        "calls": log.calls,
        "calls_with_units": int(found.calls.max(initial=-1) + 1),
        "responses": len(found),
        "left_out": len(log.left_out),
        "reasons": log.reasons,
        "columns_not_read": log.raw.dropped,
        "first_call": f"{at[0]}Z" if len(found) else None,
        "last_call": f"{at[-1]}Z" if len(found) else None,
        "all": _times(found, np.ones(len(found), bool)),
        "by_kind": {name: _times(found, found.kind == name) for name in names["kind"]},
        "by_station": {name: _times(found, found.station == name) for name in names["station"]},
        "by_hour": [_times(found, found.hour == hour) for hour in range(24)],
        "completeness": {
            name.replace("_", " "): round(float(mask.mean()), 4) if mask.size else 0.0
            for name, mask in known.items()
        },
        "from_road": int(found.from_road.sum()),
        "remarks": {
            remark: int((found.remark == index).sum())
            for index, remark in enumerate(REMARKS)
            if remark
        },
        "races": len(races),
        "no_races": dict(races.left_out),
        "notes": list(log.notes),
        "privacy": RESPONSES_PRIVACY,
        "settings": told["settings"],
    }
    if network is not None:
        trips, rows = found.trips(network)
        facts["network_checksum"] = network.checksum
        facts["trips"] = {"trips": len(trips), "left_out": trips.provenance["left_out"]}
        facts["trips"]["races"] = int(np.isin(races.rows, rows).all(axis=1).sum())
    return facts


def _times(found: Responses, rows: BoolArray) -> dict[str, Any]:
    """How many units, how long they took, and what became of those that did not arrive.

    Rows with a remark are no measure of a time; they are counted and not timed.
    """
    recalled, timed = found.recalled & rows, rows & (found.remark == 0)
    # a log of arrivals alone does not tell who was recalled
    told = not found.arrived.all() and rows.any()
    return {
        "responses": int(rows.sum()),
        **{name: _median_and_tail(getattr(found, name)[timed]) for name in _PARTS},
        "recalled": int(recalled.sum()),
        "recalled_share": round(float(recalled.sum() / rows.sum()), 4) if told else None,
        "held_s": _median_and_tail(found.held_s[recalled]),
    }


# --- numbers and texts --------------------------------------------------------------------


def _write_json(path: Path, facts: Mapping[str, Any]) -> None:
    write_file(path, json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False))


def _median_and_tail(values: FloatArray) -> dict[str, float] | None:
    known = values[~np.isnan(values)]
    if not known.size:
        return None
    median, tail = np.quantile(known, [0.5, 0.9])
    return {"rows": int(known.size), "p50": round(float(median), 1), "p90": round(float(tail), 1)}


def _quantiles(values: FloatArray) -> dict[str, float]:
    if not values.size:
        return {}
    found = {f"p{p:02d}": np.quantile(values, p / 100) for p in (5, 25, 50, 75, 95)}
    return {name: round(float(v), 2) for name, v in {"mean": np.mean(values), **found}.items()}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _shown(text: str, field: str) -> str:
    """A text as it may leave the house: as it is, or how long it was."""
    return text if len(text) <= _LONGEST[field] else f"({len(text)} characters)"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # TOML quotes as JSON does


# --- figures --------------------------------------------------------------------------


def _histogram(
    axes: "Axes", parts: Mapping[str, FloatArray], colours: Sequence[str], xlabel: str, ylabel: str
) -> None:
    """How often each value occurs, but for the longest in a hundred; median and ninth decile."""
    values = np.concatenate(list(parts.values()))
    bins = np.linspace(0, max(float(np.quantile(values, 0.99)), 0.1), 41).tolist()
    axes.hist(list(parts.values()), bins, stacked=True, color=colours, label=list(parts))
    axes.set_ylim(0, 1.12 * axes.get_ylim()[1])
    for share, word in ((0.5, "median"), (0.9, "9 of 10 within")):
        value = float(np.quantile(values, share))
        axes.axvline(value, color=INK, linewidth=1.1, linestyle=(0, (3, 2)))
        axes.annotate(f"{word}\n{value:.1f}", (value, 1), xycoords=("data", "axes fraction"),
                      xytext=(4, -2), textcoords="offset points", va="top", fontsize=8,
                      color=INK)  # fmt: skip
    axes.set(xlabel=xlabel, ylabel=ylabel)
    if all(part.size for part in parts.values()) and len(parts) > 1:
        axes.legend(frameon=False, fontsize=SMALL_PT)


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


def _draw_places(found: Responses, network: RoadNetwork | None) -> "Figure":
    """A map of calls, stations and starts on the road, but for strays."""
    calls = np.unique(found.calls, return_index=True)[1]
    shown = np.column_stack([found.lon, found.lat])[calls]
    shown = shown[~np.isnan(shown).any(axis=1)]
    low, high = np.quantile(shown, [0.002, 0.998], axis=0)
    near = (shown >= low).all(axis=1) & (shown <= high).all(axis=1)
    held = shown[near] if near.any() else shown
    figure, axes = map_of_places(held[:, 0], held[:, 1], network)
    axes.scatter(shown[:, 0], shown[:, 1], s=6, color=GREEN, alpha=0.45, linewidths=0, zorder=3,
                 label="call", rasterized=True)  # fmt: skip
    road = found.from_road
    if road.any():
        axes.scatter(found.from_lon[road], found.from_lat[road], s=10, color=ORANGE, alpha=0.7,
                     linewidths=0, zorder=4, label="start on the road")  # fmt: skip
    home = np.unique(np.column_stack([found.from_lon, found.from_lat])[~road], axis=0)
    axes.scatter(home[:, 0], home[:, 1], marker="P", s=55, color=VERMILLION,
                 edgecolors="white", linewidths=0.8, zorder=5, label="station")  # fmt: skip
    map_legend(axes)
    return figure
