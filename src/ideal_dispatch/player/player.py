"""Plays a city against a service: its CAD, its units' radios and its dispatcher in one."""

import json
import math
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TextIO
from zoneinfo import ZoneInfo

import httpx

from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.inputs.city_files import fleet_for
from ideal_dispatch.outside_service import one_line, public
from ideal_dispatch.player.city import COMING, FREE, LOOK_S, Job, PlayedCall, PlayedCity
from ideal_dispatch.player.roads import Roads
from ideal_dispatch.ranges import Checked, Count, Positive, Share, Whole, ZeroOrMore

_EVERY_S, _PAUSE_S, _AWAY_S = 1.0, 0.5, 120.0  # real seconds
_TIMEOUT = httpx.Timeout(10.0, read=15.0)  # a stream of events has a ping every 5 s
_EVENTS, _KINDS = ("GET", "/v1/events"), ("reply", "dispatch", "closures", "promise_lost")
_REASONS = ("road_knowledge", "patient_condition", "capacity")


class ServiceClient:
    """One service, with one token; ``log`` gets a JSON object a request, ``heard`` the events."""

    def __init__(self, url: str, token: str, log: TextIO | None = None) -> None:
        if not (token.isascii() and token.isprintable()):
            raise InputError("the token has characters that no token has; check it")
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=_TIMEOUT, trust_env=False)
        self._log = log
        self.url, self.speed, self.counts = public(url), 1.0, Counter[str]()
        self.heard: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._said, self._at = 0.0, time.monotonic()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and content of an answer; a service that is away is asked again for a while."""
        until = time.monotonic() + _AWAY_S
        while True:
            began = time.monotonic()
            try:
                response = self._http.request(method, path, json=body)
                status, content = response.status_code, response.json()
                code = content["error"]["code"] if status >= 400 else ""
            except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
                raise InputError(f"{self.url!r} cannot be used: {one_line(str(error))}") from None
            except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
                status, content, code = 0, one_line(str(error)), ""  # a proxy answers in HTML
            if self._log is not None:
                line = {"at": time.time(), "method": method, "path": path, "body": body,
                        "status": status, "ms": round(1000.0 * (time.monotonic() - began), 1),
                        "said": None if method == "GET" else content}  # fmt: skip
                print(json.dumps(line), file=self._log, flush=True)
            if code:
                self.counts[f"refused: {code}"] += 1
            if 200 <= status < 500 and status not in (408, 429):
                return status, content
            if time.monotonic() > until:
                raise InputError(f"{self.url}: no answer for {_AWAY_S:g} s ({content})")
            time.sleep(_PAUSE_S)

    def need(self, method: str, path: str, body: Any = None) -> Any:
        """The content of an answer; an error where the service refuses."""
        status, content = self.ask(method, path, body)
        if status != 200:
            words = one_line(content["error"]["message"])
            raise InputError(f"{self.url}{path}: {words} ({status}); check address and token")
        return content

    def follow_clock(self, clock: dict[str, Any]) -> None:
        """Go by what the service has just said of its clock."""
        now = datetime.fromisoformat(clock["now"]).timestamp()
        self._said, self._at = max(now, self.now()), time.monotonic()
        self.speed = float(clock["speed"])

    def now(self) -> float:
        """The service's time in seconds since 1970; a little less, for its answer took a while."""
        return self._said + self.speed * (time.monotonic() - self._at)

    def listen(self, *kinds: str) -> None:
        """Hear events from now on without end, and without a gap where a connection breaks."""
        last = dict[str, str]()
        while True:
            with suppress(httpx.HTTPError), self._http.stream(*_EVENTS, headers=last) as stream:
                event = dict[str, str]()
                for line in stream.iter_lines():
                    name, _, value = line.partition(":")
                    if line:
                        event[name] = event.get(name, "") + value.strip()
                        continue
                    if event.get("event") in kinds:
                        self.heard.put((event["event"], json.loads(event["data"])))
                    last = {"Last-Event-ID": event["id"]} if "id" in event else last
                    event = {}
            time.sleep(_PAUSE_S)


@dataclass(frozen=True, slots=True)
class Life(Checked):
    """How a city is played, by the service's clock; with ``step_s`` the player steps that."""

    seed: Whole = 1
    accept: Share = 0.95
    think_s: ZeroOrMore = 10.0
    units: Count | None = None
    calls_per_day: Positive | None = None
    minutes: Positive | None = None
    step_s: Positive | None = None


class Player:
    """The player of one city; ``counts`` say what happened."""

    def __init__(self, client: ServiceClient, life: Life) -> None:
        self.client, self.life, self.counts = client, life, client.counts
        self._calls: dict[str, PlayedCall] = {}
        facts = client.need("GET", "/v1/city")
        roads = Roads(client.need("GET", "/v1/network.geojson"))
        depots = {one["name"]: (one["lon"], one["lat"]) for one in facts["depots"]}
        fleet = fleet_for(facts["name"], roads.network, depots, life.units, life.calls_per_day)
        client.follow_clock(facts["clock"])
        here = datetime.fromtimestamp(client.now(), ZoneInfo(facts["time_zone"]))
        self._midnight = here.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        begins_s, prefix = client.now() - self._midnight, f"L{life.seed}-{here:%y%m%d}-"
        self.city = PlayedCity(depots, roads, fleet, life.seed, begins_s, prefix, self._advise)

    def play(self) -> None:
        """Play until the minutes are over."""
        client, city, step_s = self.client, self.city, self.life.step_s
        Thread(target=client.listen, args=_KINDS, daemon=True).start()
        self._act("closures", client.need("GET", "/v1/closures"))
        end_s, tick_at = city.now_s + 60.0 * (self.life.minutes or math.inf), 0.0
        while city.now_s < end_s:
            tick = time.monotonic() >= tick_at
            if step_s is not None:
                client.follow_clock(client.need("POST", "/v1/clock", {"step_s": step_s}))
            elif tick:
                tick_at = time.monotonic() + _EVERY_S
                client.follow_clock(client.need("GET", "/v1/city")["clock"])
            city.advance(client.now() - self._midnight)
            self._report(everybody=tick)
            wait_s = max(min(LOOK_S / client.speed, tick_at - time.monotonic()), 0.001)
            with suppress(Empty):
                self._act(*client.heard.get(timeout=wait_s))

    def _text(self, at_s: float) -> str:
        return datetime.fromtimestamp(self._midnight + at_s, UTC).isoformat(timespec="milliseconds")

    def _report(self, everybody: bool = False) -> None:
        """Send every change of status, one of each unit at a time, and how everybody is."""
        while self.city.news or everybody:
            first = {row["id"]: row for row in reversed(self.city.news)}
            others = self.city.units.values() if everybody else ()
            rows = {unit.id: self.city.report(unit) for unit in others} | first
            timed = [{**row, "at": self._text(row["at"])} for row in rows.values()]
            status, said = self.client.ask("PUT", "/v1/units", timed)
            self.counts["late reports"] += len(said["ignored"]) if status == 200 else len(first)
            for row in first.values():
                self.city.news.remove(row)
            everybody = False

    def _advise(self, call: PlayedCall) -> Job:
        """Ask for advice on a call that got its primary, and answer it after some thought."""
        self.counts["calls"] += 1
        self._report()
        unit, network, node = call.primary, self.city.roads.network, call.node
        assert unit is not None
        body = {
            "call_id": call.id, "idempotency_key": call.id, "received_at": self._text(call.at_s),
            "location": {"lon": float(network.lon[node]), "lat": float(network.lat[node])},
            "primary": {"unit": unit.id, "depot": unit.depot},
        }  # fmt: skip
        status, said = self.client.ask("POST", "/v1/recommendations?brief=1", body)
        decision = said["decision"] if status == 200 else "refused"
        self.counts[f"advice: {decision}"] += 1
        if decision in ("send_second", "primary_only"):
            call.advice = said["id"]
            call.second = said["second"]["unit"] if decision == "send_second" else None
            self._calls = {id_: one for id_, one in self._calls.items() if not one.over}
            self._calls[call.advice] = call
            yield self.city.now_s + call.dice.exponential(self.life.think_s)
            self._judge(call)

    def _judge(self, call: PlayedCall) -> None:
        """Accept an advice, or override it with a reason, unless somebody has answered it."""
        if call.answered:
            return
        unit, reason, call.answered = self.city.units.get(call.second or ""), None, True
        if call.second is not None:
            if call.first is not None:
                reason = "other"
            elif unit is None or unit.status not in FREE:
                reason = "unit_unavailable"
            elif call.dice.random() >= self.life.accept:
                reason = str(call.dice.choice(_REASONS))
        action = "override" if reason else "accept"
        self._reply(call, {"action": action, "reason_code": reason}, call.second)

    def _answer(self, call: PlayedCall, question: dict[str, Any]) -> Job:
        """Answer what is asked about a running dispatch, after some thought."""
        yield self.city.now_s + call.dice.exponential(self.life.think_s)
        action = question["advice"] if call.dice.random() < self.life.accept else "keep"
        self._reply(call, {"action": action, "question": question["id"]}, question["unit"])

    def _reply(self, call: PlayedCall, reply: dict[str, Any], second: str | None) -> None:
        """Reply once, and do what holds then: a refusal says what somebody answered before."""
        status, said = self.client.ask("POST", f"/v1/recommendations/{call.advice}/reply", reply)
        self.counts[f"replies: {reply['action']}"] += status == 200
        if done := reply if status == 200 else said["error"].get("reply"):
            self._obey(call, done["action"], second)

    def _obey(self, call: PlayedCall, action: str, second: str | None) -> None:
        """Do what was answered, by this dispatcher or by somebody at a desk, once."""
        call.answered, unit = True, self.city.units.get(second or "")
        if unit is None:
            return
        able = unit.status in FREE and unit.id not in call.sent and not call.over
        if action in ("accept", "send_one") and able:
            call.sent.add(unit.id)
            self.counts["second units sent"] += 1
            self.city.send(unit, call)
        elif action == "stand_down" and unit.call is call and unit.status in COMING:
            call.sent.discard(unit.id)
            self.counts["second units stood down"] += 1
            self.city.stand_down(unit)

    def _act(self, kind: str, data: Any) -> None:
        """Do what an event asks for."""
        if kind == "closures":
            self.city.close_roads(e for one in data if one["active"] for e in one["edges"])
        elif (call := self._calls.get(data["id"])) is None:
            return
        elif kind == "promise_lost":
            self._judge(call)
        elif data["reply"] is not None:
            second = data["second"]["unit"] if kind == "dispatch" else call.second
            self._obey(call, data["reply"]["action"], second)
        elif data["question"] is not None and data["question"]["id"] != call.asked:
            call.asked = data["question"]["id"]
            self.city.begin(self._answer(call, data["question"]))
