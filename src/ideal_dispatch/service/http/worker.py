"""A worker: its solver is begun first, and loads while the application does."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.solver.pool import SolverPool

if TYPE_CHECKING:  # a solver's process is to begin before all that
    from fastapi import FastAPI

    from ideal_dispatch.service.settings import ServiceSettings

FACTORY = f"{__name__}:from_environment"
"""Where uvicorn finds the application of a worker process."""


def available() -> bool:
    """Whether the packages that a service needs are installed."""
    return all(map(find_spec, ("fastapi", "sqlalchemy", "uvicorn", "pydantic")))


@contextmanager
def starting(begun: SolverPool | None = None) -> Iterator[SolverPool]:
    """A solver that is being loaded, or was ``begun``; it ends if anything goes wrong meanwhile."""
    solver = begun or SolverPool()
    try:
        yield solver
    except BaseException:
        solver.close()
        raise


def application(settings: "ServiceSettings", solver: SolverPool) -> "FastAPI":
    """The application of this process, or one line that says what is wrong with its settings."""
    from ideal_dispatch.service import clock, logs

    logs.configure(settings.server.log_level)
    clock.use(settings.clock)
    solver.begin(settings)
    from ideal_dispatch.service.http.app import create_app

    return create_app(settings, solver)


def check(settings: "ServiceSettings", solver: SolverPool) -> None:
    """Refuse now what every worker would."""
    solver.begin(settings)
    solver.facts  # noqa: B018 - waits, and raises what is wrong
    solver.close()


def from_environment() -> "FastAPI":
    """The application of a process that was told its settings in the environment."""
    with starting() as solver:
        from ideal_dispatch.service import settings

        found = settings.from_environment()
        if found is None:
            raise InputError(f"{settings.CONFIG} names no configuration")
        return application(found, solver)
