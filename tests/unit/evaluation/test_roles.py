"""A policy that nobody here knows is shown like ours; what it says of itself decides."""

from pathlib import Path

from ideal_dispatch.evaluation.figures import arrivals, styles
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.roles import claims_of, players
from tests.unit.evaluation.logs import town_run

ROLES = {
    "region": "region", "router": "router", "interval": "interval", "router-dual": "router-dual",
    "paper-ideal": "", "ideal": "ideal", "random": "control", "alternative": "control",
}  # fmt: skip


def test_a_policy_without_a_role_is_treated_like_ours(tmp_path: Path) -> None:
    judged = Judged(Outcomes.load(town_run(tmp_path / "run", roles=ROLES)))
    assert judged.main[-2:] == ("ideal", "paper-ideal")
    assert "paper" not in judged.outcomes.roles
    assert judged.own == "ideal"
    rows = [row.label for row in judged.rows(judged.main)]
    for form in ("+25 %", "+50 %", "+75 %", "dual", "as set"):
        assert f"paper-ideal, {form}" in rows
    assert judged.candidates == ("ideal", "paper-ideal")
    assert styles(judged)["paper-ideal"].dashes == "-"
    legend = [text.get_text() for text in arrivals(judged).legends[0].get_texts()]
    assert "paper-ideal" in legend


def test_who_plays_a_part() -> None:
    manifest = {"roles": {"a": "paper", "b": "ideal", "ideal": "ideal", "c": "control"}}
    claims = claims_of(manifest, ["a", "b", "ideal", "c", "mine"])
    assert claims == {"a": "paper", "b": "ideal", "ideal": "ideal", "c": "control", "mine": ""}
    assert players(claims) == {"paper": "a", "ideal": "ideal"}
    old = claims_of({"policies": {"x": {"type": "IntervalPolicy"}}}, ["x", "router", "mine"])
    assert old == {"x": "interval", "router": "router", "mine": "control"}
