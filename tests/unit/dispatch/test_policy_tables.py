import tomllib
from dataclasses import dataclass, make_dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import Decision, Situation
from ideal_dispatch.dispatch.policies import Ideal, PaperIdeal
from ideal_dispatch.dispatch.policy_tables import (
    KINDS,
    FittedParts,
    check_policies,
    needed_parts,
    policies_from,
)
from ideal_dispatch.dispatch.threshold import ALWAYS, ClinicalThreshold, ConstantThreshold
from ideal_dispatch.errors import InputError
from tests.unit.dispatch.worlds import TIMES, random_model

FILE = """
[policies.by-territory]
kind = "region"
[policies.paper]
kind = "paper"
prefix = 7
threshold = 45
[policies.ours]
kind = "ideal"
sooner_s = 45.0
seconds = ["other-depot", "alternative"]
overlap_limit = 0.3
time_limit_s = "none"
[policies.ours.threshold]
curve = "larsen-1993"
cost = 0.02
full_units = 6
bystander_cpr_s = 120
[policies.dual]
kind = "ideal"
threshold = "always"
radius = "paper"
[policies.taught]
kind = "tests.unit.dispatch.test_policy_tables:Taught"
radius = "wide"
"""


class Lesson:
    """A part that a plug-in learns."""

    fit = save = load = classmethod(lambda cls, _: None)


@dataclass(frozen=True)
class Taught:
    """A plug-in that learns, with arguments named like keys of ours."""

    learns: ClassVar[dict[str, type]] = {"lesson": Lesson}
    lesson: Lesson
    model: Any = None
    radius: str = ""
    form: str = "its own"
    name: str = "taught"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        raise NotImplementedError


@pytest.fixture(scope="module")
def parts(grid: RoadNetwork) -> FittedParts:
    return FittedParts(
        random_model(grid), TIMES,
        models={
            form: random_model(grid)
            for form in (("practical", "paper"), ("paper", "paper"), ("paper", "calibrated"))
        },
        learned={Lesson: Lesson()},
    )  # fmt: skip


def read(text: str, parts: FittedParts) -> Any:
    return policies_from(tomllib.loads(text)["policies"], parts)


def test_policies_of_a_file(parts: FittedParts) -> None:
    region, paper, ours, dual, taught = read(FILE, parts)
    assert [p.name for p in (region, paper, ours, dual, taught)] == [
        "by-territory", "paper", "ours", "dual", "taught",
    ]  # fmt: skip
    assert isinstance(paper, PaperIdeal)
    assert (paper.prefix, paper.threshold) == (7, ConstantThreshold(45.0))
    assert isinstance(ours, Ideal)
    assert (ours.sooner_s, ours.overlap_limit, ours.time_limit_s) == (45.0, 0.3, None)
    assert ours.seconds == ("other-depot", "alternative")
    assert ours.model is parts.model
    assert ours.responses is TIMES
    rule = ours.threshold
    assert isinstance(rule, ClinicalThreshold)
    assert (rule.curve.name, rule.curve.bystander_cpr_s) == ("larsen-1993", 120.0)
    assert (rule.cost.base, rule.cost.full_units) == (0.02, 6)
    assert dual.threshold is ALWAYS
    assert dual.model is parts.models["practical", "paper"]
    assert paper.model is parts.models["paper", "paper"]


def test_arguments_of_a_plugin_are_never_keys_of_ours(parts: FittedParts) -> None:
    *_, taught = read(FILE, parts)
    assert taught.lesson is parts.learned[Lesson]
    assert (taught.radius, taught.form, taught.model) == ("wide", "its own", parts.model)


@pytest.mark.parametrize("learns", [True, {"lesson": 3}, {"lesson": dict}])
def test_what_cannot_be_learned(learns: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Taught, "learns", learns)
    with pytest.raises(InputError, match=r"^\[policies.x\] learns .* fit, save and load"):
        needed_parts({"x": {"kind": f"{__name__}:Taught"}})


@pytest.mark.parametrize("trained", ["practical", "paper"])
@pytest.mark.parametrize("radius", ["calibrated", "paper"])
def test_both_networks_and_both_radii(parts: FittedParts, trained: str, radius: str) -> None:
    table = {"kind": "paper", "trained": trained, "radius": radius}
    (policy,) = policies_from({"x": table}, parts)
    usual = (trained, radius) == ("practical", "calibrated")
    wanted = parts.model if usual else parts.models[trained, radius]  # type: ignore[index]
    assert isinstance(policy, PaperIdeal)
    assert policy.model is wanted


def test_a_single_model_is_taken_as_it_is(grid: RoadNetwork) -> None:
    alone = FittedParts(random_model(grid))
    (policy,) = policies_from({"x": {"kind": "paper"}}, alone)
    assert isinstance(policy, PaperIdeal)
    assert policy.model is alone.model
    with pytest.raises(InputError, match=r"\[policies.x\] paper needs a trained model"):
        policies_from({"x": {"kind": "paper", "radius": "paper"}}, alone)


def test_what_must_be_fitted() -> None:
    asked = needed_parts(tomllib.loads(FILE)["policies"])
    assert asked.models == {("paper", "paper"), ("practical", "calibrated"), ("practical", "paper")}
    assert (asked.responses, asked.learned) == (True, (Lesson,))
    little = needed_parts({"a": {"kind": "workshop.policies:NominalGap"}, "b": {"kind": "router"}})
    assert little.models == {("practical", "calibrated")}
    assert (little.responses, little.learned) == (False, ())


@pytest.mark.parametrize("part", ["model", "responses"])
def test_a_policy_that_takes_one_part_alone_needs_a_fit(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "Alone", make_dataclass("Alone", [part]))
    assert needed_parts({"a": {"kind": f"{__name__}:Alone"}})
    assert not needed_parts({"a": {"kind": "router"}})


def test_every_kind_can_be_made(parts: FittedParts) -> None:
    made = policies_from({kind: {"kind": kind} for kind in KINDS}, parts)
    assert [type(policy) for policy in made] == list(KINDS.values())
    assert [policy.name for policy in made] == list(KINDS)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('kind = "oracle"', "policies.x.kind 'oracle': choose one of region, router"),
        ("threshold = 3", "policies.x.kind None: choose one of"),
        ('kind = "ideal"\noverlap_limits = 0.5', "policies.x.overlap_limits is not known; did you"),
        ('kind = "region"\nthreshold = 3', "policies.x.threshold is not known"),
        ('kind = "ideal"\nseconds = ["bus"]', "policies.x.seconds 'bus': one of"),
        ('kind = "ideal"\noverlap_limit = 2', "policies.x. overlap_limit 2.0: a share of 0 to 1"),
        ('kind = "ideal"\nradius = "big"', "policies.x.radius 'big': one of 'calibrated', 'paper'"),
        ('kind = "ideal"\ntrained = "well"', "x.trained 'well': one of 'practical', 'paper'"),
        ('kind = "ideal"\nmodel = "m"', "policies.x.model is not known"),
        ('kind = "ideal"\ntime_limit_s = "long"', "time_limit_s 'long': a number is needed"),
        ('kind = "paper"\nprefix = 2.5', "policies.x.prefix 2.5: a whole number is needed"),
        ('kind = "random"\nthreshold = "often"', "policies.x.threshold 'often': seconds"),
        ('kind = "random"\nthreshold = nan', "policies.x.threshold nan: seconds"),
        ('kind = "random"\nthreshold = true', "policies.x.threshold True: seconds"),
        (
            'kind = "random"\nthreshold = {curve = "larsen-1993"}',
            "policies.x.threshold.cost is mis",
        ),
        ('kind = "random"\nthreshold = {cost = 1, curve = "x"}', "policies.x.threshold: survival"),
        ('kind = "random"\nthreshold = {cost = -1}', "policies.x.threshold.* cost is -1"),
        ('kind = "random"\nthreshold = {cost = 1, units = 3}', "threshold.units is not known"),
    ],
)
def test_tables_that_make_no_sense(parts: FittedParts, table: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(f"[policies.x]\n{table}", parts)


def test_parts_that_are_missing() -> None:
    with pytest.raises(InputError, match=r"\[policies.x\] paper needs a trained model"):
        policies_from({"x": {"kind": "paper"}}, FittedParts())
    kind = "tests.unit.dispatch.test_policy_tables:Taught"
    with pytest.raises(InputError, match="Taught needs the lesson that a replay fits; none was"):
        policies_from({"x": {"kind": kind}}, FittedParts())
    with pytest.raises(InputError, match="policy x needs a trained model"):
        policies_from({"x": {"kind": "ideal", "seconds": ["gap-path"]}}, FittedParts())
    table = {"kind": "ideal", "seconds": ["other-depot"]}
    assert policies_from({"x": table}, FittedParts())[0].name == "x"
    with pytest.raises(InputError, match=r"\[policies.x\] must be a table of keys, not 3"):
        policies_from({"x": 3}, FittedParts())


class Best(Ideal):
    role: ClassVar[str] = "best"


def test_a_role_that_no_report_knows() -> None:
    with pytest.raises(InputError, match=r"\[policies.x\] role 'best': choose region or router or"):
        check_policies({"x": {"kind": "tests.unit.dispatch.test_policy_tables:Best"}})
