"""The numbers that the compiled paper gives its results, counted in its source.

The paper is not in the repository; tests that need it are skipped where it is absent.
"""

import re

import pytest

from tests.conftest import ROOT

PAPER = ROOT.parent / "shared" / "paper.tex"
TAGGED = "a tag of its own"

needs_paper = pytest.mark.skipif(not PAPER.exists(), reason="the paper's source is not here")


def numbers_of_labels() -> dict[str, str]:
    """The number of every label, as LaTeX counts: "equation 7", "theorem 3", "appendix C.4"."""
    text = re.sub(r"(?<!\\)%.*", "", PAPER.read_text(encoding="utf-8"))
    preamble, _, source = text.partition(r"\begin{document}")
    theorems = re.findall(r"\\newtheorem\{(\w+)\}", preamble)
    counted = "|".join([*theorems, "algorithm", "figure", "table"])
    tokens = re.compile(
        rf"\\begin\{{(?P<begin>equation|subequations|{counted})\}}"
        r"|\\end\{(?P<end>\w+)\}|\\label\{(?P<label>[^}]+)\}|(?P<tag>\\tag\{)"
        r"|(?P<appendix>\\appendix\b)|\\(?P<section>(?:sub)*section)\{"
    )
    counts: dict[str, int] = {}
    depth, in_appendix, inside = [0, 0, 0], False, 0
    current, found = "", dict[str, str]()
    for token in tokens.finditer(source):
        if token["begin"] == "equation" and inside:
            inside += 1
            current = f"equation {counts['equation']}{chr(ord('a') + inside - 2)}"
        elif token["begin"]:
            kind = "equation" if token["begin"] == "subequations" else token["begin"]
            inside = int(token["begin"] == "subequations")
            counts[kind] = counts.get(kind, 0) + 1
            current = f"{kind} {counts[kind]}"
        elif token["end"] == "subequations":
            inside = 0
        elif token["tag"]:
            counts["equation"] -= 1
            found = {label: TAGGED if name == current else name for label, name in found.items()}
            current = TAGGED
        elif token["appendix"]:
            depth, in_appendix = [0, 0, 0], True
        elif token["section"]:
            level = token["section"].count("sub")
            depth = [*depth[:level], depth[level] + 1, 0, 0][:3]
            first = chr(ord("A") + depth[0] - 1) if in_appendix else str(depth[0])
            name = ".".join([first, *map(str, depth[1 : level + 1])])
            current = f"{'appendix' if in_appendix else 'section'} {name}"
        elif token["label"]:
            found[token["label"]] = current
    return found
