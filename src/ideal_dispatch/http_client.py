"""One exchange over HTTP: bounded in time and size, and no word about secrets.

What to do about a bad answer (ask again, give up, use an older one) is for the
caller; this module only says what came back.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from ideal_dispatch.errors import IdealError, InputError

if TYPE_CHECKING:
    import httpx


class NoAnswerError(IdealError):
    """A server did not answer, not in time, or with too much."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server sent back, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def overloaded(self) -> bool:
        """True where the same request may well be answered later: 429 and 5xx."""
        return self.status == 429 or self.status >= 500

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


class HttpClient:
    """Exchanges with servers: at most ``timeout_s`` and ``max_bytes`` each.

    Connections are kept until :meth:`close`. The environment is not read; a
    proxy is named here. ``service`` names the other side in messages, which
    never hold headers or parameters.
    """

    def __init__(
        self, service: str, *, timeout_s: float, max_bytes: int, proxy: str | None = None
    ) -> None:
        for name, value in (("timeout_s", timeout_s), ("max_bytes", max_bytes)):
            if not value > 0:
                raise InputError(f"{service} client: {name} must be more than zero")
        self.service, self.timeout_s, self.max_bytes = service, timeout_s, max_bytes
        self._proxy = proxy
        self._client: httpx.Client | None = None

    def __enter__(self) -> "HttpClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the connections; the next exchange opens new ones."""
        if self._client is not None:
            self._client.close()
            self._client = None

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
        deadline = time.monotonic() + limit_s
        try:
            if self._client is None:
                self._client = httpx.Client(
                    proxy=self._proxy, trust_env=False, follow_redirects=False
                )
            with self._client.stream(
                method, url, params=params, headers=headers, content=body, timeout=limit_s
            ) as response:
                content = bytearray()
                for chunk in response.iter_bytes():  # as it arrives, not in full blocks
                    content += chunk
                    if len(content) > self.max_bytes:
                        raise NoAnswerError(
                            f"{url}: the answer is larger than {self.max_bytes:,} bytes; not read"
                        )
                    if time.monotonic() > deadline:  # a server may drip for ever
                        raise NoAnswerError(f"{url}: no whole answer within {limit_s:g} s")
        except httpx.TimeoutException:
            raise NoAnswerError(f"{url}: no whole answer within {limit_s:g} s") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise InputError(f"{self.service} address {url!r} cannot be used: {error}") from None
        except httpx.HTTPError as error:
            reason = one_line(str(error)) or type(error).__name__
            raise NoAnswerError(f"{url}: no answer ({reason}); check the network") from None
        return HttpAnswer(response.status_code, response.headers, bytes(content))
