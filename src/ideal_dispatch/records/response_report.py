"""The report of a unit log: what was read and how long units take, as JSON and as a page."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.files import safe_cell, write_csv, write_file
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.drawing import map_legend, map_of_places
from ideal_dispatch.pages import (
    ACCENT,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    SMALL_PT,
    VERMILLION,
    figure_url,
    named_bars,
    plain_axes,
    save_page,
)
from ideal_dispatch.records.response_columns import STAMPS
from ideal_dispatch.records.response_reading import ReadLog
from ideal_dispatch.records.responses import REMARKS, Responses

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIVACY = (
    "Only mapped columns were read; names, addresses, ages and all other columns were not kept. "
    "The responses hold the number, the place and the times of every call: together they can "
    "point to a person. Keep the file as you keep the log."
)
_PARTS = {"turnout_s": "turnout", "drive_s": "drive", "response_s": "dispatch to scene"}
_COLOURS = {"turnout_s": ORANGE, "drive_s": ACCENT, "response_s": ACCENT}
_STATIONS = 24  # in the figure and the table of the page; all of them are in the JSON
_FEW = 5  # rows below which an hour's quantiles are noise


def report_files(responses: str | os.PathLike[str]) -> tuple[Path, Path, Path]:
    """The page, its numbers and the rows left out, beside the file of responses."""
    stem = Path(responses).with_suffix("")
    return tuple(  # type: ignore[return-value]
        stem.with_name(f"{stem.name}{end}") for end in (".html", ".json", ".left_out.csv")
    )


def summary(log: ReadLog, network: RoadNetwork | None = None) -> dict[str, Any]:
    """Everything countable, in the types of JSON; no row of the source is in it."""
    found, told = log.responses, log.responses.provenance
    races = found.races()
    at = np.sort(found.at)
    stations = _most_first(found.station)
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
        "by_kind": {name: _times(found, found.kind == name) for name in _most_first(found.kind)},
        "by_station": {name: _times(found, found.station == name) for name in stations},
        "by_hour": [_times(found, found.hour == hour) for hour in range(24)],
        "completeness": _completeness(found),
        "from_road": int(found.from_road.sum()),
        "remarks": {
            remark: int((found.remark == index).sum())
            for index, remark in enumerate(REMARKS)
            if remark
        },
        "races": len(races),
        "no_races": dict(races.left_out),
        "notes": list(log.notes),
        "privacy": PRIVACY,
        "settings": told["settings"],
    }
    if network is not None:
        trips, rows = found.trips(network)
        facts["network_checksum"] = network.checksum
        facts["trips"] = {"trips": len(trips), "left_out": trips.provenance["left_out"]}
        facts["trips"]["races"] = int(np.isin(races.rows, rows).all(axis=1).sum())
    return facts


def write_outputs(
    log: ReadLog, path: str | os.PathLike[str], network: RoadNetwork | None = None
) -> dict[str, Any]:
    """Write the responses, and :func:`report_files` beside them; gives the summary."""
    page, numbers, left_out = report_files(path)
    facts = summary(log, network)
    log.responses.save(path)
    rows = [(row, safe_cell("; ".join(reasons))) for row, reasons in log.left_out]
    write_csv(left_out, ("row", "reasons"), rows)
    write_file(numbers, json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False))
    save_page(
        page, "responses_report.html", told=facts, parts=_PARTS, few_stations=_STATIONS,
        left_out_file=left_out.name, **_drawn(log.responses, network, facts),
    )  # fmt: skip
    return facts


# --- numbers --------------------------------------------------------------------------


def _times(found: Responses, rows: BoolArray) -> dict[str, Any]:
    """How many units, how long they took, and what became of those that did not arrive.

    Rows with a remark are no measure of a time; they are counted and not timed.
    """
    result: dict[str, Any] = {"responses": int(rows.sum())}
    timed = rows & (found.remark == 0)
    for name in _PARTS:
        result[name] = _median_and_tail(getattr(found, name)[timed])
    recalled = found.recalled & rows
    result["recalled"] = int(recalled.sum())
    # a log of arrivals alone does not tell who was recalled
    told = not found.arrived.all() and rows.any()
    result["recalled_share"] = round(float(recalled.sum() / rows.sum()), 4) if told else None
    result["held_s"] = _median_and_tail(found.held_s[recalled])
    return result


def _median_and_tail(values: FloatArray) -> dict[str, float] | None:
    known = values[~np.isnan(values)]
    if not known.size:
        return None
    median, tail = np.quantile(known, [0.5, 0.9])
    return {"rows": int(known.size), "p50": round(float(median), 1), "p90": round(float(tail), 1)}


def _most_first(names: Any) -> list[str]:
    """The names, the most frequent first; "" is not one."""
    found, counts = np.unique(names, return_counts=True)
    order = np.lexsort((found, -counts))
    return [str(name) for name in found[order] if name]


def _completeness(found: Responses) -> dict[str, float]:
    """The share of rows in which a column is known."""
    known = {name: ~np.isnat(getattr(found, name)) for name in STAMPS}
    known |= {name: getattr(found, name) != "" for name in ("unit", "kind", "station", "call_kind")}
    known["place of the call"] = ~np.isnan(found.lon + found.lat)
    known["place of the start"] = ~np.isnan(found.from_lon + found.from_lat)
    shown = {name.replace("_", " "): mask for name, mask in known.items()}
    return {
        name: round(float(mask.mean()), 4) if mask.size else 0.0 for name, mask in shown.items()
    }


# --- figures --------------------------------------------------------------------------


def _drawn(
    found: Responses, network: RoadNetwork | None, facts: Mapping[str, Any]
) -> dict[str, str]:
    """The figures, empty where there is nothing to draw."""
    timed = [name for name in _PARTS if facts["all"][name]]
    if "drive_s" in timed:
        timed.remove("response_s")
    stations = list(facts["by_station"])[:_STATIONS]
    placed = ~np.isnan(found.lon + found.lat)
    return {
        "hours": figure_url(_draw_hours(facts["by_hour"], timed)) if timed else "",
        "spread": figure_url(_draw_spread(found, timed)) if timed else "",
        "stations": figure_url(_draw_stations(facts, stations, timed))
        if stations and timed
        else "",
        "known": figure_url(_draw_known(facts["completeness"])) if len(found) else "",
        "places": figure_url(_draw_places(found, network)) if placed.any() else "",
    }


def _draw_hours(hours: Sequence[Mapping[str, Any]], timed: Sequence[str]) -> "Figure":
    """Median and ninth decile by hour of the day, and how many units."""
    figure, (left, right) = plain_axes(2, 3.4)
    for name in timed:
        told = [hour[name] if hour[name] and hour[name]["rows"] >= _FEW else None for hour in hours]
        for part, style, label in (("p50", "-", _PARTS[name]), ("p90", (0, (3, 2)), "")):
            minutes = [np.nan if one is None else one[part] / 60 for one in told]
            left.plot(range(24), minutes, color=_COLOURS[name], linestyle=style, label=label,
                      marker="o", markersize=2.5, linewidth=1.6 if label else 1.1)  # fmt: skip
    left.set(xlabel="hour of the day", ylabel="minutes")
    left.set_ylim(bottom=0)
    left.legend(frameon=False, fontsize=SMALL_PT)
    right.bar(range(24), [hour["responses"] for hour in hours], color=MUTED)
    right.set(xlabel="hour of the day", ylabel="units sent")
    for axes in (left, right):
        axes.set_xticks(range(0, 24, 3))
    return figure


def _draw_spread(found: Responses, timed: Sequence[str]) -> "Figure":
    """How often each time occurs, up to the longest but one in a hundred."""
    figure, axes = plain_axes(len(timed), 2.9)
    for name, one in zip(timed, axes, strict=True):
        minutes = getattr(found, name)[found.remark == 0] / 60
        minutes = minutes[~np.isnan(minutes)]
        top = max(float(np.quantile(minutes, 0.99)), 0.1)
        one.hist(minutes, bins=[float(edge) for edge in np.linspace(0, top, 41)],
                 color=_COLOURS[name])  # fmt: skip
        for share, word in ((0.5, "median"), (0.9, "9 of 10 within")):
            value = float(np.quantile(minutes, share))
            one.axvline(value, color=INK, linewidth=1.1, linestyle=(0, (3, 2)))
            one.annotate(f"{word}\n{value:.1f} min", (value, 1), xycoords=("data", "axes fraction"),
                         xytext=(4, -2), textcoords="offset points", va="top", fontsize=8,
                         color=INK)  # fmt: skip
        one.set(xlabel=f"{_PARTS[name]} (min)", ylabel="units")
    return figure


def _draw_stations(
    facts: Mapping[str, Any], stations: Sequence[str], timed: Sequence[str]
) -> "Figure":
    """Median times of the stations with most units."""
    figure, axes = plain_axes(len(timed), 0.9 + 0.24 * len(stations))
    for number, (name, one) in enumerate(zip(timed, axes, strict=True)):
        told = [facts["by_station"][station][name] for station in stations]
        medians = [0.0 if times is None else times["p50"] / 60 for times in told]
        tails = [0.0 if times is None else times["p90"] / 60 for times in told]
        texts = ["–" if times is None else f"{times['p50'] / 60:.1f}" for times in told]
        named_bars(one, stations if not number else [""] * len(stations), medians, texts,
                   _COLOURS[name])  # fmt: skip
        places = np.arange(len(stations))
        one.scatter(tails, places, marker="|", s=40, color=INK, zorder=3)
        one.set_xlabel(f"{_PARTS[name]}: median, and nine of ten (|), minutes")
        one.margins(x=0.08)
    return figure


def _draw_known(shares: Mapping[str, float]) -> "Figure":
    figure, (axes,) = plain_axes(1, 0.6 + 0.26 * len(shares))
    values = [100 * share for share in shares.values()]
    colours = [ACCENT if value else VERMILLION for value in values]
    named_bars(axes, list(shares), values, [f"{value:.0f} %" for value in values], colours)
    axes.set_xlim(0, 108)
    axes.set_xlabel("rows in which it is known (%)")
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
    names, index = np.unique(found.station[~road], return_inverse=True)
    home = np.full((len(names), 2), np.nan)
    for number in range(len(names)):  # units may stand beside it: the usual place is the station's
        here = index == number
        home[number] = [np.median(axis[~road][here]) for axis in (found.from_lon, found.from_lat)]
    axes.scatter(home[:, 0], home[:, 1], marker="P", s=55, color=VERMILLION,
                 edgecolors="white", linewidths=0.8, zorder=5, label="station")  # fmt: skip
    map_legend(axes)
    return figure
