"""A solver's process that is killed, stopped or cannot load: calls go on, and nothing is lost."""

import asyncio
import math
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from datetime import UTC, datetime
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, cast

import httpx
import numpy as np
import pytest

from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.service.http.app import create_app
from ideal_dispatch.service.solver.main import _tell_answer
from ideal_dispatch.service.solver.messages import Call, Scene
from ideal_dispatch.service.solver.pool import SolverPool
from ideal_dispatch.service.solver.process import SolverProcess
from ideal_dispatch.service.solver.solver import Solver
from tests.faults.service_faults import (
    ASK,
    advised,
    codes,
    pooled,
    post,
    record_patiently,
    words,
    working,
)
from tests.service_town import PATIENCE_S, Town, application, bearer, local, serving
from tests.waiting import wait_for

SOLVER = "ideal_dispatch.service.solver.main"


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and nobody waited for does not."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def solvers_of(pid: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            words = (folder / "cmdline").read_text()
        except (OSError, IndexError):
            continue
        if fields[1] == str(pid) and SOLVER in words:
            found.append(int(folder.name))
    return found


def priorities(pid: int) -> set[int]:
    """Of all threads of a process."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return {int((one / "stat").read_text().rpartition(")")[2].split()[16]) for one in threads}


def test_solvers_at_work_leave_the_processor_to_who_answers(town: Town) -> None:
    """The first one loads at full priority, for nobody is served before; then it steps back."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    with pooled(town.settings("calm.toml", server={"solvers": 2})) as (_, pool):
        first, second = working(pool)
        wait_for(lambda: priorities(first) == {own, max(own, 5)})
        assert priorities(second) == {max(own, 5)}
        # loading, two lanes, traffic, the end: none of a matrix library, which would take all cores
        assert len(list(Path(f"/proc/{second}/task").iterdir())) <= 5


def test_solver_killed_while_another_one_is_at_work(town: Town) -> None:
    """Every call is answered as before; the dead one is replaced."""
    with pooled(town.settings("killed.toml", server={"solvers": 2})) as (client, pool):
        before = advised(client, town.call("before"))
        assert before.decision != "no_advice"
        asked_next = pool._free[-1]._child
        assert asked_next is not None
        killed = asked_next.process.pid
        os.kill(killed, signal.SIGKILL)
        made = [advised(client, town.call(f"on-{number}")) for number in range(20)]
        lost = [one for one in made if codes(one)[:1] == ["solver_lost"]]
        assert len(lost) <= 1  # whoever comes while the kernel ends it
        assert all(one in lost or one.decision == before.decision for one in made)
        assert client.get("/readyz").status_code == 200
        wait_for(lambda: len(working(pool)) == 2)
        assert killed not in working(pool)
        assert "ideal_solver_restarts 1.0" in client.service.measure().decode()
        assert advised(client, town.call("after")).decision == before.decision


def test_the_only_solver_killed(town: Town) -> None:
    """Calls are refused at once until it is back, so that a proxy asks another worker."""
    with pooled(town.settings("only.toml", server={"solvers": 1})) as (client, pool):
        versions = advised(client, town.call("before")).versions
        (pid,) = working(pool)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not pool.working)
        refused = client.post(ASK, json=town.call("lost"), headers=bearer("cad"))
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "starting"
        card = client.get("/v1/model-card", headers=bearer())
        assert (card.status_code, card.json()["error"]["code"]) == (503, "solver_lost")
        wait_for(lambda: client.get("/readyz").status_code == 200)
        assert working(pool) != [pid]
        again = advised(client, town.call("lost"))
        assert again.decision != "no_advice"
        assert again.versions == versions


def test_solver_killed_during_a_call(town: Town) -> None:
    """The call gets an honest answer in time, and another one when it is asked again."""
    server = {"solvers": 1, "deadline_s": 60.0}
    with pooled(town.settings("during.toml", server=server)) as (client, pool):
        (pid,) = working(pool)
        os.kill(pid, signal.SIGSTOP)  # so that it is surely in the middle of the call

        def kill() -> None:
            wait_for(lambda: not pool._free)
            os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        made = advised(client, town.call("during"))
        killer.join()
        assert made.decision == "no_advice"
        assert codes(made) == ["solver_lost"]
        wait_for(lambda: pool.working)
        again = advised(client, town.call("during"))
        assert (again.revision, again.revision_of) == (2, made.id)
        assert again.decision != "no_advice"
        assert client.service.admission.inside == 0


def test_solver_hangs(town: Town) -> None:
    """Late answers say so in time; what hangs for long is ended, and another one begins."""
    server = {"solvers": 1, "deadline_s": 1.0}
    with pooled(town.settings("hangs.toml", server=server), hangs_s=1.0) as (client, pool):
        record_patiently(client)
        (pid,) = working(pool)
        os.kill(pid, signal.SIGSTOP)
        made = advised(client, town.call("hangs"))
        assert codes(made) == ["late"]
        wait_for(lambda: client.get("/readyz").status_code == 503)  # calls go elsewhere
        wait_for(lambda: working(pool) not in ([], [pid]))
        assert not alive(pid)

        def advised_again() -> bool:  # on a busy machine the new one may be late at first, too
            answer = post(client, town.call("hangs"))
            return answer.status_code == 200 and answer.json()["decision"] != "no_advice"

        wait_for(advised_again)


def test_a_solver_that_cannot_load_again(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    """Files that were damaged since: the worker says so and tries on, and is back with them."""
    depots, name = (town.folder / "depots.csv").read_text(), "again.csv"
    (town.folder / name).write_text(depots)
    settings = town.settings("again.toml", server={"solvers": 1}, city={"depots": name})
    with pooled(settings) as (client, pool):
        (town.folder / name).write_text("nonsense")
        os.kill(working(pool)[0], signal.SIGKILL)
        wait_for(lambda: "name" in caplog.text and "another one is started in" in caplog.text)
        assert client.get("/readyz").status_code == 503
        assert client.get("/v1/city", headers=bearer()).status_code == 200
        (town.folder / name).write_text(depots)
        wait_for(lambda: pool.working)
        assert advised(client, town.call("again")).decision != "no_advice"


def test_no_process_can_be_started(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    """No file descriptor is left for a while: it is tried on, and works again afterwards."""
    with pooled(town.settings("starved.toml", server={"solvers": 1})) as (client, pool):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        os.kill(working(pool)[0], signal.SIGKILL)
        wait_for(lambda: "the solver ended" in caplog.text)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            wait_for(lambda: "no solver could be started (Too many open files)" in caplog.text)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        wait_for(lambda: pool.working)
        assert advised(client, town.call("fed")).decision != "no_advice"


def test_another_solver_that_cannot_load_is_tried_on(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the first one's failure is final: it says what is wrong with the settings."""
    settings = town.settings("second.toml", city={"depots": "second.csv"})
    (town.folder / "second.csv").write_text("nonsense")
    second = SolverProcess(lambda: None, 60.0, early=False)
    second.begin(settings, settings.city.calendar())

    async def until(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.02)

    async def tried_on() -> None:
        second.start()
        try:
            await until(lambda: "another one is started in" in caplog.text)
            (town.folder / "second.csv").write_text((town.folder / "depots.csv").read_text())
            await until(lambda: second.warm)
        finally:
            second.close()

    asyncio.run(tried_on())
    assert second.restarts >= 1


def test_a_surprise_in_the_solver_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    """Else who asks would wait, and a solver that can advise be taken for one that hangs."""

    class Surprised:
        method = Solver.method
        tell_traffic = staticmethod(lambda: None)

        def road_map(self) -> None:
            raise KeyError("street")

        def model_card(self) -> None:
            raise InputError("no card")

        def invented_call(self) -> None:
            raise SystemExit("enough")

    told: list[tuple[int | None, str, str]] = []
    for number, name in enumerate(("road_map", "model_card", "close", "invented_call")):
        given = cast(Solver, Surprised()), number, name, (), lambda *answer: told.append(answer)
        copy_context().run(_tell_answer, *given)  # it notes the call for its log lines
    words = "a fault of this program ({}); it was logged".format
    assert told == [
        (0, "failed", words("KeyError")), (1, "refused", "no card"),
        (2, "refused", "close: nothing that can be asked"), (3, "failed", words("SystemExit")),
    ]  # fmt: skip
    assert "KeyError: 'street'" in caplog.text


def test_an_advice_goes_as_json() -> None:
    """So that the service knows every type in it; a number that JSON lacks is null."""

    class Odd:
        def method(self, name: str) -> Callable[..., Any]:
            return lambda call: {"name": name, "gain_s": math.nan, "seconds": np.float64(1.5)}

        def tell_traffic(self) -> None:
            pass

    told: list[tuple[int | None, str, bytes]] = []
    call = Call("odd", datetime.now(UTC), Scene(114.1, 22.3))
    given = cast(Solver, Odd()), 7, "advise", (call,), lambda *answer: told.append(answer)
    copy_context().run(_tell_answer, *given)  # it notes the call for its log lines
    assert told == [(7, "advised", b'{"name":"advise","gain_s":null,"seconds":1.5}')]


def test_a_solver_that_is_busy_ends_with_its_service() -> None:
    here, there = Pipe()
    lines = (
        "import threading, time", f"from {SOLVER} import _end_with",
        f"threading.Thread(target=_end_with, args=({there.fileno()},)).start()",
        "print('busy', flush=True)", "time.sleep(600)",
    )  # fmt: skip
    command = [sys.executable, "-c", "\n".join(lines)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[there.fileno()]) as busy:
        there.close()
        assert busy.stdout is not None
        busy.stdout.readline()
        here.send("a question, which is no end")
        with pytest.raises(subprocess.TimeoutExpired):
            busy.wait(0.5)
        here.close()
        assert busy.wait(60) == 0


def test_an_answer_that_cannot_be_told_ends_the_process() -> None:
    """So that who asks learns at once that it is lost."""
    lines = (
        "from concurrent.futures import Future", f"from {SOLVER} import _check_told",
        "told = Future()", "told.set_exception(TypeError('cannot be sent'))", "_check_told(told)",
    )  # fmt: skip
    command = [sys.executable, "-c", "\n".join(lines)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "an answer could not be told" in ended.stderr


def test_a_call_that_cannot_be_sent(
    town: Town, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is answered, and leaves its slot and its solver to the next one."""
    with pooled(town.settings("unsent.toml", server={"solvers": 1})) as (client, _):
        weather = client.service.weather
        monkeypatch.setattr(weather, "known", lambda: lambda: "no value that can be sent")
        assert codes(advised(client, town.call("unsent"))) == ["internal_error"]
        assert "the solver cannot be asked" in caplog.text
        assert client.service.admission.inside == 0
        monkeypatch.undo()
        assert advised(client, town.call("sent")).decision != "no_advice"


@pytest.mark.parametrize("error", [InputError("odd"), IdealError("odd")])
def test_a_solver_that_refuses_a_call(town: Town, error: IdealError) -> None:
    """Whatever it says instead of an advice, the call gets an answer on record."""
    with local(application(town.settings("refuses.toml"))) as client:

        def refuse(*_: object) -> None:
            raise error

        setattr(client.adviser, "advise", refuse)  # noqa: B010
        made = advised(client, town.call("refused"))
        assert words(made, "internal_error") == "odd"


def test_a_solver_that_ends_before_it_is_told_what_to_solve(town: Town) -> None:
    pool = SolverPool()
    child = pool._first._child
    assert child is not None
    child.process.kill()
    child.process.wait()
    pool.begin(town.settings("gone.toml"))
    with pytest.raises(InputError, match=r"the solver ended \(code -9\)"):
        pool.facts  # noqa: B018
    pool.close()


def test_ending_while_a_solver_hangs_and_desks_want_its_map(town: Town) -> None:
    with pooled(town.settings("map.toml", server={"solvers": 1})) as (client, pool):
        os.kill(working(pool)[0], signal.SIGSTOP)
        url, headers = f"{client.base_url}/v1/network.geojson", bearer()
        desks = [
            threading.Thread(target=_ask_in_vain, args=(url, headers), daemon=True)
            for _ in range(12)
        ]
        for desk in desks:
            desk.start()
        time.sleep(0.5)
    # it ended, although the desks would wait for longer


def _ask_in_vain(url: str, headers: dict[str, str]) -> None:
    with suppress(httpx.HTTPError):
        httpx.get(url, headers=headers, timeout=2 * PATIENCE_S)


def test_what_is_wrong_at_first_is_raised(town: Town) -> None:
    pool = SolverPool()
    pool.begin(town.settings("nomodel.toml", model={"folder": "nowhere"}))
    with pytest.raises(InputError, match="no such folder; make one with `ideal train`"):
        create_app(town.settings("nomodel.toml", model={"folder": "nowhere"}), pool)
    pool.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_solvers_end_with_the_service(town: Town, how: signal.Signals) -> None:
    with serving(town.config(f"ends-{how.name}.toml", server={"solvers": 1})) as served:
        solvers = solvers_of(served.process.pid)
        assert len(solvers) == 1
        assert served.post(town.call("one")).status_code == 200
        os.kill(served.process.pid, how)
        served.process.wait(PATIENCE_S)
        wait_for(lambda: not any(map(alive, solvers)))


def test_a_solver_ignores_signals_that_are_for_the_service(town: Town) -> None:
    """A terminal or a service manager may send them to every process."""
    with serving(town.config("signals.toml", server={"solvers": 1})) as served:
        (pid,) = solvers_of(served.process.pid)
        for ending in (signal.SIGTERM, signal.SIGINT):
            os.kill(pid, ending)
        assert served.post(town.call("signals")).json()["decision"] != "no_advice"
        assert alive(pid)
