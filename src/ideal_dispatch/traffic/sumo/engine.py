"""The SUMO programs: where they are, and running one of them."""

import resource
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from ideal_dispatch.errors import IdealError, MissingExtraError


class SumoError(IdealError):
    """A SUMO program refused its input, failed, or took too long."""


def is_installed() -> bool:
    """Whether the ``sumo`` extra is here."""
    return find_spec("sumo") is not None and find_spec("libsumo") is not None


def sumo_version() -> str:
    """The installed SUMO, such as "1.28.0"."""
    _home()
    return version("eclipse-sumo")


def run(program: str, options: Sequence[str], folder: Path, limit_s: float) -> float:
    """CPU seconds of a program in ``folder``; its first complaint is a :class:`SumoError`."""
    cpu_before = _children_cpu_s()
    try:
        finished = subprocess.run(
            [_home() / "bin" / program, *options],
            cwd=folder,
            env={"SUMO_HOME": str(_home())},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SumoError(
            f"{program}: not finished after {limit_s:g} s; less demand or fewer hours are faster"
        ) from None
    if finished.returncode:
        said = [line for line in finished.stderr.splitlines() if line.startswith("Error")]
        raise SumoError(
            f"{program}: {said[0] if said else f'ended with code {finished.returncode}'}"
        )
    return _children_cpu_s() - cpu_before


def _home() -> Path:
    if not is_installed():
        raise MissingExtraError("SUMO traffic", "sumo")
    import sumo

    return Path(sumo.SUMO_HOME)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
