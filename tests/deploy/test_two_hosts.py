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

from benchmarks.hosts import Host, host, missing_namespaces
from benchmarks.stack import IDEAL
from tests.postgres import missing_server, running_postgres
from tests.service_town import PATIENCE_S, Town, bearer, codes, counts
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
        for one in pair:
            url = database.replace("127.0.0.1", one.gateway)
            patient = {"expiry_s": 3600.0}
            config = town.config(f"{one.name}.toml", audit={"url": url}, server=patient)
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


def report(host: Host, *news: dict[str, Any]) -> int:
    """The status of an answer to a report of units."""
    url = f"{host.url}/v1/units"
    return host.inside(
        lambda: httpx.put(url, json=news, headers=bearer("cad"), timeout=PATIENCE_S)
    ).status_code


def last_unit(town: Town, call_id: str) -> dict[str, Any]:
    """A call for which the second is worth a lot."""
    return town.call(call_id, primary={"depot": "D0"}, threshold_s=-1000.0)


def promised(host: Host, depot: str) -> list[str]:
    rows = got(host, "/v1/units")
    return [one["promised"]["call_id"] for one in rows if one["promised"] and one["depot"] == depot]


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
    assert report(hosts.one, *counts(D0=1, D1=1)) == 200
    with ThreadPoolExecutor(1) as pool:
        desk = pool.submit(heard, hosts.two, "h-1", opened)
        assert opened.wait(PATIENCE_S)
        first = asked(hosts.one, last_unit(hosts.town, "h-1"))
        second = asked(hosts.two, last_unit(hosts.town, "h-2"))
        desk.result(PATIENCE_S)
    assert first["second"]["depot"] == "D1"
    assert (second["second"] or {"depot": ""})["depot"] != "D1"
    assert "last_unit_promised" in codes(second)
    assert promised(hosts.two, "D1") == promised(hosts.one, "D1") == ["h-1"]


def test_a_host_that_is_cut_off_gives_no_advice_and_the_other_goes_on(hosts: Hosts) -> None:
    assert report(hosts.one, *counts(D0=2, D1=1, D2=1)) == 200  # one of D0 and D1 is promised
    hosts.two.cut()
    try:
        alone = [asked(hosts.two, last_unit(hosts.town, f"alone-{n}")) for n in range(2)]
        assert report(hosts.two, *counts(D1=7)) == 503
        kept = asked(hosts.one, last_unit(hosts.town, "kept"))
    finally:
        hosts.two.heal()
    for one in alone:
        assert (one["decision"], one["state"]) == ("no_advice", "unrecorded")
        assert codes(one)[0] == "record_unavailable"
    assert kept["second"]["depot"] == "D2"
    wait_for(lambda: asked(hosts.two, hosts.town.call("again"))["state"] == "open")
    assert promised(hosts.two, "D2") == ["kept"]
    done = subprocess.run(
        [IDEAL, "audit", "verify", hosts.database], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("whole: "), done.stderr
