"""deploy/nginx.conf in a real nginx before two small servers, each of which fails in its own way.

Times that nginx waits are made longer or shorter here, so that no test depends on speed.
"""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import pytest

from benchmarks.stack import proxied
from tests.deploy.conftest import client_of
from tests.service_town import bearer
from tests.stand_in import Answer, Asked, Server, serve

pytestmark = pytest.mark.usefixtures("nginx_is_there")

ASK, EIDO = "/v1/recommendations", "/v1/incidents/eido"
RESPONSE = f"{ASK}/a1/response"
MARKED = ("fail_timeout=10s", "fail_timeout=600s")


@dataclass
class Two:
    """nginx, and two servers whose status can be changed; each says which it is."""

    client: httpx.Client
    says: list[int]
    servers: list[Server]

    def ask(self, path: str = ASK) -> httpx.Response:
        return self.client.post(path, json={"call_id": "c-1"}, headers=bearer("cad"))


@contextmanager
def two(
    folder: Path,
    says: Sequence[int],
    others: Sequence[tuple[str, str]] = (MARKED,),
    wait_s: float = 0.0,
) -> Iterator[Two]:
    """Both answer with the statuses of ``says``, after ``wait_s``."""
    now = list(says)

    def answer(number: int, asked: Asked) -> Answer:
        kind = {"Content-Type": "application/json"}
        return Answer(f'{{"server": {number}}}', now[number], kind, delay_s=wait_s)

    with ExitStack() as stack:
        servers = [stack.enter_context(serve(partial(answer, number))) for number in range(2)]
        ports = [httpx.URL(server.url).port or 0 for server in servers]
        proxy = stack.enter_context(proxied(folder, ports, others))
        yield Two(stack.enter_context(client_of(proxy)), now, servers)


@pytest.mark.parametrize("path", [ASK, EIDO, RESPONSE])
def test_a_call_that_one_worker_refuses_is_answered_by_the_other(path: str, tmp_path: Path) -> None:
    with two(tmp_path, [503, 200]) as both:
        answers = [both.ask(f"{path}?x=1") for _ in range(6)]
    assert [(one.status_code, one.json()) for one in answers] == [(200, {"server": 1})] * 6
    refusing, healthy = both.servers
    assert len(refusing.asked) == 1  # the others are not even tried there
    assert {(one.path, one.query["x"], one.body) for one in healthy.asked} == {
        (path, "1", refusing.asked[0].body)
    }


def test_a_call_that_all_workers_refuse_is_tried_three_times_and_refused(tmp_path: Path) -> None:
    with two(tmp_path, [503, 503]) as both:
        first, later = both.ask(), [both.ask() for _ in range(5)]
    assert first.status_code == 503
    assert "server" in first.json()  # in the worker's own words
    assert {one.status_code for one in later} == {503}
    assert sum(len(server.asked) for server in both.servers) <= 3 * 6


def test_a_worker_that_is_back_is_asked_when_the_other_stops(tmp_path: Path) -> None:
    """A rolling restart: nginx still leaves the first one alone, and yet no call is refused."""
    with two(tmp_path, [503, 200]) as both:
        assert both.ask().json() == {"server": 1}
        both.says[:] = 200, 503
        answers = [both.ask() for _ in range(6)]
    assert [(one.status_code, one.json()) for one in answers] == [(200, {"server": 0})] * 6


@pytest.mark.parametrize(
    ("method", "path", "lost"),
    [
        ("POST", ASK, 0),
        ("GET", "/v1/city", 0),
        ("PUT", "/v1/units", 1),
        ("POST", RESPONSE, 1),
    ],
)
def test_what_a_frozen_worker_got_goes_to_the_other_unless_it_changes_something(
    method: str, path: str, lost: int, tmp_path: Path
) -> None:
    """Its socket takes connections, and nobody answers; only one request waits for it.

    When it goes on, it may still make a change, after newer ones at the other.
    """
    soon = ("proxy_read_timeout 10s", "proxy_read_timeout 2200ms")
    with (
        socket.create_server(("127.0.0.1", 0)) as frozen,
        serve(lambda asked: Answer("{}")) as healthy,
    ):
        ports = [frozen.getsockname()[1], httpx.URL(healthy.url).port or 0]
        with proxied(tmp_path, ports, (MARKED, soon)) as proxy, client_of(proxy) as client:
            answers = [client.request(method, path, json={}) for _ in range(6)]
        assert [one.status_code for one in answers] == [503] * lost + [200] * (6 - lost)
        assert len(healthy.asked) == 6 - lost
        frozen.setblocking(False)
        frozen.accept()[0].close()
        with pytest.raises(BlockingIOError):
            frozen.accept()


def test_the_map_has_the_time_that_the_desk_waits(tmp_path: Path) -> None:
    soon = ("proxy_read_timeout 10s", "proxy_read_timeout 10ms")
    with two(tmp_path, [200, 200], (soon,), wait_s=0.5) as both:
        assert both.client.get("/v1/network.geojson").status_code == 200
        assert both.client.get("/v1/city").json()["error"]["code"] == "down"


def test_only_calls_have_little_time(tmp_path: Path) -> None:
    """What a CAD waits for is given up early; lists, maps and cards are not."""
    with two(tmp_path, [200, 200], (("2200ms", "10ms"),), wait_s=0.5) as both:
        assert both.ask().json()["error"]["code"] == "down"
        assert both.ask(EIDO).json()["error"]["code"] == "down"
        assert both.client.get(ASK).status_code == 200
        assert both.client.get("/v1/city").status_code == 200


FEW = (("rate=50r/s", "rate=1r/m"), ("burst=100 delay=50", "burst=10 nodelay"))


def statuses(
    client: httpx.Client, count: int, headers: Mapping[str, str] | None = None
) -> set[int]:
    return {client.post(ASK, json={}, headers=headers).status_code for _ in range(count)}


def test_who_guesses_or_storms_costs_no_other_token_a_call(tmp_path: Path) -> None:
    """All from one address, where a limit by address would refuse the CAD."""
    with two(tmp_path, [200, 200], FEW) as both:
        client = both.client
        for number in range(30):
            wrong = {"Authorization": f"Bearer guess-{number}-{'x' * 30}"}
            assert client.get("/v1/city", headers=wrong).status_code == 200  # the service refuses
        assert statuses(client, 30, bearer("auditor")) == {200, 429}
        assert statuses(client, 30) == {200, 429}  # no token: limited by address
        refused = client.post(ASK, json={})
        assert refused.json()["error"]["code"] == "too_many"
        assert refused.headers["retry-after"] == "1"
        cut = {"Authorization": f"Bearer {'x' * 5000}"}
        assert statuses(client, 1, cut) == {429}  # such are no tokens
        assert statuses(client, 5, bearer("cad")) == {200}
        desk = {"Cookie": f"ideal_session={'d' * 43}"}
        assert statuses(client, 5, desk) == {200}
