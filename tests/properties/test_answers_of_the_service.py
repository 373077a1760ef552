"""Random situations: no two numbers of an answer contradict each other, by API or command."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.cli import decide as command
from ideal_dispatch.cli.help import described
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


def test_the_command_and_the_api_give_the_same_arrivals_in_the_same_order(
    town: Town, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, (decide, _, _) = np.random.default_rng(5), described(command.decide)
    settings = town.settings("forecast.toml", traffic={"kind": "forecast"}, server=PATIENT)
    differ = 0
    with local(application(settings)) as client:
        for number in range(25):
            for unit in client.read("/v1/units"):
                client.delete(f"/v1/units/{unit['id']}", headers=bearer("admin"))
            free = {depot: int(rng.integers(3)) for depot in DEPOTS}
            seen = town.place(int(rng.integers(town.network.num_nodes)))
            at_home = [
                {"id": f"{depot}-{one}", "depot": depot, "status": "at_station"}
                for depot, many in free.items() for one in range(many)
            ]  # fmt: skip
            client.report({"id": "road", "depot": "D0", "status": "available", **seen}, *at_home)
            node = int(rng.integers(town.network.num_nodes))
            made = client.advice(town.call(f"both-{number}", node))
            decide(
                model_folder=town.folder / "model", network_file=town.folder / "town.network",
                depots_file=town.folder / "depots.csv", time_zone="Asia/Hong_Kong", country="HK",
                at=made["asked_at"], node=node, json=True,
                depot=[f"{depot}={many}" for depot, many in free.items()],
                on_road=[f"road={seen['lon']},{seen['lat']}"],
            )  # fmt: skip
            said = json.loads(capsys.readouterr().out)
            assert _arrivals(made) == _arrivals(said)
            assert made["primary"]["arrival"] == said["primary"]["arrival"]
            if made["second"] is not None:
                assert made["second"]["arrival"] == said["second"]["arrival"]
            differ += len({row["arrival"]["expected_s"] for row in made["considered"]}) > 1
    assert differ > 10


def _arrivals(made: dict[str, Any]) -> list[tuple[bool, dict[str, float]]]:
    """By start, in their order: the service lists each unit of a depot, the command the depot."""
    rows = {(one["depot"], one["start"]["on_road"]): one["arrival"] for one in made["considered"]}
    return [(on_road, arrival) for (_, on_road), arrival in rows.items()]
