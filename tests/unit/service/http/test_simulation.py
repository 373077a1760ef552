"""Invented calls, and the end of a service with a part that died before."""

import asyncio
import time

import pytest

from ideal_dispatch.errors import InputError
from tests.service_town import PATIENCE_S, Town, application, local
from tests.waiting import wait_for


def test_stopping_a_simulation_that_stands_still_starts_none(town: Town) -> None:
    """Two desks may both press the button; calls that nobody asked for would never end."""
    app = application(town.settings("still.toml"))
    with local(app) as client:
        loop = client.service._tasks[0].get_loop()
        for _ in range(3):
            loop.call_soon_threadsafe(app.state.simulator.ask, 0, 0.5)
            time.sleep(0.05)
        assert app.state.simulator.status() == {"running": False, "left": 0, "every_s": 0.5}
        assert client.service.ledger._store.recent("recommendation", 10) == []
        loop.call_soon_threadsafe(app.state.simulator.ask, 1, 0.5)
        wait_for(lambda: client.service.ledger._store.recent("recommendation", 10))
        assert app.state.simulator.status()["left"] == 0


def test_a_call_that_cannot_be_made_keeps_no_place(
    town: Town, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def impossible() -> None:
        raise InputError("nobody lives here")

    app = application(town.settings("impossible.toml"))
    with local(app) as client:
        monkeypatch.setattr(app.state.simulator, "call", impossible)
        loop = client.service._tasks[0].get_loop()
        loop.call_soon_threadsafe(app.state.simulator.ask, 1, 0.5)
        wait_for(lambda: "nobody lives here" in caplog.text)
        assert client.service.admission.inside == 0


async def _die() -> None:
    raise RuntimeError("died")


def test_a_dead_background_task_does_not_keep_the_audit_open(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    app = application(town.settings("dead.toml"))
    with local(app) as client:
        service, loop = client.service, client.service._tasks[0].get_loop()

        async def until_it_died() -> None:
            service.run(_die())
            await asyncio.wait(service._tasks[-1:])

        asyncio.run_coroutine_threadsafe(until_it_died(), loop).result(PATIENCE_S)
    assert client.service.ledger.writer._closing
    assert not list((town.folder / "dead.toml.spool").iterdir())
    assert "a task in the background had failed" in caplog.text
