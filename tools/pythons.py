"""Run the unit tests on every supported Python that this machine has: `make test-pythons`.

    python tools/pythons.py          # on all
    python tools/pythons.py 3.12     # on one

Pythons are looked for on PATH and among pyenv's versions, and those that are not here are named.
Each gets a virtual environment of its own below out/pythons. Where there is no CPU build of torch
for a Python, tests that need torch are skipped on it.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
EXTRAS = "cluster,dev,geo,records,service,sumo"


def find(version: str) -> Path | None:
    """The first Python of this version that runs, on PATH or of pyenv; None where there is none."""
    name = f"python{version}"
    on_path = [Path(folder) / name for folder in os.environ["PATH"].split(os.pathsep)]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for python in [*on_path, *sorted(pyenv.glob(f"{version}.*/bin/{name}"))]:
        # pyenv also puts names on PATH that only print an error
        if python.is_file() and _succeeds(python, "-c", "", quiet=True):
            return python
    return None


def run(version: str, python: Path) -> str:
    """What came of the unit tests on this Python, in a few words."""
    folder = ROOT / "out" / "pythons" / version
    inside = folder / "bin" / "python"
    print(f"Python {version}, {python}: installing the pinned packages into {folder}", flush=True)
    pip: list[str | Path] = [
        inside, "-m", "pip", "install", "--quiet", "--constraint", "constraints.txt"
    ]  # fmt: skip
    _succeeds(python, "-m", "venv", folder)
    _succeeds(inside, "tools/cpu_torch.py", quiet=True)
    torch = _succeeds(inside, "-m", "pip", "show", "torch", quiet=True)
    if not _succeeds(*pip, "--editable", f".[{EXTRAS}{',train' if torch else ''}]"):
        return "FAILED: the packages cannot be installed"
    tests = ["pytest", "-q", "-n", "auto", "--dist", "loadfile", "tests/unit"]
    result = "passed" if _succeeds(inside, "-m", *tests) else "FAILED"
    return result if torch else f"{result}, without torch: no CPU build of it was found"


def _succeeds(*command: str | Path, quiet: bool = False) -> bool:
    output = subprocess.DEVNULL if quiet else None
    done = subprocess.run(command, cwd=ROOT, stdout=output, stderr=output, check=False)
    return done.returncode == 0


def main() -> None:
    """Test every Python that is here; exit with 1 where one failed, or where none is here."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("versions", nargs="*", default=VERSIONS, help="such as 3.12; or all")
    versions = parser.parse_args().versions
    found = {version: find(version) for version in versions}
    results = {version: run(version, python) for version, python in found.items() if python}
    for version in versions:
        print(f"Python {version}: {results.get(version, 'not found on this machine')}")
    if not results or any("FAILED" in result for result in results.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
