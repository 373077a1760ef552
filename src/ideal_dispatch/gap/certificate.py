"""A gap that is proved: the label search, and the record that lets anyone check it."""

import time
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray, frozen
from ideal_dispatch.gap import certificate_kernels as kernels
from ideal_dispatch.gap.corridor import Corridor, least_gain, without_dead_ends
from ideal_dispatch.gap.problem import GapProblem

_FIRST_ROOM = 2048  # labels, memory taken only as used; an eighth of it bases
_NODES_PER_LOOK = 100_000  # searched at most between looks at the clock
_MOST_BYTES = 1_000_000_000
_ROUNDING = 1e-9  # of a length
_MOST_CORRIDOR = 8192  # edges: its spread takes time with their square
_SECONDS_PER_PAIR = 2e-9

Columns = TypeVar("Columns", kernels.Labels, kernels.Queue, kernels.Bases)


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """A tree of partial paths whose leaves cover every second path.

    Label i starts at a depot (``parent`` −1, ``node`` the depot) or extends its
    parent by edge ``via``. ``fate`` says why it is done: expanded (its outgoing
    edges that are no labels are bounded by its base), bounded by its own base,
    dominated by the label ``dominator`` at the same node, complete, or still
    open. Base j belongs to label ``base_label[j]`` and has the multiplier
    ``base_multiplier[j]``; see :mod:`ideal_dispatch.gap.certificate_kernels` for
    what a base proves. ``corridor_multiplier`` is empty, or holds a multiplier for
    every depot: the bases with these multipliers left the corridor, to which the
    tree keeps and whose spread its bases rely on. Nothing else is needed to check
    the tree.
    """

    node: IntArray
    parent: IntArray
    via: IntArray
    base: IntArray
    fate: IntArray
    dominator: IntArray
    base_label: IntArray
    base_multiplier: FloatArray
    corridor_multiplier: FloatArray

    def __len__(self) -> int:
        return int(self.parent.size)


@dataclass(frozen=True, slots=True, eq=False)
class SearchOutcome:
    """How a search ended.

    ``upper_s`` is proved. ``found`` holds the edges of a complete path whose
    largest advantage is above the target the search began with, if any.
    """

    upper_s: float
    closed: bool
    found: IntArray | None
    proof: Proof


def bound_at_depots(problem: GapProblem, target_s: float) -> SearchOutcome:
    """The quickest bound: one base at each depot; closed if it is no more than the target."""
    return Search(problem, target_s, stop_at_found=True).run(most_pops=problem.depots.size)


def nothing_proved(problem: GapProblem) -> Proof:
    """The proof before its first step: every depot open."""
    return _State(problem, 0.0, np.empty(0)).proof


class Search:
    """A proof that no second path has a largest advantage above ``target_s``, or such a path.

    With ``stop_at_found`` the first such path ends the search; without, it
    becomes the new target, so that a closed search proves the exact gap.
    """

    def __init__(self, problem: GapProblem, target_s: float, *, stop_at_found: bool) -> None:
        self._problem, self._stop_at_found = problem, stop_at_found
        self._found: IntArray | None = None
        self._begin(target_s, Corridor.everywhere(problem), np.empty(0))

    def _begin(self, target_s: float, corridor: Corridor, corridor_multiplier: FloatArray) -> None:
        network, scenarios = self._problem.network, self._problem.scenarios
        self._claim = kernels.Claim(
            scenarios.embeddings,
            scenarios.nominal_times,
            self._problem.destination,
            self._problem.primary_matrix,
            scenarios.radius,
            scenarios.eigenvalue_bounds.upper_offset,
            self._stop_at_found,
        )
        self._corridor = corridor
        self._state = _State(self._problem, target_s, corridor_multiplier)
        self._pops_per_look = max(1, _NODES_PER_LOOK // network.num_nodes)
        self._end = kernels.PAUSED

    def narrow(self, time_limit_s: float = np.inf) -> None:
        """Begin anew inside what the depots' bases leave possible, whose spread is then known.

        Where that is too much, or would last too long, all stays as it is.
        """
        self.run(most_pops=self._problem.depots.size - int(self._state.counters[kernels.POPS]))
        edges, multipliers = self._state.corridor()
        edges = without_dead_ends(self._problem, edges)
        lasts_s = _SECONDS_PER_PAIR * edges.size**2
        if edges.size <= _MOST_CORRIDOR and lasts_s <= time_limit_s:
            self._found = self._state.found
            corridor = Corridor.of(self._problem, edges)
            self._begin(float(self._state.target[0]), corridor, multipliers)

    def run(self, *, most_pops: int | None = None, time_limit_s: float = np.inf) -> SearchOutcome:
        """Go on for so many labels or seconds, or to the end."""
        started = time.perf_counter()
        state, left = self._state, np.inf if most_pops is None else most_pops
        while self._end not in (kernels.CLOSED, kernels.FOUND) and left > 0:
            before = state.counters[kernels.POPS]
            budget = int(min(left, self._pops_per_look))
            self._end = kernels.explore(
                self._claim, self._corridor, budget,
                state.tally, state.labels, state.queue, state.bases,
            )  # fmt: skip
            left -= state.counters[kernels.POPS] - before
            if self._end == kernels.LABELS_FULL:
                state.labels, state.queue = _doubled(state.labels), _doubled(state.queue)
            elif self._end == kernels.BASES_FULL:
                state.bases = _doubled(state.bases)
            used = state.labels.matrix.nbytes + state.bases.ahead.nbytes
            if time.perf_counter() - started > time_limit_s or used > _MOST_BYTES:
                break
        found = self._found if state.found is None else state.found
        closed = self._end == kernels.CLOSED
        return SearchOutcome(state.upper_s(closed), closed, found, state.proof)


class _State:
    """The arrays of a running search; they grow by doubling."""

    def __init__(
        self, problem: GapProblem, target_s: float, corridor_multiplier: FloatArray
    ) -> None:
        size, nodes = problem.scenarios.dimension, problem.network.num_nodes
        depots = problem.depots[np.isfinite(problem.nominal_to_destination[problem.depots])]
        room = max(_FIRST_ROOM, 2 * depots.size)
        self._problem, self.corridor_multiplier = problem, corridor_multiplier
        self.counters = np.zeros(4, np.int64)
        self.target = np.array([target_s, -1.0])
        first_at = np.full(nodes, -1, np.int32)
        self.tally = kernels.Tally(self.counters, self.target, first_at)
        self.labels = kernels.Labels(
            node=np.empty(room, np.int32),
            parent=np.empty(room, np.int32),
            via=np.empty(room, np.int32),
            nominal_time=np.empty(room),
            matrix=np.empty((room, size, size)),
            base=np.empty(room, np.int32),
            since_base=np.empty(room),
            fate=np.empty(room, np.uint8),
            dominator=np.empty(room, np.int32),
            next_at=np.empty(room, np.int32),
        )
        self.queue = kernels.Queue(np.empty(room), np.empty(room, np.int32))
        room = max(room // 8, depots.size + 1)
        self.bases = kernels.Bases(
            label=np.empty(room, np.int32),
            multiplier=np.empty(room),
            constant=np.empty(room),
            spread=np.empty(room),
            limit=np.empty(room),
            metric=np.empty((room, size, size)),
            ahead=np.empty((room, nodes)),
        )
        roots = kernels.Labels(depots, -1, -1, 0.0, 0.0, -1, 0.0, kernels.OPEN, -1, -1)  # type: ignore[arg-type]
        for name, value in roots._asdict().items():
            getattr(self.labels, name)[: depots.size] = value
        first_at[depots] = np.arange(depots.size)
        # depots first, in their order, which is a heap: their bases bound everything
        self.queue.keys[: depots.size] = -np.inf
        self.queue.labels[: depots.size] = np.arange(depots.size)
        self.counters[[kernels.LABELS, kernels.WAITING]] = depots.size

    @property
    def proof(self) -> Proof:
        labels, bases = self.counters[kernels.LABELS], self.counters[kernels.BASES]
        columns: dict[str, IntArray | FloatArray] = {
            name: getattr(self.labels, name)[:labels].astype(np.int32)
            for name in ("node", "parent", "via", "base", "fate", "dominator")
        }
        columns["base_label"] = self.bases.label[:bases].copy()
        columns["base_multiplier"] = self.bases.multiplier[:bases].copy()
        columns["corridor_multiplier"] = self.corridor_multiplier
        return Proof(**{name: frozen(column) for name, column in columns.items()})

    def corridor(self) -> tuple[IntArray, FloatArray]:
        """Edges of the paths that the depots' bases allow above the target, and multipliers."""
        network, embeddings = self._problem.network, self._problem.scenarios.embeddings
        inside = np.zeros(network.num_edges, np.bool_)
        multipliers = np.zeros(self._problem.depots.size)
        for base in range(self.counters[kernels.BASES]):
            label = self.bases.label[base]
            if self.labels.parent[label] >= 0:
                break
            depot, ahead = self.labels.node[label], self.bases.ahead[base]
            limit = self.bases.limit[base] * (1.0 + _ROUNDING)
            multipliers[self._problem.depots == depot] = self.bases.multiplier[base]
            lengths = kernels.corridor_lengths(
                network.head, embeddings, self.bases.metric[base], ahead, limit
            )
            behind = network.distances(lengths, int(depot))
            inside |= behind[network.tail] + lengths + ahead[network.head] < limit
        return np.flatnonzero(inside).astype(np.int32), multipliers

    @property
    def found(self) -> IntArray | None:
        """The path that set the target, if one did."""
        label, edges = int(self.target[1]), []
        if label < 0:
            return None
        while self.labels.parent[label] >= 0:
            edges.append(self.labels.via[label])
            label = self.labels.parent[label]
        return np.array(edges[::-1], np.int32)

    def upper_s(self, closed: bool) -> float:
        """What the open labels leave possible, and no less than the target."""
        upper = float(self.target[0])
        waiting = self.queue.labels[: self.counters[kernels.WAITING]]
        for label in () if closed else waiting[self.labels.fate[waiting] == kernels.OPEN]:
            base = self.labels.base[label]
            if base < 0:  # a depot that was never looked at: the widest bound there is
                slowest = self._problem.scenarios.eigenvalue_bounds.upper
                upper = max(upper, slowest * float(np.trace(self._problem.primary_matrix)))
                continue
            gamma = self.bases.multiplier[base]
            length = self.labels.since_base[label]
            length += self.bases.ahead[base, self.labels.node[label]]
            gain = least_gain(length / gamma, self.bases.spread[base])
            bound = float(self.bases.constant[base] - gamma * gain)
            upper = max(upper, bound if np.isfinite(bound) else np.inf)
        return upper


def _doubled(columns: Columns) -> Columns:
    return type(columns)(*(np.concatenate([each, np.empty_like(each)]) for each in columns))
