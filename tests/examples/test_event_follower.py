"""The follower forwards every event, whichever of the three programs fails."""

import json
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.examples.programs import running
from tests.stand_in import Answer, Asked, serve
from tests.waiting import wait_for

LAST = 9


def service(asked: Asked) -> Answer:
    """At most two events after the given number, a position, and the end of the stream."""
    assert asked.headers["authorization"] == "Bearer t0ken"
    after = int(asked.query.get("after", "4"))
    numbers = range(after + 1, min(after + 2, LAST) + 1)
    parts = [f'id: {n}\nevent: units\ndata: {{"id": "A{n}"}}\n\n' for n in numbers]
    position = 'event: units\ndata: {"id": "A1"}\n\n: ping\n\n'
    return Answer(position.join(["", *parts]), headers={"Content-Type": "text/event-stream"})


def test_every_event_arrives_in_order_and_again_where_it_was_not_taken(tmp_path: Path) -> None:
    refused = [6, 6, 8]
    taken = []

    def receiver(asked: Asked) -> Answer:
        number = json.loads(asked.body)["number"]
        if number in refused:
            refused.remove(number)
            return Answer(status=500)
        taken.append(number)
        return Answer(status=204)

    file = tmp_path / "last_event.txt"

    def reached(number: int) -> bool:
        return file.exists() and int(file.read_text()) >= number

    with ExitStack() as stack:
        theirs, ours = (stack.enter_context(serve(one)) for one in (service, receiver))
        for until in (7, LAST):  # ended without warning in between, and started again
            with running("event_follower.py", theirs.url, f"{ours.url}/hook", file):
                wait_for(partial(reached, until))
    assert list(dict.fromkeys(taken)) == [5, 6, 7, 8, 9]
    first = json.loads(ours.asked[0].body)
    assert first == {"number": 5, "event": "units", "data": {"id": "A5"}}
