"""A worker that was frozen makes no change whose client gave up: a newer one may be known."""

import signal
from typing import Any

import httpx
import pytest

from benchmarks.stack import wait_until_ready
from tests.service_town import ASK, Town, bearer, serving
from tests.waiting import wait_for


def test_a_thawed_worker_makes_no_change_of_clients_that_hung_up(town: Town) -> None:
    with serving(town.config("frozen.toml")) as served:
        served.report()
        made = served.advice(town.call("a"))
        changes: list[Any] = [("PUT", "/v1/units", [{"depot": "D2", "free": 9}]),
                   ("POST", f"{ASK}/{made['id']}/reply", {"action": "accept"}),
                   ("POST", ASK, town.call("a", note="stale"))]  # fmt: skip
        served.process.send_signal(signal.SIGSTOP)
        try:
            for method, path, body in 3 * changes:
                with pytest.raises(httpx.ReadTimeout):
                    httpx.request(
                        method, served.url + path, json=body, headers=bearer(), timeout=0.2
                    )
        finally:
            served.process.send_signal(signal.SIGCONT)
        wait_until_ready(served.url, served.process, served.log)
        # a line is written when its connection is done
        wait_for(lambda: sum('"status": 408' in line for line in served.lines()) == 9, served.lines)
        assert sum(one["depot"] == "D2" for one in served.read("/v1/units")) == 100
        assert served.read(ASK) == [made]
