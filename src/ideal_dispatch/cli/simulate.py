"""``ideal simulate``: a living city against any service."""

import asyncio
from pathlib import Path
from typing import Annotated

from ideal_dispatch.cli.options import given_token
from ideal_dispatch.cli.terminal import print_facts
from ideal_dispatch.ranges import Count, Positive, Range, Share, Whole, ZeroOrMore


def simulate(
    url: str = "http://127.0.0.1:8000",
    token: str | None = None,
    token_file_: Path | None = None,
    minutes: Positive | None = None,
    seed: Whole = 1,
    accept: Share = 0.95,
    think: ZeroOrMore = 10.0,
    every: Annotated[float, Range(0.05, 60)] = 1.0,
    units: Count | None = None,
    calls_per_day: Positive | None = None,
    log: Path | None = None,
) -> None:
    """Let a city live against a running service: calls, and units that drive to them.

    It uses the public API alone: it asks for advice on every call, tells of every unit, and
    answers as a dispatcher would. It runs by the service's clock. The embedded city has its own
    fleet; another city has units at its depots and calls around them.

    Options:
      --url ADDRESS  Where the service is.
      --token TEXT  A token of the service for the role dispatcher or admin.
      --token-file FILE  A file that holds the token, so that no other user sees it.
      --minutes NUMBER  End after so many minutes of the service's clock. Default: when interrupted.
      --seed NUMBER  The same number gives the same calls.
      --accept SHARE  How much of the advice the dispatcher accepts, from 0 to 1.
      --think SECONDS  How long the dispatcher thinks on average, by the service's clock.
      --every SECONDS  How often positions are sent, in real time.
      --units NUMBER  Units of every depot. Default: the embedded city's fleet; elsewhere 4.
      --calls-per-day NUMBER  Default: as many for every unit as in the embedded city.
      --log FILE  Write every request and every action to this file, a JSON object a line.

    Examples:
      ideal simulate --token-file token.txt --minutes 60
      ideal simulate --url https://advice.example.org --token-file token.txt
    """
    from ideal_dispatch.living.companion import run
    from ideal_dispatch.living.driver import Life

    given = given_token("whose calls are they?", token, token_file_)
    life = Life(seed, accept, think, every, units, calls_per_day, minutes)
    tally = asyncio.run(run(url, given, life, log))
    print_facts("What happened", dict(tally.rows()))
