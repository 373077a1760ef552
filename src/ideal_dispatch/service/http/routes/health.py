"""Is it alive, can it advise, and what has it seen."""

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from ideal_dispatch.service.http.access import Serving, check_role, token_of
from ideal_dispatch.service.http.answer_schemas import Health
from ideal_dispatch.service.http.refusals import documented
from ideal_dispatch.service.observations import CONTENT_TYPE

router = APIRouter(tags=["health"])


@router.get("/healthz", responses={200: {"model": Health}})
async def alive(service: Serving) -> JSONResponse:
    """The process answers."""
    status, parts = service.health()
    return JSONResponse({"status": status, "parts": parts})


@router.get("/readyz", responses={200: {"model": Health}, 503: {"model": Health}})
async def ready(service: Serving) -> JSONResponse:
    """Advice can be given; 503 while the service starts. A degraded service is ready."""
    status, parts = service.health()
    code = 503 if status == "starting" else 200
    return JSONResponse({"status": status, "parts": parts}, code)


@router.get("/metrics", responses=documented(403, content="text/plain"), response_class=Response)
async def metrics(request: Request, service: Serving) -> Response:
    """Numbers for Prometheus, for auditors and admins unless the settings make them public."""
    if not service.settings.server.public_metrics:
        check_role(token_of(request), "auditor", "admin")
    return Response(service.measure(), media_type=CONTENT_TYPE)
