"""The HTTP application: routes over the service's state, and the desk's files."""

import asyncio
import gc
import mimetypes
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from ideal_dispatch import __version__
from ideal_dispatch.service.deciding.engine import Engine
from ideal_dispatch.service.errors import RecordUnavailableError
from ideal_dispatch.service.http import refusals, routes
from ideal_dispatch.service.http.protection import Protection
from ideal_dispatch.service.http.server import attend, ready_or_ended
from ideal_dispatch.service.requests import CountIn
from ideal_dispatch.service.service import Service
from ideal_dispatch.service.settings import ServiceSettings

STATIC = Path(__file__).parents[1] / "desk" / "static"

_DEMO_UNITS, _DEMO_CALLS, _DEMO_EVERY_S = 2, 40, 6.0
_ABOUT = """Advice on second ambulances beside a dispatch centre's CAD.

The primary dispatch never waits for this service: every call gets an answer or an honest
`no_advice` inside the deadline. All of `/v1` needs `Authorization: Bearer TOKEN`, except this
description, `/v1/languages`, and signing in and out at `/v1/session`.

The examples are of the embedded city and can be sent as they are. `received_at` may be left out:
the call was then received now.
"""


class _Desk(StaticFiles):
    """The desk's files. What an address of the API does not take is not looked for among them."""

    def __init__(self, api: Sequence[BaseRoute]) -> None:
        super().__init__(directory=STATIC, html=True)
        self._api = [route for route in api if isinstance(route, Route)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        at = [route for route in self._api if route.matches(scope)[0] is Match.PARTIAL]
        if at:
            methods = sorted({method for route in at for method in route.methods or ()})
            raise HTTPException(405, headers={"Allow": ", ".join(methods)})
        if scope["path"].startswith("/v1/"):
            raise HTTPException(404)
        await super().__call__(scope, receive, send)


def create_app(settings: ServiceSettings, engine: Engine, *, attended: bool = False) -> FastAPI:
    """The application. ``attended`` is one that may end its process where its event loop hangs."""
    service = Service(settings, engine)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            await service.start()
            if not settings.demo:
                # nothing listens until then: a proxy asks another worker
                await ready_or_ended(lambda: service.health().status != "starting")
            if settings.invents:
                counts = [CountIn(depot=one, free=_DEMO_UNITS) for one in engine.depots]
                with suppress(RecordUnavailableError):
                    await service.update_units(counts, "demo")
                service.simulate(_DEMO_CALLS, _DEMO_EVERY_S)
            gc.enable()
            gc.freeze()  # what was loaded stays: looking through it would hold up calls
            if not attended:
                yield
                return
            attending = asyncio.create_task(attend(service.events.close))
            yield
            attending.cancel()
        finally:
            await service.stop()

    app = FastAPI(
        title="ideal-dispatch", version=__version__, description=_ABOUT, lifespan=lifespan,
        docs_url=None, redoc_url=None, openapi_url="/v1/openapi.json",
    )  # fmt: skip
    app.state.service = service
    refusals.install(app)
    api = list(app.routes)
    for part in routes.PARTS:
        app.include_router(part)
        api += part.routes
    # the table of the machine may call modules plain text, and browsers then refuse them
    for ending in (".js", ".mjs"):
        mimetypes.add_type("text/javascript", ending)
    app.mount("/", _Desk(api), name="desk")
    for route in app.routes:  # the framework builds them at the first look; no call waits for that
        route.matches({"type": "http", "method": "GET", "path": "/", "headers": []})
    app.add_middleware(Protection)
    return app
