"""The clients of `make load` against a small service of this process."""

from collections.abc import Iterator

import pytest

from benchmarks.load_clients import Caller, Endless, endless_head, probe, storm
from tests.service_town import Local, Town, application, local, token


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    with local(application(town.settings("load_clients.toml", server={"queue": 2}))) as opened:
        yield opened


def caller(client: Local, town: Town, role: str) -> Caller:
    assert client.base_url.port is not None
    return Caller(role, client.base_url.port, token(role), [town.place(65), town.place(30)])


def test_a_storm_asks_again_on_every_connection(client: Local, town: Town) -> None:
    got = storm(caller(client, town, "cad"), connections=8, seconds=0.5)
    assert got.count("failed") == 0
    assert sum(map(len, got.seconds.values())) >= 8


@pytest.mark.parametrize("kept", [False, True])
def test_a_probe_asks_so_often_whatever_it_gets(client: Local, town: Town, kept: bool) -> None:
    got = probe(caller(client, town, "dispatcher"), seconds=0.5, every_s=0.1, kept=kept)
    assert got.count("failed") == 0
    assert sum(map(len, got.seconds.values())) == 5


@pytest.mark.parametrize("kind", ["headers", "value", "line", "slow"])
def test_an_endless_head_ends_by_itself(client: Local, kind: Endless) -> None:
    assert client.base_url.port is not None
    ended = endless_head(client.base_url.port, kind, seconds=0.3, most_bytes=1000)
    assert ended.sent_bytes > 0
