"""A player against a stand-in: what its dispatcher answers, and what it does about it."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from typing import Any, cast

import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.network.routing import distances_to
from ideal_dispatch.player.player import Life, Player, ServiceClient
from ideal_dispatch.player.roads import Roads
from tests.unit.player.checks import DEPOTS, check_statuses, geojson

ASK = "/v1/recommendations"
NEVER_S = 1e9


class StandIn:
    """A service without HTTP that advises the first free unit, and what ``hook`` says beside."""

    def __init__(self, grid: RoadNetwork) -> None:
        self._map, self._now = geojson(grid), datetime(2026, 3, 2, 0, tzinfo=UTC)
        self.speed, self.counts = 1.0, Counter[str]()
        self.heard: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self.units: dict[str, dict[str, Any]] = {}
        self.news: list[dict[str, Any]] = []
        self.advice: dict[str, dict[str, Any]] = {}
        self.replies: list[tuple[str, dict[str, Any]]] = []
        self.refuse: dict[str, Any] | None = None

    def now(self) -> float:
        return self._now.timestamp()

    def follow_clock(self, clock: dict[str, Any]) -> None:
        assert clock["speed"] == self.speed

    def listen(self, *kinds: str) -> None:
        assert {"reply", "dispatch", "closures", "promise_lost"} <= set(kinds)

    def need(self, method: str, path: str, body: Any = None) -> Any:
        clock = {"now": self._now.isoformat(), "speed": 1.0}
        if path == "/v1/city":
            depots = [{"name": name, "lon": lon, "lat": lat} for name, (lon, lat) in DEPOTS.items()]
            return {"name": "Gridtown", "time_zone": "Asia/Hong_Kong", "depots": depots,
                    "clock": clock}  # fmt: skip
        if path == "/v1/clock":
            self._now += timedelta(seconds=body["step_s"])
            return clock
        return self._map if path.endswith("geojson") else []

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        if path == "/v1/units":
            assert len({row["id"] for row in body}) == len(body)
            self.news += body
            for row in body:
                self._moved(row, self.units.get(row["id"], {}))
                self.units[row["id"]] = row
            return 200, {"taken": len(body), "ignored": []}
        if path.startswith(f"{ASK}?"):
            return 200, self.advised(body)
        id_ = path.split("/")[3]
        self.replies.append((id_, body))
        if self.refuse is not None:
            return 409, {"error": self.refuse}
        return 200, self.advice[id_]

    def advised(self, call: dict[str, Any]) -> dict[str, Any]:
        first = call["primary"]["unit"]
        assert self.units[first]["call_id"] == call["call_id"]  # it was reported before
        free = [one["id"] for one in self.units.values() if one["status"] == "at_station"]
        made: dict[str, Any] = {
            "id": f"r{len(self.advice)}", "call_id": call["call_id"], "second": None,
            "decision": "primary_only",
        }  # fmt: skip
        if free:
            made |= {"decision": "send_second", "second": {"unit": free[0], "depot": "D0"}}
        self.advice[made["id"]] = made
        return made

    def said(self, kind: str, id_: str, **facts: Any) -> None:
        """An event about an advice."""
        self.heard.put((kind, {"id": id_, "reply": None, "question": None, **facts}))

    def _moved(self, row: dict[str, Any], before: dict[str, Any]) -> None:
        pass

    # --- what became of it --------------------------------------------------------------

    def sent(self) -> set[tuple[str, str]]:
        """Units that were on a call, and the call."""
        return {(row["id"], row["call_id"]) for row in self.news if row["call_id"]}

    def advised_units(self) -> set[tuple[str, str]]:
        return {
            (one["second"]["unit"], one["call_id"]) for one in self.advice.values() if one["second"]
        }


def play(service: StandIn, minutes: float = 60.0, **life: Any) -> Player:
    wanted = {"calls_per_day": 400.0, "units": 20, "step_s": 10.0, "think_s": 5.0, **life}
    player = Player(cast(ServiceClient, service), Life(minutes=minutes, **wanted))
    player.play()
    return player


def test_accepted_seconds_are_sent(grid: RoadNetwork) -> None:
    service = StandIn(grid)
    player = play(service, accept=1.0)
    assert len(service.advice) > 5
    actions = {reply["action"] for _, reply in service.replies}
    assert "accept" in actions
    accepted = {id_ for id_, reply in service.replies if reply["action"] == "accept"}
    for id_, one in service.advice.items():
        if one["second"]:
            sent = (one["second"]["unit"], one["call_id"]) in service.sent()
            assert sent == (id_ in accepted)
    assert player.counts["second units sent"] > 3
    found = check_statuses(service.news)
    assert len(found) == 20


def test_what_is_not_accepted_is_overridden_with_a_reason(grid: RoadNetwork) -> None:
    service = StandIn(grid)
    play(service, accept=0.0)
    seconds = {id_ for id_, one in service.advice.items() if one["second"]}
    told = [reply for id_, reply in service.replies if id_ in seconds]
    assert told
    assert all(reply["action"] == "override" and reply["reason_code"] for reply in told)
    assert not service.sent() & service.advised_units()


@pytest.mark.parametrize("error", [
    {"code": "expired"}, {"code": "unit_promised"},
    {"code": "answered", "reply": {"action": "override"}},
])  # fmt: skip
def test_a_refused_reply_is_not_repeated_and_nobody_is_sent(
    grid: RoadNetwork, error: dict[str, Any]
) -> None:
    service = StandIn(grid)
    service.refuse = error
    play(service, accept=1.0)
    ids = [id_ for id_, _ in service.replies]
    assert len(ids) == len(set(ids)) > 3
    assert not service.sent() & service.advised_units()


def test_who_is_refused_does_what_was_answered_before(grid: RoadNetwork) -> None:
    service = StandIn(grid)
    service.refuse = {"code": "answered", "reply": {"action": "accept"}}
    play(service, accept=0.0)
    assert service.sent() & service.advised_units()


def test_a_person_at_a_desk_who_answers_first_is_obeyed(grid: RoadNetwork) -> None:
    class Desk(StandIn):
        def advised(self, call: dict[str, Any]) -> dict[str, Any]:
            made = super().advised(call)
            action = "accept" if len(self.advice) % 2 else "override"
            self.said("reply", made["id"], reply={"action": action})
            return made

    service = Desk(grid)
    play(service, think_s=NEVER_S)
    assert not service.replies
    calls = [one for one in service.advice.values() if one["second"]]
    sent = [(one["second"]["unit"], one["call_id"]) in service.sent() for one in calls]
    assert any(sent)
    assert not all(sent)


def test_a_question_about_a_dispatch_is_answered_and_the_unit_turns_round(
    grid: RoadNetwork,
) -> None:
    class Asking(StandIn):
        """Asks to stand a second unit down once it drives, and then for another one."""

        def _moved(self, row: dict[str, Any], before: dict[str, Any]) -> None:
            made = next(
                (one for one in self.advice.values() if one["second"]
                 and (one["second"]["unit"], one["call_id"]) == (row["id"], row["call_id"])), None,
            )  # fmt: skip
            if made is not None and row["status"] == "en_route" != before["status"]:
                asked = {"id": f"q{made['id']}", "advice": "stand_down", "unit": row["id"]}
                for _ in range(2):  # events may come twice
                    self.said("dispatch", made["id"], question=asked, second=made["second"])

    service = Asking(grid)
    player = play(service, accept=1.0, think_s=0.0)
    told = [reply for _, reply in service.replies if reply["action"] == "stand_down"]
    assert len(told) > 2
    assert len({reply["question"] for reply in told}) == len(told)
    assert player.counts["second units stood down"] > 2
    found = check_statuses(service.news)
    assert any("en_route available" in " ".join(statuses) for statuses in found.values())


def test_another_unit_that_somebody_asked_for_is_sent(grid: RoadNetwork) -> None:
    other = dict[str, str]()

    class Proposing(StandIn):
        def advised(self, call: dict[str, Any]) -> dict[str, Any]:
            made = super().advised(call)
            free = [one["id"] for one in self.units.values() if one["status"] == "at_station"]
            if made["second"] and len(free) > 1 and not other:
                other["unit"], other["call_id"] = free[-1], made["call_id"]
                reply, second = {"action": "send_one"}, {"unit": free[-1]}
                self.said("dispatch", made["id"], reply=reply, second=second)
            return made

    service = Proposing(grid)
    play(service, think_s=NEVER_S)
    assert (other["unit"], other["call_id"]) in service.sent()


def test_a_lost_promise_is_answered_at_once(grid: RoadNetwork) -> None:
    class Losing(StandIn):
        def advised(self, call: dict[str, Any]) -> dict[str, Any]:
            made = super().advised(call)
            busy = {"unit": call["primary"]["unit"], "depot": "D0"}
            made |= {"decision": "send_second", "second": busy}
            self.said("promise_lost", made["id"], unit=busy["unit"], why="sent")
            return made

    service = Losing(grid)
    play(service, think_s=NEVER_S)
    assert {reply["reason_code"] for _, reply in service.replies} == {"unit_unavailable"}


def test_closed_roads_are_those_of_the_service(grid: RoadNetwork) -> None:
    service = StandIn(grid)
    open_, shut = ({"edges": [e], "active": e == 3} for e in (2, 3))
    service.heard.put(("closures", [open_, shut]))
    roads = play(service, minutes=1.0).city.roads
    usual = Roads(geojson(grid))
    for edge, closed in ((2, False), (3, True)):
        tail, head = (int(ends[edge]) for ends in (usual.network.tail, usual.network.head))
        after_s, before_s = (
            distances_to(one.network, one.costs_s, head)[tail] for one in (roads, usual)
        )
        assert (after_s > before_s) == closed
