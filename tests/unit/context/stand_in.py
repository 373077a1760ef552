"""A weather service on loopback, well- or ill-behaved."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.stand_in import Answer, Asked, serve

__all__ = ["Answer", "StandIn", "stand_in"]


@dataclass
class StandIn:
    url: str
    asked: list[tuple[str, dict[str, str]]]


@contextmanager
def stand_in(answer: Callable[[str, dict[str, str]], Answer]) -> Iterator[StandIn]:
    """A server on loopback whose answer depends on path and query."""
    asked: list[tuple[str, dict[str, str]]] = []

    def said(request: Asked) -> Answer:
        asked.append((request.path, request.query))
        return answer(request.path, request.query)

    with serve(said) as server:
        yield StandIn(server.url, asked)
