"""The desk's Chinese font: the characters that its words use, cut from Noto Sans TC.

    python tools/desk_font.py          # cut it again: after new words in static/locales
    python tools/desk_font.py --check  # is every character of the words in it?

It is for computers without a Chinese font. Names of streets and what people write may have other
characters: those come from the computer's own fonts.
"""

import argparse
import json
import sys
from io import BytesIO
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

STATIC = Path(__file__).parents[1] / "src/ideal_dispatch/service/desk/static"
FONTS = STATIC / "fonts"
PACKAGE = "@expo-google-fonts/noto-sans-tc", "0.4.3"
INTEGRITY = (
    "sha512-69XAOTLPz0WlAxL6qJEKlDMxHsBd4J1M39HjV0gPF2o1"
    "xWVALOsVWvDgistnecVockA9wbU/tH5C/gyS2PdnHg=="
)
CUTS = {
    "400Regular/NotoSansTC_400Regular.ttf": "noto-sans-tc-400.woff",
    "700Bold/NotoSansTC_700Bold.ttf": "noto-sans-tc-700.woff",
}
LICENCE = "LICENSE_FONT"
FIRST = 0x2E80  # characters before it are in every Latin font, or are no Chinese


def needed() -> set[int]:
    """The Chinese characters of the desk's words in all languages."""
    words = [
        text
        for file in (STATIC / "locales").glob("*.json")
        for text in json.loads(file.read_text(encoding="utf-8")).values()
    ]
    return {ord(character) for character in "".join(words) if ord(character) >= FIRST}


def problems() -> list[str]:
    """One line for each file that lacks characters."""
    lines = []
    for name in CUTS.values():
        with TTFont(FONTS / name) as font:
            lacking = "".join(map(chr, sorted(needed() - font.getBestCmap().keys())))
        if lacking:
            lines.append(f"{name} lacks {lacking}: run python tools/desk_font.py")
    return lines


def cut() -> None:
    """Write the fonts and their licence anew."""
    sys.path.append(str(Path(__file__).parent))  # python -m does not look here
    from desk_libraries import packed  # type: ignore[import-not-found]

    files = packed(*PACKAGE, INTEGRITY, [*CUTS, LICENCE])
    FONTS.mkdir(exist_ok=True)
    (FONTS / "OFL.txt").write_bytes(files[LICENCE])
    options = Options(layout_features=[], hinting=False, name_IDs=[0, 1, 2, 4, 5, 6, 13, 14])
    for source, name in CUTS.items():
        with TTFont(BytesIO(files[source]), recalcTimestamp=False) as font:
            subsetter = Subsetter(options)
            subsetter.populate(unicodes=needed())
            subsetter.subset(font)
            font.flavor = "woff"
            font.save(FONTS / name)


def main() -> None:
    """Cut, or check and exit with 1 where a character is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only look at the fonts that are here")
    if not parser.parse_args().check:
        cut()
    if found := problems():
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
