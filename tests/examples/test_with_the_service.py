"""The clients of `examples/` beside the real service, through a connection that is cut."""

import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.docs.served import Served, serving
from tests.examples.programs import relayed, running
from tests.stand_in import Answer, Asked, serve
from tests.waiting import wait_for

pytest.importorskip("fastapi", reason="the service extra is not installed")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as found:
        with found.client() as client:
            client.post("/v1/simulated-calls", json={"count": 0}).raise_for_status()
        yield found


def report(served: Served, *news: dict[str, Any]) -> None:
    with served.client() as client:
        client.put("/v1/units", json=news).raise_for_status()


def test_the_cad_adapter_accepts_and_follows_over_a_lost_connection(served: Served) -> None:
    lines: list[str] = []
    with (
        relayed(served.url) as (url, cut),
        running("cad_adapter.py", IDEAL_URL=url, IDEAL_TOKEN=served.token) as process,
    ):
        assert process.stdout is not None
        threading.Thread(target=lines.extend, args=(process.stdout,), daemon=True).start()
        wait_for(lambda: any("Send" in line for line in lines[:1]), lines.copy)

        def has(unit: str) -> bool:
            return any(line.startswith("units ") and f"'{unit}'" in line for line in lines)

        def seen() -> bool:  # it begins to follow soon after
            unit = f"seen-{len(reported)}"
            reported.append(unit)
            report(served, {"id": unit, "depot": "Gannet Bay", "status": "at_station"})
            return any(map(has, reported))

        reported: list[str] = []
        wait_for(seen, lines.copy)
        cut()
        report(served, {"id": "unseen", "depot": "Gannet Bay", "status": "at_station"})
        report(served, {"id": "last", "depot": "Gannet Bay", "status": "at_station"})
        wait_for(lambda: has("last"), lines.copy)
        assert has("unseen")
    with served.client() as client:
        (taken,) = client.get("/v1/recommendations?limit=1").json()
    assert taken["reply"]["action"] == "accept"


def test_the_event_follower_forwards_every_row_of_the_log(served: Served, tmp_path: Path) -> None:
    file, taken = tmp_path / "last_event.txt", list[dict[str, Any]]()
    file.write_text("0")

    def receiver(asked: Asked) -> Answer:
        taken.append(json.loads(asked.body))
        return Answer(status=204)

    def has(unit: str) -> bool:
        return any(unit in json.dumps(one) for one in taken)

    with relayed(served.url) as (url, cut), serve(receiver) as ours:
        for n in range(3):
            report(served, {"id": f"N{n}", "depot": "Gannet Bay", "status": "at_station"})
            with running("event_follower.py", url, ours.url, file, IDEAL_TOKEN=served.token):
                wait_for(partial(has, f"N{n}"))
                cut()
                report(served, {"id": f"M{n}", "depot": "Gannet Bay", "status": "at_station"})
                wait_for(partial(has, f"M{n}"))
    numbers = list(dict.fromkeys(one["number"] for one in taken))
    assert numbers == sorted(numbers)
    assert all(has(f"{letter}{n}") for letter in "NM" for n in range(3))


def test_the_vehicle_feed_moves_units(served: Served) -> None:
    report(
        served,
        {"id": "A117", "depot": "Kelp Point", "status": "at_station"},
        {"id": "1/83-1", "depot": "Gannet Bay", "status": "at_station"},
    )
    sentence = "$GPRMC,081836.00,A,2135.07,N,11714.36,E,023.2,090.0,010326,,,A*53"  # months ago
    lines = ["A117 3", f"A117,{sentence}", "1/83-1 6", "unknown 3"]
    with running("avl_feed.py", served.url, IDEAL_TOKEN=served.token) as process:
        said, _ = process.communicate("\n".join(lines) + "\n", timeout=60)
    assert process.returncode == 0
    assert "unknown" in said
    with served.client() as client:
        units = {one["id"]: one for one in client.get("/v1/units").json()}
    assert units["A117"]["status"] == "en_route"
    assert units["A117"]["position"] is None
    assert units["1/83-1"]["status"] == "out_of_service"
