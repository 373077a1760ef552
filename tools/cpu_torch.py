"""Install the pinned torch as a CPU build, before anything else asks for torch.

    python tools/cpu_torch.py                # from PyTorch's own index
    python tools/cpu_torch.py --index URL    # from a mirror of it

On Linux the public index answers `torch` with several gigabytes of CUDA packages; training
needs none of them. Only torch itself comes from the index of CPU builds; what torch needs comes
from pip's ordinary index with the rest. A torch of the pinned version that is already installed
stays. Where no CPU build is found, nothing is installed: the ordinary index decides then.
"""

import argparse
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlsplit

CPU_BUILDS = "https://download.pytorch.org/whl/cpu"
CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
WAIT = ["--timeout", "5", "--retries", "1"]  # no answer costs 10 s for each address of the index


def pinned() -> str:
    """The version of torch that constraints.txt pins."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    [pin] = [line.removeprefix("torch==") for line in lines if line.startswith("torch==")]
    return pin


def installed() -> str | None:
    """The installed version without its local part: 2.13.0 for 2.13.0+cpu."""
    try:
        return version("torch").partition("+")[0]
    except PackageNotFoundError:
        return None


def install(index: str) -> None:
    """The pinned CPU build, or one line that says what comes instead."""
    pin = pinned()
    if sys.platform != "linux" or installed() == pin:
        return  # the ordinary index has only CPU builds for other systems
    # the index is asked beside the user's own, so that a mirror or a folder of wheels counts too
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", *WAIT]
    done = subprocess.run(
        [*pip, "--extra-index-url", index, f"torch=={pin}+cpu"], capture_output=True, check=False
    )
    if done.returncode:
        print(
            f"no CPU build of torch {pin} from {urlsplit(index).hostname}: the ordinary index is"
            " next, and may send several gigabytes of CUDA packages"
        )


def main() -> None:
    """Install; the exit code is 0 also where the ordinary index is next."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--index", default=CPU_BUILDS, help="an index of CPU builds")
    install(parser.parse_args().index)


if __name__ == "__main__":
    main()
