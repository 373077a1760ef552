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
    plain_axes,
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
from ideal_dispatch.report import Cell, Column, Figure, Report, Section, Table, counted

if TYPE_CHECKING:
    import matplotlib.figure as drawn
    from matplotlib.axes import Axes

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
_HOW = {
    "given": "given in the settings",
    "paired": "rows with driving stamps and call-to-CPR",
    "paper": "the paper's regression",
    "stamps": "median of en route − call",
    "regression": "intercept of a regression on free-flow time",
    "assumed": "the paper's value, because there are too few rows",
    "unknown": "not known: too few rows",
}
"""How preparation and the time of a floor were found, in words."""

_MOST_WORDS = 50
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


# --- trips ------------------------------------------------------------------------------


def write_trips(
    prepared: Prepared,
    network: RoadNetwork,
    settings: AgencySettings,
    folder: str | os.PathLike[str],
) -> tuple[Report, dict[str, Any]]:
    """Write :data:`FILES` into a folder, each whole or not at all; gives page and facts."""
    where, trips, facts = Path(folder), prepared.trips, trips_facts(prepared, network, settings)
    trips.save(where / "trips.trips")
    write_quarantine(prepared, where / "quarantine.csv")
    _write_json(where / "report.json", facts)
    report = trips_report(prepared, network, settings, facts)
    write_file(where / "report.html", report.html())
    return report, facts


def trips_report(
    prepared: Prepared, network: RoadNetwork, settings: AgencySettings, facts: Mapping[str, Any]
) -> Report:
    """The page of the trips, from the ``facts`` that :func:`trips_facts` counts."""
    trips, slope, words = prepared.trips, prepared.slope, facts["unknown_words"]
    per_floor = f"{slope.seconds_per_floor:.2f} seconds per floor: {_HOW[slope.method]}"
    if np.isfinite(slope.standard_error):
        per_floor += (
            f", {slope.rows:,} rows, standard error {slope.standard_error:.3f} s, 95 % confidence "
            f"interval {slope.lower:.2f} … {slope.upper:.2f} s"
        )
    more = f" {len(words) - _MOST_WORDS} more are in report.json." * (len(words) > _MOST_WORDS)
    span = ""
    if facts["first_call"]:
        span = f"Calls from {facts['first_call'][:10]} to {facts['last_call'][:10]} (UTC). "
    rules = Table(
        "exclusions", "Exclusion rules",
        (Column("exclusion rule"), Column("applies to"), Column("removed here")),
        tuple((rule.says, rule.applies, rule.removed) for rule in prepared.rules),
    )  # fmt: skip
    unknown = Table(
        "words", "Words that the settings do not explain",
        (Column("word"), Column("field"), Column("rows"), Column("nearest depot"),
         Column("to explain it, in the settings")),
        tuple((one["word"], one["field"], one["rows"], one["nearest"], " ".join(one["setting"]))
              for one in words[:_MOST_WORDS]),
        note=f"Check each value before you use it, and fill in the empty ones.{more}",
    )  # fmt: skip
    preparation = Table(
        "preparation", "Preparation by depot",
        (Column("depot"), Column("preparation (s)", 0), Column("rows"), Column("how")),
        tuple((name, one.seconds, one.rows, _HOW[one.method])
              for name, one in prepared.preparation.items()),
    )  # fmt: skip
    sections = [
        Section.of(
            "What was left out", rules,
            counted("quarantine", "Rows in quarantine", "quarantined because", "rows",
                    facts["quarantine_reasons"]),
            "A row may have several reasons; it counts for each. Every row that did not become a "
            "trip is in quarantine.csv with its reasons.",
        ),
        Section.of("Words that were not understood", unknown),
        *(_trip_sections(prepared, network, facts) if len(trips) else ()),
        Section.of("Preparation and floors", preparation, f"{per_floor}."),
        _privacy(facts),
    ]  # fmt: skip
    return Report(
        f"Records of {settings.agency.name}",
        f"{span}{facts['source']} ({facts['form']}), checksum {facts['source_checksum']}; "
        f"network {facts['network_checksum']}",
        [
            ("rows in the file", f"{facts['rows']:,}"),
            ("trips", f"{len(trips):,}"),
            ("of all rows became trips", f"{100 * len(trips) / max(facts['rows'], 1):.1f} %"),
            ("rows in quarantine", f"{facts['quarantined']:,}"),
            ("rows excluded by a rule", f"{facts['excluded']:,}"),
        ],
        prepared.notes,
        sections,
    )


def _trip_sections(
    prepared: Prepared, network: RoadNetwork, facts: Mapping[str, Any]
) -> tuple[Section, ...]:
    trips = prepared.trips
    minutes = trips.observed_s / 60
    subtracted = np.asarray(trips.target) == TARGETS.index(SUBTRACTION)
    times, (left, right) = plain_axes(2, 3.4)
    parts = {"stamps": minutes[~subtracted], "subtraction": minutes[subtracted]}
    _histogram(left, parts, (ACCENT, ORANGE), "travel time (min)", "trips")
    speeds = {"": speed_kmh(prepared.distance_m, trips.observed_s)}
    _histogram(right, speeds, (ACCENT,), "speed along the shortest way (km/h)", "trips")
    week = Table(
        "week", "Trips by weekday and hour, local time",
        (Column(""), *(Column(str(hour)) for hour in range(24))),
        tuple((day, *hours) for day, hours in facts["by_weekday_and_hour"].items()),
    )  # fmt: skip
    weather = Table(
        "weather", "Where the weather comes from",
        (Column("variable"), Column("source"), Column("known %", 1, percent=True)),
        tuple((variable, ", ".join(name for name in counts if name != "unknown") or "none",
               1 - counts.get("unknown", 0) / len(trips))
              for variable, counts in prepared.weather_counts.items()),
        note="Unknown values stay unknown in the trips; the model decides how to use them.",
    )  # fmt: skip
    named = {name: n for name, n in facts["districts"].items() if any(facts["districts"])}
    return (
        Section.of("Travel times", Figure(
            "times", "Travel times and speeds of the trips", times,
            f"{int((~subtracted).sum()):,} travel times are from stamps (on scene − en route), "
            f"{int(subtracted.sum()):,} by subtraction (call-to-CPR − preparation − floors).",
        )),
        Section.of(
            "When and where", week,
            Figure("map", "Destinations of the trips, and the depots",
                   _draw_destinations(network, prepared.book.depots, trips.destination),
                   "Destinations are at their road junctions; the larger, the more trips."),
            counted("districts", "Trips by district", "district", "trips", named),
        ),
        Section.of("Weather", weather),
    )  # fmt: skip


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
        words.append({
            "field": field, "word": word, "rows": len(cells), "nearest": nearest,
            "setting": list(setting),
        })  # fmt: skip
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
) -> Report:
    """Write the responses, and :func:`report_files` beside them; gives the page."""
    page, numbers, left_out = report_files(path)
    found, facts = log.responses, responses_facts(log, network)
    found.save(path)
    rows = [(row, safe_cell("; ".join(reasons))) for row, reasons in log.left_out]
    write_csv(left_out, ("row", "reasons"), rows)
    _write_json(numbers, facts)
    report = responses_report(log, network, facts, left_out.name)
    write_file(page, report.html())
    return report


def responses_report(
    log: ReadLog, network: RoadNetwork | None, facts: Mapping[str, Any], left_out: str
) -> Report:
    """The page of a unit log, from the ``facts`` that :func:`responses_facts` counts."""
    found, everything = log.responses, facts["all"]
    recalls = everything["recalled_share"] is not None
    words = (
        "Turnout is from dispatch to leaving, drive from leaving to the scene."
        if everything["turnout_s"]
        else "The log has no time of leaving, so turnout and drive are not known apart."
    )
    words += (
        " A unit is recalled if it was sent and never reached the scene; it was held from dispatch "
        "until it was free again."
        if recalls
        else " The log has arrivals alone, so recalled units are not known."
    )
    span = ""
    if facts["first_call"]:
        span = f"Calls from {facts['first_call'][:10]} to {facts['last_call'][:10]} (UTC). "
    numbers = [
        ("calls in the log", f"{facts['calls']:,}"),
        ("units on calls", f"{len(found):,}"),
    ]
    if timed := everything["response_s"]:
        numbers.append(("median, dispatch to scene", f"{timed['p50'] / 60:.1f} min"))
    if recalls:
        share = f"{100 * everything['recalled_share']:.1f} %"
        numbers.append(("recalled before they arrived", share))
    numbers.append(("races between two units", f"{facts['races']:,}"))
    if "trips" in facts:
        numbers.append(("arrivals become trips on the network", f"{facts['trips']['trips']:,}"))
    where: list[Figure | str | Table | None] = []
    if (~np.isnan(found.lon + found.lat)).any():
        caption = "Calls and the places that units started from."
        where.append(Figure("map", "Calls and starts", _draw_places(found, network), caption))
    if "trips" in facts:
        where += [
            f"{facts['trips']['trips']:,} arrivals become trips on the network (checksum "
            f"{facts['network_checksum']}), and {facts['trips']['races']:,} races have both units "
            "among them.",
            counted("no-trips", "Arrivals that are no trips", "no trip because", "units",
                    facts["trips"]["left_out"]),
        ]  # fmt: skip
    known = Table(
        "completeness", "Share of rows in which a field is known",
        (Column("field"), Column("known %", 0, percent=True)),
        tuple(facts["completeness"].items()),
        note="What is not known stays unknown: no time is made up.",
    )  # fmt: skip
    remarks = {remark: n for remark, n in facts["remarks"].items() if n}
    sections = [
        Section.of(
            "How long units take",
            f"In minutes: the median, and the time within which nine of ten are done. {words} Rows "
            "with a remark are counted but not timed.",
            _times_table("kinds", "kind of unit", {"all": everything, **facts["by_kind"]}, facts),
        ),
        Section.of("Hours of the day", _times_table(
            "hours", "hour", {f"{h:02d}:00": one for h, one in enumerate(facts["by_hour"])}, facts
        )),
        Section.of("Stations", _times_table("stations", "station", facts["by_station"], facts)),
        Section.of("Where", *where),
        Section.of(
            "How complete the log is", known,
            counted("remarks", "Remarks", "remark on a row", "units", remarks),
            counted("left-out", "Rows that were left out", "left out because", "rows",
                    facts["reasons"]),
            f"Each row that was left out is in {left_out}." if facts["reasons"] else None,
        ),
        Section.of(
            "Races",
            f"{facts['races']:,} times two units were sent to one call at once from different "
            "places, and both arrived. Other calls with two units or more are no clean race.",
            counted("no-races", "Calls that are no race", "no race because", "calls",
                    facts["no_races"]),
        ),
        _privacy(facts),
    ]  # fmt: skip
    return Report(
        f"Responses of {facts['agency']}",
        f"{span}Hours are those of {found.time_zone}. {facts['rows']:,} rows in "
        f"{facts['source']} ({facts['form']}), {facts['left_out']:,} of them without a usable "
        f"unit; checksum {facts['source_checksum']}",
        numbers,
        log.notes,
        sections,
    )


def _times_table(
    name: str, of: str, groups: Mapping[str, Mapping[str, Any]], facts: Mapping[str, Any]
) -> Table:
    """A row for each group, with a column for each time that the log has."""
    timed = {part: words for part, words in _PARTS.items() if facts["all"][part]}
    columns = [Column(of), Column("units")]
    for words in timed.values():
        columns += [Column(f"{words}, min"), Column("9 of 10, min")]
    recalls = facts["all"]["recalled_share"] is not None
    if recalls:
        columns += [Column("recalled %", percent=True), Column("held, min")]
    rows = []
    for group, one in groups.items():
        cells: list[Cell] = [group, one["responses"]]
        for part in timed:
            cells += [_minutes(one[part], "p50"), _minutes(one[part], "p90")]
        cells += [one["recalled_share"], _minutes(one["held_s"], "p50")] if recalls else []
        rows.append(tuple(cells))
    return Table(name, f"Times by {of}", tuple(columns), tuple(rows))


def _minutes(times: Mapping[str, float] | None, part: str) -> float | None:
    return None if times is None else times[part] / 60


def _privacy(facts: Mapping[str, Any]) -> Section:
    unread = f"{facts['columns_not_read']} columns of the file were not read."
    return Section.of("Privacy", facts["privacy"], unread)


def responses_facts(log: ReadLog, network: RoadNetwork | None = None) -> dict[str, Any]:
    """Everything countable, in the types of JSON; no row of the source is in it."""
    found, origin = log.responses, log.responses.provenance
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
        "agency": origin["agency"]["name"],
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
        "settings": origin["settings"],
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
    # a log of arrivals alone does not say which units were recalled
    known = not found.arrived.all() and rows.any()
    return {
        "responses": int(rows.sum()),
        **{name: _median_and_tail(getattr(found, name)[timed]) for name in _PARTS},
        "recalled": int(recalled.sum()),
        "recalled_share": round(float(recalled.sum() / rows.sum()), 4) if known else None,
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
    """A text that may be passed on: unchanged, or how long it was."""
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


def _draw_destinations(
    network: RoadNetwork, depots: Sequence[Depot], node: IntArray
) -> "drawn.Figure":
    """A map of where the trips went; the larger the dot, the more trips end at a node."""
    figure = draw_network(network, depots, title="Where the trips went")
    axes = figure.axes[0]
    for collection in axes.collections:
        collection.set_alpha(0.45)
    ends, counts = np.unique(node, return_counts=True)
    axes.scatter(network.lon[ends], network.lat[ends], s=7 + 6 * counts, color=GREEN, alpha=0.6,
                 linewidths=0.4, edgecolors="white", zorder=3)  # fmt: skip
    return figure


def _draw_places(found: Responses, network: RoadNetwork | None) -> "drawn.Figure":
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
