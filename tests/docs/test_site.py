"""The site is built without a warning, and loads nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ideal_dispatch
from tests.conftest import ROOT

pytest.importorskip("mkdocs", reason="the docs extra is not installed")
pytest.importorskip("mkdocstrings", reason="the docs extra is not installed")

_HEADING = r'doc-symbol-(\w+)"></code>\s*<span class="doc doc-object-name[^>]*>(\w+)<'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")}
    assert pages <= {page.stem for page in site.glob("*.html")}


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loaded = re.compile(r'<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)="?([^"> ]+)')
    for page in site.glob("*.html"):
        for address in loaded.findall(page.read_text(encoding="utf-8")):
            assert not re.match(r"(https?:)?//", address), (page.name, address)


def test_the_reference_is_made_of_docstrings(site: Path) -> None:
    text = (site / "api.html").read_text(encoding="utf-8")
    found = {(name, kind) for kind, name in re.findall(_HEADING, text)}
    for name in set(ideal_dispatch.__all__) - {"__version__"}:
        assert (name, "class" if name[0].isupper() else "function") in found, name
    assert "module-attribute" not in text, "a name that is also a module's was taken for it"
