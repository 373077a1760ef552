"""No unit elsewhere, none anywhere, a depot that is none; counts told while nobody keeps them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faults.service_faults import advised, codes, words
from tests.postgres import Postgres
from tests.service_town import Local, Town, application, bearer, local
from tests.waiting import wait_for


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    city = {"aliases": {"ALPHA": "D0"}}
    settings = town.settings("units.toml", units={"default": 0}, city=city)
    with local(application(settings)) as opened:
        yield opened


def test_no_unit_at_the_other_depot(client: Local, town: Town) -> None:
    """The primary is enough, for there is nobody else."""
    body = town.call(primary={"depot": "D0"}, depots=[{"name": "D0", "units": 0}])
    made = advised(client, body)
    assert made.decision == "primary_only"
    assert made.second is None
    assert "no other unit on another road" in made.explanation.text


def test_no_unit_anywhere(client: Local, town: Town) -> None:
    for depots in ([], [{"name": "D0", "units": 0}], None):
        made = advised(client, town.call("none", depots=depots))
        assert made.decision == "no_advice"
        assert codes(made)[0] == "no_unit"
        assert made.headline == "No advice: no depot is known to have a free unit"


def test_unknown_depot_of_the_primary(client: Local, town: Town) -> None:
    made = advised(client, town.call(primary={"depot": "Depot 0"}))
    assert made.decision == "no_advice"
    assert words(made, "unknown_depot").startswith("depot Depot 0: no such depot; ")
    made = advised(client, town.call(primary={"depot": "D0 "}))
    assert "did you mean D0?" in words(made, "unknown_depot")


def test_unknown_depot_among_the_candidates(client: Local, town: Town) -> None:
    """The others still count."""
    depots = [{"name": "Atlantis", "units": 5}, {"name": "D1", "units": 1}]
    made = advised(client, town.call(primary={"depot": "D0"}, depots=depots, threshold_s=-1.0))
    assert made.decision == "send_second"
    assert made.second is not None
    assert made.second.depot == "D1"
    assert "'Atlantis'" in words(made, "unknown_depot")


def test_depots_by_their_call_signs_and_in_any_case(client: Local, town: Town) -> None:
    depots = [{"name": "d1", "units": 9}]
    sent = town.call("sign", primary={"depot": "alpha"}, depots=depots, threshold_s=-1000.0)
    made = advised(client, sent)
    assert made.primary is not None
    assert made.second is not None
    assert (made.primary.depot, made.second.depot) == ("D0", "D1")
    assert "unknown_depot" not in codes(made)
    twice = [{"depot": "D0", "units": 1}, {"depot": "Alpha", "units": 2}]
    refused = client.put("/v1/units", json=twice, headers=bearer("cad"))
    assert refused.status_code == 422
    assert refused.json()["error"]["message"] == "D0 is told twice; give one count of each depot"
    tell(client, {"ALPHA": 0})


def test_the_unit_already_sent_is_no_second(client: Local, town: Town) -> None:
    tell(client, {"D0": 1, "D1": 0, "D2": 0})
    body = town.call("sent", primary={"depot": "D0"}, depots=None, threshold_s=-1.0)
    made = advised(client, body)
    assert (made.decision, made.second) == ("primary_only", None)
    assert "the primary is taken off" in words(made, "units_assumed")


# --- the database is away ------------------------------------------------------------


def tell(client: Local, units: dict[str, int]) -> None:
    told = [{"depot": depot, "units": count} for depot, count in units.items()]
    assert client.put("/v1/units", json=told, headers=bearer("cad")).status_code == 200


def known(client: Local) -> list[int]:
    return [row["units"] for row in client.get("/v1/units", headers=bearer()).json()]


def wait_until(client: Local, units: list[int]) -> None:
    wait_for(lambda: known(client) == units, lambda: known(client))


@contextmanager
def worker(town: Town, url: str) -> Iterator[Local]:
    with local(application(town.settings("kept.toml", audit={"url": url}))) as opened:
        yield opened


def test_counts_told_without_a_database_reach_everybody(town: Town, postgres: Postgres) -> None:
    """The other worker, the next process while it is still away, and whoever comes after."""
    url = postgres.new_database()
    with worker(town, url) as other, worker(town, url) as teller:
        tell(teller, {"D0": 4, "D1": 1, "D2": 1})
        wait_until(other, [4, 1, 1])
        postgres.stop("immediate")
        try:
            tell(teller, {"D0": 7})
            assert known(teller) == [7, 1, 1]
            assert known(other) == [4, 1, 1]
        finally:
            postgres.start()
        wait_until(other, [7, 1, 1])
    # nobody else is left who would take over what a process that ended had in its spool
    postgres.stop("immediate")
    try:
        with worker(town, url) as teller:
            tell(teller, {"D2": 9})
        with worker(town, url) as next_one:
            assert known(next_one)[2] == 9
    finally:
        postgres.start()
    with worker(town, url) as later:
        wait_until(later, [7, 1, 9])
