"""The table of `make load`: what counts as refused and lost, and that nothing is left running."""

import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.callers import Outcome
from benchmarks.load import Row
from benchmarks.stack import PATIENCE_S, ROOT, children_of, missing_programs
from benchmarks.timing import human


def test_help_is_printed_and_nothing_is_started() -> None:
    command = [sys.executable, "-m", "benchmarks.load", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--write" in done.stdout


def test_a_time_that_was_not_measured_says_so() -> None:
    """Such as the wait of those who were refused, where nobody was."""
    assert [human(one) for one in Outcome().quantiles("refused")] == ["not measured"] * 3
    assert human(0.0012) == "1.2 ms"
    assert human(math.nan) == "not measured"


def test_a_call_is_lost_where_nobody_answers_before_the_cad_goes_on() -> None:
    got = Outcome(seconds={"answered": [0.1, 0.2, 3.5], "no advice": [0.3], "failed": [30.0]})
    row = Row.of("a worker fails", got)
    assert (row.calls, row.refused, row.lost, row.without_advice) == (5, 0, 2, 1)
    assert not row.reached
    assert Row.of("nothing fails", Outcome(seconds={"answered": [0.1]})).reached
    assert not Row.of("", Outcome(seconds={"answered": [0.1], "refused": [0.1]})).reached


def test_callers_beside_a_storm_are_to_be_answered_soon() -> None:
    soon = Outcome(seconds={"answered": [0.1] * 99})
    assert Row.of("beside a storm", soon, others_wait_s=1.0).reached
    assert not Row.of("", Outcome(seconds={"answered": [2.0]}), others_wait_s=1.0).reached
    assert not Row.of("", Outcome(seconds={"refused": [0.1]}), others_wait_s=1.0).reached
    cells = Row.of("", Outcome(seconds={"refused": [0.1]}), others_wait_s=1.0).cells()
    assert cells == ["", "1", "1", "0", "0", "not measured", "not measured", "p99 under 1 s", "no"]


def _family(process: int) -> set[int]:
    try:
        children = children_of(process)
    except OSError:
        return set()
    return {process}.union(*map(_family, children))


@pytest.mark.slow
@pytest.mark.skipif(bool(missing_programs()), reason=missing_programs())
def test_a_run_that_is_interrupted_leaves_nothing_behind() -> None:
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.load"], cwd=ROOT)
    family: set[int] = set()
    deadline = time.monotonic() + 4 * PATIENCE_S
    while len(family) < 8:  # two workers with a solver each, nginx with its own, the callers
        assert process.poll() is None
        assert time.monotonic() < deadline, family
        time.sleep(0.1)
        family |= _family(process.pid)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 1
    while any(Path(f"/proc/{one}/exe").exists() for one in family):  # the solvers end with workers
        assert time.monotonic() < deadline, family
        time.sleep(0.1)
