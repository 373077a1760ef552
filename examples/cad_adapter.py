"""A first CAD client; the service's address and token are in IDEAL_URL and IDEAL_TOKEN."""

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx


def follow(ideal: httpx.Client, after: str = "") -> Iterator[tuple[str, object]]:
    """Events as (kind, data); after a lost connection they continue behind the last one."""
    while True:
        try:
            with ideal.stream("GET", "/events", params={"after": after} if after else {}) as stream:
                event: dict[str, str] = {}
                for line in stream.iter_lines():
                    name, _, event[name] = line.partition(": ")
                    if not line and "data" in event:
                        after = event.get("id", after)
                        yield event["event"], json.loads(event["data"])
                    event = event if line else {}
        except httpx.HTTPError as error:
            print(f"{error}; connecting again")
        time.sleep(1)


ideal = httpx.Client(base_url=f"{os.environ['IDEAL_URL']}/v1", timeout=15)  # a ping comes every 5 s
ideal.headers["Authorization"] = f"Bearer {os.environ['IDEAL_TOKEN']}"
ideal.event_hooks["response"] = [httpx.Response.raise_for_status]
ideal.put("/units", json=[{"id": n, "depot": "Kelp Point", "status": "at_station"} for n in "AB"])
place, now = {"lon": 117.2452, "lat": 21.5859}, datetime.now(UTC).isoformat()
call = {"call_id": now, "received_at": now, "location": place, "primary": {"unit": "A"}}
advice = ideal.post("/recommendations", json=call).json()
print(advice["headline"])
if advice["decision"] == "send_second":
    ideal.post(f"/recommendations/{advice['id']}/reply", json={"action": "accept"})
for kind, data in follow(ideal):
    print(kind, data)
