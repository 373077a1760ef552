"""Policies from the tables of an experiment file: ours, and those that others add."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from types import ModuleType
from typing import Any, get_args

from ideal_dispatch.dispatch import baselines, controls, ideal, paper_ideal, quarter_hours
from ideal_dispatch.dispatch.candidate import ALL_KINDS
from ideal_dispatch.dispatch.decision import Policy
from ideal_dispatch.dispatch.fitted import (
    USUAL,
    FittedParts,
    Form,
    Radius,
    SecondKinds,
    Trained,
    in_order,
)
from ideal_dispatch.dispatch.survival import USUAL_CURVE, survival_curve
from ideal_dispatch.dispatch.threshold import (
    ALWAYS,
    CapacityCost,
    ClinicalThreshold,
    ConstantThreshold,
    Threshold,
)
from ideal_dispatch.errors import InputError
from ideal_dispatch.plugins import POLICIES, find_plugin, make_plugin, parameters
from ideal_dispatch.toml_tables import built

_PARTS = {
    "model": "a trained model",
    "gain": "a gain fitted on replays",
    "drift": "a fitted drift of quotes",
    "trigger": "a trigger fitted on replays",
    "hours": "ratios of quarter hours",
    "hours_gain": "a gain fitted on quotes corrected by the quarter hour",
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


def _policies_of(*modules: ModuleType) -> dict[str, type[Any]]:
    """The policies that modules define, each under the default of its ``name``."""
    return {
        signature(cls).parameters["name"].default: cls
        for module in modules
        for cls in vars(module).values()
        if isinstance(cls, type) and cls.__module__ == module.__name__ and hasattr(cls, "decide")
    }


KINDS: Mapping[str, type[Any]] = _policies_of(
    baselines, paper_ideal, ideal, controls, quarter_hours
)
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
    of that name (``model``, ``gain``, ``drift``, ``trigger``, ``hours``, ``hours_gain``).
    ``use_drift`` true corrects quotes by the drift,
    ``use_reversion`` false takes them as they are, ``use_gain`` false leaves the gain
    to the forecast. ``trained`` ("practical" or "paper") and ``radius``
    ("calibrated" or "paper") choose among the forms of the model: both are "paper"
    for paper-ideal unless told, and our own for all others. Where ``parts`` has
    a single model and the table does not choose, it is that one as it is.
    """
    return tuple(_Table.read(name, table).policy(parts) for name, table in tables.items())


def check_policies(tables: Mapping[str, Any]) -> None:
    """Refuse tables that :func:`policies_from` would refuse once all is fitted.

    Policies of others that take a fitted part are not made before there is one.
    """
    any_part: Any = object()
    forms: Any = {(trained, radius): any_part for trained in _WORDS for radius in _RADIUS_WORDS}
    parts = FittedParts(
        any_part, trigger=any_part, models=forms, hours=any_part, hours_gain=any_part
    )
    for name, table in tables.items():
        asked = _Table.read(name, table)
        if asked.made_by in KINDS.values() or not _PARTS.keys() & asked.needs.keys():
            asked.policy(parts)


@dataclass(frozen=True, slots=True)
class NeededParts:
    """What the policies of some tables must be fitted with."""

    models: frozenset[Form]
    gains: frozenset[tuple[SecondKinds, bool]]
    drift: bool
    hours: bool
    trigger: bool

    def __bool__(self) -> bool:
        return bool(self.models or self.gains or self.drift or self.hours or self.trigger)


def needed_parts(tables: Mapping[str, Any]) -> NeededParts:
    """The parts that :func:`policies_from` will look for."""
    found = [_Table.read(name, table) for name, table in tables.items()]

    def some(*names: str) -> bool:
        return any(name in one.needs for one in found for name in names)

    return NeededParts(
        frozenset(one.form for one in found if "model" in one.needs),
        frozenset((one.seconds, one.corrected) for one in found if "gain" in one.needs),
        any(one.corrected for one in found),
        some("hours", "hours_gain"),
        some("trigger"),
    )


def policy_class(kind: Any, where: str = "kind") -> Callable[..., Any]:
    """The policy of a kind: one of :data:`KINDS`, a registered name, or ``"module:Name"``."""
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind]
    return find_plugin(POLICIES, kind, KINDS, where)


def takes_usual_threshold(made_by: Callable[..., Any]) -> bool:
    """Whether a policy gets the usual clinical threshold where nobody gives one.

    Ours do, and those of others that have no threshold of their own.
    """
    needs = parameters(made_by)
    return "threshold" in needs and (needs["threshold"] or made_by in KINDS.values())


def threshold_from(value: Any, where: str = "threshold") -> Threshold:
    """A threshold: seconds, "always", or a table with cost and curve."""
    if isinstance(value, Mapping):
        try:
            return built(_Clinical, value, where).threshold()
        except InputError as error:
            told = str(error)
            raise InputError(told if where in told else f"{where}: {told}") from None
    if value == "always":
        return ALWAYS
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        raise InputError(
            f'{where} {value!r}: seconds, "always", or a table with cost and curve is needed'
        )
    return ConstantThreshold(float(value))


@dataclass(frozen=True, slots=True)
class _Table:
    """One table read: the policy's class, its own keys, and which fitted parts it takes.

    ``needs`` has the arguments of the class and whether each must be given.
    ``chosen`` says that the table itself chooses the form of the model.
    """

    name: str
    kind: str
    made_by: Callable[..., Any]
    needs: Mapping[str, bool]
    keys: Mapping[str, Any]
    form: Form
    chosen: bool
    corrected: bool
    use_gain: bool
    use_reversion: bool
    seconds: SecondKinds

    @classmethod
    def read(cls, name: str, table: Any) -> "_Table":
        where = f"policies.{name}"
        if not isinstance(table, Mapping):
            raise InputError(f"[{where}] must be a table of keys, not {table!r}")
        keys = dict(table)
        kind = keys.pop("kind", None)
        made_by = policy_class(kind, f"{where}.kind")
        needs, role = parameters(made_by), getattr(made_by, "role", "")
        if role and role not in ROLES:
            raise InputError(f"[{where}] role {role!r}: choose {' or '.join(ROLES)}, or none")
        usual: Form = getattr(made_by, "model_form", USUAL)
        form, chosen = usual, False
        if "model" in needs:
            chosen = "trained" in keys or "radius" in keys
            form = (
                _choice(keys, "trained", get_args(Trained), usual[0], where),
                _choice(keys, "radius", get_args(Radius), usual[1], where),
            )
        corrected = "drift" in needs and _flag(keys, "use_drift", where, needs["drift"])
        with_gain = "gain" in needs
        seconds = keys.get("seconds")
        listed: Any = [seconds] if isinstance(seconds, str) else seconds
        known = isinstance(listed, list | tuple) and set(listed) <= set(ALL_KINDS)
        return cls(
            name, str(kind), made_by, needs, keys, form, chosen, corrected,
            with_gain and _flag(keys, "use_gain", where, True),
            with_gain and _flag(keys, "use_reversion", where, True),
            in_order(tuple(listed) if known else ALL_KINDS),  # nonsense is refused later
        )  # fmt: skip

    def policy(self, parts: FittedParts) -> Policy:
        """The policy with its parts."""
        where, keys = f"policies.{self.name}", dict(self.keys)
        given: dict[str, Any] = {"name": self.name, **self._parts(parts)}
        for part in _PARTS.keys() & given.keys():
            if given[part] is None and self.needs[part]:
                raise InputError(f"[{where}] {self.kind} needs {_PARTS[part]}; none was given")
        if "threshold" in self.needs and "threshold" in keys:
            given["threshold"] = threshold_from(keys.pop("threshold"), f"{where}.threshold")
        if "time_limit_s" in self.needs and keys.get("time_limit_s") == "none":
            del keys["time_limit_s"]
            given["time_limit_s"] = None
        made = make_plugin(self.made_by, keys, where, **given)
        if not isinstance(made, Policy):
            raise InputError(f"[{where}] {self.kind} is no policy: it needs a name and decide()")
        return made

    def _parts(self, parts: FittedParts) -> dict[str, Any]:
        """What the class names of the fitted parts."""
        alone = not self.chosen and not parts.models
        model = parts.model if alone or self.form == USUAL else parts.models.get(self.form)
        words = f"{_WORDS[self.form[0]]}, {_RADIUS_WORDS[self.form[1]]}"
        gain = parts.gain_for(self.seconds, self.corrected) if self.use_gain else None
        if gain is not None and not self.use_reversion:
            gain = replace(gain, reversion=(0.0, 0.0))
        found = {
            "model": model,
            "form": "the model that was given" if alone else words,
            "gain": gain,
            "drift": parts.drift if self.corrected else None,
            "trigger": parts.trigger,
            "hours": parts.hours,
            "hours_gain": parts.hours_gain,
        }
        return {name: part for name, part in found.items() if name in self.needs}


def _choice(
    keys: dict[str, Any], key: str, choices: tuple[Any, ...], usual: str, where: str
) -> Any:
    value = keys.pop(key, usual)
    if value not in choices:
        raise InputError(f"{where}.{key} {value!r}: choose {' or '.join(choices)}")
    return value


def _flag(keys: dict[str, Any], key: str, where: str, default: bool) -> bool:
    flag = keys.pop(key, default)
    if not isinstance(flag, bool):
        raise InputError(f"{where}.{key} {flag!r}: true or false is needed")
    return flag
