"""A trained model: travel times and their uncertainty in a context."""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save as save_tensors

from ideal_dispatch.arrays import BoolArray, FloatArray, numbers
from ideal_dispatch.context import Context, ContextEncoding
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.forecast import architecture as forward
from ideal_dispatch.forecast.architecture import Architecture
from ideal_dispatch.forecast.edge_times import Array32
from ideal_dispatch.forecast.inputs import Standardisation, context_inputs, edge_inputs
from ideal_dispatch.forecast.radius import RadiusRule, trip_features
from ideal_dispatch.forecast.seen_contexts import SeenContexts
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.time_bounds import EdgeBounds, TimeBounds
from ideal_dispatch.scenarios import ScenarioSet


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """Travel times and their uncertainty in one context on one network.

    Neither the nominal times nor any scenario leave ``bounds``; ``bounded`` marks
    edges whose nominal time sits at one: the forecast is not to be trusted there.
    ``unusual`` names, in words, how the context differs from all that the model
    was trained on; ``transferred`` is true on a network other than the one it was
    trained on. Either is a reason to trust the numbers less.
    """

    embeddings: FloatArray
    radius: float
    bounds: EdgeBounds
    bounded: BoolArray
    context_representation: FloatArray
    unusual: tuple[str, ...]
    transferred: bool

    @property
    def nominal_times(self) -> FloatArray:
        """Seconds per edge, ĉ = ‖φ‖²."""
        times: FloatArray = np.einsum("ij,ij->i", self.embeddings, self.embeddings)
        return times

    @property
    def scenario_set(self) -> ScenarioSet:
        return ScenarioSet(self.embeddings, self.radius)


@dataclass(frozen=True, slots=True, eq=False)
class _NetworkPart:
    """What one network contributes: computed once, used by every forecast on it."""

    edges: Array32
    base_s: FloatArray
    least_ratio: Array32
    greatest_ratio: Array32
    bounds: EdgeBounds
    directions: FloatArray | None
    transferred: bool


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """The three networks ϑ, θ, ψ and the radius rule, without torch.

    ``base_ratio`` is the local scale: seconds per second of free flow. No time,
    expected or of a scenario, leaves ``bounds``; and no edge takes less or more
    than it did in some training context (the weights ``range``, as ratios to the
    base time; on another network the least and the greatest of all edges).
    ``details`` holds what the manifest records about training: data, parameters,
    metrics, versions.
    """

    architecture: Architecture
    encoding: ContextEncoding
    weights: Mapping[str, npt.NDArray[Any]]
    base_ratio: float
    radius_rule: RadiusRule
    seen: SeenContexts
    network_checksum: str
    network_bounds: tuple[float, float, float, float]
    bounds: TimeBounds = field(default_factory=TimeBounds)
    details: Mapping[str, Any] = field(default_factory=dict)
    _parts: dict[str, _NetworkPart] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for name, values in self.weights.items():
            if not np.isfinite(values).all():
                raise FileFormatError(f"weight {name} is not finite: the model is unusable")
        for name in ("range.least", "range.greatest"):
            if name not in self.weights or not (self.weights[name] > 0.0).all():
                raise FileFormatError(f"weight {name} is missing or not positive: train again")
        for name, given in (("weights", self.weights), ("details", self.details)):
            object.__setattr__(self, name, MappingProxyType(dict(given)))

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: what was given, without what was derived from it."""
        values = (getattr(self, f.name) for f in fields(self) if f.init)
        return type(self), tuple(dict(v) if isinstance(v, Mapping) else v for v in values)

    def __repr__(self) -> str:
        shape = self.architecture
        return f"Model({shape.features}, {shape.head} head, d = {shape.dimension})"

    # --- forecasts --------------------------------------------------------------

    def scenario_set(
        self, context: Context | npt.ArrayLike, network: RoadNetwork, path: Path | None = None
    ) -> ScenarioSet:
        """The travel times that are plausible in this context ([IDEAL] 𝒞(𝒯))."""
        return self.forecast(context, network, path).scenario_set

    def forecast(
        self, context: Context | npt.ArrayLike, network: RoadNetwork, path: Path | None = None
    ) -> Forecast:
        """Embeddings, nominal times and radius for a context on a network.

        ``context`` may also be one encoded row. ``path`` is the trip asked
        about, for a model whose radius depends on it; without one such a model
        answers for the average trip of its training.
        """
        row = self._row(context)
        part = self._part(network)
        scale = Standardisation.of(self.weights, "context")
        held = self.seen.held(row, self.encoding)
        inputs = scale(context_inputs(held, self.encoding, self.architecture.hour_harmonics))
        dynamic = forward.representation(self.weights, "dynamic", inputs.astype(np.float32))
        ratios, units = forward.ratios(self.weights, part.edges, dynamic, part.directions)
        times = part.bounds.held(
            part.base_s * np.clip(ratios, part.least_ratio, part.greatest_ratio)
        )
        if not (np.isfinite(times).all() and np.isfinite(units).all()):
            raise FileFormatError("the model's weights give times that are no numbers; train again")
        features = None
        if path is not None and self.radius_rule.uses_trip:
            features = trip_features(network, [path], [times])
        radius = float(self.radius_rule(self.weights, dynamic, features)[0])
        unusual = self.seen.unusual(row[0], self.encoding)
        if isinstance(context, Context):
            unusual += self.seen.other_sources(context.weather)
        return Forecast(
            embeddings=units * np.sqrt(times)[:, None],
            radius=min(radius, part.bounds.greatest_radius(times)),
            bounds=part.bounds,
            bounded=part.bounds.reached(times),
            context_representation=dynamic[0].astype(np.float64),
            unusual=unusual,
            transferred=part.transferred,
        )

    def _row(self, context: Context | npt.ArrayLike) -> FloatArray:
        if isinstance(context, Context):
            return self.encoding.encode([context])
        given = numbers(context, np.float64, "context")
        row = np.atleast_2d(given)
        if row.shape != (1, len(self.encoding.columns)):
            raise InputError(
                f"context: expected one row of {len(self.encoding.columns)} columns, "
                f"got {' × '.join(map(str, given.shape)) or 'a single number'}"
            )
        if np.isinf(row).any():
            raise InputError("context: values must be finite, or NaN where unknown")
        hour = row[0, self.encoding.columns.index("hour")]
        if not (np.isnan(hour) or 0 <= hour < 24):
            raise InputError(f"context: invalid hour {hour:g}; expected 0 to 23")
        return row

    def _part(self, network: RoadNetwork) -> _NetworkPart:
        part = self._parts.get(network.checksum)
        if part is None:
            self.check(network)
            centre, waves = (self.weights[f"location.{n}"] for n in ("centre", "frequencies"))
            kind = self.architecture
            raw = edge_inputs(network, kind.features, centre, waves, kind.crossings)
            scale = Standardisation.of(self.weights, "edge")
            inputs = scale(raw).astype(np.float32)
            static = forward.representation(self.weights, "static", inputs)
            edges = static @ self.weights["cross.edge.weight"].T + self.weights["cross.edge.bias"]
            polar = self.architecture.head == "polar"
            least, greatest = self.weights["range.least"], self.weights["range.greatest"]
            transferred = network.checksum != self.network_checksum
            part = _NetworkPart(
                edges=edges,
                base_s=self.base_ratio * network.free_flow_times_s,
                least_ratio=least.min(keepdims=True) if transferred else least,
                greatest_ratio=greatest.max(keepdims=True) if transferred else greatest,
                bounds=self.bounds.on(network),
                directions=forward.directions(self.weights, edges) if polar else None,
                transferred=transferred,
            )
            self._parts[network.checksum] = part
        return part

    @property
    def trip_constant_s(self) -> float:
        """Seconds that a recorded trip takes beside its drive, such as turnout; 0 where unlearned.

        They are no part of any road's time, of a scenario or of a decision: both
        ambulances of a call need them.
        """
        learned = self.weights.get("trip_constant")
        return 0.0 if learned is None else 60.0 * float(np.logaddexp(0.0, float(learned[0])))

    def check(self, network: RoadNetwork) -> None:
        """Refuse a network on which this model has no forecast."""
        if self.architecture.features == "attributes" or self.network_checksum == network.checksum:
            return
        west, south, east, north = self.network_bounds
        inside = (network.lon >= west) & (network.lon <= east)
        inside &= (network.lat >= south) & (network.lat <= north)
        if not inside.all():
            raise InputError(
                "this location-aware model was trained on another network, and "
                f"{int((~inside).sum()):,} of {network.num_nodes:,} nodes lie outside it; "
                "train on this network, or use a model of attributes alone"
            )

    def rescaled(self, factor: float) -> "Model":
        """The same model with all times of roads multiplied: what a transfer needs."""
        if not (math.isfinite(factor) and factor > 0):
            raise InputError(f"scale {factor}: a positive number is needed")
        details = {**self.details, "rescaled": factor * self.details.get("rescaled", 1.0)}
        return replace(self, base_ratio=self.base_ratio * factor, details=details)

    # --- the directory ----------------------------------------------------------

    @cached_property
    def checksum(self) -> str:
        """Hash of everything that enters a forecast."""
        text = json.dumps([content_hash(self.tensors()), self.settings()], sort_keys=True)
        return content_hash(text.encode())

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model into ``folder``, or leave the one that was there whole."""
        from ideal_dispatch.forecast import model_directory

        model_directory.save(self, folder)

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> "Model":
        """Read a model directory; an error gives the reason in one line."""
        from ideal_dispatch.forecast import model_directory

        return model_directory.load(folder)

    def settings(self) -> dict[str, Any]:
        """What else than weights enters a forecast, in plain values."""
        return {
            "architecture": self.architecture.as_dict(),
            "extra_context": list(self.encoding.extra),
            "encoding": self.encoding.checksum,
            "base_ratio": self.base_ratio,
            "bounds": self.bounds.as_dict(),
            "radius": asdict(self.radius_rule),
            "seen": self.seen.as_dict(),
            "network": self.network_checksum,
            "network_bounds": list(self.network_bounds),
        }

    def tensors(self) -> bytes:
        """The weights as their file holds them."""
        return save_tensors({k: np.ascontiguousarray(v) for k, v in sorted(self.weights.items())})


def content_hash(content: bytes) -> str:
    """The hash that names weights and models."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()
