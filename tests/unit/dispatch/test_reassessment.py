"""The reasons of a reassessment: what is decided is in tests/theory."""

import json
import re

import pytest

from ideal_dispatch.dispatch import reassessment as rules
from tests.conftest import ROOT


def test_every_reason_is_translated_with_its_numbers() -> None:
    locales = ROOT / "src" / "ideal_dispatch" / "service" / "desk" / "static" / "locales"
    chinese = json.loads((locales / "zh-Hant.json").read_text(encoding="utf-8"))
    for code, words in rules.WORDS.items():
        names = sorted(re.findall(r"{\w+}", words))
        assert names == sorted(re.findall(r"{\w+}", chinese[f"because.{code}"])), code


@pytest.mark.parametrize(
    ("lives", "words"),
    [(0.0, "0"), (1e-8, "less than 0.005"), (1.57e-6, "0.016"), (4.7e-4, "4.7"), (0.0134, "130")],
)
def test_lives_are_written_as_people_do(lives: float, words: str) -> None:
    said = rules.ReasonCode("worth_its_price", {"saves": lives, "cost": 0.0}).words
    assert f" {words} of 10,000 lives" in said
