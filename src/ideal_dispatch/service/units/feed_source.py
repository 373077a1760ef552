"""Where the lines of a feed come from: a file, a pipe, or an address that streams them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ideal_dispatch.errors import InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.http_client import NoAnswerError, one_line, public
from ideal_dispatch.service.units.avl import lines

_CHUNK = 65_536
_CONNECT_S = 10.0
_SILENCE_S = 60.0
"""A stream that says nothing for so long is broken."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file, a named pipe, ``-`` for standard input, or an address that streams lines."""

    name: str

    def __post_init__(self) -> None:
        if not (self.streams or self.name == "-" or Path(self.name).is_fifo()):
            check_source(self.name)

    @property
    def streams(self) -> bool:
        """Whether it is an address, which is asked again when it ends."""
        return self.name.startswith(("http://", "https://"))

    @property
    def patient(self) -> bool:
        """Whether it loses nothing by being read later: a file."""
        return not self.streams and Path(self.name).is_file()

    @contextmanager
    def open(self) -> Iterator[Iterator[str]]:
        """Its lines as they come; an address that breaks off is a :class:`NoAnswerError`."""
        if not self.streams:
            with open(0 if self.name == "-" else self.name, "rb", closefd=self.name != "-") as file:
                yield lines(iter(lambda: file.read1(_CHUNK), b""))
            return
        import httpx

        where = public(self.name)
        limits = httpx.Timeout(_CONNECT_S, read=_SILENCE_S)
        try:
            with httpx.stream("GET", self.name, timeout=limits, trust_env=False) as answer:
                status = answer.status_code
                if 300 <= status < 500 and status not in (408, 429):
                    raise InputError(f"{where}: HTTP {status}; check the address of the feed")
                if status != 200:
                    raise NoAnswerError(f"{where}: HTTP {status}")
                yield lines(answer.iter_bytes())
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise InputError(f"{where}: no address of a feed ({one_line(str(error))})") from None
        except httpx.HTTPError as error:
            words = one_line(str(error)) or type(error).__name__
            raise NoAnswerError(f"{where}: {words}") from None
