"""What one worker is told the others know, and all end with the same."""

import json
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime

import httpx

from tests.service_town import PATIENCE_S, Local, Town, application, bearer, local


def tell(client: Local, depot: str, units: int, at: datetime) -> None:
    told = [{"depot": depot, "units": units, "updated_at": at.isoformat()}]
    assert client.put("/v1/units", json=told, headers=bearer("cad")).status_code == 200


def known(client: Local) -> dict[str, int]:
    rows = client.get("/v1/units", headers=bearer()).json()
    return {row["depot"]: row["units"] for row in rows}


def listen(client: Local, last_call: str, opened: threading.Event) -> list[dict[str, int]]:
    """The counts that a desk hears of until it hears of a call."""
    heard: list[dict[str, int]] = []
    url = f"{client.base_url}/v1/events"
    with httpx.stream("GET", url, headers=bearer(), timeout=PATIENCE_S) as stream:
        opened.set()
        kind = ""
        for line in stream.iter_lines():
            name, _, text = line.partition(": ")
            kind = text if name == "event" else kind
            if name != "data":
                continue
            data = json.loads(text)
            if kind == "units":
                heard.append({row["depot"]: row["units"] for row in data})
            if kind == "recommendation" and data["call_id"] == last_call:
                return heard
    raise AssertionError("the stream ended")


def desk(pool: ThreadPoolExecutor, client: Local, last_call: str) -> Future[list[dict[str, int]]]:
    opened = threading.Event()
    heard = pool.submit(listen, client, last_call, opened)
    assert opened.wait(PATIENCE_S)
    return heard


def test_counts_of_one_moment_end_alike_in_all_workers(town: Town) -> None:
    """Two that say different things of one second: what the database took last counts."""
    settings = town.settings("following.toml")
    with (
        ThreadPoolExecutor() as pool,
        local(application(settings)) as one,
        local(application(settings)) as two,
    ):
        desks = [desk(pool, one, "of two"), desk(pool, two, "of one")]
        at = datetime.now(UTC)
        for depot, tellers in (("D0", (one, two)), ("D1", (two, one))):
            for client, units in zip(tellers, (5, 0), strict=True):
                tell(client, depot, units, at)
        for client, name in ((one, "of one"), (two, "of two")):  # rows after those of the counts
            body = town.call(name)
            assert client.post("/v1/recommendations", json=body, headers=bearer("cad")).is_success
        heard = [listening.result(PATIENCE_S)[-1] for listening in desks]
        expected = {"D0": 0, "D1": 0, "D2": 2}
        assert [known(one), known(two)] == [expected, expected]
        assert heard == [expected, expected]
        kept = one.service.ledger._store.read_units().told.values()
        assert {row.depot: row.units for row in kept} == {"D0": 0, "D1": 0}
