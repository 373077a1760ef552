"""Where the ``ideal`` command begins; nothing that takes time is imported here."""

import sys
from contextlib import suppress

_WITHOUT_SOLVER = frozenset({"-h", "--help", "--check", "--new-token"})


def main() -> None:
    """Run the command line; the solver of ``ideal serve`` loads while the command line does."""
    solver = None
    if sys.argv[1:2] == ["serve"] and not _WITHOUT_SOLVER & set(sys.argv):
        from ideal_dispatch.service.http.worker import available
        from ideal_dispatch.service.solver.pool import SolverPool

        with suppress(OSError):  # no process to be had: the command tries again, and says so
            solver = SolverPool() if available() else None
    from ideal_dispatch.cli import app

    try:
        app.main(solver)
    finally:
        if solver is not None:
            solver.close()
