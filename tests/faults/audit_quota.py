"""A process whose files may not grow: the database's is full, the spool's are smaller.

``python -m tests.faults.audit_quota URL SPOOL`` writes until the quota stops the
database, goes on into the spool, is given space, and prints what it wrote.
"""

import json
import resource
import sys

from ideal_dispatch.service.audit.spool import Spool
from ideal_dispatch.service.audit.store import AuditStore
from tests.audit_entries import BlockingWriter, entry
from tests.faults.audit_checks import wait_for_replay

_QUOTA_BYTES = 400_000


def main(url: str, spool: str) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    ids: list[str] = []
    spooled = 0
    with BlockingWriter(AuditStore(url), Spool(spool, reserve_bytes=100_000)) as writer:
        resource.setrlimit(resource.RLIMIT_FSIZE, (_QUOTA_BYTES, most))
        while spooled < 40:
            one = entry(len(ids), body={"text": "x" * 5_000})
            spooled += writer.write(one, 30.0) is None
            ids.append(one.id)
        error = writer.error
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        wait_for_replay(writer)
    print(json.dumps({"ids": ids, "spooled": spooled, "error": error}))


if __name__ == "__main__":
    main(*sys.argv[1:])
