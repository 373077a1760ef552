"""A living city against the real service: what it was told, what it advised, what it recorded."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.living.driver import Life
from ideal_dispatch.service.audit.store import AuditStore
from tests.service_town import Served, Town, serving, token
from tests.service_town import town as town
from tests.unit.living.checks import check_statuses
from tests.unit.living.test_driver import lines, run

LIFE = Life(calls_per_day=700, units=15, every_s=0.3, think_s=1.0)


@pytest.fixture(scope="module")
def fast(town: Town) -> Iterator[Served]:
    """The service on a clock of its own, thirty times as fast as the wall's."""
    day_s = 86_400.0  # on a slow machine nothing is too late
    started = datetime.now(UTC).isoformat()
    config = town.config(
        "living.toml",
        clock={"origin": "2026-03-02T08:00:00+08:00", "started": started, "speed": 30.0},
        server={"expiry_s": day_s, "oldest_call_s": day_s, "deadline_s": 60.0},
        units={"position_stale_s": day_s},
        policy={"threshold": {"cost": 0.0}},  # whatever a second saves is enough
    )
    with serving(config) as running:
        yield running


def test_every_call_is_answered_and_the_record_is_possible(
    fast: Served, town: Town, tmp_path: Path
) -> None:
    log = tmp_path / "log"

    def enough() -> bool:
        said = Counter(one.get("status") for one in _lines(log))
        return said["on_scene"] >= 4

    tally = run(fast.url, enough, log, LIFE, token("dispatcher"))
    assert not tally.refused
    assert not tally.ignored
    assert sum(tally.decisions.values()) == tally.calls - tally.waiting > 0
    assert tally.decisions["no_advice"] == 0
    found = lines(log)
    told = [one for one in found if one["kind"] == "status"]
    check_statuses(told)

    # the service knows what was told last
    last = {one["id"]: one for one in told}
    known = {one["id"]: one for one in _get(fast, "/v1/fleet/units")}
    assert {name: one["status"] for name, one in known.items()} == {
        name: one["status"] for name, one in last.items()
    }
    assert {name: one["call_id"] for name, one in known.items()} == {
        name: one["call_id"] for name, one in last.items()
    }

    # every call has its advice and its reply, and every second was advised and accepted
    advice = {one["call_id"]: one for one in _get(fast, "/v1/recommendations?limit=500")}
    asked = {one["call"] for one in found if one["kind"] == "advice"}
    assert asked == set(advice)
    for second in (one for one in found if one["kind"] == "second"):
        made = advice[second["call"]]
        assert made["decision"] == "send_second"
        assert made["second"]["unit"] == second["unit"]
        assert made["response"]["action"] == "accept"
    assert tally.seconds == sum(one["kind"] == "second" for one in found)

    # what is on record of the units is what was told, in that order
    store = AuditStore(f"sqlite:///{town.folder / 'living.toml.db'}", create=False)
    try:
        rows = [row.entry for row in store.rows(0, 100_000)]
    finally:
        store.close()
    recorded = [
        (one["id"], one["status"], one["call_id"])
        for row in rows if row.kind == "unit" for one in row.body["units"]
    ]  # fmt: skip
    for name in last:
        assert [one for one in recorded if one[0] == name] == [
            (one["id"], one["status"], one["call_id"]) for one in told if one["id"] == name
        ]


def test_units_are_seen_on_the_road_as_they_drive(fast: Served) -> None:
    seen: dict[str, list[dict[str, Any]]] = {}

    def enough() -> bool:
        for one in _get(fast, "/v1/fleet/units"):
            if one["status"] == "en_route" and one["position"]["speed_kmh"]:
                seen.setdefault(one["id"], []).append(one["position"])
        return any(len({one["lon"] + one["lat"] for one in some}) > 2 for some in seen.values())

    run(fast.url, enough, life=replace(LIFE, seed=2), token=token("dispatcher"))
    for one in (one for some in seen.values() for one in some):
        assert 0.0 <= one["heading"] <= 360.0
        assert 1.0 < one["speed_kmh"] < 200.0
        # the streets of the town are a grid: one of the coordinates is that of a street
        off = min(abs(1000.0 * part - round(1000.0 * part)) for part in (one["lon"], one["lat"]))
        assert off < 0.01


def _get(service: Served, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = service.get(path).raise_for_status().json()
    return found


def _lines(log: Path) -> list[dict[str, Any]]:
    """The whole lines of a file that is being written."""
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text().splitlines(True) if line.endswith("\n")]
