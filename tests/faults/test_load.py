"""Ten times the load: a bounded queue, quick refusals, and answers for those admitted."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from ideal_dispatch.service.solver.messages import Call
from tests.faults.service_faults import ASK, advised
from tests.service_town import PATIENCE_S, Town, application, bearer, local
from tests.waiting import wait_for


def test_ten_times_the_load(town: Town) -> None:
    """Who is refused knows it while the others still wait; who is admitted has an answer."""
    server = {"solvers": 1, "queue": 3, "deadline_s": 60.0}
    with local(application(town.settings("load.toml", server=server))) as client:
        advise, go_on = client.adviser.advise, threading.Event()

        def held(*given: Any) -> Any:
            assert go_on.wait(PATIENCE_S)
            return advise(*given)

        def ask(number: int) -> httpx.Response:
            with httpx.Client(timeout=PATIENCE_S, base_url=client.base_url) as own:
                return own.post(ASK, json=town.call(f"load-{number}"), headers=bearer("cad"))

        setattr(client.adviser, "advise", held)  # noqa: B010
        with ThreadPoolExecutor(40) as callers:
            calls = [callers.submit(ask, number) for number in range(40)]
            wait_for(lambda: sum(call.done() for call in calls) == 37)  # slots for three of one
            go_on.set()
            answers = [call.result() for call in calls]
        setattr(client.adviser, "advise", advise)  # noqa: B010
        refused = [one for one in answers if one.status_code == 503]
        assert {one.headers["Retry-After"] for one in refused} == {"1"}
        assert Counter(one.json()["error"]["code"] for one in refused) == {"busy": 37}
        ids = {one.json()["id"] for one in answers if one.status_code == 200}
        assert len(ids) == 3
        assert advised(client, town.call("afterwards")).decision != "no_advice"
        wait_for(lambda: client.service.admission.inside == 0)
        stored = client.service.ledger._store.recent("recommendation", 1000)
        assert ids <= {row.entry.id for row in stored}


def test_who_storms_leaves_places_and_turns_to_others(town: Town) -> None:
    """The others' call is admitted beside a storm of one token, and is the next to be answered."""
    server = {"solvers": 1, "queue": 7, "deadline_s": 60.0}
    with local(application(town.settings("storm.toml", server=server))) as client:
        service, advise, order = client.service, client.adviser.advise, list[str]()
        begun, go_on = threading.Event(), threading.Event()

        def held(call: Call, *given: Any) -> Any:
            begun.set()
            assert go_on.wait(PATIENCE_S)
            order.append(call.call_id)
            return advise(call, *given)

        def ask(call_id: str, role: str) -> int:
            with httpx.Client(timeout=PATIENCE_S, base_url=client.base_url) as own:
                return own.post(ASK, json=town.call(call_id), headers=bearer(role)).status_code

        setattr(client.adviser, "advise", held)  # noqa: B010
        try:
            with ThreadPoolExecutor(10) as callers:
                storm = [callers.submit(ask, "storm-0", "cad")]
                assert begun.wait(PATIENCE_S)
                storm += [callers.submit(ask, f"storm-{n}", "cad") for n in range(1, 9)]
                wait_for(lambda: sum(one.done() for one in storm) == 3)  # refused at once
                assert service.admission.inside == 6
                other = callers.submit(ask, "other", "dispatcher")
                wait_for(lambda: service.solver._waiting.get("dispatcher"))
                assert service.admission.inside == 7
                go_on.set()
                statuses = sorted(one.result() for one in storm)
                assert statuses == [200] * 6 + [503] * 3
                assert other.result() == 200
        finally:
            setattr(client.adviser, "advise", advise)  # noqa: B010
        assert order[:2] == ["storm-0", "other"]
