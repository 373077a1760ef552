"""The data report: what was read, kept and left out, as JSON and as one HTML page."""

import json
import os
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.context import WEATHER_VARIABLES
from ideal_dispatch.files import atomic_write
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import LocalPlane
from ideal_dispatch.pages import Page
from ideal_dispatch.records import figures
from ideal_dispatch.records.agency import AgencySettings
from ideal_dispatch.records.left_out_rows import shown, unknown_words, write_quarantine
from ideal_dispatch.records.prepare import Prepared
from ideal_dispatch.records.travel_times import speed_kmh
from ideal_dispatch.records.trips import SUBTRACTION, TARGETS

FILES = ("trips.trips", "quarantine.csv", "report.json", "report.html")
"""What :func:`write_outputs` writes into its folder."""

PRIVACY = (
    "Only mapped columns were read; names, addresses, ages and all other columns were not kept. "
    "The trips hold a road junction, a time and the context, and no call number. The list of rows "
    "left out has coordinates to three decimals (about 100 m); it quotes only depot, floor and "
    "district. Time and junction together can still point to a person for someone who knows of "
    "the call: keep these files as you keep the records."
)
_CELL_M = 1000.0
_WORDS = 50
_DETAILS = tuple(
    (re.compile(pattern), general)
    for pattern, general in (
        (r" \(it looks like .*\)$", ""),
        (r"road is [\d.,]+ k?m away", "road is too far away"),
        (r"has \d+ cells where the header has \d+", "has more or fewer cells than the header"),
        (r"started [\d.]+ km from", "started away from"),
        (r"^depot .* is not in", "its depot is not in"),
        (r"taken apart into cells: .*", "taken apart into cells"),
        (r" for [\d]+ to [\d]+, not for \d+", " for other years only"),
    )
)
_HOW = {
    "given": "given in the settings",
    "paired": "rows with driving stamps and call-to-CPR",
    "paper": "the paper's regression",
    "stamps": "median of en route − call",
    "regression": "intercept of a regression on free-flow time",
    "assumed": "the paper's value, because there are too few rows",
    "unknown": "not known: too few rows",
}


def summary(prepared: Prepared, network: RoadNetwork, settings: AgencySettings) -> dict[str, Any]:
    """Everything countable, in the types of JSON; no row of the source is in it."""
    trips, slope = prepared.trips, prepared.slope
    reasons = [reason for _, reason in prepared.broken]
    reasons += [reason for found in prepared.quarantined.values() for reason in found]
    targets = np.bincount(np.asarray(trips.target), minlength=len(TARGETS)).tolist()
    calls = sorted(f"{at}Z" for at in np.asarray(trips.at))
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
        "quarantine_reasons": dict(Counter(map(_kind, reasons)).most_common()),
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
        "first_call": calls[0] if calls else None,
        "last_call": calls[-1] if calls else None,
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
    with atomic_write(where / "report.json") as file:
        file.write(json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False).encode())
    page(prepared, network, settings, facts).save(where / "report.html")
    return facts


def page(
    prepared: Prepared, network: RoadNetwork, settings: AgencySettings, facts: dict[str, Any]
) -> Page:
    """The report for people."""
    result = Page(
        f"Records of {settings.agency.name}",
        f"{facts['source']} ({facts['form']}), checksum {facts['source_checksum']}; "
        f"network {facts['network_checksum']}",
    )
    rows = max(facts["rows"], 1)
    result.facts(
        [
            ("rows in the file", f"{facts['rows']:,}"),
            ("trips", f"{facts['trips']:,}"),
            ("of all rows", f"{100 * facts['trips'] / rows:.1f} %"),
            ("quarantined", f"{facts['quarantined']:,}"),
            ("excluded by a rule", f"{facts['excluded']:,}"),
        ]
    )
    if facts["first_call"]:
        result.text(
            f"Calls from {facts['first_call'][:10]} to {facts['last_call'][:10]} (UTC). Every row "
            "that did not become a trip is in quarantine.csv with its reasons."
        )
    for note in facts["notes"]:
        result.warning(note)
    _left_out(result, facts)
    if len(prepared.trips):
        _travel(result, prepared)
        _when_and_where(result, prepared, network)
        _weather(result, facts)
    _subtraction(result, prepared, facts)
    result.heading("Privacy")
    result.text(facts["privacy"])
    result.text(f"{facts['columns_not_read']} columns of the file were not read.")
    return result


def _left_out(result: Page, facts: dict[str, Any]) -> None:
    result.heading("What was left out")
    result.table(
        ("exclusion rule", "applies to", "removed here"),
        [(r["says"], f"{r['applies']:,}", f"{r['removed']:,}") for r in facts["exclusion_rules"]],
    )
    if facts["quarantine_reasons"]:
        result.table(
            ("quarantined because", "rows"),
            [(reason, f"{count:,}") for reason, count in facts["quarantine_reasons"].items()],
        )
        result.text("A row may have several reasons; it counts for each.")
    words = facts["unknown_words"]
    if not words:
        return
    result.heading("Words that were not understood")
    result.table(
        ("word", "field", "rows", "nearest depot", "to explain it, in the settings"),
        [
            (word["word"], word["field"], f"{word['rows']:,}", word["nearest"],
             " ".join(word["setting"]))
            for word in words[:_WORDS]
        ],
    )  # fmt: skip
    more = f" {len(words) - _WORDS:,} more are in report.json." if len(words) > _WORDS else ""
    result.text(f"Check each value before you use it, and put one where it is empty.{more}")


def _travel(result: Page, prepared: Prepared) -> None:
    trips = prepared.trips
    subtracted = np.asarray(trips.target) == TARGETS.index(SUBTRACTION)
    result.heading("Travel times")
    speeds = speed_kmh(prepared.distance_m, trips.observed_s)
    result.figure(
        figures.histograms(trips.observed_s / 60, speeds, subtracted),
        f"Travel time: {(~subtracted).sum():,} from stamps (on scene − en route), "
        f"{subtracted.sum():,} by subtraction (call-to-CPR − preparation − floors).",
    )


def _when_and_where(result: Page, prepared: Prepared, network: RoadNetwork) -> None:
    contexts, columns = prepared.trips.contexts, prepared.trips.encoding.columns
    hour = contexts[:, columns.index("hour")].astype(np.int32)
    monday = columns.index("monday")
    weekday = contexts[:, monday : monday + 7].argmax(axis=1).astype(np.int32)
    result.heading("When and where")
    quiet = int((np.bincount(hour, minlength=24) == 0).sum())
    lacking = f" {quiet} hours of the day have no trip." if quiet else ""
    result.figure(figures.week(weekday, hour), f"Trips by weekday and hour, local time.{lacking}")
    result.figure(
        figures.destinations(network, prepared.book.depots, prepared.trips.destination),
        "Destinations at their road junctions, and the depots.",
    )
    what, areas = _areas(prepared, network)
    result.figure(
        figures.bars(areas),
        f"Trips by {what}" + (", the 24 with most." if len(areas) > 24 else "."),
    )


def _weather(result: Page, facts: dict[str, Any]) -> None:
    result.heading("Weather")
    rows = []
    for variable in WEATHER_VARIABLES:
        counts = facts["weather"][variable]
        known = facts["trips"] - counts.get("unknown", 0)
        sources = ", ".join(name for name in counts if name != "unknown") or "none"
        rows.append((variable, sources, f"{100 * known / max(facts['trips'], 1):.1f} %"))
    result.table(("variable", "source", "known"), rows)
    result.text("Unknown values stay unknown in the trips; the model decides how to use them.")


def _subtraction(result: Page, prepared: Prepared, facts: dict[str, Any]) -> None:
    result.heading("Preparation and floors")
    result.table(
        ("depot", "preparation (s)", "rows", "how"),
        [
            (name, "–" if p["seconds"] is None else f"{p['seconds']:.0f}", f"{p['rows']:,}",
             _HOW[p["method"]])
            for name, p in facts["preparation"].items()
        ],
    )  # fmt: skip
    slope, intervals = prepared.slope, prepared.intervals
    text = f"{slope.seconds_per_floor:.2f} seconds per floor: {_HOW[slope.method]}"
    if np.isfinite(slope.lower):
        text += (
            f", {slope.rows:,} rows, standard error {slope.standard_error:.3f} s, 95 % confidence "
            f"interval {slope.lower:.2f} … {slope.upper:.2f} s"
        )
    result.text(f"{text}.")
    seconds = intervals.call_to_cpr_s - (intervals.drive_s if slope.method == "paired" else 0.0)
    shown = intervals.usable & ~np.isnan(seconds + intervals.storeys)
    if slope.method in {"paired", "paper"} and shown.any():
        what = "call-to-CPR − driving (s)" if slope.method == "paired" else "call-to-CPR (s)"
        result.figure(
            figures.floor_regression(intervals.storeys[shown], seconds[shown], slope, what),
            "What floors cost: each grey dot is a row; the dashed lines bound the slope.",
        )


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
    return "square kilometre, counted from the south-west corner of the network", (
        counts.most_common()
    )


def _kind(reason: str) -> str:
    """A reason without what differs from row to row."""
    for pattern, general in _DETAILS:
        reason = pattern.sub(general, reason)
    return reason


def _quantiles(values: Any) -> dict[str, float]:
    if not len(values):
        return {}
    shares = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}
    found = {"mean": np.mean(values)}
    found |= {name: np.quantile(values, share) for name, share in shares.items()}
    return {name: round(float(value), 2) for name, value in found.items()}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
