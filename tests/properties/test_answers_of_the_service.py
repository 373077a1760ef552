"""Random situations through the API: no two numbers of an answer contradict each other."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.service.units import FREE, STATUSES
from tests.service_town import DEPOTS, PATIENT, Local, Town, application, bearer, later, local
from tests.service_town import town as town

UNITS = 8


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    policy = {"seconds": ["other-depot", "alternative"], "report_gap": False}
    server = {**PATIENT, "expiry_s": 0.001}  # a unit that was advised is free again
    with local(application(town.settings("random.toml", policy=policy, server=server))) as opened:
        yield opened


def random_news(rng: np.random.Generator, town: Town, number: int) -> dict[str, Any]:
    """A unit that does anything, seen anywhere some time ago or not at all."""
    news: dict[str, Any] = {
        "id": f"U{number}",
        "depot": str(rng.choice(DEPOTS)),
        "status": str(rng.choice(STATUSES)),
    }
    if rng.random() < 0.7:
        news |= town.place(int(rng.integers(town.network.num_nodes)))
        news["at"] = later(-float(rng.uniform(0, 100)))
    return news


@pytest.mark.parametrize("calls", [150, pytest.param(2000, marks=pytest.mark.slow)])
def test_gain_chance_and_arrivals_agree(client: Local, town: Town, calls: int) -> None:
    rng = np.random.default_rng(7)
    seen = {"send_second": 0, "primary_only": 0, "no_advice": 0}
    on_road = chosen = 0
    for number in range(calls):
        if number % 5 == 0:
            for unit in client.read("/v1/units"):
                client.delete(f"/v1/units/{unit['id']}", headers=bearer("admin"))
            units = [random_news(rng, town, number) for number in range(UNITS)]
            client.report(*units)
        named = units[int(rng.integers(UNITS))]["id"]
        primary = {"unit": named} if rng.random() < 0.5 else None
        made = client.advice(town.call(
            f"{calls}-{number}", int(rng.integers(town.network.num_nodes)), primary=primary,
            received_at=later(-float(rng.uniform(0, 300))),
            threshold_s=float(rng.uniform(-60, 120)),
        ))  # fmt: skip
        seen[made["decision"]] += 1
        if made["decision"] == "no_advice":
            assert (made["primary"], made["second"], made["gain_s"]) == (None, None, None)
            continue
        first, second, rows = made["primary"], made["second"], made["considered"]
        arrivals = {row["unit"]: row["arrival"] for row in rows}
        times_s = [row["arrival"]["expected_s"] for row in rows]
        assert times_s == sorted(times_s)
        assert len(arrivals) == len(rows)
        assert arrivals[first["unit"]] == first["arrival"]
        free = {one["id"] for one in units if one["status"] in FREE}
        assert arrivals.keys() <= free | {first["unit"]}
        assert first["unit"] in ({named} if primary else free)
        for one in arrivals.values():
            assert one["expected_s"] == pytest.approx(one["turnout_s"] + one["drive_s"], abs=0.11)
            assert 0.0 <= one["expected_s"] <= one["p90_s"]
        on_road += any(row["start"]["on_road"] for row in rows)
        chosen += first["chosen_by"] == "router"
        if second is None:
            assert made["gain_s"] is None
            continue
        assert second["unit"] in free - {first["unit"]}
        assert (
            made["gain_s"]
            >= first["arrival"]["expected_s"] - second["arrival"]["expected_s"] - 1e-9
        )
        assert made["gain_s"] >= 0.0
        assert 0.0 <= made["second_first"] <= 1.0
        same_spot = first["start"] == second["start"]
        assert not (same_spot and second["overlap"] > 0.5), "it would follow the first"
    assert min(seen.values()) > 0.02 * calls, seen
    assert on_road > 0.2 * calls
    assert chosen > 0.2 * calls
