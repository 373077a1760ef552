"""One exchange over HTTP: bounded in time and size, and no word about secrets.

What to do about a bad answer (ask again, give up, use an older one) is for the
caller; this module only says what came back.
"""

import re
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING

from ideal_dispatch.errors import IdealError, InputError

if TYPE_CHECKING:
    import httpx


class NoAnswerError(IdealError):
    """A server did not answer, not in time, with too much, or with what nobody can use."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server sent back, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def retry_after_s(self) -> float | None:
        """Seconds to wait as the server asks, by number or date, or None."""
        text = self.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdigit():
            return float(text)
        try:
            moment = parsedate_to_datetime(text)
        except ValueError:
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())

    @property
    def excerpt(self) -> str:
        """The start of the body in one line, quoted, or nothing."""
        words = one_line(self.body[:400].decode("utf-8", "replace"))
        return f" {words!r}" if words else ""


def one_line(text: str, limit: int = 160) -> str:
    """Foreign text fit for a message: one line, printable, not long."""
    words = " ".join(text.split())
    return "".join(letter for letter in words if letter.isprintable())[:limit]


def public(url: str) -> str:
    """An address fit for a message: without the name and the password that it may hold."""
    return re.sub(r"(?<=//)[^/?#]*@", "", url)


class HttpClient:
    """Exchanges with servers: at most ``timeout_s`` and ``max_bytes`` each.

    Connections are kept until :meth:`close`. The environment is not read; a
    proxy is named here. ``service`` names the other side in messages, which
    never hold headers, parameters or passwords.
    """

    def __init__(
        self, service: str, timeout_s: float, max_bytes: int, proxy: str | None = None
    ) -> None:
        self.service, self.timeout_s, self.max_bytes = service, timeout_s, max_bytes
        self._proxy = proxy
        self._idle: deque[httpx.Client] = deque()  # one for every exchange at a time

    def close(self) -> None:
        """Close the connections; the next exchange opens new ones."""
        while self._idle:
            self._idle.pop().close()

    def exchange(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float | None = None,
    ) -> HttpAnswer:
        """What the server says to one request, or a :class:`NoAnswerError` of one line."""
        import httpx

        limit_s = self.timeout_s if timeout_s is None else min(timeout_s, self.timeout_s)
        where = public(url)
        try:
            client = self._idle.pop()
        except IndexError:
            try:
                client = httpx.Client(proxy=self._proxy, trust_env=False, follow_redirects=False)
            except (httpx.InvalidURL, ValueError):
                raise InputError(f"{self.service} client: the proxy cannot be used") from None

        def ask() -> HttpAnswer:
            with client.stream(
                method, url, params=params, headers=headers, content=body, timeout=limit_s
            ) as response:
                content = bytearray()
                for chunk in response.iter_bytes():  # as it arrives, not in full blocks
                    content += chunk
                    if len(content) > self.max_bytes:
                        raise NoAnswerError(
                            f"{where}: the answer is larger than {self.max_bytes:,} bytes; not read"
                        )
            return HttpAnswer(response.status_code, response.headers, bytes(content))

        try:
            return _within(limit_s, ask, client)
        except (TimeoutError, httpx.TimeoutException):
            raise NoAnswerError(f"{where}: no whole answer within {limit_s:g} s") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise InputError(f"{self.service} address {where!r} cannot be used: {error}") from None
        except httpx.HTTPError as error:
            reason = one_line(str(error)) or type(error).__name__
            raise NoAnswerError(f"{where}: no answer ({reason}); check the network") from None
        finally:
            if not client.is_closed:
                self._idle.append(client)


def _within(limit_s: float, ask: Callable[[], HttpAnswer], client: "httpx.Client") -> HttpAnswer:
    """What ``ask`` returns or raises, or a ``TimeoutError``; then ``client`` is closed.

    The limits of a socket are between two of its bytes: a server that drips
    headers would hold its caller for as long as it drips, were the caller not
    elsewhere. Closing the connection ends who asks there.
    """
    result: Future[HttpAnswer] = Future()

    def run() -> None:
        finish: Callable[[], None]
        try:
            finish = partial(result.set_result, ask())
        except BaseException as error:
            finish = partial(result.set_exception, error)
        if not result.set_running_or_notify_cancel():
            finish = client.close  # the caller has stopped waiting
        finish()

    Thread(target=run, name="http exchange", daemon=True).start()
    try:
        return result.result(limit_s)
    except BaseException:
        if result.cancel():
            client.close()
        raise
