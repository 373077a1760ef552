"""Policies from the tables of an experiment file: ours, and those that others add."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from numbers import Real
from typing import Any, Literal

from ideal_dispatch.dispatch import baselines, controls, ideal, paper_ideal
from ideal_dispatch.dispatch.candidate import ALL_KINDS, SecondKind
from ideal_dispatch.dispatch.decision import Policy
from ideal_dispatch.dispatch.expected_gain import GainModel
from ideal_dispatch.dispatch.survival import USUAL_CURVE, survival_curve
from ideal_dispatch.dispatch.threshold import (
    ALWAYS,
    USUAL_COST,
    CapacityCost,
    ClinicalThreshold,
    ConstantThreshold,
    Threshold,
)
from ideal_dispatch.dispatch.worth import Gains
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.drift import DriftModel
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

SecondKinds = tuple[SecondKind, ...]

PRICED = "priced"
"""The word for the threshold of the fleet."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedParts:
    """The trained model, how much gains vary, the drift of quotes, and what plug-ins learned.

    ``models`` has other forms of the model, and ``gains`` the gains of policies that differ
    from the usual: by the kinds of second they consider, and whether the drift corrects
    their quotes. ``learned`` has the parts of plug-ins by their class. ``priced`` is the
    threshold of the fleet, where one is known.
    """

    model: Model | None = None
    gain: Gains | None = None
    drift: DriftModel | None = None
    models: Mapping[Form, Model] = field(default_factory=dict)
    gains: Mapping[tuple[SecondKinds, bool], Gains] = field(default_factory=dict)
    learned: Mapping[type[Any], Any] = field(default_factory=dict)
    priced: Threshold | None = None


@dataclass(frozen=True, slots=True)
class NeededParts:
    """What the policies of some tables must be fitted with; names as in :class:`FittedParts`."""

    models: frozenset[Form]
    gains: frozenset[tuple[SecondKinds, bool]]
    drift: bool
    learned: tuple[type[Any], ...]

    def __bool__(self) -> bool:
        return bool(self.models or self.gains or self.drift or self.learned)


def in_order(kinds: SecondKinds) -> SecondKinds:
    """The kinds in the one order by which gains are kept."""
    return tuple(sorted(set(kinds)))


_PARTS = {
    "model": "a trained model",
    "gain": "a gain fitted on replays or on a unit log",
    "drift": "a fitted drift of quotes",
}
"""The parts of :class:`FittedParts` that a policy gets by naming them, and what they are."""

_WORDS = {
    "practical": "network trained in our practical mode",
    "paper": "network trained by Algorithm 1",
}
_RADIUS_WORDS = {
    "calibrated": "radius by the quantile loss, conformally scaled",
    "paper": "radius by the mean absolute loss",
}


KINDS: Mapping[str, type[Any]] = {
    signature(cls).parameters["name"].default: cls
    for module in (baselines, paper_ideal, ideal, controls)
    for cls in vars(module).values()
    if isinstance(cls, type) and cls.__module__ == module.__name__ and hasattr(cls, "decide")
}
"""Our policies by the ``kind`` of their table, which is the default of their ``name``."""

ROLES = tuple(dict.fromkeys(policy.role for policy in KINDS.values()))
"""What the ``role`` of a policy may be; one without a role is shown like our own."""


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


def policies_from(tables: Mapping[str, Any], parts: FittedParts) -> tuple[Policy, ...]:
    """The policies of ``[policies.NAME]`` tables, in their order.

    A table has a ``kind`` (see :func:`policy_class`), a ``threshold`` and the
    other arguments of that policy; a ``time_limit_s`` of "none" leaves the search
    its time. What was fitted comes from ``parts``, where the policy has an argument
    of that name (``model``, ``gain``, ``drift``) or ``learns`` it. The keys of
    :class:`_Choice` choose among the parts. Where ``parts`` has a single model and the
    table does not choose, it is that one as it is.
    """
    return tuple(table.policy(parts) for table in _read(tables))


def check_policies(tables: Mapping[str, Any], *, fleet: bool = False) -> None:
    """Refuse tables that :func:`policies_from` would refuse once all is fitted.

    ``fleet`` says that there will be a priced threshold. Policies of others that take a fitted
    part are not made before there is one.
    """
    any_part: Any = object()
    forms: Any = {(trained, radius): any_part for trained in _WORDS for radius in _RADIUS_WORDS}
    for table in _read(tables):
        if table.made_by in KINDS.values() or not table.fitted:
            table.policy(FittedParts(any_part, models=forms, priced=ALWAYS if fleet else None))


def needed_parts(tables: Mapping[str, Any]) -> NeededParts:
    """The parts that :func:`policies_from` will look for."""
    found = _read(tables)
    return NeededParts(
        frozenset(one.choice.form for one in found if "model" in one.needs),
        frozenset((one.seconds, one.choice.use_drift) for one in found if "gain" in one.needs),
        any(one.choice.use_drift for one in found),
        tuple(dict.fromkeys(part for one in found for part in one.learns.values())),
    )


def advising_policy(table: Mapping[str, Any], parts: FittedParts, where: str) -> Policy:
    """The policy of one table, for calls that come in: its name is its kind.

    Unless the table says otherwise it has the fleet's priced threshold where ``parts`` has
    one, else the usual clinical one, and quotes are corrected by the drift where there is one.
    A policy of others keeps the default of its own threshold. ``where`` is how complaints
    name the table.
    """
    kind, usual = table.get("kind"), dict[str, Any]()
    made_by = policy_class(kind, f"{where}.kind")
    needs = parameters(made_by)
    if "threshold" in needs and (needs["threshold"] or made_by in KINDS.values()):
        usual["threshold"] = {"cost": USUAL_COST} if parts.priced is None else PRICED
    if "drift" in needs and parts.drift is not None:
        usual["use_drift"] = True
    return _Table.read(str(kind), usual | dict(table), where).policy(parts)


def policy_class(kind: Any, where: str = "kind") -> Callable[..., Any]:
    """The policy of a kind: one of :data:`KINDS`, a registered name, or ``"module:Name"``."""
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind]
    return find_plugin(POLICIES, kind, KINDS, where)


def threshold_from(
    value: Any, where: str = "threshold", priced: Threshold | None = None
) -> Threshold:
    """A threshold: as it is, seconds, "always", "priced", or a table with cost and curve."""
    if callable(getattr(value, "seconds", None)):
        rule: Threshold = value
        return rule
    if isinstance(value, Mapping):
        try:
            return built(_Clinical, value, where).threshold()
        except InputError as error:
            told = str(error)
            raise InputError(told if where in told else f"{where}: {told}") from None
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


@dataclass(frozen=True, slots=True)
class _Choice:
    """Keys of a table that choose among the fitted parts.

    ``trained`` and ``radius`` choose a form of the model, ``use_drift`` whether quotes are
    corrected by the drift. Without ``use_gain`` spreads are as published; without
    ``use_reversion`` quotes are not moved towards where the router has been lately.
    """

    trained: Trained
    radius: Radius
    use_drift: bool
    use_gain: bool = True
    use_reversion: bool = True

    @property
    def form(self) -> Form:
        return self.trained, self.radius


_CHOOSES_OF = {
    "trained": "model",
    "radius": "model",
    "use_drift": "drift",
    "use_gain": "gain",
    "use_reversion": "gain",
}
"""The part that each key of :class:`_Choice` is about: only a policy that takes it has the key."""


def _read(tables: Mapping[str, Any]) -> list["_Table"]:
    return [_Table.read(name, table, f"policies.{name}") for name, table in tables.items()]


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
    choice: _Choice
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
        # an argument of the class is never one of our keys
        asked = {
            key: keys.pop(key)
            for key, part in _CHOOSES_OF.items()
            if key in keys and part in needs and key not in needs
        }
        trained, radius = getattr(made_by, "model_form", USUAL)
        usual = {"trained": trained, "radius": radius, "use_drift": needs.get("drift", False)}
        return cls(
            name, str(kind), where, made_by, needs, learns, keys,
            built(_Choice, usual | asked, where), "trained" in asked or "radius" in asked,
        )  # fmt: skip

    @property
    def seconds(self) -> SecondKinds:
        """The kinds of second that it considers, as far as its table tells; all, else."""
        asked = self.keys.get("seconds")
        listed: Any = [asked] if isinstance(asked, str) else asked
        known = isinstance(listed, list | tuple) and set(listed) <= set(ALL_KINDS)
        return in_order(tuple(listed) if known else ALL_KINDS)  # nonsense is refused later

    @property
    def fitted(self) -> set[str]:
        """The arguments that get a fitted part."""
        return (_PARTS.keys() & self.needs.keys()) | self.learns.keys()

    def policy(self, parts: FittedParts) -> Policy:
        """The policy with its parts."""
        keys, given = dict(self.keys), {"name": self.name, **self._parts(parts)}
        for part in self.fitted:
            if given[part] is None and self.needs.get(part):
                what = _PARTS.get(part, f"the {part} that a replay fits")
                raise InputError(f"[{self.where}] {self.kind} needs {what}; none was given")
        if "threshold" in self.needs and "threshold" in keys:
            given["threshold"] = threshold_from(
                keys.pop("threshold"), f"{self.where}.threshold", parts.priced
            )
        if "time_limit_s" in self.needs and keys.get("time_limit_s") == "none":
            del keys["time_limit_s"]
            given["time_limit_s"] = None
        made = make_plugin(self.made_by, keys, self.where, **given)
        if not isinstance(made, Policy):
            raise InputError(
                f"[{self.where}] {self.kind} is no policy: it needs a name and decide()"
            )
        return made

    def _parts(self, parts: FittedParts) -> dict[str, Any]:
        """What the class names of the fitted parts."""
        choice, form = self.choice, self.choice.form
        alone = not self.own_form and not parts.models
        gain = parts.gains.get((self.seconds, choice.use_drift), parts.gain)
        if isinstance(gain, GainModel) and not choice.use_reversion:
            gain = replace(gain, reversion=(0.0, 0.0))
        found = {
            "model": parts.model if alone or form == USUAL else parts.models.get(form),
            "gain": gain if choice.use_gain else None,
            "drift": parts.drift if choice.use_drift else None,
            **{name: parts.learned.get(part) for name, part in self.learns.items()},
        }
        if hasattr(self.made_by, "model_form"):
            words = f"{_WORDS[form[0]]}, {_RADIUS_WORDS[form[1]]}"
            found["form"] = "the model that was given" if alone else words
        return found
