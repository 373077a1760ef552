"""Algorithm 1: mini-batch conservative gradient descent through shortest paths.

The direction of one step is the gradient of the loss with every path held
fixed at its current fastest choice, ties broken canonically: an element of the
conservative field of J ([IDEAL] section 3.3). Costs of all edges are needed
to find the paths but carry no gradient; gradients run through the edges of
the chosen paths alone. Weight decay λ of plain steps adds (λ/2)‖φ‖² to J; it
uses φ_k where d_k uses the perturbed weights, and has the same mean.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.learning.encoders import RepresentationNetwork
from ideal_dispatch.learning.lower_level import LowerLevel, Routes, Rows, TrainingError
from ideal_dispatch.learning.parameters import TrainParams
from ideal_dispatch.learning.training_data import TrainingData
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.features import meetings

Tensors = dict[str, torch.Tensor]

STEP_COLUMNS = (
    "step_size", "perturbation_radius", "batch_objective", "direction_norm", "weight_norm",
)  # fmt: skip

# streams of random numbers of one seed; batches have stream 0
_PERTURBATION, _OUTPUT, _DROPOUT = 1, 2, 3
_LEAST_S = 1.0  # where the logarithm of a predicted time ends
_CONSTANT_SHARE = 0.1  # of a trip, where learning its constant starts
_CONSTANT_PACE = 10.0  # the constant of the trip is one number on a scale of minutes


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one pass over the trips achieved."""

    epoch: int
    loss: float
    validation_mae_s: float
    seconds: float


class Trainer:
    """The state of training between two epochs, and how to go on from it."""

    def __init__(self, data: TrainingData, params: TrainParams) -> None:
        self.data, self.params = data, params
        self._mean_s = float(data.trips.observed_s[data.train].mean())
        self.model = RepresentationNetwork(
            params.architecture, data.edges, data.base_s,
            data.bounds.on(data.network).expected_s, data.contexts.shape[1], params.seed,
            _CONSTANT_SHARE * self._mean_s if params.trip_constant else 0.0,
        )  # fmt: skip
        self.lower_level = LowerLevel(data.network, data.trips, data.contexts)
        self._target = torch.tensor(data.trips.observed_s, dtype=torch.float32)
        self._regulariser = SpatialRegulariser(data.network) if params.smoothness else None
        self._position = np.full(len(data.trips), -1)
        self._position[data.train] = np.arange(data.train.size)
        self._routes: Routes | None = None
        self.routed_by: Tensors | None = None
        self.decay = params.decay(data.train.size)
        constant = self.model.trip_constant
        groups: list[dict[str, Any]] = [
            {"params": [p for p in self.model.parameters() if p is not constant]}
        ]
        if constant is not None:  # decay would draw it to a minute's share
            groups.append({"params": [constant], "pace": _CONSTANT_PACE, "weight_decay": 0.0})
        kind = torch.optim.AdamW if params.optimiser == "adam" else torch.optim.SGD
        self.optimiser: torch.optim.Optimizer = kind(
            groups, lr=params.learning_rate, weight_decay=self.decay
        )
        self.steps_per_epoch = -(-data.train.size // params.batch_size)
        self.total_steps = self.steps_per_epoch * params.epochs
        self._output_steps = (
            output_steps(params, self.total_steps) if params.output == "random" else None
        )
        self.history: list[Epoch] = []
        self.steps: list[tuple[float, ...]] = []
        """The plain steps that were done, a row each under :data:`STEP_COLUMNS`."""
        self.chosen: Tensors = self._weights()

    # --- the loop ---------------------------------------------------------------

    def run(self, after_epoch: Callable[["Trainer"], None] | None = None) -> None:
        """Train to the end; ``after_epoch`` sees every finished epoch, to show and to save."""
        params = self.params
        every = -(-self.steps_per_epoch // max(params.path_refreshes, 1))
        while not self.finished:
            began, number, loss = time.perf_counter(), len(self.history), 0.0
            renews = params.path_refreshes and params.renews_paths(number)
            for i, rows in enumerate(self._batches(number)):
                if renews and i % every == 0:
                    self.renew_paths()
                loss += self._step(rows, number * self.steps_per_epoch + i) / self.steps_per_epoch
            error = self.validation_error_s()
            self.history.append(Epoch(number + 1, loss, error, time.perf_counter() - began))
            if params.output == "last" or (params.output == "best" and self.best_epoch > number):
                self.chosen = self._weights()
            if after_epoch is not None:
                after_epoch(self)

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or the held-out error has long stopped falling."""
        done = len(self.history)
        patience = self.params.patience
        waited = patience is not None and done - self.best_epoch > patience
        return done >= self.params.epochs or waited

    @property
    def best_epoch(self) -> int:
        """The epoch, from 1, with the least held-out error; 0 before the first."""
        errors = [epoch.validation_mae_s for epoch in self.history]
        return int(np.argmin(errors)) + 1 if errors else 0

    @property
    def kept_epoch(self) -> int:
        """The epoch, from 1, whose weights :meth:`finish` gives; 0 before the first."""
        if self.params.output == "best":
            return self.best_epoch
        if self._output_steps is None:
            return len(self.history)
        done = self._output_steps[: len(self.history) * self.steps_per_epoch]
        return int(np.flatnonzero(done).max(initial=-1)) // self.steps_per_epoch + 1

    def renew_paths(self) -> None:
        """Solve the lower level of all training trips and keep their paths."""
        self.routed_by = self._weights()
        self._routes, _ = self.lower_level.solve(self.model, self.data.train)

    def _batches(self, epoch: int) -> list[Rows]:
        rng = np.random.default_rng([self.params.seed, epoch])
        train, size = self.data.train, self.params.batch_size
        if self.params.batches == "uniform":
            return [rng.choice(train, min(size, train.size), replace=False)
                    for _ in range(self.steps_per_epoch)]  # fmt: skip
        order = rng.permutation(train)
        return [order[i : i + size] for i in range(0, train.size, size)]

    def _step(self, rows: Rows, step: int) -> float:
        if self._output_steps is not None and self._output_steps[step]:
            self.chosen = self._weights()
        radius = perturbation_radius(self.params, step)
        weights = self._perturb(radius, step)
        loss = self.direction(rows, self._kept(rows, step))
        if radius:
            self._set(weights)
        if not np.isfinite(loss):
            raise TrainingError(
                f"the loss became {loss} at step {step}; lower learning_rate "
                f"(now {self.params.learning_rate:g})"
            )
        size = step_size(self.params, step, self.total_steps)
        for group in self.optimiser.param_groups:
            group["lr"] = group.get("pace", 1.0) * size
        if self.params.optimiser == "sgd":
            whole = self.direction_vector() + self.decay * weights
            self.steps.append((size, radius, loss, float(whole.norm()), float(weights.norm())))
        self.optimiser.step()
        return loss

    def _perturb(self, radius: float, step: int) -> torch.Tensor:
        """Move all weights at random within a ball; the weights before."""
        weights = torch.nn.utils.parameters_to_vector(self.model.parameters()).detach()
        if radius:
            away = uniform_in_ball(weights.numel(), perturbation_rng(self.params.seed, step))
            self._set(weights + radius * away.to(weights.dtype))
        return weights

    @torch.no_grad()
    def _set(self, weights: torch.Tensor) -> None:
        torch.nn.utils.vector_to_parameters(weights, self.model.parameters())

    def direction(self, rows: Rows, kept: torch.Tensor | None = None) -> float:
        """Leave d_k = mean over the batch of d⁽ⁱ⁾ in the gradients; the batch's loss.

        ``kept`` has a row per distinct context of the batch: what dropout leaves of θ.
        """
        self.optimiser.zero_grad(set_to_none=False)
        static = self.model.representation() if self._regulariser else None
        predicted = self._trip_times(rows, static, kept)
        value = losses(self.params, predicted, self._target[rows], self._mean_s).sum()
        value = value / float(rows.size)
        if self._regulariser is not None and static is not None:
            value = value + self.params.smoothness * self._regulariser(static)
        if value.requires_grad:
            value.backward()  # type: ignore[no-untyped-call]
        return float(value.detach())

    @property
    def step_table(self) -> FloatArray:
        """The rows of :attr:`steps` as an array."""
        return np.array(self.steps)

    def direction_vector(self) -> torch.Tensor:
        """The gradients of all weights in one row; zero where a weight has none."""
        return torch.cat(
            [(torch.zeros_like(p) if p.grad is None else p.grad).flatten()
             for p in self.model.parameters()]
        )  # fmt: skip

    def _kept(self, rows: Rows, step: int) -> torch.Tensor | None:
        """Which units of θ's hidden layer a step keeps, a row for each distinct context."""
        share = self.params.dropout
        if not share:
            return None
        distinct = np.unique(self.lower_level.group[rows])
        size = (distinct.size, self.params.architecture.width)
        rng = np.random.default_rng([self.params.seed, step, _DROPOUT])
        kept = torch.from_numpy(rng.random(size, np.float32) >= share)
        return kept.to(self.model.base_s.dtype) / (1.0 - share)

    def _trip_times(
        self, rows: Rows, static: torch.Tensor | None, kept: torch.Tensor | None
    ) -> torch.Tensor:
        """g⁽ⁱ⁾ along the chosen paths, with gradient."""
        if self.params.path_refreshes and self._routes is not None:
            routes, places = self._routes, self._position[rows]
        else:
            routes, places = self.lower_level.solve(self.model, rows)[0], np.arange(rows.size)
        edges, owner = routes.of(places)
        seconds = self.edge_seconds(rows, edges, owner, static, kept)
        drives = seconds.new_zeros(rows.size).index_add(0, torch.from_numpy(owner), seconds)
        return drives + self.model.constant_s()

    def edge_seconds(
        self, rows: Rows, edges: Rows, owner: Rows, static: torch.Tensor | None,
        kept: torch.Tensor | None,
    ) -> torch.Tensor:  # fmt: skip
        """The time of each edge for the trip of ``rows`` at the place ``owner``, with gradient."""
        edge, trip = torch.from_numpy(edges), torch.from_numpy(owner)
        if static is None:
            used, edge_of = torch.unique(edge, return_inverse=True)
            per_edge = self.model.edge_part(used).index_select(0, edge_of)
        else:
            per_edge = self.model.cross.edge(static).index_select(0, edge)
        groups, group_of = np.unique(self.lower_level.group[rows], return_inverse=True)
        per_context = self.model.context_part(self.lower_level.contexts[groups], kept)
        hidden = per_edge + per_context.index_select(0, torch.from_numpy(group_of)[trip])
        return self.model.times(hidden, edge)

    # --- predictions and weights -------------------------------------------------

    def predict(self, rows: Rows) -> np.ndarray:
        """Predicted seconds of trips under the current weights."""
        return self.lower_level.solve(self.model, rows)[1] + self.model.constant_s().item()

    def validation_error_s(self) -> float:
        """Mean absolute error on the held-out part, or on the training part if there is none."""
        held_out = self.data.validation
        rows = held_out if held_out.size else self.data.train
        errors = np.abs(self.predict(rows) - self.data.trips.observed_s[rows])
        return float(errors.sum() / rows.size)

    def finish(self) -> RepresentationNetwork:
        """The model with the weights that training chose."""
        self.model.load_state_dict(self.chosen)
        return self.model

    def _weights(self) -> Tensors:
        return {name: value.detach().clone() for name, value in self.model.state_dict().items()}


# --- step sizes and perturbations --------------------------------------------------


def step_size(params: TrainParams, step: int, total: int) -> float:
    """α_k. "power" meets Σα_k = ∞ and α_k log(k + 2) → 0; "cosine" ends at zero."""
    if params.steps == "cosine":
        return params.learning_rate * 0.5 * (1 + math.cos(math.pi * min(step / total, 1.0)))
    return params.learning_rate * math.pow(1 + step / params.step_delay, -params.step_power)


def perturbation_radius(params: TrainParams, step: int) -> float:
    """r_k, which never grows."""
    return params.perturbation * math.pow(1 + step / params.step_delay, -params.perturbation_power)


def uniform_in_ball(size: int, rng: np.random.Generator) -> torch.Tensor:
    """A vector drawn uniformly from the unit ball of ℝ^size."""
    direction = rng.standard_normal(size)
    radius = rng.random() ** (1.0 / size)
    return torch.from_numpy(direction * (radius / np.linalg.norm(direction)))


def output_steps(params: TrainParams, total: int) -> BoolArray:
    """At which steps k the weights before the step become the output φ_R so far.

    A step replaces the earlier choice with the chance α_k / (α_0 + … + α_k). So
    P(R = k) = α_k / A_K holds after any number K of steps, also where training
    stops early. The draws depend on the seed alone.
    """
    sizes = np.array([step_size(params, k, total) for k in range(total)])
    draws = np.random.default_rng([params.seed, 0, _OUTPUT]).random(total)
    chosen: BoolArray = draws * np.cumsum(sizes) < sizes
    return chosen


def perturbation_rng(seed: int, step: int) -> np.random.Generator:
    """The random numbers of one step: nothing to store when training is resumed."""
    return np.random.default_rng([seed, step, _PERTURBATION])


# --- the upper level ----------------------------------------------------------------


def losses(
    params: TrainParams, predicted: torch.Tensor, observed: torch.Tensor, mean_s: float
) -> torch.Tensor:
    """ℓ(g, t) per trip; see :class:`TrainParams` for the four kinds and their unit."""
    if params.loss == "log":  # a trip within one node has no drive, and a drive no gradient
        error = (predicted.clamp(min=_LEAST_S) / observed).log()
        return _huber(error, params.huber_log)
    unit = observed if params.loss == "relative" else mean_s
    error = (predicted - observed) / unit
    if params.loss == "squared":
        return 0.5 * error**2
    return _huber(error, params.huber_s / mean_s)


def _huber(error: torch.Tensor, bend: float) -> torch.Tensor:
    return torch.nn.functional.huber_loss(
        error, torch.zeros_like(error), reduction="none", delta=bend
    )


class SpatialRegulariser:
    """R(ϑ) = Σ ‖ϑ[e]/√l[e] − ϑ[e′]/√l[e′]‖² over ordered pairs that share an end.

    [IDEAL] equation 7, as the quadratic form 2 tr(UᵀLU) of the graph Laplacian
    L of the edges, U = ϑ/√l, whose gradient in U is 4LU.
    """

    def __init__(self, network: RoadNetwork) -> None:
        adjacent = adjacency(network)
        laplacian = sp.diags_array(adjacent.sum(axis=1)) - adjacent
        root = sp.diags_array(network.length_m**-0.5)
        self._form = (root @ laplacian @ root).tocsr().astype(np.float32)

    def __call__(self, static: torch.Tensor) -> torch.Tensor:
        value: torch.Tensor = _QuadraticForm.apply(static, self._form)  # type: ignore[no-untyped-call]
        return 2.0 * value


class _QuadraticForm(torch.autograd.Function):
    """tr(UᵀMU) of a sparse symmetric M: SciPy's product serves value and gradient."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, form: "sp.csr_array") -> torch.Tensor:
        product = torch.from_numpy(form @ rows.detach().numpy())
        ctx.save_for_backward(product)
        return (rows.detach() * product).sum()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        (product,) = ctx.saved_tensors
        return 2.0 * gradient * product, None


def adjacency(network: RoadNetwork) -> "sp.csr_array":
    """One where two different edges share an end, zero elsewhere, (E, E)."""
    shared = meetings(network).tocoo()
    other = shared.row != shared.col
    return sp.csr_array(
        (np.ones(int(other.sum())), (shared.row[other], shared.col[other])), shape=shared.shape
    )
