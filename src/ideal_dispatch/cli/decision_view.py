"""The answer to a call as ``ideal decide`` shows it: for people, and as JSON for programs."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ideal_dispatch.cities import City
from ideal_dispatch.cli.terminal import out, print_facts, warn
from ideal_dispatch.dispatch import Answer, Assignment, Decision, Situation
from ideal_dispatch.dispatch.answer import chance_words
from ideal_dispatch.dispatch.arrival import Arrival
from ideal_dispatch.dispatch.candidate import longest_roads, on_path, overlap
from ideal_dispatch.dispatch.situation import Step
from ideal_dispatch.gap import DcaStep
from ideal_dispatch.gap.dca import TOLERANCE_S
from ideal_dispatch.network import Path
from ideal_dispatch.replay.log import plain

_TITLES = {
    "send_second": ("Send a second ambulance", "red"),
    "primary_only": ("One ambulance", "green"),
    "no_advice": ("No advice: the forecast is not to be trusted", "yellow"),
}
"""Title and colour of an advice."""

_WIDTH = 80
_UNITS = {"s": "s", "m": "m", "kmh": "km/h", "c": "°C", "mm": "mm", "hpa": "hPa", "percent": "%"}


# --- for programs -----------------------------------------------------------


def print_json(answer: Answer, searched: Sequence[DcaStep] | None = None) -> None:
    """Print the answer as JSON, with the trace and the steps of a search if asked for.

    A threshold of null seconds means that a second always goes.
    """
    made = answer.decision
    assert made is not None  # the command raises where it cannot decide
    shown = answer.to_dict()
    if steps := made.about.trace.steps:
        shown["trace"] = [step.as_dict() for step in steps]
    if searched:
        shown["algorithm_2"] = _iterates(made, searched)
    print(json.dumps(plain(shown), ensure_ascii=False, allow_nan=False, indent=1))


def _iterates(made: Decision, searched: Sequence[DcaStep]) -> list[dict[str, Any]]:
    """The steps of Algorithm 2; f is the gap with the other sign, the change is of the metric."""
    network, primary = made.about.network, made.primary
    rows = []
    for number, (one, following) in enumerate(zip(searched, [*searched[1:], None], strict=True)):
        second = on_path(made.about, primary.station, one.secondary, 0)
        length_m = one.secondary.length_m(network)
        moved = None if following is None else np.linalg.norm(following.metric - one.metric)
        rows.append({
            "k": number,
            "f_s": 0.0 - one.gap_s,
            "gap_s": one.gap_s,
            "decrease_s": one.decrease_s,
            "change": None if moved is None else float(moved),
            "restarted": one.restarted,
            "depot": _depot(made, second),
            "length_m": length_m,
            "shared_m": overlap(network, primary.path, one.secondary) * length_m,
            "seconds": one.seconds,
        })  # fmt: skip
    return rows


# --- for people -------------------------------------------------------------


def print_answer(answer: Answer, city: City, searched: Sequence[DcaStep] | None = None) -> None:
    """Print the decision in a frame, then what it rests on; ``city`` knows names of districts."""
    made = answer.decision
    assert made is not None  # the command raises where it cannot decide
    situation = made.about
    title, colour = _TITLES[answer.advice]
    width = min(out.width, _WIDTH)
    lines = Text("\n".join(_orders(answer, made) if answer.refusal is None else _considered(made)))
    out.print(Panel(lines, title=title, title_align="left", width=width, border_style=colour))
    # what the numbers rest on comes first
    for remark in sorted(
        answer.remarks, key=lambda one: "published_spreads" not in (one.code, *one.also)
    ):
        warn(remark.words)
    out.print()
    print_facts(_heading(situation, city), _stations(situation), justify="left")
    print_facts(f"Why, by policy {made.policy}", _why(answer, made), justify="left")
    if explanation := str(made.explain()):
        out.print("The two ways, road by road", style="bold")
        out.print(explanation, markup=False, width=width)
    if situation.trace.steps:
        _print_steps(situation.trace.steps, width)
    if searched:
        _print_iterates(_iterates(made, searched), width)


def _reason(answer: Answer, made: Decision) -> str:
    return made.reason if answer.refusal is None else answer.refusal[1]


def _considered(made: Decision) -> list[str]:
    """What was considered, without orders."""
    return [
        f"Considered: from {_depot(made, one)}, by {_roads(made, one.path)}."
        for one in (made.primary, made.second)
        if one is not None
    ]


def _orders(answer: Answer, made: Decision) -> list[str]:
    """Who goes, by which roads, and when they arrive."""
    assert answer.arrivals is not None  # advice has arrivals
    (first_at, other_at), first = answer.arrivals, _depot(made, made.primary)
    lines = [f"{first} goes, by {_roads(made, made.primary.path)}.", _arrives(first_at)]
    if (sooner := made.sooner) is not None:
        chance = chance_words(sooner.probability)
        lines.append(
            f"{sooner.unit or sooner.depot} would arrive {sooner.seconds:.0f} s sooner than "
            f"{first}; it is first with a chance of {chance}."
        )
    if made.second is None or other_at is None:
        return [*lines, "There is no other unit on another road."]
    other = f"Another unit of {first}" if made.same_depot else _depot(made, made.second)
    also = f"{other} goes too" if made.send_second else f"{other} stays; it would go"
    lines += [f"{also}, by {_roads(made, made.second.path)}.", _arrives(other_at)]
    if made.second.follow:
        lines.append(f"It keeps to the first {made.second.follow} segments of that way.")
    return lines


def _arrives(arrival: Arrival) -> str:
    """When a unit is at the address, and the parts of that; they add up as printed."""
    known = arrival.to_dict()
    whole, turnout = round(known["expected_s"]), round(known["turnout_s"])
    parts = f"turnout {_clock(turnout)} + drive {_clock(whole - turnout)}"
    return f"It arrives in {_clock(whole)} ({parts})."


def _clock(seconds: int) -> str:
    return f"{seconds // 60}:{seconds % 60:02d}"


def _heading(situation: Situation, city: City) -> str:
    where = f"node {situation.incident.node}"
    if city.node_districts:
        where = f"{city.node_districts[situation.incident.node]}, {where}"
    return f"The call: {where}, {situation.context.at:%a %d %b %Y %H:%M}"


def _stations(situation: Situation) -> dict[str, str]:
    rows = {}
    for station in situation.stations:
        free, quote = f"{station.units} free", station.quote
        if quote is None:
            rows[station.depot.name] = f"{free}, no route" if station.units else "no free unit"
            continue
        drive = f"drive {_clock(round(quote.duration_s))}"
        if not math.isnan(quote.optimistic_s + quote.pessimistic_s):
            ends = (quote.optimistic_s, quote.pessimistic_s)
            drive += f" ({' to '.join(_clock(round(seconds)) for seconds in ends)})"
        length = quote.path.length_m(situation.network) / 1000
        rows[station.depot.name] = f"{drive}, {length:.1f} km, {free}"
    return rows


def _why(answer: Answer, made: Decision) -> dict[str, str]:
    rows = {"decision": _reason(answer, made)}
    if answer.threshold:
        rows["threshold"] = answer.threshold
    if (worth := answer.worth) is not None:
        rows["expected gain"] = (
            f"{worth.gain_s:.1f} s; times from {worth.times_from}, spread from {worth.spread_from}"
        )
        rows["second is first"] = f"with a chance of {chance_words(worth.second_first)}"
        points = 100 * worth.survival_gain
        rows["in survival"] = f"{points:.2g} points by {worth.curve.name}"
    if (gap := made.gap) is not None:
        most = f", at most {gap.upper_s:.1f} s" if math.isfinite(gap.upper_s) else ""
        rows["optimistic gap"] = (
            f"{gap.lower_s:.1f} s{most}, {gap.status}: what the scenario set of drives allows"
        )
    if (overlap := made.overlap) is not None:
        depot = "the same depot" if made.same_depot else "another depot"
        rows["second's way"] = f"{100 * overlap:.0f} % shared, from {depot}"
    return rows


def _depot(made: Decision, one: Assignment) -> str:
    return made.about.stations[one.station].depot.name


def _roads(made: Decision, path: Path) -> str:
    named = ", ".join(longest_roads(made.about.network, path))
    return named or ("unnamed roads" if len(path) else "no road: it is there")


def _print_steps(steps: Sequence[Step], width: int) -> None:
    """Print a line for each step, those inside another one indented: time, and what it gave."""
    out.print()
    out.print("Step by step", style="bold")
    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", width=width
    )  # fmt: skip
    table.add_column("step", overflow="fold", max_width=28)
    table.add_column("ms", justify="right")
    table.add_column("what it gave", overflow="fold", ratio=1)
    for depth, step in _flat(steps, 0):
        known = [_fact(name, value) for name, value in step.facts.items() if value is not None]
        table.add_row(
            Text("  " * depth + step.name), f"{1000 * step.seconds:.1f}", Text(", ".join(known))
        )
    out.print(table)


def _print_iterates(rows: Sequence[dict[str, Any]], width: int) -> None:
    """Print a line for each step of Algorithm 2, and what Theorem 4 says about them."""
    out.print()
    out.print("Algorithm 2, step by step", style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("k", "f(X), s", "W_k, s", "change of X", "second from", "km", "shared km", "ms"):
        left = name == "second from"
        table.add_column(name, justify="left" if left else "right", overflow="fold")
    fruitless = [row["restarted"] and abs(row["f_s"]) <= TOLERANCE_S for row in rows]
    for number, row in enumerate(rows):
        if 0 < number < len(rows) - 1 and all(fruitless[number - 1 : number + 2]):
            continue  # of draws that all led to the primary's path, the first and the last tell all
        drawn = "*" if row["restarted"] else ""
        table.add_row(
            f"{row['k']}{drawn}",
            f"{row['f_s']:.3f}",
            *("" if row[name] is None else f"{row[name]:.3g}" for name in ("decrease_s", "change")),
            Text(row["depot"]),
            *(f"{row[name] / 1000:.1f}" for name in ("length_m", "shared_m")),
            f"{1000 * row['seconds']:.2f}",
        )
    out.print(table, width=width)
    if any(row["restarted"] for row in rows):
        out.print("* The second path was the primary's, so this metric X was drawn at random.")
    promised_s = sum(row["decrease_s"] or 0.0 for row in rows)
    fallen_s = rows[0]["f_s"] - rows[-1]["f_s"]
    out.print(
        f"f fell by {fallen_s:.3f} s. The decreases W_k that were promised add up to "
        f"{promised_s:.3f} s, which is never more (Theorem 4). The estimate of the gap is "
        f"{rows[-1]['gap_s']:.3f} s.",
        width=width,
    )


def _flat(steps: Sequence[Step], depth: int) -> Iterator[tuple[int, Step]]:
    for step in steps:
        yield depth, step
        yield from _flat(step.steps, depth + 1)


def _fact(name: str, value: Any) -> str:
    """A fact with the unit that its name ends in."""
    stem, _, unit = name.rpartition("_")
    if isinstance(value, bool):
        value = "yes" if value else "no"
    elif isinstance(value, float):
        value = f"{value:.4g}"
    if stem and unit in _UNITS:
        return f"{stem.replace('_', ' ')} {value} {_UNITS[unit]}"
    return f"{name.replace('_', ' ')} {value}"
