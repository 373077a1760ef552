"""A living city in a process of its own, beside the service that it lives against.

It is told where the service is in a line on its input, and ends when that is closed: with the
service, however that ends.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ideal_dispatch.living.driver import Life, live
from ideal_dispatch.living.tally import Tally

_END_S = 15.0
_SHOWN = Life(seed=2)  # whose first hour has calls enough to see


@contextmanager
def accompanied(url: str, token: str) -> Iterator[None]:
    """A process that runs the city as long as this lasts; it waits until the service is ready."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],  # -P: nothing of this folder
        stdin=subprocess.PIPE,
        process_group=0,  # Ctrl-C is for the service
    )
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps([url, token]).encode() + b"\n")
        process.stdin.flush()
        yield
    finally:
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def run(
    url: str, token: str, life: Life, log_file: Path | None = None, lifeline: int | None = None
) -> Tally:
    """Run a city until its minutes are over, a signal comes, or the ``lifeline`` is closed."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stop.set)

    def listen() -> None:
        assert lifeline is not None
        if not os.read(lifeline, 1024):
            loop.remove_reader(lifeline)
            stop.set()

    if lifeline is not None:
        loop.add_reader(lifeline, listen)
    return await live(url, token, life, stop, log_file)


def main() -> None:
    """Run the city of the address and the token on the first line of the input."""
    url, token = json.loads(sys.stdin.buffer.readline())
    tally = asyncio.run(run(url, token, _SHOWN, lifeline=sys.stdin.fileno()))
    for what, number in tally.rows():
        print(f"{what:<34}{number:>9}", file=sys.stderr)


if __name__ == "__main__":
    main()
