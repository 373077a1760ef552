"""Policies from tables of keys, as files of experiments and settings have them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal

from ideal_dispatch.dispatch.decision import Policy
from ideal_dispatch.dispatch.policies import (
    Ideal,
    IntervalPolicy,
    PaperIdeal,
    RandomTrigger,
    RegionPolicy,
    RouterDual,
    RouterPolicy,
)
from ideal_dispatch.dispatch.survival import USUAL_CURVE, survival_curve
from ideal_dispatch.dispatch.threshold import (
    ALWAYS,
    USUAL_COST,
    CapacityCost,
    ClinicalThreshold,
    ConstantThreshold,
    Threshold,
)
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.plugins import POLICIES, find_plugin, make_plugin, parameters
from ideal_dispatch.toml_tables import built

Trained = Literal["practical", "paper"]
"""How a network was trained: in our practical mode, or by the paper's Algorithm 1."""

Radius = Literal["calibrated", "paper"]
"""How its radius was: by a quantile loss with conformal scaling, or by the paper's
mean absolute error."""

Form = tuple[Trained, Radius]
USUAL: Form = ("practical", "calibrated")
"""The form of the model that policies take where they choose none."""

PRICED = "priced"
"""The word for the threshold of the fleet."""

KINDS: Mapping[str, type[Any]] = {
    "region": RegionPolicy,
    "router": RouterPolicy,
    "router-dual": RouterDual,
    "interval": IntervalPolicy,
    "paper": PaperIdeal,
    "ideal": Ideal,
    "random": RandomTrigger,
}
"""Our policies by the ``kind`` of their table, which is the default of their ``name``."""

ROLES = tuple(policy.role for policy in KINDS.values())
"""What the ``role`` of a policy may be; one without a role is shown like our own."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedParts:
    """The trained model, how much response times vary, and what plug-ins learned.

    ``models`` has other forms of the model. ``learned`` has the parts of plug-ins by their
    class. ``priced`` is the threshold of the fleet, where one is known.
    """

    model: Model | None = None
    responses: ResponseModel | None = None
    models: Mapping[Form, Model] = field(default_factory=dict)
    learned: Mapping[type[Any], Any] = field(default_factory=dict)
    priced: Threshold | None = None


@dataclass(frozen=True, slots=True)
class NeededParts:
    """What the policies of some tables must be fitted with; names as in :class:`FittedParts`."""

    models: frozenset[Form]
    responses: bool
    learned: tuple[type[Any], ...]

    def __bool__(self) -> bool:
        return bool(self.models or self.responses or self.learned)


def policies_from(tables: Mapping[str, Any], parts: FittedParts) -> tuple[Policy, ...]:
    """The policies of ``[policies.NAME]`` tables, in their order.

    A table has a ``kind`` (see :func:`policy_class`), a ``threshold`` and the
    other arguments of that policy; a ``time_limit_s`` of "none" leaves the search
    its time. What was fitted comes from ``parts``, where the policy has an argument
    of that name (``model``, ``responses``) or ``learns`` it. ``trained`` and ``radius``
    choose the form of the model. Where ``parts`` has a single model and the
    table does not choose, it is that one.
    """
    return tuple(table.policy(parts) for table in _read(tables))


def check_policies(tables: Mapping[str, Any], *, fleet: bool = False) -> None:
    """Refuse tables that :func:`policies_from` would refuse once all is fitted.

    ``fleet`` says that there will be a priced threshold. Policies of others that take a fitted
    part are not made before there is one.
    """
    any_part: Any = object()
    forms: Any = {(t, r): any_part for t in ("practical", "paper") for r in ("calibrated", "paper")}
    for table in _read(tables):
        if table.made_by in KINDS.values() or not table.fitted:
            table.policy(FittedParts(any_part, models=forms, priced=ALWAYS if fleet else None))


def needed_parts(tables: Mapping[str, Any]) -> NeededParts:
    """The parts that :func:`policies_from` will look for."""
    found = _read(tables)
    return NeededParts(
        frozenset(one.form for one in found if "model" in one.needs),
        any("responses" in one.needs for one in found),
        tuple(dict.fromkeys(part for one in found for part in one.learns.values())),
    )


def advising_policy(table: Mapping[str, Any], parts: FittedParts, where: str) -> Policy:
    """The policy of one table, for calls that come in: its name is its kind.

    By default it has the fleet's priced threshold where ``parts`` has one, else the usual
    clinical one. A policy of others keeps the default of its own threshold. ``where`` is how
    complaints name the table.
    """
    kind, usual = table.get("kind"), dict[str, Any]()
    made_by = policy_class(kind, f"{where}.kind")
    needs = parameters(made_by)
    if "threshold" in needs and (needs["threshold"] or made_by in KINDS.values()):
        usual["threshold"] = {"cost": USUAL_COST} if parts.priced is None else PRICED
    return _Table.read(str(kind), usual | dict(table), where).policy(parts)


def policy_class(kind: Any, where: str = "kind") -> Callable[..., Any]:
    """The policy of a kind: one of :data:`KINDS`, a registered name, or ``"module:Name"``."""
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind]
    return find_plugin(POLICIES, kind, KINDS, where)


@dataclass(frozen=True, slots=True)
class _Clinical:
    """The keys of a clinical threshold's table."""

    cost: float
    curve: str = USUAL_CURVE
    full_units: int | None = None
    steepness: float = 1.0
    before_drive_s: float = 0.0
    bystander_cpr_s: float | None = None

    def threshold(self) -> ClinicalThreshold:
        curve = survival_curve(
            self.curve, before_drive_s=self.before_drive_s, bystander_cpr_s=self.bystander_cpr_s
        )
        return ClinicalThreshold(curve, CapacityCost(self.cost, self.full_units, self.steepness))


def threshold_from(
    value: Any, where: str = "threshold", priced: Threshold | None = None
) -> Threshold:
    """A threshold: a rule, seconds, "always", "priced", or a table with cost and curve."""
    if callable(getattr(value, "seconds", None)):
        rule: Threshold = value
        return rule
    if isinstance(value, Mapping):
        try:
            return built(_Clinical, value, where).threshold()
        except InputError as error:
            said = str(error)
            raise InputError(said if where in said else f"{where}: {said}") from None
    if value == "always":
        return ALWAYS
    if value == PRICED:
        if priced is None:
            raise InputError(f'{where} "{PRICED}": no fleet is known; describe it in [fleet]')
        return priced
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        raise InputError(
            f'{where} {value!r}: seconds, "always", "{PRICED}", or a table with cost and curve '
            "is needed"
        )
    return ConstantThreshold(float(value))


def _read(tables: Mapping[str, Any]) -> list["_Table"]:
    return [_Table.read(name, table, f"policies.{name}") for name, table in tables.items()]


@dataclass(frozen=True, slots=True)
class _Choice:
    """Keys of the table of a policy that takes a model: they choose its form."""

    trained: Trained
    radius: Radius


@dataclass(frozen=True, slots=True)
class _Table:
    """One table read: the policy's class, its own keys, and which fitted parts it takes.

    ``needs`` has the arguments of the class and whether each must be given, ``learns`` the
    arguments that a plug-in learns, with the class of each. ``own_form`` says that the
    table itself chooses the form of the model.
    """

    name: str
    kind: str
    where: str
    made_by: Callable[..., Any]
    needs: Mapping[str, bool]
    learns: Mapping[str, type[Any]]
    keys: Mapping[str, Any]
    form: Form
    own_form: bool

    @classmethod
    def read(cls, name: str, table: Any, where: str) -> "_Table":
        if not isinstance(table, Mapping):
            raise InputError(f"[{where}] must be a table of keys, not {table!r}")
        keys = dict(table)
        kind = keys.pop("kind", None)
        made_by = policy_class(kind, f"{where}.kind")
        needs, role = parameters(made_by), getattr(made_by, "role", "")
        if role and role not in ROLES:
            raise InputError(f"[{where}] role {role!r}: choose {' or '.join(ROLES)}, or none")
        learns = getattr(made_by, "learns", {})
        parts = learns.values() if isinstance(learns, Mapping) else [None]
        if not all(hasattr(part, name) for part in parts for name in ("fit", "save", "load")):
            raise InputError(
                f"[{where}] learns {learns!r}: the arguments that are learned, each with a class "
                "that has fit, save and load, are needed; see docs/plugins.md"
            )
        asked = {  # an argument of the class is never one of our keys
            key: keys.pop(key)
            for key in ("trained", "radius")
            if key in keys and "model" in needs and key not in needs
        }
        usual = dict(zip(("trained", "radius"), getattr(made_by, "model_form", USUAL), strict=True))
        choice = built(_Choice, usual | asked, where)
        form = choice.trained, choice.radius
        return cls(name, str(kind), where, made_by, needs, learns, keys, form, bool(asked))

    @property
    def fitted(self) -> set[str]:
        """The arguments that get a fitted part."""
        return ({"model", "responses"} & self.needs.keys()) | self.learns.keys()

    def policy(self, parts: FittedParts) -> Policy:
        """The policy with its parts."""
        alone = not self.own_form and not parts.models
        usual = alone or self.form == USUAL
        given: dict[str, Any] = {
            "name": self.name,
            "model": parts.model if usual else parts.models.get(self.form),
            "responses": parts.responses,
            **{name: parts.learned.get(part) for name, part in self.learns.items()},
        }
        for part in self.fitted:
            if given[part] is None and self.needs.get(part):
                what = "a trained model" if part == "model" else f"the {part} that a replay fits"
                raise InputError(f"[{self.where}] {self.kind} needs {what}; none was given")
        if hasattr(self.made_by, "model_form"):
            trained, radius = self.form
            mode = "in our practical mode" if trained == "practical" else "by Algorithm 1"
            loss = "quantile loss, conformally scaled"
            loss = loss if radius == "calibrated" else "mean absolute loss"
            words = f"network trained {mode}, radius by the {loss}"
            given["form"] = "the model that was given" if alone else words
        keys = dict(self.keys)
        if "threshold" in self.needs and "threshold" in keys:
            asked, where = keys.pop("threshold"), f"{self.where}.threshold"
            given["threshold"] = threshold_from(asked, where, parts.priced)
        if "time_limit_s" in self.needs and keys.get("time_limit_s") == "none":
            del keys["time_limit_s"]
            given["time_limit_s"] = None
        made = make_plugin(self.made_by, keys, self.where, **given)
        if not isinstance(made, Policy):
            raise InputError(
                f"[{self.where}] {self.kind} is no policy: it needs a name and decide()"
            )
        return made
