"""A solver that is slow, does not converge, or is given odd radii."""

import threading
import time
from typing import Any

import httpx
import pytest
import uvicorn
from ideal_dispatch.service.solver import solver
from ideal_dispatch.service.solver.adviser import Adviser
from ideal_dispatch.service.solver.solver import rehearse

from ideal_dispatch.service.http.server import options
from tests.faults.service_faults import ASK, advised, record_patiently, words
from tests.service_town import PATIENCE_S, Town, application, bearer, local, with_radius
from tests.unit.dispatch.worlds import random_model
from tests.waiting import wait_for


def test_solver_slow(town: Town) -> None:
    """The answer is no_advice, in time, and says why; the next call is answered."""
    with local(application(town.settings("slow.toml", server={"deadline_s": 1.0}))) as client:
        record_patiently(client)
        adviser = client.adviser
        advise, answered = adviser.advise, threading.Event()

        def hanging(*given: Any) -> Any:
            answered.wait(PATIENCE_S)
            return advise(*given)

        setattr(adviser, "advise", hanging)  # noqa: B010
        made = advised(client, town.call("slow"))  # while it hangs
        answered.set()
        assert made.decision == "no_advice"
        assert words(made, "late") == "no answer within the 1 s there are"
        setattr(adviser, "advise", advise)  # noqa: B010
        wait_for(lambda: advised(client, town.call("next")).decision != "no_advice")


def test_solver_not_converged(town: Town) -> None:
    """A search without time gives an open interval, and the advice stands on the gain."""
    policy = {"time_limit_s": 0.0, "method": "certified"}
    with local(application(town.settings("open.toml", policy=policy))) as client:
        for threshold_s, decision in ((5.0, "send_second"), (300.0, "primary_only")):
            made = advised(client, town.call(f"over {threshold_s}", threshold_s=threshold_s))
            assert made.gap is not None
            assert made.gap.status == "open"
            assert made.gap.upper_s is not None
            assert made.gap.lower_s < made.gap.upper_s
            assert made.gain_s is not None
            assert 5.0 < made.gain_s < 300.0
            assert made.decision == decision


@pytest.mark.parametrize("radius", [0.0, 1e-12, 5.0, 500.0])
def test_radius_zero_or_huge(town: Town, radius: float) -> None:
    with_radius(random_model(town.network), radius).save(town.folder / "radius-model")
    settings = town.settings("radius.toml", model={"folder": "radius-model"})
    with local(application(settings)) as client:
        made = advised(client, town.call(f"r{radius}"))
        assert made.decision != "no_advice"
        assert made.gap is not None
        if radius == 0.0:
            assert made.gap.status == "exact"


def test_starting_is_said_so(town: Town) -> None:
    """A call before the kernels are loaded is refused at once, and counted."""
    with local(application(town.settings("starting.toml"))) as client:
        client.solver.warm = False
        refused = client.post(ASK, json=town.call(), headers=bearer("cad"))
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "starting"
        assert refused.headers["Retry-After"] == "1"
        assert client.get("/readyz").status_code == 503
        assert 'ideal_refused_total{why="starting"} 1.0' in client.service.measure().decode()
        client.solver.warm = True
        assert client.get("/readyz").status_code == 200
        assert advised(client, town.call()).decision != "no_advice"
        assert client.service.admission.inside == 0


def test_nobody_listens_before_it_can_advise(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a proxy asks another worker while this one starts."""
    loaded = threading.Event()

    def slowly(adviser: Adviser) -> bool:
        return loaded.wait(PATIENCE_S) and rehearse(adviser)

    monkeypatch.setattr(solver, "rehearse", slowly)
    app = application(town.settings("listening.toml"))
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=0, **options(app.state.service.settings))
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        time.sleep(0.5)
        assert not server.started
        loaded.set()
        wait_for(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        assert httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    finally:
        loaded.set()
        server.should_exit = True
        thread.join(PATIENCE_S)
