"""Pages that stay true: names exist, snippets run, links lead somewhere."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ideal_dispatch
from ideal_dispatch import plugins
from tests.conftest import ROOT
from tests.docs.pages import PAGES, fences
from tests.docs.workplace import Workplace
from workshop.api_page import ERRORS, reference


def _exists(dotted: str) -> bool:
    module, parts = dotted, []  # type: tuple[str, list[str]]
    while module:
        try:
            thing: object = importlib.import_module(module)
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            parts.insert(0, last)
            continue
        for part in parts:
            fields = getattr(thing, "__dataclass_fields__", {})
            if not hasattr(thing, part) and part not in fields:
                return False
            thing = getattr(thing, part, None)
        return True
    return False


def test_every_name_on_a_page_exists() -> None:
    found = {
        page.name: re.findall(r"`(ideal_dispatch\.[\w.]*)`", page.read_text()) for page in PAGES
    }
    assert len(found["notation.md"]) > 40
    groups = {plugins.POLICIES, plugins.TRAFFIC_SOURCES, plugins.WEATHER}  # of entry points
    names = {name for some in found.values() for name in some} - groups
    assert [name for name in names if not _exists(name)] == []
    assert not _exists("ideal_dispatch.RoadNetwork.width")
    assert not _exists("ideal_dispatch.nothing")


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    made = reference(ideal_dispatch.__doc__ or "")
    assert made in text, "run python -m workshop.api_page"
    described = {name.rpartition(".")[2] for name in re.findall(r"^::: (\S+)", made, re.M)}
    assert set(ideal_dispatch.__all__) - {"__version__"} - ERRORS == described


_READ = (
    "ideal records responses examples/data/unit_log.csv --config examples/data/unit_log.toml "
    "--stations examples/data/depots.csv --network examples/data/city.network -o city.responses "
    "--trips city.trips"
)
BEFORE = {
    "your_unit_log.md": [_READ],
}
"""Commands of a page that its snippets build on."""

WITH_SNIPPETS = [page for page in PAGES if any(one.language == "python" for one in fences(page))]


@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=lambda page: page.name)
def test_python_snippets_run(page: Path, tmp_path: Path) -> None:
    for fence in fences(page):
        if fence.file:
            Workplace(tmp_path).write(fence.file, fence.text)
    Workplace(tmp_path)
    for command in BEFORE.get(page.name, ()):
        assert command in page.read_text()
        Workplace(tmp_path).run(command)
    program = "\n".join(one.text for one in fences(page) if one.language == "python")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


METRICS = re.compile(r"\b(ideal_[a-z_]+[a-z])(?=[`{\[ ])")


@pytest.mark.parametrize("name", ["docs/operations.md", "docs/deployment.md", "deploy/alerts.yml"])
def test_metrics_that_are_named_exist(name: str) -> None:
    pytest.importorskip("prometheus_client", reason="the service extra is not installed")
    from ideal_dispatch.service.service import Metrics

    families = list(Metrics().registry.collect())
    known = {f"{one.name}_total" if one.type == "counter" else one.name for one in families}
    named = {one.removesuffix("_bucket") for one in METRICS.findall((ROOT / name).read_text())}
    assert named
    assert named - {"ideal_dispatch", "ideal_owner", "ideal_service"} <= known


def test_alerts_on_the_page_are_those_of_the_rules() -> None:
    rules = set(re.findall(r"alert: (\w+)", (ROOT / "deploy" / "alerts.yml").read_text()))
    page = (ROOT / "docs" / "operations.md").read_text()
    named = set(re.findall(r"`(Ideal[A-Z]\w+)`", page))
    assert named <= rules
    assert rules - named == {"IdealWorkerDown"}  # the others do its work
