"""Closed roads while parts of the service fail: what was acknowledged stays closed."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ideal_dispatch.service.audit.store import AuditStore

from tests.faults.service_faults import ASK, codes, words
from tests.faults.service_faults import advised as made
from tests.faults.test_routing_engine import routed, settings
from tests.postgres import Postgres
from tests.service_town import Local, Town, application, bearer, local
from tests.stand_in import Answer, Asked, serve
from tests.waiting import wait_for

CLOSURES = "/v1/closures"


def close(client: Local, edge: int) -> str:
    answer = client.post(CLOSURES, json={"edges": [edge]}, headers=bearer("cad"))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def end(client: Local, id_: str) -> None:
    assert client.delete(f"{CLOSURES}/{id_}", headers=bearer("cad")).status_code == 204


def known(client: Local) -> list[str]:
    return [one["id"] for one in client.get(CLOSURES, headers=bearer("cad")).json()]


def knows(client: Local, *ids: str) -> Callable[[], bool]:
    return lambda: known(client) == list(ids)


def advised(client: Local, call: dict[str, Any]) -> list[str]:
    closures: list[str] = client.post(ASK, json=call, headers=bearer("cad")).json()["closures"]
    return closures


def test_two_workers_know_the_same_closures(town: Town) -> None:
    config = town.settings("two-closing.toml")
    with local(application(config)) as one, local(application(config)) as two:
        first = close(one, 3)
        assert known(one) == [first]
        wait_for(knows(two, first))
        assert advised(two, town.call("at two")) == [first]
        second = close(two, 5)
        wait_for(knows(one, first, second))
        end(two, first)
        wait_for(knows(one, second))
        assert known(two) == [second]
    with local(application(config)) as again:  # after a restart, from the table
        wait_for(knows(again, second))
        assert advised(again, town.call("again")) == [second]


def test_a_closure_survives_the_database_being_down(town: Town, postgres: Postgres) -> None:
    url = postgres.new_database()
    config = town.settings("down-closing.toml", audit={"url": url})
    with local(application(config)) as client:
        before = close(client, 3)
        wait_for(lambda: not len(client.service.ledger.writer.spool))
        postgres.stop("immediate")
        try:
            during = close(client, 5)
            end(client, before)
            assert known(client) == [during]
            assert advised(client, town.call("down")) == [during]
        finally:
            postgres.start()
        wait_for(lambda: _on_record(url) == [during])
        wait_for(knows(client, during))  # its own rows were followed: nothing came back
        last = close(client, 7)
        wait_for(lambda: _on_record(url) == [during, last])
    with local(application(config)) as client:
        wait_for(knows(client, during, last))


def test_a_worker_that_starts_without_a_database_knows_what_waits(
    town: Town, postgres: Postgres
) -> None:
    url = postgres.new_database()
    config = town.settings("restarted-closing.toml", audit={"url": url})
    with local(application(config)) as client:
        before = close(client, 3)
    postgres.stop("immediate")
    try:
        with local(application(config)) as client:
            during = close(client, 5)
        with local(application(config)) as client:
            assert known(client) == [during]
            assert advised(client, town.call("restarted")) == [during]
            after = close(client, 7)
    finally:
        postgres.start()
    with local(application(config)) as client:
        wait_for(lambda: sorted(known(client)) == sorted([before, during, after]))
        wait_for(lambda: sorted(_on_record(url)) == sorted([before, during, after]))


@pytest.mark.parametrize("obeys", [True, False])
def test_a_routing_engine_that_drives_over_closed_roads(town: Town, obeys: bool) -> None:
    """One that obeys is believed; one that does not is replaced by the forecast, for that call."""
    name = f"engine-closing-{obeys}.toml"

    def answer(asked: Asked) -> Answer:
        network, question = town.network, json.loads(asked.body)
        if obeys:
            places = [(one["lon"], one["lat"]) for one in question.get("exclude_locations", [])]
            spots = network.snapper.plane.to_metres(np.array(places).reshape(-1, 2))
            network = network.closing(network.snapper.edges_within(spots, 1.0)[1].tolist())
        return Answer(routed(network, asked))

    with (
        serve(answer) as server,
        local(application(settings(town, name, server.url))) as client,
    ):
        before = made(client, town.call("open"))
        assert "closed_road" not in codes(before)
        assert before.primary is not None
        edge = before.primary.route.edges[1]
        id_ = close(client, edge)
        around = made(client, town.call("closed"))
        assert around.closures == [id_]
        assert around.primary is not None
        assert edge not in around.primary.route.edges
        assert ("closed_road" in codes(around)) is not obeys
        if not obeys:
            assert "is over a closed road; the forecast is used" in words(around, "closed_road")
        assert client.service.solver.traffic == "ready"
        end(client, id_)
        again = made(client, town.call("open again"))
        assert "closed_road" not in codes(again)
        assert again.primary is not None
        assert again.primary.route.edges == before.primary.route.edges


def _on_record(url: str) -> list[str]:
    """What the table says; nothing while the database comes back."""
    store = AuditStore(url)
    try:
        return [one.id for one in store.read_closures()]
    except Exception:
        return []
    finally:
        store.close()
