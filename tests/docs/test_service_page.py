"""The requests of docs/service.md, sent as they are to `ideal serve`."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT
from tests.docs.pages import fences
from tests.docs.served import Served, serving

pytest.importorskip("fastapi", reason="the service extra is not installed")

PAGE = ROOT / "docs" / "service.md"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as found:
        yield found


def test_requests_of_the_page_are_taken(served: Served) -> None:
    """`{id}` is that of the last recommendation."""
    requests = [one.text for one in fences(PAGE) if one.language == "http"]
    assert requests
    last = ""
    with served.client() as client:
        for text in requests:
            line, _, body = text.partition("\n")
            method, path = line.split()
            sent = json.loads(body) if body.strip() else None
            answer = client.request(method, path.replace("{id}", last), json=sent)
            assert answer.is_success, f"{line}: {answer.text}"
            if line == "POST /v1/recommendations":
                last = answer.json()["id"]
                assert answer.json()["decision"] != "no_advice", answer.json()["headline"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_commands_of_the_page_run(served: Served) -> None:
    environment = {**os.environ, "TOKEN": served.token}
    commands = [one.text for one in fences(PAGE) if one.language == "bash"]
    assert commands
    for text in commands:
        script = text.replace("export TOKEN=…", "").replace("http://127.0.0.1:8000", served.url)
        done = subprocess.run(
            ["bash", "-ec", f'curl() {{ command curl -sSf "$@"; }}\n{script}'],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, f"{text}{done.stdout}{done.stderr}"
        assert json.loads(done.stdout)["decision"] != "no_advice", done.stdout
