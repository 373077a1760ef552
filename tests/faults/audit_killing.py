"""Processes that write to the audit and are killed in the middle, again and again.

``python -m tests.faults.audit_killing URL SPOOL ROUNDS SEED`` forks a writer for
every round, kills it with SIGKILL after a random while, and prints as JSON the
ids of all entries that were acknowledged before a death.
"""

import json
import os
import random
import signal
import sys
import threading
import time

from ideal_dispatch.service.audit.spool import Spool
from ideal_dispatch.service.audit.store import AuditStore
from tests.audit_entries import BlockingWriter, entry

_THREADS = 4
_ID_BYTES = 32


def write_until_killed(url: str, spool: str, said: int) -> None:
    """Write from several threads; every acknowledged id goes to a pipe at once."""
    writer = BlockingWriter(AuditStore(url), Spool(spool, reserve_bytes=20_000))

    def work() -> None:
        while True:
            mine = entry(body={"text": "x" * random.randrange(3000)}, key=None)
            writer.write(mine, 30.0)
            os.write(said, mine.id.encode())

    threads = [threading.Thread(target=work, daemon=True) for _ in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def one_round(url: str, spool: str, chance: random.Random) -> list[str]:
    """The ids acknowledged by one writer in its short life."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            write_until_killed(url, spool, writing)
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading, "rb") as pipe:
        first = pipe.read(_ID_BYTES)  # it is at work
        assert first, "the writer ended by itself"
        time.sleep(chance.uniform(0.0, 0.15))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        said = first + pipe.read()
    assert len(said) % _ID_BYTES == 0
    return [said[at : at + _ID_BYTES].decode() for at in range(0, len(said), _ID_BYTES)]


def main(url: str, spool: str, rounds: str, seed: str) -> None:
    chance = random.Random(int(seed))
    acknowledged = [name for _ in range(int(rounds)) for name in one_round(url, spool, chance)]
    print(json.dumps(acknowledged))


if __name__ == "__main__":
    main(*sys.argv[1:])
