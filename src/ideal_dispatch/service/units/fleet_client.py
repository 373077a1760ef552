"""The service's fleet, told over HTTP: one list of news at a time."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.http_client import HttpAnswer, HttpClient, NoAnswerError, one_line, public
from ideal_dispatch.outside_service import parsed, reason, refusal

UNITS = "/v1/fleet/units"
_TIMEOUT_S = 10.0
_ANSWER_BYTES = 1_000_000


class AwayError(IdealError):
    """The service took nothing and may take it later, after ``wait_s`` if it says so."""

    def __init__(self, words: str, wait_s: float = 0.0) -> None:
        super().__init__(words)
        self.wait_s = wait_s


class NewsRefusedError(IdealError):
    """The service took nothing of a list, because of one or more of its items."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the service made of a list: how many it took, and why it ignored the others."""

    taken: int
    ignored: tuple[str, ...] = ()


class FleetClient:
    """Tells a service at ``url`` about units, with a token whose role is cad or higher."""

    def __init__(self, url: str, token: str, timeout_s: float = _TIMEOUT_S) -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError(f"--url {url[:100]}: write it as https://ideal.example")
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise InputError("the token is empty or no token; `ideal serve --new-token` makes one")
        self._url, self._token = url.rstrip("/") + UNITS, token
        self._http = HttpClient("fleet", timeout_s, _ANSWER_BYTES)

    def close(self) -> None:
        """Close open connections."""
        self._http.close()

    def tell(self, news: Sequence[dict[str, Any]]) -> Told:
        """Send a list once.

        Raises an :class:`AwayError` where it is worth trying again, a :class:`NewsRefusedError`
        where something in the list is wrong, and an :class:`InputError` where no list will do.
        """
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        where = public(self._url)
        body = json.dumps(news, separators=(",", ":"), allow_nan=False).encode()
        try:
            answer = self._http.exchange("PUT", self._url, headers=headers, body=body)
            if answer.status == 200:
                return _told(answer)
        except NoAnswerError as error:
            words = str(error)
            raise AwayError(words if where in words else f"{where}: {words}") from None
        words = f"{where}: HTTP {answer.status}{reason(refusal(answer)) or answer.excerpt}"
        words = words.replace(self._token, "[token]")
        if answer.status in (413, 422):
            raise NewsRefusedError(words)
        if answer.status in (408, 409, 429) or answer.status >= 500:
            raise AwayError(words, answer.retry_after_s or 0.0)
        if answer.status in (401, 403):
            raise InputError(f"{words}; give the token of a cad, dispatcher or admin")
        raise InputError(f"{words}; is it the address of the service, without a path?")


def _told(answer: HttpAnswer) -> Told:
    body = parsed(answer)
    try:
        ignored = tuple(f"{one_line(str(one['id']))}: {one_line(str(one['why']))}"
                        for one in body["ignored"])  # fmt: skip
        return Told(int(body["taken"]), ignored)
    except (KeyError, TypeError, ValueError):
        raise NoAnswerError(f"not the answer of a fleet:{answer.excerpt}") from None
