"""Floors as people write them."""

import math
import re
import unicodedata

from ideal_dispatch.records.agency import Floors

_NAMES = {
    0: ("g", "gf", "g/f", "gd", "gr", "grd", "ground", "ground floor", "street", "street level",
        "地下", "地面", "地下層", "地面層", "地鋪", "rc", "rez-de-chaussée", "eg", "lobby"),
    1: ("m", "mezz", "mezzanine", "ug", "upper ground", "閣樓", "閣仔", "夾層", "p", "podium",
        "平台", "平台層"),
    -1: ("lg", "b", "basement", "lower ground", "地庫", "地牢", "cellar"),
}  # fmt: skip
_NAMED = {name: floor for floor, names in _NAMES.items() for name in names}
_LETTERS = {"p": 1, "ug": 1, "m": 1, "b": -1, "lg": -1, "ub": -1}  # before a number: up or down
_FLOOR_WORDS = re.compile(r"(\b(floor|flr|fl|level|lvl|storey|story|no\.?)\b|樓|層|字樓|階)\.?")
_NUMBERED = re.compile(r"(?P<letters>[a-z]*)\s*(?P<number>-?\d{1,3})\s*(?P<after>[a-z]?)")
_ORDINAL = re.compile(r"(\d)(st|nd|rd|th)\b")
_UNIT = re.compile(r"#(\d{1,3})-\d+[a-z]?")  # floor and flat, as in Singapore
_HAN = {"零": 0, "一": 1, "二": 2, "兩": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8,
        "九": 9}  # fmt: skip
_HAN_NUMBER = re.compile("[一二兩三四五六七八九]?十[一二三四五六七八九]?|[一二兩三四五六七八九]")


def parse_floor(text: str, *, first_is_ground: bool = False) -> int | None:
    """Floors above the street, negative below it, None where the text is not recognised.

    ``12/F``, ``12A``, ``12樓``, ``十二樓``, ``#12-131`` and ``12th floor`` are 12; ``G/F``,
    ``地下`` and ``Ground`` are 0; ``LG``, ``LG2``, ``B1`` and ``地庫`` lie
    below; ``M/F``, ``UG`` and a bare ``podium`` count as 1. A roof is not
    recognised: only the height of the building would say. ``first_is_ground``
    reads "1st floor" as the street level, as in North America.

    >>> parse_floor("12/F"), parse_floor("LG2"), parse_floor("地下"), parse_floor("R/F")
    (12, -2, 0, None)
    """
    plain = " ".join(unicodedata.normalize("NFKC", text).lower().replace("−", "-").split())
    if plain in _NAMED:
        return _NAMED[plain]
    plain = _UNIT.sub(r"\1", _ORDINAL.sub(r"\1", plain).rstrip("."))
    plain = re.sub(r"^(-?\d+)\.0$", r"\1", plain)  # a spreadsheet's way to write a whole number
    bare = _FLOOR_WORDS.sub(" ", re.sub(r"\s*/\s*f?$|(?<=[\da-z])\s*f$", "", plain)).strip(" ./-")
    if plain.startswith("-") and bare[:1].isdigit():
        bare = f"-{bare}"
    if bare in _NAMED:
        return _NAMED[bare]
    if _HAN_NUMBER.fullmatch(bare):
        tens, ten, ones = bare.rpartition("十")
        return 10 * _HAN.get(tens, len(ten)) + _HAN.get(ones, 0) - first_is_ground
    match = _NUMBERED.fullmatch(bare)
    if match is None:
        return None
    letters, number = match["letters"], int(match["number"])
    if letters in {"", "f", "l"}:
        return number - (first_is_ground and number > 0)
    return _LETTERS[letters] * number if letters in _LETTERS and number >= 0 else None


def read_floor(text: str, rules: Floors) -> float:
    """The floor of a cell by an agency's own words and rules, NaN where it is not recognised."""
    own = {word.casefold(): floor for word, floor in rules.words.items()}
    if text.casefold() in own:
        return own[text.casefold()]
    if not text:
        return 0.0 if rules.blank == "ground" else math.nan
    number = parse_floor(text, first_is_ground=rules.first_is_ground)
    return math.nan if number is None else float(number)
