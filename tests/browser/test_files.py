"""The desk's files: libraries as pinned, and words for everything in both languages."""

import json
import re
import subprocess
import sys
from typing import get_args

import pytest

from ideal_dispatch.service.settings import Language
from tests.conftest import ROOT

STATIC = ROOT / "src" / "ideal_dispatch" / "service" / "desk" / "static"
OWN = [*STATIC.glob("*.js"), *(STATIC / "map").glob("*.js"), STATIC / "index.html"]


@pytest.mark.parametrize("tool", ["desk_libraries.py", "desk_font.py"])
def test_libraries_are_the_pinned_ones_and_the_font_has_all_characters(tool: str) -> None:
    command = [sys.executable, str(ROOT / "tools" / tool), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _words(language: str) -> dict[str, str]:
    words: dict[str, str] = json.loads(
        (STATIC / "locales" / f"{language}.json").read_text(encoding="utf-8")
    )
    return words


def test_both_languages_say_the_same_things() -> None:
    assert {file.stem for file in (STATIC / "locales").iterdir()} == set(get_args(Language))
    english, chinese = _words("en"), _words("zh-Hant")
    # the service's own words are English, so only the other language has some for its codes
    codes = {
        key for key in chinese.keys() - english.keys() if key.startswith(("degraded.", "because."))
    }
    assert english.keys() == chinese.keys() - codes
    for key, words in english.items():
        names = re.findall(r"\{\w+\}", words)
        assert sorted(names) == sorted(re.findall(r"\{\w+\}", chinese[key])), key


def test_every_word_is_used_and_every_used_word_exists() -> None:
    source = "\n".join(file.read_text(encoding="utf-8") for file in OWN)
    literal = set(re.findall(r"""\b(?:t|block)\("([a-z_.]+)\"""", source))
    literal |= set(re.findall(r'data-t="([a-z_.]+)"', source))
    literal |= set(
        re.findall(r'"((?:sure|facts|map|why|what_if|tools|sign_in)\.[a-z_.]+)"', source)
    )
    made = {
        re.sub(r"\$\{[^}]*\}", "*", key) for key in re.findall(r"`([a-z_]+\.[^`]*\$[^`]*)`", source)
    }
    patterns = [re.compile(re.escape(key).replace(r"\*", r"\w*")) for key in made]
    known = _words("zh-Hant").keys()
    assert literal <= known
    assert len(literal) > 50
    unused = [
        key for key in known - literal if not any(pattern.fullmatch(key) for pattern in patterns)
    ]
    assert unused == []


def test_nothing_is_fetched_from_elsewhere_or_written_as_markup() -> None:
    for file in [*OWN, STATIC / "desk.css"]:
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|innerHTML|outerHTML|insertAdjacentHTML|\beval\(", text), (
            file
        )
        assert not re.search(r'\bstyle="|\bon[a-z]+="', text), file
