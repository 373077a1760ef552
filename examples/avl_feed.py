"""Report units from a vehicle location feed: NMEA sentences and radio status codes.

    nc avl.example 5000 | IDEAL_TOKEN=… python examples/avl_feed.py http://127.0.0.1:8000
    IDEAL_TOKEN=… python examples/avl_feed.py http://127.0.0.1:8000 --udp 5000     # or --tcp

A line is a unit and a sentence (RMC or GGA) or a status: `A117,$GPRMC,…*53` or `A117 3`. Statuses
are digits of the German FMS or the same over TETRA (32770 for 0). The service must know the units
with their depots. Every status is sent, of the positions the last; what the service could not
take because it was away is sent again.
"""

import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any

import httpx

FMS = {"1": "available", "2": "at_station", "3": "en_route", "4": "on_scene", "6": "out_of_service",
       "7": "transporting", "8": "at_hospital", "0": "", "5": "", "9": ""}  # fmt: skip
STATUSES = FMS | {str(32770 + int(digit)): status for digit, status in FMS.items()}
LINE = re.compile(r"(.+?)[\s,;:]+(?:\$([^*]+)\*([0-9A-Fa-f]{2})|(\d+))")
ANGLE = re.compile(r"(\d{1,3})(\d\d\.?\d*)")


def parse(line: str, now: datetime) -> dict[str, Any] | None:
    """The unit that a line reports, None where it says neither place nor status."""
    found = LINE.fullmatch(line.strip())
    if found is None:
        raise ValueError("expected a unit and an NMEA sentence or a status code")
    unit, sentence, checksum, code = found.groups()
    if sentence is None:
        if code not in STATUSES:
            raise ValueError(f"unknown status {code}")
        status = STATUSES[code]
        return {"id": unit, "at": now.isoformat(), "status": status} if status else None
    if reduce(lambda sum_, letter: sum_ ^ ord(letter), sentence, 0) != int(checksum, 16):
        raise ValueError("the checksum differs")
    kind, clock, *values = sentence.split(",")
    if kind[2:] == "RMC" and values[0] == "A":
        at = datetime.strptime(values[7] + clock[:6], "%d%m%y%H%M%S").replace(tzinfo=UTC)
        place = {"speed_kmh": round(float(values[5] or 0) * 1.852, 1)}
        place |= {"heading": float(values[6]) % 360} if values[6] else {}
        angles = values[1:5]
    elif kind[2:] == "GGA" and values[4] not in ("", "0"):
        at = datetime.strptime(f"{now:%d%m%y}" + clock[:6], "%d%m%y%H%M%S").replace(tzinfo=UTC)
        at -= timedelta(days=round((at - now) / timedelta(days=1)))  # it has no date: the nearest
        place, angles = {}, values[:4]
    else:
        return None
    place["lat"], place["lon"] = _degrees(*angles[:2]), _degrees(*angles[2:])
    return {"id": unit, "at": at.isoformat(), **place}


def _degrees(text: str, side: str) -> float:
    """Degrees and minutes written together, such as 2135.07 N."""
    found = ANGLE.fullmatch(text)
    if found is None or side not in ("N", "S", "E", "W"):
        raise ValueError(f"invalid coordinate {text} {side}")
    degrees = int(found[1]) + float(found[2]) / 60
    return round(degrees if side in "NE" else -degrees, 7)


class Feed:
    """What units said and the service has not taken yet: all statuses, the last positions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statuses: list[dict[str, Any]] = []
        self._positions: dict[str, dict[str, Any]] = {}

    def read(self, lines: Iterable[str]) -> None:
        """Keep the news of lines; those that cannot be read are printed."""
        for line in lines:
            try:
                news = parse(line, datetime.now(UTC))
            except (ValueError, IndexError) as error:
                print(f"{line.strip()[:80]!r}: {error}", file=sys.stderr)
                continue
            with self._lock:
                if news and "status" in news:
                    self._statuses.append(news)
                elif news:
                    self._positions[news["id"]] = self._positions.get(news["id"], {}) | news

    def listen(self, kind: str, port: int) -> None:
        """Read lines that arrive at a port of this machine."""
        if kind == "--udp":
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
                datagrams.bind(("", port))
                while True:
                    self.read(datagrams.recv(65536).decode("utf-8", "replace").splitlines())
        with socket.create_server(("", port)) as server:
            while True:
                lines = server.accept()[0].makefile(encoding="utf-8", errors="replace")
                threading.Thread(target=self.read, args=(lines,), daemon=True).start()

    def send(self, service: httpx.Client) -> None:
        """Send what waits; what the service cannot take now waits on."""
        with self._lock:
            statuses, positions = self._statuses, self._positions
            self._statuses, self._positions = [], {}
        news = [*statuses, *positions.values()]
        try:
            if news and not put(service, news):  # some of it is wrong: the rest must arrive
                for one in news:
                    put(service, [one])
        except httpx.HTTPError as error:
            print(f"{error}; sent again", file=sys.stderr)
            with self._lock:
                self._statuses = statuses + self._statuses
                self._positions = positions | self._positions

    @property
    def empty(self) -> bool:
        """Whether the service took everything."""
        return not self._statuses and not self._positions


def put(service: httpx.Client, news: list[dict[str, Any]]) -> bool:
    """Whether the service accepted a list of news; what it ignored is printed."""
    answer = service.put("/v1/units", json=news)
    if answer.status_code == 422:
        print(f"refused: {answer.text}", file=sys.stderr)
        return False
    for ignored in answer.raise_for_status().json()["ignored"]:
        print(f"ignored: {ignored}", file=sys.stderr)
    return True


def main(url: str, kind: str = "", port: str = "") -> None:
    """Send the news once a second until the input ends."""
    feed = Feed()
    work = (feed.listen, (kind, int(port))) if kind else (feed.read, (sys.stdin,))
    reader = threading.Thread(target=work[0], args=work[1], daemon=True)
    reader.start()
    token = {"Authorization": f"Bearer {os.environ['IDEAL_TOKEN']}"}
    with httpx.Client(base_url=url, headers=token, timeout=15) as service:
        while reader.is_alive() or not feed.empty:
            time.sleep(1)
            feed.send(service)


if __name__ == "__main__":
    main(*sys.argv[1:])
