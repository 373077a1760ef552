"""``ideal simulate``: calls, units and a dispatcher against any service."""

import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from ideal_dispatch.cli.options import given_token
from ideal_dispatch.cli.terminal import print_facts
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Count, Positive, Share, Whole, ZeroOrMore

_END_S = 15.0


def simulate(
    url: str = "http://127.0.0.1:8000",
    token: str | None = None,
    token_file_: Path | None = None,
    minutes: Positive | None = None,
    seed: Whole = 1,
    accept: Share = 0.95,
    think: ZeroOrMore = 10.0,
    units: Count | None = None,
    calls_per_day: Positive | None = None,
    step: Positive | None = None,
    log: Path | None = None,
) -> None:
    """Simulate calls and units against a running service.

    It uses the public API alone: it asks for advice on every call, reports every unit, and
    answers as a dispatcher would, by the service's clock. The embedded city has its own fleet;
    another city has units at its depots and calls around them.

    Options:
      --url ADDRESS  Where the service is.
      --token TEXT  A token of the service for the role dispatcher or admin.
      --token-file FILE  A file that holds the token, so that no other user sees it.
      --minutes NUMBER  End after so many minutes of the service's clock. Default: when interrupted.
      --seed NUMBER  The same number gives the same calls.
      --accept SHARE  How much of the advice the dispatcher accepts, from 0 to 1.
      --think SECONDS  How long the dispatcher thinks on average, by the service's clock.
      --units NUMBER  Units in all. Default: the embedded city's fleet; elsewhere 4 a depot.
      --calls-per-day NUMBER  Default: as many for every unit as in the embedded city.
      --step SECONDS  Step the service's simulated clock by so much at a time, and wait for nothing:
          a month takes less than an hour. Needs the role admin.
      --log FILE  Write every request and its answer to this file, a JSON object a line.

    Examples:
      ideal simulate --token-file token.txt --minutes 60
      ideal simulate --token-file token.txt --step 10 --minutes 44640
    """
    given = given_token("whose calls are they?", token, token_file_)
    _play(
        url, given, log, seed=seed, accept=accept, think_s=think, units=units,
        calls_per_day=calls_per_day, minutes=minutes, step_s=step,
    )  # fmt: skip


@contextmanager
def accompanied(url: str, token: str) -> Iterator[None]:
    """A process that plays the city as long as this lasts, once the service is ready."""
    process = multiprocessing.get_context("spawn").Process(target=_beside, args=(url, token))
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join(_END_S)
        process.kill()


def _beside(url: str, token: str) -> None:
    with suppress(InputError):  # the service ended before it was ready
        _play(url, token, seed=2)


def _play(url: str, token: str, log: Path | None = None, **life: Any) -> None:
    """Play until it is over or a signal comes, and print what happened."""
    from ideal_dispatch.player.player import Life, Player, ServiceClient

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    wanted = Life(**life)
    with nullcontext() if log is None else log.open("w", encoding="utf-8") as file:
        client = ServiceClient(url, token, file)
        with suppress(KeyboardInterrupt):
            client.need("GET", "/readyz")
            Player(client, wanted).play()
    counts = {what: str(number) for what, number in sorted(client.counts.items())}
    print_facts("What happened", counts)
