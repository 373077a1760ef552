"""How soon one host knows what another promised: two network namespaces that share PostgreSQL.

``python -m benchmarks.two_hosts`` asks at one host, call after call, while a desk listens at the
other: with notices of PostgreSQL, and with all of them lost. Needs root, iproute2 and PostgreSQL.
"""

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import numpy as np
from ideal_dispatch.service.audit.database import migrate
from rich.console import Console
from rich.table import Table

from benchmarks.hosts import Host, host, missing_namespaces
from benchmarks.service import Town
from benchmarks.stack import PATIENCE_S
from benchmarks.timing import human
from tests.postgres import Postgres, end_listeners, missing_server, running_postgres

_CALLS, _PAUSE_S = 60, 0.3
_LATE_S = 30.0  # after which a desk is not waited for


class Desk:
    """A desk at a host; ``heard`` has for each call when its unit was shown as promised."""

    def __init__(self, host: Host, token: str) -> None:
        self.heard: dict[str, float] = {}
        self._host, self._headers = host, {"Authorization": f"Bearer {token}"}
        self._opened = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()
        if not self._opened.wait(PATIENCE_S):
            raise RuntimeError(f"{host.name} sends no events")

    def _run(self) -> None:
        with suppress(httpx.TransportError):  # the host ended
            self._host.inside(self._listen)

    def _listen(self) -> None:
        url = f"{self._host.url}/v1/events"
        with httpx.stream("GET", url, headers=self._headers, timeout=PATIENCE_S) as stream:
            self._opened.set()
            event = ""
            for line in stream.iter_lines():
                name, _, text = line.partition(": ")
                event = text if name == "event" else event
                if name == "data" and event == "units":
                    now = time.monotonic()
                    for depot in json.loads(text):
                        for one in depot["promised"]:
                            self.heard.setdefault(one["call_id"], now)


def measure(one: Host, desk: Desk, town: Town, name: str) -> list[float]:
    """Seconds from a host's advice to the desk at the other, infinite where it never heard."""
    answered, rng = {}, np.random.default_rng(0)
    headers = {"Authorization": f"Bearer {town.token}"}
    with httpx.Client(base_url=one.url, headers=headers, timeout=PATIENCE_S) as client:
        for number in range(_CALLS):
            call_id, now = f"{name}-{number}", datetime.now(UTC).isoformat()
            place = town.places[number % len(town.places)]
            body = {"call_id": call_id, "received_at": now, "location": place}
            made = client.post("/v1/recommendations", json=body).raise_for_status().json()
            if made["decision"] != "no_advice":  # that promises nothing
                answered[call_id] = time.monotonic()
            time.sleep(_PAUSE_S * rng.uniform(0.5, 1.5))  # in no step with anything
    deadline = time.monotonic() + _LATE_S
    while not answered.keys() <= desk.heard.keys() and time.monotonic() < deadline:
        time.sleep(0.1)
    return [max(0.0, desk.heard.get(call, np.inf) - at) for call, at in answered.items()]


@contextmanager
def notices_lost(database: str) -> Iterator[None]:
    """Cut whoever listens, again and again."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.05):
            end_listeners(database)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def run(console: Console) -> None:
    with ExitStack() as stack:
        pair = [stack.enter_context(host(name, n)) for n, name in enumerate(("one", "two"))]
        server: Postgres = stack.enter_context(running_postgres([one.gateway for one in pair]))
        database = server.new_database()
        migrate(database)
        folder = stack.enter_context(TemporaryDirectory())
        town = Town.write(Path(folder))
        text = town.config(2, "multistart").read_text()
        for one in pair:
            url = database.replace("127.0.0.1", one.gateway)
            config = Path(folder) / f"{one.name}.toml"
            lines = text.replace("sqlite:///audit.db", url).replace("expiry_s = 2.0\n", "")
            config.write_text(lines.replace("[audit]", f'[audit]\nspool = "{one.name}.spool"'))
            stack.enter_context(one.worker(config))
        desk = Desk(pair[1], town.token)
        told = measure(pair[0], desk, town, "told")
        with notices_lost(database):
            lost = measure(pair[0], desk, town, "lost")
    table = Table("PostgreSQL's notices", "advised", "median", "95 %", "longest", "never heard")
    for name, times in (("heard", np.array(told)), ("listeners cut all the time", np.array(lost))):
        heard = times[np.isfinite(times)]
        shown = (np.median(heard), np.quantile(heard, 0.95), heard.max())
        never = str(times.size - heard.size)
        table.add_row(name, str(times.size), *(human(float(one)) for one in shown), never)
    console.print("From an answer at one host to the desk at the other, which shows its promise:")
    console.print(table)


if __name__ == "__main__":
    if missing := missing_namespaces() or missing_server():
        sys.exit(f"two hosts: {missing}")
    run(Console())
