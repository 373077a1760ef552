"""A worker: its solver is begun first, and loads while the application does."""

from typing import TYPE_CHECKING

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.solver_pool import SolverPool

if TYPE_CHECKING:  # a solver's process is to begin before all that
    from fastapi import FastAPI

    from ideal_dispatch.service.settings import ServiceSettings

FACTORY = f"{__name__}:from_environment"
"""Where uvicorn finds the application of a worker process."""


def application(settings: "ServiceSettings", solver: SolverPool) -> "FastAPI":
    """The application of this process, or one line that says what is wrong with its settings."""
    solver.begin(settings)
    from ideal_dispatch.service.app import create_app

    return create_app(settings, solver)


def check(settings: "ServiceSettings", solver: SolverPool) -> None:
    """Refuse now what every worker would."""
    solver.begin(settings)
    try:
        assert solver.facts
    finally:
        solver.close()


def from_environment() -> "FastAPI":
    """The application of a process that was told its settings in the environment."""
    solver = SolverPool()
    from ideal_dispatch.service import logs, settings

    found = settings.from_environment()
    if found is None:
        raise InputError(f"{settings.CONFIG} names no configuration")
    logs.configure(found.server.log_level)
    return application(found, solver)
