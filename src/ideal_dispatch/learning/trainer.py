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

from ideal_dispatch.arrays import BoolArray
from ideal_dispatch.learning import distributed
from ideal_dispatch.learning.encoders import RepresentationNetwork
from ideal_dispatch.learning.lower_level import (
    GivenRoutes,
    LowerLevel,
    Routes,
    Rows,
    TrainingError,
)
from ideal_dispatch.learning.parameters import TrainParams
from ideal_dispatch.learning.training_data import TrainingData
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.features import meetings

Tensors = dict[str, torch.Tensor]

_PERTURBATION, _OUTPUT = 1, 2  # streams of random numbers of one seed; batches have stream 0


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
        self.model = RepresentationNetwork(
            params.architecture, data.edges, data.base_s,
            data.bounds.on(data.network).expected_s, data.contexts.shape[1], params.seed,
        )  # fmt: skip
        self.lower_level = (
            LowerLevel(data.network, data.trips, data.contexts)
            if data.routes is None
            else GivenRoutes(data.routes, data.contexts)
        )
        self._target = torch.tensor(data.target_s, dtype=torch.float32)
        self._mean_s = float(data.trips.observed_s[data.train].mean())
        self._regulariser = SpatialRegulariser(data.network) if params.smoothness else None
        self._position = np.full(len(data.trips), -1)
        self._train = distributed.own(data.train)
        self._position[self._train] = np.arange(self._train.size)
        self._routes: Routes | None = None
        rate, decay = params.learning_rate, params.weight_decay
        self.optimiser: torch.optim.Optimizer = (
            torch.optim.AdamW(self.model.parameters(), lr=rate, weight_decay=decay)
            if params.optimiser == "adam"
            else torch.optim.SGD(self.model.parameters(), lr=rate, weight_decay=decay)
        )
        self.steps_per_epoch = -(-data.train.size // params.batch_size)
        self.total_steps = self.steps_per_epoch * params.epochs
        self._output_steps = (
            output_steps(params, self.total_steps) if params.output == "random" else None
        )
        self.history: list[Epoch] = []
        self.chosen: Tensors = self._weights()

    # --- the loop ---------------------------------------------------------------

    def run(self, after_epoch: Callable[["Trainer"], None] | None = None) -> None:
        """Train to the end; ``after_epoch`` sees every finished epoch, to show and to save."""
        distributed.check_same_epoch(len(self.history))
        while not self.finished:
            self._epoch()
            if after_epoch is not None:
                after_epoch(self)

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or the held-out error has long stopped falling."""
        done = len(self.history)
        return done >= self.params.epochs or done - self.best_epoch > self.params.patience

    @property
    def best_epoch(self) -> int:
        """The epoch, from 1, with the least held-out error; 0 before the first."""
        errors = [epoch.validation_mae_s for epoch in self.history]
        return int(np.argmin(errors)) + 1 if errors else 0

    def _epoch(self) -> None:
        began, number = time.perf_counter(), len(self.history)
        first_step = number * self.steps_per_epoch
        every = -(-self.steps_per_epoch // max(self.params.path_refreshes, 1))
        loss = 0.0
        for i, rows in enumerate(self._batches(number)):
            if self.params.path_refreshes and i % every == 0:
                self.renew_paths()
            loss += self._step(rows, first_step + i) / self.steps_per_epoch
        error = self.validation_error_s()
        self.history.append(Epoch(number + 1, loss, error, time.perf_counter() - began))
        newest = self.params.output == "last"
        best = self.params.output == "best" and self.best_epoch == number + 1
        if newest or best:
            self.chosen = self._weights()

    def renew_paths(self) -> None:
        """Solve the lower level of all training trips and keep their paths."""
        self._routes, _ = self.lower_level.solve(self.model, self._train)

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
        kept = self._perturb(radius, step) if radius else None
        loss = self.direction(rows)
        if kept is not None:
            with torch.no_grad():
                torch.nn.utils.vector_to_parameters(kept, self.model.parameters())
        if not np.isfinite(loss):
            raise TrainingError(
                f"the loss became {loss} at step {step}; lower learning_rate "
                f"(now {self.params.learning_rate:g})"
            )
        for group in self.optimiser.param_groups:
            group["lr"] = step_size(self.params, step, self.total_steps)
        self.optimiser.step()
        return loss

    def direction(self, rows: Rows) -> float:
        """Leave d_k = mean over the batch of d⁽ⁱ⁾ in the gradients; the batch's loss."""
        self.optimiser.zero_grad(set_to_none=False)
        mine = distributed.own(rows)
        static = self.model.representation() if self._regulariser else None
        value = torch.zeros(())
        if mine.size:
            value = losses(
                self.params, self._trip_times(mine, static), self._target[mine], self._mean_s
            ).sum() / float(rows.size)
        if self._regulariser is not None and static is not None and distributed.is_first():
            value = value + self.params.smoothness * self._regulariser(static)
        if value.requires_grad:
            value.backward()  # type: ignore[no-untyped-call]
        distributed.sum_gradients(self.model)
        return float(distributed.total(value.detach().clone()))

    def _trip_times(self, rows: Rows, static: torch.Tensor | None) -> torch.Tensor:
        """g⁽ⁱ⁾ along the chosen paths, with gradient."""
        if self.params.path_refreshes and self._routes is not None:
            edges, owner = self._routes.of(self._position[rows])
        else:
            routes, _ = self.lower_level.solve(self.model, rows)
            edges, owner = routes.of(np.arange(rows.size))
        edge, trip = torch.from_numpy(edges), torch.from_numpy(owner)
        if static is None:
            used, edge_of = torch.unique(edge, return_inverse=True)
            per_edge = self.model.edge_part(used).index_select(0, edge_of)
        else:
            per_edge = self.model.cross.edge(static).index_select(0, edge)
        groups, group_of = np.unique(self.lower_level.group[rows], return_inverse=True)
        per_context = self.model.context_part(self.lower_level.contexts[groups])
        hidden = per_edge + per_context.index_select(0, torch.from_numpy(group_of)[trip])
        seconds = self.model.times(hidden, edge)
        return seconds.new_zeros(rows.size).index_add(0, trip, seconds)

    # --- what it knows ----------------------------------------------------------

    def predict(self, rows: Rows) -> np.ndarray:
        """Predicted seconds of trips under the current weights."""
        return self.lower_level.solve(self.model, rows)[1]

    def validation_error_s(self) -> float:
        """Mean absolute error on the held-out part, or on the training part if there is none."""
        held_out = self.data.validation
        rows = distributed.own(held_out if held_out.size else self.data.train)
        errors = np.abs(self.predict(rows) - self.data.target_s[rows])
        both = distributed.total(torch.tensor([errors.sum(), rows.size], dtype=torch.float64))
        return float(both[0] / both[1])

    def finish(self) -> RepresentationNetwork:
        """The model with the weights that training chose."""
        self.model.load_state_dict(self.chosen)
        return self.model

    def _weights(self) -> Tensors:
        return {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    @torch.no_grad()
    def _perturb(self, radius: float, step: int) -> torch.Tensor:
        kept = torch.nn.utils.parameters_to_vector(self.model.parameters())
        rng = perturbation_rng(self.params.seed, step)
        moved = kept + radius * uniform_in_ball(kept.numel(), rng).to(kept.dtype)
        torch.nn.utils.vector_to_parameters(moved, self.model.parameters())
        return kept


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
    """ℓ(g, t) per trip; see :class:`TrainParams` for the three kinds and their unit."""
    unit = observed if params.loss == "relative" else mean_s
    error = (predicted - observed) / unit
    if params.loss == "squared":
        return 0.5 * error**2
    return torch.nn.functional.huber_loss(
        error, torch.zeros_like(error), reduction="none", delta=params.huber_s / mean_s
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
