"""A worker that was frozen makes no change whose client gave up: a newer one may be known."""

import signal

import httpx
import pytest

from benchmarks.stack import wait_until_ready
from tests.service_town import Town, bearer, serving
from tests.waiting import wait_for


def test_a_thawed_worker_makes_no_change_of_clients_that_hung_up(town: Town) -> None:
    with serving(town.config("frozen.toml")) as served:
        made = served.post(town.call("a")).json()
        response = f"{served.url}/v1/recommendations/{made['id']}/response"
        served.process.send_signal(signal.SIGSTOP)
        try:
            for _ in range(3):
                with httpx.Client(timeout=0.2, headers=bearer()) as client:
                    with pytest.raises(httpx.ReadTimeout):
                        client.put(f"{served.url}/v1/units", json=[{"depot": "D2", "units": 9}])
                    with pytest.raises(httpx.ReadTimeout):
                        client.post(response, json={"action": "accept"})
        finally:
            served.process.send_signal(signal.SIGCONT)
        wait_until_ready(served.url, served.process, served.log)
        assert served.get("/v1/units").json()[2]["updated_at"] is None
        assert served.get(f"/v1/recommendations/{made['id']}").json()["response"] is None
        # a line is written when its connection is done
        wait_for(lambda: sum('"status": 408' in line for line in served.lines()) >= 6, served.lines)
        assert sum('"status": 408' in line for line in served.lines()) == 6
