"""What is cited of the paper is there, under the number that the compiled paper gives it.

The numbers are counted in the paper's source. It is not in the repository; without it
only the first test runs, which checks that every citation is in the list.
"""

import re
from pathlib import Path

from tests.conftest import ROOT
from tests.theory.paper import needs_paper, numbers_of_labels

CITED = {
    "equation 3": "eq:phi-def",
    "equation 4": "eq:c-map",
    "equation 5": "eq:c-def",
    "equation 7": "eq:regularization",
    "equation 9": "eq:compact",
    "equation 14": "eq:uncertainty-radius",
    "theorem 1": "thm:ideal_optimality",
    "theorem 2": "thm:convergence",
    "theorem 3": "thm:solution-of-DC-sub",
    "theorem 4": "thm:convergence-of-DCA",
    "theorem 5": "thm:conservative-field",
    "theorem 6": "thm:finite-time",
    "proposition 1": "prop:attainment",
    "proposition 2": "prop:rho-refor",
    "proposition 3": "prop:subgradient-sA",
    "proposition 4": "prop:complexity",
    "proposition 5": "prop:locally-Lipschitz-Ji",
    "proposition 6": "prop:locally-bounded-CF",
    "lemma 1": "lem:hybrid-gamma-search-app",
    "lemma 2": "lem:oracle-ae",
    "lemma 3": "lem:smoothing-oracle",
    "lemma 4": "lem:smoothing-smoothness",
    "lemma 5": "lem:smoothing-drift",
    "lemma 6": "lem:transfer",
    "lemma 7": "lem:burg-compact",
    "assumption 1": "assmpt:smoothness-bounded",
    "assumption 3": "ass:query-region",
    "algorithm 1": "alg:conservative-sgd",
    "algorithm 2": "alg:DCA-algorithm",
    "section 2.2": "sec:ideal-policy",
    "section 3": "sec:bilevel-representation-learning",
    "section 3.3": "sec:conservative-training",
    "section 4.2": "sec:rho",
    "section 6": "sec:experiments",
    "section 6.2": "sec:experiments:results",
    "appendix A": "ec:simulation-frameworks",
    "appendix B": "ec:calibration",
    "appendix C.4": "ec:travel-time-target",
}
"""Labels of the paper by what they are cited as; 6.1.2 has none."""

_KINDS = "equation|theorem|proposition|lemma|assumption|algorithm|section|appendix"
_NUMBER = r"(?:\d+|[A-H]\b)(?:\.\d+)*"
_CITATION = re.compile(rf"\b({_KINDS})(?:s|es)?\s+({_NUMBER}(?:(?:–|, | and ){_NUMBER})*)", re.I)


def _cited() -> dict[str, set[str]]:
    """Every citation of the sources, the tests and the pages, and the files it is in."""
    found: dict[str, set[str]] = {}
    files = [p for folder in ("src/ideal_dispatch", "tests/theory", "benchmarks", "workshop")
             for p in (ROOT / folder).rglob("*.py")]  # fmt: skip
    files += [*(ROOT / "docs").glob("*.md"), *(ROOT / "experiments").glob("*.toml")]
    files.append(ROOT / "README.md")
    files.remove(Path(__file__))
    files.remove(ROOT / "docs" / "paper.md")  # has every number; tests/docs/test_paper_page.py
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()
        for line, (kind, numbers) in ((x, c) for x in lines for c in _CITATION.findall(x)):
            if kind.lower() in {"section", "appendix"} and not re.search(r"\[IDEAL\]|paper", line):
                continue  # of another document
            first, *others = re.findall(_NUMBER, numbers)
            if "–" in numbers:
                others = [str(n) for n in range(int(first) + 1, int(others[0]) + 1)]
            for number in (first, *others):
                name = f"{kind.lower()} {number}"
                found.setdefault(name, set()).add(file.relative_to(ROOT).as_posix())
    return found


def test_every_citation_is_known_and_every_known_one_is_cited() -> None:
    found = _cited()
    unknown = {name: files for name, files in found.items() if name not in CITED}
    assert unknown.pop("section 6.1.2", set())
    assert not unknown, "add the label to CITED"
    assert set(CITED) <= set(found)


@needs_paper
def test_the_numbers_are_those_of_the_compiled_paper() -> None:
    numbers = numbers_of_labels()
    assert {name: numbers[label] for name, label in CITED.items()} == {name: name for name in CITED}
