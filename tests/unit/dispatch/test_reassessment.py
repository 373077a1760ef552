"""The reasons of a reassessment: what is decided is in tests/theory."""

import json
import re

import pytest

from ideal_dispatch.dispatch import reassessment as rules
from tests.conftest import ROOT


def test_every_reason_is_documented_and_translated() -> None:
    page = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
    table = page.split("`reasons` has the same as codes")[1].split("```")[0].splitlines()
    said = {
        code
        for row in table
        if row.startswith("| `")
        for code in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    assert said == set(rules.WORDS)
    locales = ROOT / "src" / "ideal_dispatch" / "service" / "desk" / "static" / "locales"
    chinese = json.loads((locales / "zh-Hant.json").read_text(encoding="utf-8"))
    for code, words in rules.WORDS.items():
        names = sorted(re.findall(r"{\w+}", words))
        assert names == sorted(re.findall(r"{\w+}", chinese.pop(f"because.{code}"))), code
    assert not [key for key in chinese if key.startswith("because.")]


@pytest.mark.parametrize(
    ("lives", "words"),
    [(0.0, "0"), (1e-8, "less than 0.005"), (1.57e-6, "0.016"), (4.7e-4, "4.7"), (0.0134, "130")],
)
def test_lives_are_written_as_people_do(lives: float, words: str) -> None:
    said = rules.Why("worth_its_price", {"saves": lives, "cost": 0.0}).words
    assert said.endswith(f"it still saves {words} of 10,000 lives, and its absence costs 0.")
