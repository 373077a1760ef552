"""Which torch is installed, from a local index that holds both kinds."""

import json
import os
import runpy
import subprocess
import sys
import threading
import venv
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import ROOT

pip = pytest.importorskip("pip", reason="the tests install wheels: pip is not here")
pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="other systems have CPU builds only"
)
SCRIPT = ROOT / "tools" / "cpu_torch.py"
CUDA: str = runpy.run_path(str(SCRIPT))["pinned"]()
CPU = f"{CUDA}+cpu"
FALLS_BACK = f"no CPU build of torch {CUDA} from 127.0.0.1: the ordinary index is next, and may"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of two indexes: ``ordinary`` with CUDA's torch, ``cpu`` with the CPU build."""
    folder = tmp_path_factory.mktemp("indexes")
    _wheel(folder / "ordinary/torch", "torch", CUDA, "nvidia-thing")
    _wheel(folder / "ordinary/nvidia-thing", "nvidia-thing", "13.0")
    _wheel(folder / "cpu/torch", "torch", CPU)
    _wheel(folder / "cpu/torch", "torch", f"{CUDA}.1+cpu")
    (folder / "nonsense/torch").mkdir(parents=True)
    (folder / "nonsense/torch/index.html").write_text("<html>please sign in</html>")
    (folder / "empty").mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


class Place:
    """A fresh virtual environment that sees the local indexes and nothing else."""

    def __init__(self, folder: Path, server: str) -> None:
        venv.create(folder / "venv")
        self.python = folder / "venv" / "bin" / "python"
        [packages] = folder.glob("venv/lib/python*/site-packages")
        # this pip, without the time it takes to install it
        (folder / "pip").mkdir()
        (folder / "pip" / "pip").symlink_to(Path(pip.__file__).parent)
        (packages / "pip.pth").write_text(str(folder / "pip"))
        outside = ("PIP_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "PYTHONPATH")
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.upper().startswith(outside)
        } | {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": f"{server}/ordinary/"}

    def run(self, *command: str | Path) -> str:
        done = subprocess.run(
            [self.python, *command],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def setup(self, index: str) -> str:
        """What the script says, after the ordinary install that follows it has run too."""
        said = self.run(SCRIPT, "--index", index)
        self.run("-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", f"torch=={CUDA}")
        return said

    @property
    def has(self) -> dict[str, str]:
        listed = json.loads(self.run("-m", "pip", "list", "--format", "json"))
        return {package["name"]: package["version"] for package in listed}


@pytest.fixture
def place(tmp_path: Path, server: str) -> Place:
    return Place(tmp_path, server)


def test_the_cpu_build_is_taken_where_both_kinds_are_offered(place: Place, server: str) -> None:
    assert place.setup(f"{server}/cpu/") == ""
    assert place.has == {"torch": CPU}


@pytest.mark.parametrize("index", ["nonsense", "empty", "not_here"])
def test_an_index_without_the_build_is_named_and_the_ordinary_one_follows(
    place: Place, server: str, index: str
) -> None:
    said = place.setup(f"{server}/{index}/")
    assert said.startswith(FALLS_BACK)
    assert said.count("\n") == 1
    assert place.has == {"torch": CUDA, "nvidia-thing": "13.0"}


def test_a_torch_that_is_installed_stays(place: Place) -> None:
    place.run("-m", "pip", "install", "-q", f"torch=={CUDA}")
    assert place.setup("http://127.0.0.1:9/") == ""
    assert place.has["torch"] == CUDA


def test_a_folder_of_wheels_is_enough_without_a_network(place: Place, tmp_path: Path) -> None:
    _wheel(tmp_path / "wheels", "torch", CPU)
    place.environment |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}
    assert place.setup("http://127.0.0.1:9/") == ""
    assert place.has == {"torch": CPU}


def test_make_asks_for_it_before_the_packages() -> None:
    planned = subprocess.run(
        ["make", "-n", "-B", "setup"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert 0 < planned.index("tools/cpu_torch.py") < planned.index("--editable")


def _wheel(folder: Path, name: str, version: str, requires: str | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file_name = f"{name.replace('-', '_')}-{version}"
    about = f"{file_name}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        f"{name}/__init__.py": "",
        f"{about}/METADATA": metadata + (f"Requires-Dist: {requires}\n" if requires else ""),
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{about}/RECORD"])
    with zipfile.ZipFile(folder / f"{file_name}-py3-none-any.whl", "w") as packed:
        for file, text in files.items():
            packed.writestr(file, text)
