"""The end of a service with a part that died before."""

import asyncio

import pytest

from ideal_dispatch.service.app import create_app
from tests.service_town import Town, local


async def _die() -> None:
    raise RuntimeError("died")


async def _dead() -> "asyncio.Task[None]":
    task = asyncio.create_task(_die())
    await asyncio.wait([task])
    return task


@pytest.mark.parametrize("part", ["simulation", "service"])
def test_a_dead_background_task_does_not_keep_the_audit_open(
    town: Town, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(town.settings(f"dead-{part}.toml"))
    with local(app) as client:
        loop = client.service._tasks[0].get_loop()
        task = asyncio.run_coroutine_threadsafe(_dead(), loop).result(30)
        if part == "service":
            client.service._tasks.append(task)
        else:
            alive, app.state.simulator._task = app.state.simulator._task, task
            loop.call_soon_threadsafe(alive.cancel)
    assert client.service.ledger.writer._closing
    assert not list((town.folder / f"dead-{part}.toml.spool").iterdir())
    assert part == "service" or "the simulation had died" in caplog.text
