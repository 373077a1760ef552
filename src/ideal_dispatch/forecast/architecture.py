"""The shape of a model, and its forward pass without torch.

Symbols: ``ϑ`` static edge representation, ``θ`` context representation, ``ψ``
cross network, ``φ`` embeddings ([IDEAL] section 3). All have dimension d.

The first layer of ψ acts on ϑ and θ side by side, so it is the sum of a part
per edge, computed once per network, and a part per context.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.forecast.edge_times import Array32, log_ratios
from ideal_dispatch.forecast.inputs import Features
from ideal_dispatch.ranges import Checked, Count, Whole

Weights = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Architecture(Checked):
    """Sizes and kinds of the networks.

    ``features`` of edges: the paper's "attributes" or also "location".
    ``head``: "polar" gives embeddings a learned length and a whitened
    direction, so that the scenario set is rich by construction; "plain" is the
    paper's ψ with all coordinates learned, whose directions the loss does not
    determine. ``hour_harmonics`` 0 keeps the hour a single number.
    ``crossings`` adds what meets an edge at its ends to its features.
    """

    features: Features = "location"
    head: Literal["polar", "plain"] = "polar"
    dimension: Count = 16
    width: Count = 128
    hour_harmonics: Whole = 3
    location_waves: Whole = 32
    crossings: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a manifest; without crossings, as before they were known."""
        values = asdict(self)
        return values if self.crossings else {k: v for k, v in values.items() if k != "crossings"}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Architecture":
        """What :meth:`as_dict` gave."""
        return cls(**{"crossings": False, **values})


def silu(x: Any) -> Any:
    """X · sigmoid(x), in place: the smooth activation of all networks."""
    gate = np.exp(np.negative(x))  # overflows to infinity far below zero, where silu is 0
    gate += 1.0
    x /= gate
    return x


def representation(weights: Weights, name: str, inputs: Array32) -> Array32:
    """ϑ of every edge ("static") or θ of every context ("dynamic"), from standardised inputs."""
    # BLAS may flag numbers beside the matrix that it loads and does not use
    with np.errstate(over="ignore", invalid="ignore"):
        hidden = silu(inputs @ weights[f"{name}.0.weight"].T + weights[f"{name}.0.bias"])
        out: Array32 = hidden @ weights[f"{name}.2.weight"].T + weights[f"{name}.2.bias"]
    return out


def directions(weights: Weights, edges: Array32) -> FloatArray:
    """Unit vectors of the polar head, one per edge, the same in every context.

    They are whitened components of ψ's hidden layer at the mean training
    context: edges that the model treats alike point alike.
    """
    with np.errstate(over="ignore"):
        hidden = silu(edges + weights["direction.context"])
    return _of_length_one(hidden @ weights["direction.weight"].T + weights["direction.bias"])


def ratios(
    weights: Weights, edges: Array32, dynamic: Array32, units: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """ĉ over the base time of every edge under one context θ, and the unit vector of φ.

    ``edges`` is what the edges add to the first layer of ψ. ``units`` are the polar
    head's directions; without them the head is plain.
    """
    context = dynamic @ weights["cross.context.weight"].T
    weight, bias = weights["cross.out.weight"], weights["cross.out.bias"]
    with np.errstate(over="ignore"):
        if units is not None:
            logs = np.empty(len(edges), np.float32)
            log_ratios(edges, context[0], weight[0], bias[0], logs)
            return np.exp(logs.astype(np.float64)), units
        hidden = silu(edges + context)
        vectors: Array32 = hidden @ weight.T + bias
        squares: FloatArray = np.square(vectors.astype(np.float64)).sum(axis=1)
    return squares, _of_length_one(vectors)


def _of_length_one(vectors: Array32) -> FloatArray:
    wide = vectors.astype(np.float64)  # squares of single precision overflow, and vanish
    lengths = np.linalg.norm(wide, axis=1)
    nowhere = lengths == 0.0
    wide[nowhere, 0] = lengths[nowhere] = 1.0  # any direction will do, but a time needs one
    units: FloatArray = wide / lengths[:, None]
    return units
