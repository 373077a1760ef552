"""News for addresses of the centre: rows of the audit, signed, in order, at least once each.

Each webhook has a thread in every worker. The one that holds its lease tells it; the others wait
for the lease to end. A row counts as told once its number is stored: what was sent and not stored
is sent again with the same id.
"""

import hashlib
import hmac
import logging
import math
import random
import threading
import time
from typing import Any, Literal
from uuid import uuid4

from ideal_dispatch.errors import IdealError
from ideal_dispatch.http_client import HttpClient
from ideal_dispatch.service.audit.outbox import Outbox
from ideal_dispatch.service.audit.record import Entry, Row, StoreError, canonical
from ideal_dispatch.service.clock import moment_text
from ideal_dispatch.service.observations import Observations
from ideal_dispatch.service.settings import ServiceSettings, Webhook

log = logging.getLogger(__name__)

TRIES = 5
"""Refusals (4xx) of a row by an address, before it is passed over."""

_LEASE_S = 15.0  # longer than any exchange, so that a live holder keeps it
_RENEW_S = _LEASE_S / 3
_TIMEOUT_S = 5.0
_MAX_BYTES = 1_000_000  # of an answer, which nobody reads
_LOOK_S = 1.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_PAGE = 50
_NOT_REFUSED = (408, 425, 429)  # of 4xx: they ask for another try

Outcome = Literal["taken", "refused", "failed"]


class Webhooks:
    """All webhooks of the settings, told by this worker or another."""

    def __init__(self, settings: ServiceSettings, observations: Observations) -> None:
        self._tellers = [
            Teller(one, settings.database_url, observations) for one in settings.webhooks
        ]

    def start(self) -> None:
        for teller in self._tellers:
            teller.start()

    def wake(self) -> None:
        """Look for new rows now."""
        for teller in self._tellers:
            teller.wake()

    def stop(self, timeout_s: float = 2.0) -> None:
        """Begin nothing new; an address that hangs is left behind."""
        for teller in self._tellers:
            teller.stop(0.0)
        deadline = time.monotonic() + timeout_s
        for teller in self._tellers:
            teller.stop(deadline - time.monotonic())

    @property
    def health(self) -> str | None:
        """In words for anybody: which addresses do not take what this worker tells them."""
        behind = [f"{one.name} {one.behind} behind" for one in self._tellers if one.failing]
        return ", ".join(behind) or ("ready" if self._tellers else None)


class Teller:
    """A thread that tells one webhook its rows while it holds the lease.

    ``behind`` counts the rows that wait, as far as this worker knows. It is ``failing`` while the
    address does not take the next one.
    """

    def __init__(self, webhook: Webhook, database_url: str, observations: Observations) -> None:
        self.name, self._webhook = webhook.name, webhook
        self._outbox = Outbox(database_url, webhook.name, webhook.events)
        self._client = HttpClient("webhook", _TIMEOUT_S, _MAX_BYTES)
        self._sent, self._gauge = observations.webhooks_sent, observations.webhooks_behind
        self.failing = False
        self._set_behind(0)
        self._holder = uuid4().hex
        self._held, self._renew_at = False, -math.inf
        self._number = self._stored = 0  # of the last row told; the same, as the database has it
        self._stopped, self._woken = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"webhook {self.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._woken.set()

    def stop(self, timeout_s: float) -> None:
        self._stopped.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(max(0.0, timeout_s))

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._woken.clear()
            try:
                self._tell_all()
            except StoreError as error:
                log.debug("webhook %s: %s", self.name, error)
            except Exception:  # one that dies would go unnoticed
                log.exception("webhook %s failed", self.name)
            self._woken.wait(_LOOK_S)
        try:
            if self._held:  # the next worker need not wait
                self._outbox.lease(self._holder, 0.0)
        except StoreError as error:
            log.debug("webhook %s: %s", self.name, error)
        self._outbox.close()
        self._client.close()

    def _tell_all(self) -> None:
        """Tell what there is, in order; return where there is no more, or another worker tells."""
        more = True
        while more and not self._stopped.is_set() and self._holds():
            rows, looked = self._outbox.rows(self._number, _PAGE)
            more = len(rows) == _PAGE
            waiting = self._outbox.behind(self._number) if more else len(rows)
            self._set_behind(waiting)
            for row in rows:
                if not self._told(row):
                    return
                self._set_behind(self.behind - 1)
            self._number = looked

    def _holds(self) -> bool:
        """Whether this worker tells the webhook: it asks the database every few seconds."""
        now = time.monotonic()
        if now < self._renew_at:
            return self._held
        held, self._held = self._held, False  # unless all of this succeeds
        mine = self._outbox.lease(self._holder, _LEASE_S)
        if mine and not held:
            self._stored = self._outbox.number()
            self._number = max(self._number, self._stored)  # what was told and not stored
            log.info("webhook %s: this worker sends what follows row %d", self.name, self._number)
        self._held, self._renew_at = mine, now + _RENEW_S
        if mine and held:
            self._store()
        elif not mine:
            self.failing = False
            self._set_behind(0)
        return self._held

    def _store(self) -> None:
        """Let all workers know how far it was told."""
        if self._number == self._stored:
            return
        if self._outbox.move(self._stored, self._number):
            self._stored = self._number
        else:  # this worker was away for longer than its lease
            self._held, self._renew_at = False, -math.inf

    def _told(self, row: Row) -> bool:
        """Tell one row until it is taken or given up; False where this worker is not to tell."""
        message = _message(row)
        tries = refusals = 0
        while message is not None:
            if self._stopped.is_set() or not self._holds() or self._number >= row.number:
                return False
            outcome, words, pause_s = self._post(row, message)
            self._sent.labels(self.name, outcome).inc()
            tries += 1
            refusals += outcome == "refused"
            if outcome == "taken":
                break
            if refusals == TRIES:
                log.error("webhook %s: row %d is passed over: %s", self.name, row.number, words)
                break
            level = logging.DEBUG if self.failing else logging.WARNING
            log.log(level, "webhook %s: row %d is not taken: %s", self.name, row.number, words)
            self.failing = True
            self._set_behind(self._outbox.behind(self._number))
            self._pause(max(pause_s, _pause_s(tries)))
        self._number, self.failing = row.number, False
        self._store()
        return self._held

    def _post(self, row: Row, message: bytes) -> tuple[Outcome, str, float]:
        """What became of it, in words, too, and for how long the address wants to be left alone."""
        stamp = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "Ideal-Event": row.kind,
            "Ideal-Delivery": row.id,
            "Ideal-Timestamp": stamp,
            "Ideal-Signature": signature(self._webhook.secret, stamp, message),
        }
        try:
            answer = self._client.exchange("POST", self._webhook.url, headers=headers, body=message)
        except IdealError as error:
            return "failed", str(error), 0.0
        words = f"HTTP {answer.status}{answer.excerpt}"
        if 200 <= answer.status < 300:
            return "taken", words, 0.0
        if 400 <= answer.status < 500 and answer.status not in _NOT_REFUSED:
            return "refused", words, 0.0
        return "failed", words, min(answer.retry_after_s or 0.0, _LONGEST_PAUSE_S)

    def _pause(self, seconds: float) -> None:
        """Wait, and keep the lease meanwhile."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and self._holds():
            if self._stopped.wait(min(left, _RENEW_S)):
                return

    def _set_behind(self, rows: int) -> None:
        self.behind = rows
        self._gauge.labels(self.name).set(rows)


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """What proves that a message is ours and when it was sent, for the header of that name."""
    signed = timestamp.encode() + b"." + body
    return "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def _message(row: Row) -> bytes | None:
    """The body for a row; None where it makes no sense."""
    try:
        entry = row.entry
        message = {
            "id": row.id, "number": row.number, "event": row.kind, "call_id": row.call_id or None,
            "at": moment_text(entry.at), "data": _data(entry),
        }  # fmt: skip
    except (StoreError, KeyError, TypeError) as error:
        log.error("webhooks: row %d is passed over (%r)", row.number, error)
        return None
    return canonical(message).encode()


def _data(entry: Entry) -> dict[str, Any]:
    """What the API shows of an entry, and nothing else of it."""
    body = entry.body
    if entry.kind == "recommendation":
        return {**body["answer"], "response": None}
    if entry.kind == "reassessment":
        return {**body["said"], "dispatch_id": body["dispatch_id"], "advice_id": entry.id}
    shown = {
        "response": ("recommendation_id", "response"),
        "reply": ("dispatch_id", "advice_id", "response"),
        "closure": ("closure", "ended"),
        "unit": ("units", "gone"),
    }
    return {name: body[name] for name in shown[entry.kind] if name in body}


def _pause_s(tries: int) -> float:
    """Longer after every try, and by chance, so that not all workers come back at once."""
    return random.uniform(0.5, 1.0) * min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(tries, 10))
