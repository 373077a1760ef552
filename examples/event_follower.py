"""Forward the service's events to an address of the centre, in order and each at least once.

    IDEAL_TOKEN=… python examples/event_follower.py SERVICE RECEIVER FILE

Every event is a POST of {"number", "event", "data"} to RECEIVER, sent again until the answer is
2xx. FILE holds the number of the last event that was taken: after a restart or a lost connection
the next one follows. Without FILE it starts with the events from now on; write a number there to
start earlier (0: the beginning of the log). Positions and health are not numbered and not sent.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx


def events(service: httpx.Client, after: str) -> Iterator[dict[str, str]]:
    """Numbered events after a number, until the connection is lost."""
    query = {"after": after} if after else {}
    with service.stream("GET", "/v1/events", params=query) as stream:
        event: dict[str, str] = {}
        for line in stream.raise_for_status().iter_lines():
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
                continue
            if "id" in event:
                yield event
            event = {}


def deliver(receiver: httpx.Client, address: str, event: dict[str, str]) -> None:
    """Send an event until the receiver takes it."""
    number, data = int(event["id"]), json.loads(event["data"])
    pause_s = 1.0
    while True:
        try:
            body = {"number": number, "event": event["event"], "data": data}
            receiver.post(address, json=body).raise_for_status()
            return
        except httpx.HTTPError as error:
            print(f"event {number} not taken: {error}; next try in {pause_s:g} s", file=sys.stderr)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 30.0)


def main(service_url: str, address: str, file: Path) -> None:
    """Forward events for ever."""
    token = {"Authorization": f"Bearer {os.environ['IDEAL_TOKEN']}"}
    service = httpx.Client(base_url=service_url, headers=token, timeout=15)
    receiver = httpx.Client(timeout=15)
    while True:
        try:
            for event in events(service, file.read_text().strip() if file.exists() else ""):
                deliver(receiver, address, event)
                draft = file.with_name(f"{file.name}.new")
                draft.write_text(event["id"])
                draft.replace(file)
        except httpx.HTTPError as error:
            print(f"service: {error}; connecting again", file=sys.stderr)
        time.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
