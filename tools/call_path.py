"""Follow one call through the service: `python tools/call_path.py` prints its way.

A worker with a real solver process is asked about one call of the embedded city. Its way is the
list of our functions that the call is inside of when its decision is made, and when its answer
is handed to the audit: from the socket, over tasks, threads and the solver's process. What these
functions call and get an answer from (a check, a look-up) is no part of it.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

import httpx
import uvicorn

from ideal_dispatch import service
from ideal_dispatch.service.settings import ServiceSettings

CALL_ID = "followed"
_SERVICE = str(Path(service.__file__).parent)
_NOTED = "IDEAL_CALL_PATH"  # the file in which the solver's process notes its part
_LONGEST_S = 300.0  # where nothing is compiled yet


def way(settings: ServiceSettings, token: str, location: Mapping[str, float]) -> list[str]:
    """The functions that a call at this location passes, in order."""
    from ideal_dispatch.service.audit.writer import AuditWriter
    from ideal_dispatch.service.http.app import create_app
    from ideal_dispatch.service.http.server import options
    from ideal_dispatch.service.solver import process
    from ideal_dispatch.service.solver.pool import SolverPool

    origins: WeakKeyDictionary[asyncio.Task[Any], list[str]] = WeakKeyDictionary()
    there: list[str] = []
    back: list[str] = []
    ask, submit = process.SolverProcess.ask, AuditWriter.submit

    def here() -> list[str]:
        task = asyncio.current_task()
        return [*(origins.get(task, []) if task else []), *_functions(sys._getframe(2))]

    def task_made(loop: Any, coroutine: Any, **given: Any) -> "asyncio.Task[Any]":
        task = asyncio.Task(coroutine, loop=loop, **given)
        origins[task] = here()
        return task

    def asking(self: Any, name: str, given: Any, *rest: Any) -> Any:
        if name == "advise" and given[0].call_id == CALL_ID:
            there[:] = [*here(), _name(ask)]
        return ask(self, name, given, *rest)

    def submitting(self: Any, entry: Any, *rest: Any) -> Any:
        if entry.call_id == CALL_ID:
            back[:] = [*here(), _name(submit)]
        return submit(self, entry, *rest)

    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder) / "solver.json"
        with (
            patch.object(process, "_MAIN", "tools.call_path"),
            patch.object(process.SolverProcess, "ask", asking),
            patch.object(AuditWriter, "submit", submitting),
            patch.dict(os.environ, {_NOTED: str(noted), "PYTHONPATH": _searched()}),
        ):
            pool = SolverPool()
            try:
                pool.begin(settings)
                given = {"loop": "asyncio", "host": "127.0.0.1", "port": 0, **options(settings)}
                server = uvicorn.Server(uvicorn.Config(create_app(settings, pool), **given))
                asyncio.run(_served(server, task_made, lambda: _ask(server, token, location)))
            finally:
                pool.close()
        solved = json.loads(noted.read_text())
    return list(dict.fromkeys([*there, *solved, *back]))


def _searched() -> str:
    """Where the solver's process finds modules: also this one, wherever it is called from."""
    root = str(Path(__file__).parents[1])
    return os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))


def _embedded() -> list[str]:
    from ideal_dispatch.cities import harbour_city
    from ideal_dispatch.service.desk.demo import demo

    city = harbour_city()
    node = city.depots[0].node
    location = {"lon": float(city.network.lon[node]), "lat": float(city.network.lat[node])}
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, {"XDG_STATE_HOME": folder}),
    ):
        return way(*demo(), location)


async def _served(
    server: uvicorn.Server, task_made: Callable[..., Any], ask: Callable[[], None]
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(task_made)
    serving = loop.create_task(server.serve())
    try:
        while not server.started:
            await asyncio.sleep(0.05)
            if serving.done():
                await serving
        await asyncio.to_thread(ask)
    finally:
        loop.set_task_factory(None)
        server.should_exit = True
        await serving


def _ask(server: uvicorn.Server, token: str, location: Mapping[str, float]) -> None:
    port = server.servers[0].sockets[0].getsockname()[1]
    body = {"call_id": CALL_ID, "received_at": datetime.now(UTC).isoformat(), "location": location}
    headers = {"Authorization": f"Bearer {token}"}
    url = f"http://127.0.0.1:{port}/v1/recommendations"
    while True:  # each on a connection of its own: one that was refused has to wait
        answer = httpx.post(url, json=body, headers=headers, timeout=_LONGEST_S)
        if answer.status_code != 503:  # on the embedded city it listens before it can advise
            break
    assert answer.json()["decision"] != "no_advice", answer.text


# --- in the solver's process ---------------------------------------------------------


def _solve(descriptor: int, awaited: bool) -> None:
    """The solver's own main function; where the decision on our call is made is noted."""
    from ideal_dispatch.dispatch.ideal import Ideal
    from ideal_dispatch.service.solver import main

    decide = Ideal.decide

    def deciding(self: Any, situation: Any, rng: Any) -> Any:
        if situation.incident.name == CALL_ID:
            Path(os.environ[_NOTED]).write_text(json.dumps(_functions(sys._getframe(1))))
        return decide(self, situation, rng)

    with patch.object(Ideal, "decide", deciding):
        main.main(descriptor, awaited)


def _functions(frame: FrameType | None) -> list[str]:
    """Functions of the service on the stack, the outermost first."""
    found = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_SERVICE):
            module = Path(code.co_filename).relative_to(_SERVICE).with_suffix("").as_posix()
            found.append(f"{module}: {code.co_qualname}")
        frame = frame.f_back
    return found[::-1]


def _name(function: Callable[..., Any]) -> str:
    code = function.__code__
    module = Path(code.co_filename).relative_to(_SERVICE).with_suffix("").as_posix()
    return f"{module}: {code.co_qualname}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("descriptor", nargs="?", type=int, help="given to the solver's process")
    parser.add_argument("awaited", nargs="?", help="the same")
    told = parser.parse_args()
    if told.descriptor is not None:
        _solve(told.descriptor, told.awaited is not None)
    else:
        passed = _embedded()
        print(*(f"{number:2} {one}" for number, one in enumerate(passed, 1)), sep="\n")
