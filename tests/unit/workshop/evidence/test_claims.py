"""The paper's claims judged on runs written by hand."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import RegretSummary
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.paper_issues import Contests
from ideal_dispatch.replay.drive import World
from tests.unit.evaluation.logs import town_run
from workshop.evidence.claims import METHOD, REASONS, SITUATION, WHY, Seen, claims_table, page

WORLD = World.EXPERIENCED
CONTESTS = Contests(
    region=np.array([0, 0, 0, 0], np.int32),
    quoted_s=np.array([[300.0, 310], [310, 300], [300, 310], [300, 310]]),
    optimistic_s=np.array([[290.0, 300], [300, 290], [290, 300], [290, 305]]),
    pessimistic_s=np.array([[320.0, 330], [330, 320], [320, 330], [300, 330]]),
    took_s=np.array([[[300.0, 310], [310, 300], [320, 310], [300, 310]]] * 2),
    contends=np.ones((4, 2), bool),
)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    outcomes = Outcomes.load(town_run(tmp_path_factory.mktemp("runs") / "run"))
    return Seen(Judged(outcomes.only(WORLD)), CONTESTS, WORLD)


def told(seen: Seen, name: str) -> tuple[str, bool]:
    (claim,) = (claim for claim in (*SITUATION, *METHOD) if claim.name == name)
    return claim.told(seen)


def test_the_situation(seen: Seen) -> None:
    assert told(seen, "region") == ("50.0%", True), "of four contests it is the best in two"
    assert told(seen, "reversal") == ("25.0%", True)
    words, holds = told(seen, "overlap")
    assert words.startswith("75.0%, 15 s of ")
    assert not holds, "95 % is the rule"


@pytest.mark.parametrize("role", ["paper", "ideal"])
def test_regrets_are_those_of_the_form(seen: Seen, role: str) -> None:
    outcomes, judged = seen.judged.outcomes, seen.judged
    best_s = outcomes.best_s[WORLD]["paper"]
    own, other = (
        RegretSummary.of(judged.at(name, 1.0).arrival_s[WORLD], best_s)
        for name in (outcomes.roles[role], "router-dual")
    )
    form = replace(seen, role=role)
    assert told(form, "mean") == (
        f"{own.mean_s:.2f} s, router dual {other.mean_s:.2f} s", own.mean_s < other.mean_s
    )  # fmt: skip
    assert told(form, "always")[1] == (own.p95_s <= 0.0)
    half = RegretSummary.of(judged.at(outcomes.roles[role], 0.5).arrival_s[WORLD], best_s)
    assert told(form, "selective")[0].split(", ")[1].startswith(f"{half.mean_s:.2f}/")


def test_what_fails_is_marked_and_explained(seen: Seen) -> None:
    runs = {"A town": [seen]}
    table = claims_table("Situation", SITUATION, runs, {"overlap": "narrow ranges"})
    rows = {str(row[0]): row[1:] for row in table.rows}
    (overlap,) = (row for words, row in rows.items() if "overlap" in words)
    assert str(overlap[1]).startswith("✗ 75.0%")
    assert overlap[2:] == ("no", "narrow ranges")
    (region,) = (row for words, row in rows.items() if "region's depot" in words)
    assert region == ("56 %", "50.0%", "yes", "")
    text = page({"Test evenings": runs, "Fresh evenings": {}}, {})
    assert "Fresh" not in text, "a group without runs is left out"
    assert text.count("*IDEAL ") == 2
    assert all(text.count(claim.words) == 2 for claim in METHOD)
    assert "| ranges of the last hour, experienced |" in text


def test_a_claim_may_hold_in_some_runs_alone(seen: Seen) -> None:
    wide = replace(CONTESTS, pessimistic_s=CONTESTS.pessimistic_s + 30.0)
    table = claims_table(
        "Both", SITUATION, {"narrow": [seen], "wide": [replace(seen, contests=wide)]}, {}
    )
    assert [row[-2] for row in table.rows][2] == "in 1 of 2"


def test_every_claim_that_fails_has_a_reason() -> None:
    names = {claim.name for claim in SITUATION} - {"router"}  # which holds wherever it was tried
    names |= {f"{role} {claim.name}" for role in ("paper", "ideal") for claim in METHOD}
    assert set(WHY) == names
    assert set(WHY.values()) == set(REASONS)
