"""The dispatcher of a living city: asks for advice, answers it, and sends units by it."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ideal_dispatch.living.api import Answer, Api, ServiceClock
from ideal_dispatch.living.city import COMING, City, Unit
from ideal_dispatch.living.incidents import Incident
from ideal_dispatch.living.tally import Tally

ASK, DISPATCHES, CLOSURES = "/v1/recommendations", "/v1/dispatches", "/v1/closures"
_REASONS = ("road_knowledge", "patient_condition", "capacity")
_NOT_NEEDED = {"action": "override", "reason_code": "other", "text": "somebody is there already"}
_NOT_FREE = {"action": "override", "reason_code": "unit_unavailable", "text": "on another call"}
_ACCEPT = {"action": "accept"}


@dataclass(eq=False)
class Case:
    """A call with its advice. ``answered`` are the advices on its dispatch that were answered."""

    incident: Incident
    advice: dict[str, Any]
    action: str | None = None
    sent: bool = False
    answered: set[str] = field(default_factory=set)


class Dispatcher:
    """Accepts a share ``accept`` of all advice, after ``think_s`` on average; overrides the rest.

    Whatever somebody else answers in the meantime, at a desk, is done as well: the last answer
    counts.
    """

    def __init__(
        self,
        api: Api,
        clock: ServiceClock,
        tally: Tally,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        accept: float,
        think_s: float,
    ) -> None:
        self._api, self._clock, self._tally, self._spawn = api, clock, tally, spawn
        self._accept, self._think_s = accept, think_s
        self._cases: dict[str, Case] = {}
        self.city: City

    def sent(self, incident: Incident, at_s: float) -> None:
        """A call got its primary: ask about a second. The primary waits for nothing."""
        self._spawn(self._ask(incident))

    async def listen(self) -> None:
        """Act on what the service tells, without end."""
        async for event, data in self._api.events("dispatch", "response", "closures"):
            if event == "connected":
                answer = await self._api.ask("GET", CLOSURES)
                if answer.good:
                    self._keep_off(answer.content)
                answer = await self._api.ask("GET", DISPATCHES)
                for one in answer.content if answer.good else ():
                    self._follow(one)
            elif event == "dispatch":
                self._follow(data)
            elif event == "closures":
                self._keep_off(data)
            elif event == "response":
                case = self._cases.get(data["recommendation_id"])
                if case is not None:
                    self._obey(case, data["response"]["action"])

    # --- advice on a call ---------------------------------------------------------------

    async def _ask(self, incident: Incident) -> None:
        answer = await self._api.insist(
            "POST", ASK, self._request(incident),
            lambda: incident.first is None and not incident.over, call=incident.id,
        )  # fmt: skip
        if not answer.good:
            self._tally.refused[answer.why] += 1
            return
        advice = answer.content
        self._tally.latency_ms.append(answer.ms)
        self._tally.decisions[advice["decision"]] += 1
        self._api.log.write(
            "advice", call=incident.id, id=advice["id"], decision=advice["decision"],
            second=advice["second"] and advice["second"].get("unit"),
        )  # fmt: skip
        if advice["decision"] == "no_advice":
            return
        self._cases = {
            key: case
            for key, case in self._cases.items()
            if case.incident.units or not case.incident.over
        }
        case = self._cases[advice["id"]] = Case(incident, advice)
        await self._think(incident)
        if case.action is None:  # nobody else has answered
            await self._reply(case)

    def _request(self, incident: Incident) -> dict[str, Any]:
        unit = incident.primary
        assert unit is not None
        return {
            "call_id": incident.id,
            "idempotency_key": f"{incident.id}/1",
            "received_at": self._clock.text(incident.at_s),
            "location": {"lon": incident.lon, "lat": incident.lat},
            "primary": {"unit": unit.id, "depot": unit.station.depot},
        }

    async def _reply(self, case: Case) -> None:
        reply = _ACCEPT
        if case.advice["decision"] == "send_second":
            reply = self._obstacle(case) or reply
            dice = case.incident.dice
            if reply is _ACCEPT and dice.random() >= self._accept:
                reply = {"action": "override", "reason_code": str(dice.choice(_REASONS))}
        if await self._say(case, reply) and not self._obey(case, reply["action"]):
            await self._say(case, self._obstacle(case) or _NOT_NEEDED)

    async def _say(self, case: Case, reply: dict[str, Any]) -> bool:
        """Whether the service took a reply to its advice."""
        expires_at = datetime.fromisoformat(case.advice["expires_at"])
        answer = await self._api.insist(
            "POST", f"{ASK}/{case.advice['id']}/response", reply,
            lambda: self._clock.now() < expires_at, call=case.incident.id, **reply,
        )  # fmt: skip
        return self._counted(answer, case.advice["decision"], reply)

    def _obey(self, case: Case, action: str) -> bool:
        """Do what was answered, once; False where an accepted unit cannot be sent any more."""
        case.action = action
        self.city.advance(self._clock.now_s())
        if case.advice["decision"] != "send_second":
            return True
        incident = case.incident
        if action == "override":
            if case.sent and incident.second is not None:
                self._turn_round(incident.second, incident)
            return True
        if case.sent:
            return True
        unit = self._advised(case)
        if unit is None or self._obstacle(case) is not None:
            return False
        case.sent = True
        self._go(unit, incident)
        return True

    def _obstacle(self, case: Case) -> dict[str, Any] | None:
        """Why the advised unit cannot go, as a reply."""
        if case.incident.first is not None or case.incident.over:
            return _NOT_NEEDED
        return None if self._advised(case) is not None else _NOT_FREE

    def _advised(self, case: Case) -> Unit | None:
        """The unit that was advised, if it is free; one of its depot where none was named."""
        second = case.advice["second"]
        free = [unit for unit in self.city.units.values() if unit.free]
        if second.get("unit") is not None:
            return next((unit for unit in free if unit.id == second["unit"]), None)
        return next((unit for unit in free if unit.station.depot == second["depot"]), None)

    # --- advice on a dispatch that is under way -------------------------------------------

    def _follow(self, dispatch: dict[str, Any]) -> None:
        """What a dispatch has come to: its advice is answered, its answer is carried out."""
        case, response = self._cases.get(dispatch["id"]), dispatch["response"]
        if case is None or dispatch["advice"] == "keep":
            return
        if response is not None:
            if response["action"] == "accept":
                self._carry_out(case, dispatch)
        elif dispatch["state"] != "ended" and dispatch["advice_id"] not in case.answered:
            case.answered.add(dispatch["advice_id"])
            self._spawn(self._answer(case, dispatch))

    async def _answer(self, case: Case, dispatch: dict[str, Any]) -> None:
        incident = case.incident
        await self._think(incident)
        reply: dict[str, Any] = {"advice_id": dispatch["advice_id"], "action": "accept"}
        if incident.dice.random() >= self._accept:
            reply |= {"action": "override", "reason_code": str(incident.dice.choice(_REASONS))}
        answer = await self._api.insist(
            "POST", f"{DISPATCHES}/{dispatch['id']}/response", reply, lambda: not incident.over,
            call=incident.id, advice=dispatch["advice"], **reply,
        )  # fmt: skip
        if self._counted(answer, dispatch["advice"], reply):
            self._follow(answer.content)

    def _carry_out(self, case: Case, dispatch: dict[str, Any]) -> None:
        incident, second = case.incident, dispatch["second"] or {}
        unit = self.city.units.get(second.get("unit") or "")
        self.city.advance(self._clock.now_s())
        if dispatch["advice"] == "stand_down":
            unit = incident.second if unit is None else unit
            if unit is not None:
                self._turn_round(unit, incident)
            return
        if unit is None or not unit.free:
            unit = self.city.nearest(incident)
        coming = incident.second is not None and incident.second in incident.units
        if unit is not None and not coming and incident.first is None and not incident.over:
            self._go(unit, incident)

    # --- small parts --------------------------------------------------------------------

    def _keep_off(self, closures: list[dict[str, Any]]) -> None:
        """Let units drive around what is closed now."""
        self.city.advance(self._clock.now_s())
        self.city.keep_off(edge for one in closures if one["active"] for edge in one["edges"])

    def _go(self, unit: Unit, incident: Incident) -> None:
        self._tally.seconds += 1
        self._api.log.write("second", call=incident.id, unit=unit.id)
        self.city.send(unit, incident)

    def _turn_round(self, unit: Unit, incident: Incident) -> None:
        if unit.incident is incident and unit.status in COMING:
            self._tally.stood_down += 1
            self._api.log.write("stood down", call=incident.id, unit=unit.id)
            self.city.stand_down(unit)

    def _counted(self, answer: Answer, advice: str, reply: dict[str, Any]) -> bool:
        """Whether a reply was taken."""
        if answer.good:
            self._tally.replies[f"{reply['action']} {advice}"] += 1
        else:
            self._tally.refused[answer.why] += 1
        return answer.good

    async def _think(self, incident: Incident) -> None:
        await asyncio.sleep(incident.dice.exponential(self._think_s) / self._clock.speed)
