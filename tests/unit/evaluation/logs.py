"""Small run folders written by hand, so that every number can be worked out on paper."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ideal_dispatch.replay.log import line_text
from ideal_dispatch.replay.run import KIND
from ideal_dispatch.replay.study import KIND as EXPERIMENT

Driven = tuple[Sequence[int], Sequence[float]]
"""Edges, and the seconds of each."""

ROLES = {
    **{name: name for name in ("region", "router", "router-dual", "interval", "paper", "ideal")},
    "paper-ideal": "paper",
}


def driven(edges: Sequence[int], seconds: Sequence[float]) -> dict[str, Any]:
    expected = [sum(seconds)] * len(seconds)
    return {"edges": list(edges), "seconds": list(seconds), "expected_s": expected}


def decided(
    primary: str, second: str | None = None, score: float = 0.0, threshold: float | None = 0.0
) -> dict[str, Any]:
    return {
        "primary": primary,
        "second": second,
        "score_s": score,
        "threshold_s": threshold,
        "reason": "as told",
        "details": {},
    }


def entry(
    name: str,
    drives: Mapping[str, float | Driven],
    decisions: Mapping[str, Mapping[str, Any]],
    day: str = "2023-05-08",
    hindsight: float | None = None,
    worlds: Sequence[str] = ("instantaneous", "experienced"),
) -> dict[str, Any]:
    """A line; a drive given as seconds alone takes one edge, numbered by its place.

    It has drives of both worlds, of which a run reads its own; experienced ones take ten seconds
    longer than instantaneous ones.
    """
    told: dict[str, Any] = {}
    for number, (key, given) in enumerate(drives.items()):
        edges, seconds = given if isinstance(given, tuple) else ([number], [given])
        later = [*seconds[:-1], seconds[-1] + 10.0]
        times = {"instantaneous": driven(edges, seconds), "experienced": driven(edges, later)}
        told[key] = {"station": int(key[1:].split("+")[0]), "path": list(edges), "follow": 0}
        told[key] |= {world: times[world] for world in worlds}
    best = {} if hindsight is None else {
        world: {"station": 0, "edges": [9], "seconds": [hindsight]} for world in worlds
    }  # fmt: skip
    return {
        "incident": {"name": name, "node": 5, "at": f"{day}T08:00:00+08:00", "day": day},
        "region": 0,
        "stations": [
            {"depot": depot, "node": node, "units": 2, "quote": None, "alternative": None}
            for depot, node in (("West", 0), ("East", 11))
        ],
        "decisions": dict(decisions),
        "drives": told,
        "hindsight": best,
    }


def write_run(folder: Path, entries: Sequence[Mapping[str, Any]], **manifest: Any) -> Path:
    """A run folder with these lines; policies play the part of their name, or are controls."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(entries[0]["decisions"]) if entries else []
    whole = {
        "format": KIND.format,
        "network": "none",
        "world": "experienced",
        "policies": {name: {"type": "Other"} for name in names},
        "roles": {name: ROLES.get(name, "control") for name in names},
        "replayed": len(entries),
        "dropped": [],
        **manifest,
    }
    (folder / "manifest.json").write_text(json.dumps(whole))
    (folder / "incidents.jsonl").write_text("".join(line_text(one) + "\n" for one in entries))
    return folder


def town_run(
    folder: Path,
    days: int = 4,
    per_day: int = 6,
    shift: float = 0.0,
    first_day: int = 8,
    **manifest: Any,
) -> Path:
    """A run of all parts in the story and two controls, with arrivals that vary by incident."""
    entries = []
    for number in range(days * per_day):
        west, east = 300.0 + 7 * (number % 11) + shift, 290.0 + 13 * (number % 7)
        first, other = ("s0", "s1") if west <= east + 40 else ("s1", "s0")
        detour = f"{first}+00000001"
        drives: dict[str, float | Driven] = {
            "s0": west,
            "s1": east,
            detour: min(west, east) - 5 + (number % 13),
        }
        score = float((number * 5) % 24)
        gain = (west - east) if first == "s0" else (east - west)
        entries.append(
            entry(
                f"call-{number:03d}",
                drives,
                {
                    "region": decided("s0"),
                    "router": decided(first, other, 0.0, 0.0),
                    "interval": decided(first, other, score, 5.0),
                    "router-dual": decided(first, other, 0.0, None),
                    "paper-ideal": decided(first, detour, 24 - score, 12.0),
                    "ideal": decided(first, other, gain if number % 3 else -gain, 3.0),
                    "random": decided(first, other, (number * 7 % 24) / 24, 0.5),
                    "alternative": decided(first, detour, -score, -5.0),
                },
                day=f"2023-05-{first_day + number // per_day:02d}",
                hindsight=250.0,
            )
        )
    return write_run(folder, entries, **manifest)


def write_experiment(folder: Path, **experiment: Any) -> None:
    """The manifest of the experiment that the runs in a folder are part of."""
    whole = {"format": EXPERIMENT.format, "experiment": experiment}
    (folder / "manifest.json").write_text(json.dumps(whole))
