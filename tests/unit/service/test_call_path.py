"""A call's way through the service stays short, and CONTRIBUTING.md lists it."""

import re

from tests.conftest import ROOT
from tests.service_town import Town, token
from tools.call_path import way

MOST = 15
"""Functions between the socket and the answer."""


def test_a_call_passes_few_functions_which_are_listed(town: Town) -> None:
    found = way(town.settings("way.toml", server={"solvers": 1}), token("cad"), town.place(65))
    assert len(found) <= MOST, found
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## The way of a call")[2].partition("\n## ")[0]
    listed = re.findall(r"^\d+\. `([^`]+)`", section, re.M)
    assert listed == found
