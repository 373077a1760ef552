"""Two hosts with addresses of their own share PostgreSQL; one of them is cut off, and heals."""

import json
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from ideal_dispatch.service.audit.database import migrate
from ideal_dispatch.service.audit.store import AuditStore

from benchmarks.hosts import Host, host, missing_namespaces
from benchmarks.stack import IDEAL
from tests.postgres import missing_server, running_postgres
from tests.service_town import PATIENCE_S, Town, bearer, codes
from tests.waiting import wait_for

ASK = "/v1/recommendations"


@dataclass(frozen=True)
class Hosts:
    """Both of them with a worker each; ``database`` is as this machine reaches it."""

    town: Town
    one: Host
    two: Host
    database: str


@pytest.fixture(scope="module")
def hosts(town: Town) -> Iterator[Hosts]:
    if missing := missing_namespaces() or missing_server():
        pytest.skip(missing)
    with ExitStack() as stack:
        pair = [stack.enter_context(host(name, n)) for n, name in enumerate(("one", "two"))]
        server = stack.enter_context(running_postgres([one.gateway for one in pair]))
        database = server.new_database()
        migrate(database)
        for one in pair:
            url = database.replace("127.0.0.1", one.gateway)
            audit = {"url": url, "spool": f"{one.name}.spool"}
            config = town.config(f"{one.name}.toml", audit=audit, server={"expiry_s": 3600.0})
            stack.enter_context(one.worker(config))
        yield Hosts(town, pair[0], pair[1], database)


def asked(host: Host, body: dict[str, Any]) -> dict[str, Any]:
    """A host's answer, to a CAD at its own side of the cable."""
    url = f"{host.url}{ASK}"
    said = host.inside(
        lambda: httpx.post(url, json=body, headers=bearer("cad"), timeout=PATIENCE_S)
    )
    assert said.status_code == 200, said.text
    made: dict[str, Any] = said.json()
    return made


def got(host: Host, path: str) -> Any:
    url = host.url + path
    return host.inside(lambda: httpx.get(url, headers=bearer(), timeout=PATIENCE_S)).json()


def last_unit(town: Town, call_id: str, depot: str) -> dict[str, Any]:
    """A call for which a second is worth a lot, and one unit left."""
    depots = [{"name": depot, "units": 1}]
    return town.call(call_id, primary={"depot": "D0"}, threshold_s=-1000.0, depots=depots)


def promised(host: Host, depot: str) -> list[str]:
    rows = got(host, "/v1/units")
    return [one["call_id"] for row in rows for one in row["promised"] if row["depot"] == depot]


def heard(host: Host, call_id: str, opened: threading.Event) -> None:
    """Return when a desk at the host hears that a unit is promised to the call."""

    def listen() -> None:
        url = f"{host.url}/v1/events"
        with httpx.stream("GET", url, headers=bearer(), timeout=PATIENCE_S) as stream:
            opened.set()
            event = ""
            for line in stream.iter_lines():
                name, _, text = line.partition(": ")
                event = text if name == "event" else event
                if name == "data" and event == "units" and call_id in str(json.loads(text)):
                    return
        raise AssertionError("the stream ended")

    host.inside(listen)


def test_a_promise_of_one_host_is_kept_and_known_by_the_other(hosts: Hosts) -> None:
    opened = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        desk = pool.submit(heard, hosts.two, "h-1", opened)
        assert opened.wait(PATIENCE_S)
        first = asked(hosts.one, last_unit(hosts.town, "h-1", "D1"))
        second = asked(hosts.two, last_unit(hosts.town, "h-2", "D1"))
        desk.result(PATIENCE_S)
    assert (first["decision"], second["decision"]) == ("send_second", "primary_only")
    assert "last_unit_promised" in codes(second)
    assert promised(hosts.two, "D1") == promised(hosts.one, "D1") == ["h-1"]


def test_a_host_that_is_cut_off_says_so_and_promises_nothing(hosts: Hosts) -> None:
    """It advises, the other promises the unit; after it is healed all is in one chain."""
    elsewhere = [{"name": "D0", "units": 500}]
    before = asked(hosts.one, hosts.town.call("before", depots=elsewhere))
    hosts.two.cut()
    try:
        wait_for(lambda: "spooling" in got(hosts.two, "/healthz")["parts"]["audit"])
        assert "ready" in got(hosts.one, "/healthz")["parts"]["audit"]
        alone = [asked(hosts.two, last_unit(hosts.town, f"alone-{n}", "D2")) for n in range(2)]
        kept = asked(hosts.one, last_unit(hosts.town, "kept", "D2"))
    finally:
        hosts.two.heal()
    assert [one["decision"] for one in alone] == ["send_second", "primary_only"]  # its own it knows
    for one in alone:
        assert "promises_unknown" in codes(one)
    words = next(x["words"] for x in alone[0]["degraded"] if x["code"] == "promises_unknown")
    assert words.startswith("no unit is promised to this call: the database is not reached")
    assert kept["decision"] == "send_second"  # whatever the other said: nothing was promised
    assert "promises_unknown" not in codes(kept)
    wait_for(lambda: got(hosts.two, "/healthz")["parts"]["audit"] == "ready")
    after = asked(hosts.two, hosts.town.call("after"))
    assert "promises_unknown" not in codes(after)
    store = AuditStore(hosts.database)
    rows = store.rows(0, 1000)
    store.close()
    acknowledged = {one["id"] for one in (before, *alone, kept, after)}
    assert acknowledged <= {row.id for row in rows}
    done = subprocess.run(
        [IDEAL, "audit", "verify", hosts.database], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith(f"whole: {len(rows):,} rows"), done.stderr
