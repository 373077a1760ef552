"""Notices of PostgreSQL are lost: promises are kept all the same, and are known a little later."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tests.faults.service_faults import PATIENT
from tests.faults.test_nobody_sent_twice import CALLS, at_once, last_unit, workers
from tests.postgres import Postgres, end_listeners
from tests.service_town import Served, Town
from tests.waiting import wait_for


@contextmanager
def lost(url: str) -> Iterator[list[int]]:
    """Cut whoever listens, again and again; how many were cut each time."""
    stop, cut = threading.Event(), [end_listeners(url)]

    def work() -> None:
        while not stop.wait(0.05):
            cut.append(end_listeners(url))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield cut
    finally:
        stop.set()
        thread.join()


def knows(worker: Served, calls: list[str]) -> bool:
    """Whether a worker knows that the unit is promised to these calls and to no others."""
    rows: list[dict[str, Any]] = worker.get("/v1/units", role="dispatcher").json()
    promised = [one for row in rows if row["depot"] == "D1" for one in row["promised"]]
    return [one["call_id"] for one in promised] == calls


def test_a_unit_is_promised_once_although_nobody_hears_of_it(
    town: Town, postgres: Postgres
) -> None:
    url = postgres.new_database()
    config = town.config("lost-notices.toml", server=PATIENT, audit={"url": url})
    with workers(config) as served:
        wait_for(lambda: all("ideal_audit_listening 1.0" in metrics(one) for one in served))
        with lost(url) as cut:
            assert cut[0] == 2
            made = at_once([
                lambda n=n: served[n % 2].post(last_unit(town, f"lost-{n}"))  # type: ignore[misc]
                for n in range(CALLS)
            ])  # fmt: skip
            winners = [one["call_id"] for one in made if one["decision"] == "send_second"]
            assert len(winners) == 1
            for worker in served:  # the safety net: each looks by itself
                wait_for(partial(knows, worker, winners))
        wait_for(lambda: all("ideal_audit_listening 1.0" in metrics(one) for one in served))


def metrics(worker: Served) -> str:
    return worker.get("/metrics").text
