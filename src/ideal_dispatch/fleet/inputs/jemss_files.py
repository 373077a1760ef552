"""The files of JEMSS, a simulator of ambulances in Julia: its tables and its distributions.

A file holds several tables. Each has a line with its name, a line with its columns and its
rows, and ends with a blank line. Lines may have too few cells, or empty ones at the end.
Distributions are Julia expressions, such as ``Exponential(12/60/24)`` with a mean in days. Their
syntax is parsed and their arithmetic evaluated here; nothing is executed.
"""

import ast
import csv
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray, first_where
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import check_source

_OPERATIONS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.Pow: operator.pow,
}  # fmt: skip
_LONGEST = 500  # characters of an expression; Python's own parser has no limit of depth


@dataclass(frozen=True, slots=True)
class JemssTable:
    """One table of a file; ``where`` names it in complaints."""

    where: str
    columns: Mapping[str, tuple[str, ...]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def texts(self, name: str) -> tuple[str, ...]:
        """A column as text."""
        if name not in self.columns:
            known = ", ".join(self.columns)
            raise FileFormatError(f"{self.where}: no column {name}; it has {known}")
        return self.columns[name]

    def numbers(self, name: str) -> FloatArray:
        """A column of numbers."""
        cells = self.texts(name)
        try:
            values = np.array(cells, np.float64)
        except ValueError:
            values = np.array([_float(cell) for cell in cells])
        bad = first_where(~np.isfinite(values))
        if bad is not None:
            raise FileFormatError(
                f"{self.where}, row {bad + 1}: {name} is {cells[bad]!r}; a number is needed"
            )
        return values

    def indices(self, name: str, count: int) -> IntArray:
        """A column of numbers from 1 to ``count``, counted from 0."""
        values = self.numbers(name)
        bad = first_where((values != np.rint(values)) | (values < 1) | (values > count))
        if bad is not None:
            raise FileFormatError(
                f"{self.where}, row {bad + 1}: {name} is {values[bad]:g}; a whole number from 1 "
                f"to {count} is needed"
            )
        return (values - 1).astype(np.int32)


def read_tables(path: Path, *needed: str) -> dict[str, JemssTable]:
    """The tables of a file by name; those that are ``needed`` are there."""
    check_source(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return tables_of(file, str(path), *needed)
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(f"{path}: not a CSV file of JEMSS: {error}") from None


def tables_of(lines: Iterable[str], where: str, *needed: str) -> dict[str, JemssTable]:
    """The tables of some lines."""
    rows = csv.reader(lines)
    tables: dict[str, JemssTable] = {}
    for row in rows:
        if not any(row):
            continue
        name, header = row[0], next(rows, [])
        body = list(_until_blank(rows))
        columns = {
            title: tuple(cells[i] if i < len(cells) else "" for cells in body)
            for i, title in enumerate(header)
            if title
        }
        tables[name] = JemssTable(f"{where}, table {name}", columns)
    for name in needed:
        if name not in tables:
            found = ", ".join(tables) or "none"
            raise FileFormatError(f"{where}: no table {name}; tables found: {found}")
    return tables


def _until_blank(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    for row in rows:
        if not any(row):
            return
        yield row


def call_distributions(path: Path) -> dict[str, str]:
    """The distributions of calls in a file ``gen_config.xml`` by name, as text."""
    check_source(path)
    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, ValueError, LookupError) as error:  # also of its encoding
        raise FileFormatError(f"{path}: not XML: {error}") from None
    return {item.tag: (item.text or "").strip() for item in root.iterfind(".//callDistributions/*")}


# --- distributions, as Julia's package Distributions names and orders their parameters --------


_DISTRIBUTIONS: Mapping[str, Callable[..., Any]] = {
    "Beta": lambda of, a=1.0, b=None: of.beta(a, a if b is None else b),
    "Binomial": lambda of, n=1.0, p=0.5: of.binom(n, p),
    "Chisq": lambda of, k: of.chi2(k),
    "DiscreteUniform": lambda of, a, b: of.randint(a, b + 1.0),
    "Erlang": lambda of, k=1.0, scale=1.0: of.gamma(k if k % 1 == 0 else np.nan, scale=scale),
    "Exponential": lambda of, scale=1.0: of.expon(scale=scale),
    "Frechet": lambda of, a=1.0, scale=1.0: of.invweibull(a, scale=scale),
    "Gamma": lambda of, a=1.0, scale=1.0: of.gamma(a, scale=scale),
    "Geometric": lambda of, p=0.5: of.geom(p, loc=-1),
    "Gumbel": lambda of, mean=0.0, scale=1.0: of.gumbel_r(mean, scale),
    "InverseGamma": lambda of, a=1.0, scale=1.0: of.invgamma(a, scale=scale),
    "Laplace": lambda of, mean=0.0, scale=1.0: of.laplace(mean, scale),
    "LogNormal": lambda of, mean=0.0, sd=1.0: of.lognorm(sd, scale=np.exp(mean)),
    "LogUniform": lambda of, a, b: of.loguniform(a, b),
    "Logistic": lambda of, mean=0.0, scale=1.0: of.logistic(mean, scale),
    "NegativeBinomial": lambda of, r=1.0, p=0.5: of.nbinom(r, p),
    "Normal": lambda of, mean=0.0, sd=1.0: of.norm(mean, sd),
    "Pareto": lambda of, a=1.0, scale=1.0: of.pareto(a, scale=scale),
    "Poisson": lambda of, mean=1.0: of.poisson(mean),
    "Rayleigh": lambda of, scale=1.0: of.rayleigh(scale=scale),
    "TriangularDist": lambda of, a, b, mode=None: of.triang(
        0.5 if mode is None else (mode - a) / (b - a), a, b - a
    ),
    "Uniform": lambda of, a=0.0, b=1.0: of.uniform(a, b - a),
    "Weibull": lambda of, a=1.0, scale=1.0: of.weibull_min(a, scale=scale),
}
"""How SciPy (``of`` is ``scipy.stats``) makes each; a default is Julia's."""

_FIXED = "Dirac"
_FUNCTIONS = {"exp": math.exp, "log": math.log, "sqrt": math.sqrt}
_CONSTANTS = {"Inf": math.inf, "pi": math.pi}


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution of Julia's ``Distributions``, of the ``kind`` with its ``numbers``.

    It is that of ``factor`` times a draw plus ``offset``, given that this lies from ``low`` to
    ``high``.
    """

    kind: str
    numbers: tuple[float, ...]
    factor: float = 1.0
    offset: float = 0.0
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not np.isfinite([*self.numbers, self.factor, self.offset]).all():
            raise InputError(f"{self.kind} has a number that is too large")
        if not (self.factor > 0.0 and np.isfinite(self.quantile(np.array(0.5)))):
            numbers = ", ".join(f"{one:g}" for one in self.numbers)
            raise InputError(f"{self.kind}({numbers}): parameters are out of range")

    def scaled(self, factor: float, offset: float = 0.0) -> "Distribution":
        """That of ``factor`` times a draw, plus ``offset``."""
        low, high = factor * self.low + offset, factor * self.high + offset
        moved = factor * self.offset + offset
        return Distribution(self.kind, self.numbers, factor * self.factor, moved, low, high)

    def truncated(self, low: float = -math.inf, high: float = math.inf) -> "Distribution":
        """That of the draws from ``low`` to ``high``."""
        return replace(self, low=max(self.low, low), high=min(self.high, high))

    def quantile(self, share: FloatArray) -> FloatArray:
        """The value that a ``share`` of all draws does not exceed."""
        if self.kind == _FIXED:
            value = self.factor * self.numbers[0] + self.offset
            return np.full(np.shape(share), value if self.low <= value <= self.high else np.nan)
        made = self._made()
        low, high = ((end - self.offset) / self.factor for end in (self.low, self.high))
        if hasattr(made.dist, "pmf") and math.isfinite(low):
            low = math.ceil(low) - 1.0  # the lowest value is among the draws
        with np.errstate(over="ignore", invalid="ignore"):
            below, above = made.cdf(low), made.cdf(high)
            draws = made.ppf(below + share * (above - below))
            inside = np.where(above > below, draws, np.nan)
            return np.asarray(self.factor * inside + self.offset)

    @property
    def mean(self) -> float:
        """The mean of all draws."""
        if self.kind == _FIXED:
            return float(self.quantile(np.array(0.5)))
        from scipy.integrate import quad

        made = self._made()
        low, high = ((end - self.offset) / self.factor for end in (self.low, self.high))
        start, end = made.support()
        if low <= start and high >= end:
            mean = made.mean()
        elif hasattr(made.dist, "pmf"):
            mean = made.expect(lb=low, ub=high, conditional=True)
        else:
            at = lambda share: float(self.quantile(np.array(share)))  # noqa: E731
            return float(quad(at, 0.0, 1.0, epsabs=0.0, epsrel=1e-9, limit=200)[0])
        return float(self.factor * mean + self.offset)

    def _made(self) -> Any:
        from scipy import stats

        try:
            return _DISTRIBUTIONS[self.kind](stats, *self.numbers)
        except TypeError:
            raise InputError(
                f"{self.kind}: {len(self.numbers)} parameters are too few or too many"
            ) from None


def read_distribution(text: str, where: str) -> Distribution:
    """The distribution that an expression of Julia means, such as ``Gamma(2, 6/60/24)``.

    It may be ``truncated`` and multiplied by or added to numbers; of one without variation, such
    as ``Normal(0.1, 0)``, the kind is "Dirac".
    """
    found = _evaluated(text, where)
    if not isinstance(found, Distribution):
        raise FileFormatError(f"{where}: {_short(text)!r} is no distribution")
    return found


def read_shares(text: str, where: str, kind: str) -> tuple[float, ...]:
    """The numbers of ``Categorical([0.6, 0.4])`` or ``Bernoulli(0.8)``."""
    found = _evaluated(text, where, kind)
    if not isinstance(found, tuple):
        raise FileFormatError(f"{where}: {_short(text)!r} is not {kind} of some numbers")
    return found


def _evaluated(text: str, where: str, shares: str = "") -> float | Distribution | tuple[float, ...]:
    """What an expression means; ``shares`` is the one kind whose numbers are wanted as such."""

    def number(node: ast.expr) -> float:
        value = meaning(node)
        if isinstance(value, Distribution):
            raise InputError(f"{ast.unparse(node)} stands where a number is needed")
        return value

    def meaning(node: ast.expr) -> float | Distribution:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return _float(str(node.value))  # a whole number that is too large becomes infinite
        if isinstance(node, ast.Name) and node.id in _CONSTANTS:
            return _CONSTANTS[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -number(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            return combined(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return called(node, node.func.id)
        raise InputError(f"{ast.unparse(node)} is not a number or a distribution")

    def combined(node: ast.BinOp) -> float | Distribution:
        left, right = meaning(node.left), meaning(node.right)
        if isinstance(right, Distribution) and isinstance(node.op, (ast.Add, ast.Mult)):
            left, right = right, left
        if isinstance(right, Distribution):
            raise InputError(f"{ast.unparse(node)} is not a number or a distribution")
        if isinstance(left, Distribution):
            if isinstance(node.op, (ast.Add, ast.Sub)):
                return left.scaled(1.0, right if isinstance(node.op, ast.Add) else -right)
            if isinstance(node.op, (ast.Mult, ast.Div)):
                return left.scaled(right if isinstance(node.op, ast.Mult) else 1.0 / right)
            raise InputError(f"{ast.unparse(node)} is not a number or a distribution")
        return float(_OPERATIONS[type(node.op)](left, right))

    def called(node: ast.Call, name: str) -> float | Distribution:
        if name in ("truncated", "Truncated") and node.args:
            ends = [number(one) for one in node.args[1:]]
            named = {str(one.arg): number(one.value) for one in node.keywords}
            bounds = dict(zip(("low", "high"), ends, strict=False))
            bounds |= {{"lower": "low", "upper": "high"}.get(k, k): v for k, v in named.items()}
            whole = meaning(node.args[0])
            if isinstance(whole, Distribution) and len(ends) < 3 and set(bounds) <= {"low", "high"}:
                return whole.truncated(**bounds)
        elif not node.keywords:
            numbers = tuple(number(one) for one in node.args)
            if name in _FUNCTIONS and len(numbers) == 1:
                return _FUNCTIONS[name](numbers[0])
            if name == "Normal" and len(numbers) == 2 and numbers[1] == 0.0:
                name, numbers = _FIXED, numbers[:1]
            if name in _DISTRIBUTIONS or (name == _FIXED and len(numbers) == 1):
                return Distribution(name, numbers)
        known = ", ".join((*_DISTRIBUTIONS, _FIXED))
        raise InputError(f"{_short(ast.unparse(node))} is not read; distributions: {known}")

    try:
        if len(text) > _LONGEST:
            raise InputError("the expression is too long")
        written = text.strip().replace("^", "**").replace(";", ",")
        root = ast.parse(written, mode="eval").body
        if (
            isinstance(root, ast.Call)
            and isinstance(root.func, ast.Name)
            and root.func.id == shares
        ):
            listed = [one.elts if isinstance(one, ast.List) else [one] for one in root.args]
            return tuple(number(one) for part in listed for one in part)
        return meaning(root)
    except InputError as error:
        raise FileFormatError(f"{where}: {error}") from None
    except (SyntaxError, ArithmeticError, ValueError, RecursionError, MemoryError) as error:
        reason = error if isinstance(error, ArithmeticError) else "not an expression of Julia"
        raise FileFormatError(f"{where}: {_short(text)!r}: {reason}") from None


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
