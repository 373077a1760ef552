"""What ``ideal races`` writes: figures as JSON, every race as CSV, tables, and one page."""

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.evaluation.race_figures import race_figures
from ideal_dispatch.evaluation.race_judgement import OURS
from ideal_dispatch.evaluation.race_study import RaceStudy
from ideal_dispatch.evaluation.race_tables import race_tables
from ideal_dispatch.evaluation.report import make_folders, save_drawn
from ideal_dispatch.files import safe_cell, write_csv, write_file
from ideal_dispatch.pages import figure_url, save_page

FILES = ("races.json", "races.csv", "response_times.json", "races.html", "tables", "figures")
"""What a folder of judged races holds; models may be beside them."""

_FEW = 200
_BROKEN_DOWN = ("by-distance", "by-hour", "by-district", "by-call-kind", "by-station")


def write_races(study: RaceStudy, folder: str | os.PathLike[str]) -> list[Path]:
    """Write everything into a folder, made where it is not there; gives the files.

    The response times are those of the last window: what a centre would work with.
    """
    where = make_folders(folder)
    made = [where / name for name in FILES[:3]]
    numbers = json.dumps(_finite(study.judged.as_dict()), ensure_ascii=False, indent=1)
    write_file(made[0], f"{numbers}\n")
    write_race_rows(study, made[1])
    study.windows[-1].response.save(made[2])
    tables = race_tables(study)
    for table in tables.values():
        made += table.save(where / "tables")
    drawn = {"map": ""}
    for name, figure in race_figures(study):
        made += save_drawn(figure, where / "figures" / name)
        drawn[name] = figure_url(figure)
    page = where / FILES[3]
    save_page(
        page,
        "races.html",
        about=about(study),
        big_numbers=big_numbers(study),
        caveats=caveats(study),
        tables=tables,
        broken_down=[tables[name] for name in _BROKEN_DOWN if name in tables],
        drawn=drawn,
        protocol=protocol(study),
        left_out=sorted(study.left_out.items(), key=lambda item: -item[1]),
    )
    return [*made, page]


def _finite(value: Any) -> Any:
    """The same without numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_race_rows(study: RaceStudy, path: Path) -> None:
    """A row a race: the call, both units, what was expected and what happened."""
    judged, log = study.judged, study.responses
    pick = {"primary": judged.of_primary, "second": judged.of_second}
    columns: dict[str, Any] = {
        "incident": study.of_call("incident"),
        "at": study.of_call("local"),
        "district": study.of_call("district"),
        "call_kind": study.of_call("call_kind"),
        "lon": study.of_call("lon"),
        "lat": study.of_call("lat"),
    }
    both = study.races.rows
    for who, of in pick.items():
        columns |= {
            f"{who}_unit": of(log.unit[both]),
            f"{who}_station": of(log.station[both]),
            f"{who}_straight_m": np.round(of(study.straight_m), 0),
            f"{who}_expected_s": np.round(of(judged.expected_s[OURS]), 1),
            f"{who}_took_s": of(judged.took_s),
        }
    columns |= {
        "second_first_probability": np.round(judged.second_first, 4),
        "expected_gain_s": np.round(judged.gain_s, 2),
        "second_first": judged.came_first.astype(int),
        "saved_s": judged.saved_s,
    }
    columns |= {
        f"score {name}": np.round(values, 4)
        for name, values in judged.scores.items()
        if name != OURS
    }
    rows = zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True)
    write_csv(path, list(columns), ([csv_cell(value) for value in row] for row in rows))


def csv_cell(value: Any) -> str:
    """A value for spreadsheets; nothing where it is not known."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:g}" if abs(value) >= 1e-4 else "0"
    return safe_cell(value)


# --- words ------------------------------------------------------------------------------


def about(study: RaceStudy) -> str:
    """The log, the days and what ours rests on, in a line."""
    dates = study.races.date
    source = study.responses.provenance.get("source", "a unit log")
    return (
        f"{source}: {len(study.judged):,} races from {dates.min()} to {dates.max()}; ours rests on "
        f"{study.words}"
    )


def big_numbers(study: RaceStudy) -> list[tuple[str, str]]:
    """What a chief wants to know first."""
    judged = study.judged
    quarter, half = judged.shares_kept(OURS, (0.25, 0.5))
    by = judged.saved_s[judged.came_first]
    facts = [
        ("of races were won by the second unit", f"{100 * judged.came_first.mean():.0f} %"),
        (
            "by which it then came sooner, on average",
            f"{by.mean():.0f} s" if by.size else "–",
        ),
        (
            "sooner per call, if every call gets a second unit",
            f"{judged.saved_s.mean():.1f} s",
        ),
        (
            "of that with a second unit on half of the calls, chosen by ideal "
            f"({_between(half.low, half.high)})",
            f"{100 * half.mean:.0f} %",
        ),
        (
            f"of that with a second unit on a quarter ({_between(quarter.low, quarter.high)})",
            f"{100 * quarter.mean:.0f} %",
        ),
    ]
    return [(words.replace(" %", "\u00a0%"), value) for words, value in facts]


def _between(low: float, high: float) -> str:
    return (
        "no interval: one day" if math.isnan(low) else f"95 %: {100 * low:.0f}–{100 * high:.0f} %"
    )


def caveats(study: RaceStudy) -> list[str]:
    """A line for each reason to be careful."""
    lines = []
    if len(study.judged) < _FEW:
        lines.append(
            f"{len(study.judged):,} races are few: shares of the benefit are known only to about "
            f"±{100 / math.sqrt(len(study.judged)) * 3:.0f} points."
        )
    if study.network is None:
        lines.append(f"Ours rests on {study.words}.")
    ratio = study.judged.gain_ratio
    if not math.isnan(ratio.low) and not ratio.low <= 1.0 <= ratio.high:
        more = "more" if ratio.mean > 1.0 else "less"
        lines.append(
            f"Ours expects {more} than the second unit saves: expected over saved seconds "
            f"{ratio.mean:.2f}, 95 % interval {ratio.low:.2f} to {ratio.high:.2f}."
        )
    return lines


def protocol(study: RaceStudy) -> list[str]:
    """How the races were found and judged."""
    first = study.windows[0]
    lines = [
        f"Races are pairs of units sent within {study.races.together_s:g} s of each other, from "
        "different places, both on scene. Their order uses what was known at the call, never who "
        "came first.",
        f"Ours rests on {study.words}; response times: {first.response.source}.",
        "The primary is the unit that ours expects first, for every ranking alike. Each ranking "
        "sends a second unit to exactly the same share of races; races of one score share what is "
        "left for them.",
        "Units that were turned back have no arrival. They are not observed, which is not the "
        "same as lost, and their calls are no races here.",
    ]
    lines += [f"About the log: {note}." for note in study.responses.provenance.get("notes", ())]
    if len(study.windows) > 1:
        lines.insert(
            1, f"Time runs forward: each of {len(study.windows)} parts is judged by what was "
            "learned from all days before it."
        )  # fmt: skip
    else:
        lines.insert(1, f"Learned from days before {first.window.start}, judged from then on.")
    return lines
