"""What policies are fitted with: one bundle for all policies of an experiment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ideal_dispatch.dispatch.candidate import SecondKind
from ideal_dispatch.dispatch.expected_gain import GainModel
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.drift import DriftModel

Trained = Literal["practical", "paper"]
"""How a network was trained: in our practical mode, or by the paper's Algorithm 1."""

Radius = Literal["calibrated", "paper"]
"""How its radius was: by a quantile loss with conformal scaling, or by the paper's
mean absolute error."""

Form = tuple[Trained, Radius]
USUAL: Form = ("practical", "calibrated")
"""The form of the model that policies take where they choose none."""

SecondKinds = tuple[SecondKind, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FittedParts:
    """The trained model, the spread of gains, the drift of quotes, and what plug-ins learned.

    ``models`` has other forms of the model, and ``gains`` the gains of policies that differ
    from the usual: by the kinds of second they consider, and whether the drift corrects
    their quotes. ``learned`` has the parts of plug-ins by their class.
    """

    model: Model | None = None
    gain: GainModel | None = None
    drift: DriftModel | None = None
    models: Mapping[Form, Model] = field(default_factory=dict)
    gains: Mapping[tuple[SecondKinds, bool], GainModel] = field(default_factory=dict)
    learned: Mapping[type[Any], Any] = field(default_factory=dict)


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
