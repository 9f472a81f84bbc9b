"""Linear changes of the factors of factor analysis, before every sweep over all rows.

A product x_m . w_n stays the same under x <- B^T x, w <- B^-1 w, but the priors and entropies do
not. Let x have the prior Normal(0, 1 / a), and w_nk the prior Normal(0, 1 / alpha_k) with alpha_k ~
Gamma(s, r): automatic relevance determination. With S_x = sum_m E[x x^T], S_w = sum_n E[w w^T], and
q(alpha) at its optimum, the bound is, up to a constant,

    (M - N) log |det B| - a tr(B^T S_x B) / 2 - sum_k (s + N / 2) log(r + [B^-1 S_w B^-T]_kk / 2).

With S_x = L L^T and L^T S_w L = Q diag(c) Q^T, it is largest for B = L^-T Q diag(t)^(1/2), where

    2 a r t_k^2 + (a c_k - 2 (M - N) r) t_k - c_k (M + 2 s) = 0.

Both matrices are then diagonal. If w has a known precision b too, t follows from a t_k^2 - (M - N)
t_k - b c_k = 0; this is done where the table has all pairs of m and n, as in other tables it costs
more than it saves. Sweeps of coordinate ascent change B slowly, and alpha even more so. q of x and
w has full covariances, so that the change is exact, and the bound never falls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy import linalg

from svmp import families
from svmp.families.family import Array
from svmp.inference.acceleration.accelerator import BeforeWholeSweeps
from svmp.inference.acceleration.chain_rotating import change_vectors
from svmp.inference.acceleration.rotating import isotropic_prior
from svmp.inference.starts.seeding import read_rows
from svmp.inference.state.relaxation import Means
from svmp.inference.updaters.setup import Setup
from svmp.inference.updaters.updater import Updater
from svmp.network.beliefs import Beliefs
from svmp.network.matrices import Diagonal
from svmp.network.means.linear import Linear, dimension
from svmp.network.means.regular import RegularTerm
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown

PAIR = 2
"""Variables in a product of factors."""
LEAST = 1e-6
"""Least gain for which factors are changed, in nats."""


class Known(NamedTuple):
    """A known precision b of all factors."""

    precision: float

    def log_density(self, square: Array, count: int) -> float:
        """Return the part of the bound that depends on the diagonal of S_w."""
        return -0.5 * self.precision * float(square.sum())

    def equation(self, a: float, c: Array, M: int, N: int) -> tuple[Array, Array, Array]:
        """Return the coefficients of the equation for t: of its square, of itself, and without."""
        return np.full_like(c, a), np.full_like(c, N - M), -self.precision * c


class Relevance(NamedTuple):
    """Learned precisions alpha: the name of the variable, and s and r of each factor."""

    name: str
    shape: Array
    rate: Array

    def log_density(self, square: Array, count: int) -> float:
        """Return the part of the bound that depends on the diagonal of S_w."""
        return -float(((self.shape + count / 2) * np.log(self.rate + 0.5 * square)).sum())

    def equation(self, a: float, c: Array, M: int, N: int) -> tuple[Array, Array, Array]:
        """Return the coefficients of the equation for t: of its square, of itself, and without."""
        return 2 * a * self.rate, a * c - 2 * (M - N) * self.rate, -c * (M + 2 * self.shape)


class FactorPair(NamedTuple):
    """A product of vectors of factors.

    Attributes
    ----------
    x, w
        Names of the variables; that of learned precisions is w.
    precision
        The known precision a of x.
    prior
        The precisions of w.
    """

    x: str
    w: str
    precision: float
    prior: Known | Relevance


@dataclass(frozen=True, eq=False)
class FactorRotation(BeforeWholeSweeps):
    """Changes the factors of products of vectors before every sweep over all rows.

    Attributes
    ----------
    pairs
        The products.
    """

    pairs: list[FactorPair]

    @classmethod
    def find(cls, setup: Setup, updaters: Sequence[Updater]) -> Self | None:
        found = factor_pairs(setup.network, setup.joined)
        return cls(setup.network, setup.method, found) if found else None

    def change(self, q: Beliefs, before: Means) -> None:
        for pair in self.pairs:
            rotate_factors(self.network, q, pair, before)


def factor_pairs(network: Network, joined: Collection[str]) -> list[FactorPair]:
    """Return the products of a network that are served, without variables of joint blocks."""
    found = []
    for table in network.observed.values():
        slot = table.conditional.linear
        if not isinstance(slot, Linear) or table.conditional.selector is not None:
            continue
        for term in slot.terms:
            regular = term.regular
            if regular is None or regular.constants:
                continue
            if not all(column.vector for column in regular.columns):
                continue
            names = _operands(network, regular, joined)
            whole = regular.table_product is not None
            pair = _pair(network, names[0], names[1], whole) if len(names) == PAIR else None
            if pair is not None:
                found.append(pair)
    return found


def _operands(network: Network, term: RegularTerm, joined: Collection[str]) -> list[str]:
    """Return the variables of a term that are in no other, and have all elements observed."""
    found = []
    for name in (column.name for column in term.columns):
        variable = network.hidden.get(name)
        if variable is None or name in joined or name in network.chains or name in network.learned:
            continue
        edges = network.edges[name]
        alone = len(edges) == 1 and edges[0].slot.width(variable) == 1
        if alone and network.present[name] is None and not isinstance(variable.family, PartlyKnown):
            found.append(name)
    return found


def _pair(network: Network, one: str, other: str, whole: bool) -> FactorPair | None:
    """Return a pair with learned precisions, or with known ones if its table has all pairs."""
    known = {name: isotropic_prior(network, Beliefs(), name) for name in (one, other)}
    for x, w in ((one, other), (other, one)):
        a, relevance = known[x], relevance_of(network, w)
        if a is not None and relevance is not None:
            return FactorPair(x, w, a, relevance)
    a, b = known[one], known[other]
    if one == other or a is None or b is None or not whole:
        return None
    return FactorPair(one, other, a, Known(b))


def relevance_of(network: Network, name: str) -> Relevance | None:
    """Return the Gammas that are the precisions of all elements of a variable, and their priors."""
    variable = network.hidden[name]
    slot, size = variable.conditional.slots["tau"], dimension(variable)
    mean = variable.conditional.slots["mu"]
    if not isinstance(slot, Diagonal) or mean.variables or slot.arrays or slot.entries.scale != 1:
        return None
    if len(slot.entries.readers) != 1 or np.any(mean.moments(Beliefs(), np.arange(1))[0, :size]):
        return None
    if slot.width(slot.variables[0]) != size or mean.varies:
        return None
    return prior_of_gammas(network, slot.variables[0].name, size)


def prior_of_gammas(network: Network, name: str, count: int) -> Relevance | None:
    """Return the prior of learned precisions, one for each factor, of a single variable."""
    gamma = network.hidden.get(name)
    if gamma is None or gamma.size != count or len(network.edges[name]) != 1:
        return None
    known = not any(parent.hidden for parent in gamma.conditional.parents())
    if not known or name in network.learned or isinstance(gamma.family, PartlyKnown):
        return None
    prior = families.Gamma().standard(np.array(network.priors(Beliefs(), name)))
    return Relevance(name, prior["alpha"], prior["beta"])


def rotate_factors(
    network: Network, q: Beliefs, pair: FactorPair, before: Mapping[str, Array]
) -> None:
    """Change the factors of a product in place, and the earlier means of `before` with them."""
    size = dimension(network.hidden[pair.x])
    names = pair.x, pair.w
    sums = (q.moments[n][:, size:].sum(axis=0).reshape(size, size) for n in names)
    change = best_change(pair, *sums, *(len(q.moments[n]) for n in names))
    if change is None:
        return
    inverse = np.asarray(np.linalg.inv(change), dtype=np.float64)
    for name, matrix in zip(names, (change.T, inverse), strict=True):
        change_vectors(q, name, matrix)
        if name in before:
            before[name][:] = before[name] @ matrix.T
        q.changed(name)
    if isinstance(pair.prior, Relevance):
        read_rows(network, q, network.hidden[pair.prior.name])


def best_change(pair: FactorPair, S_x: Array, S_w: Array, M: int, N: int) -> Array | None:
    """Return B; None where it gains nothing."""
    a, root = pair.precision, np.linalg.cholesky(S_x)
    values, vectors = linalg.eigh(root.T @ S_w @ root)
    c, vectors = np.maximum(values, 0)[::-1], vectors[:, ::-1]
    t = positive_root(*pair.prior.equation(a, c, M, N))
    if not (np.isfinite(t) & (t > 0)).all():
        return None
    change = np.asarray(linalg.solve_triangular(root.T, vectors) * np.sqrt(t))
    inverse = np.linalg.inv(change)
    gain = (M - N) * np.linalg.slogdet(change)[1]
    gain -= 0.5 * a * (np.trace(change.T @ S_x @ change) - np.trace(S_x))
    gain += pair.prior.log_density(np.diag(inverse @ S_w @ inverse.T), N)
    gain -= pair.prior.log_density(np.diag(S_w), N)
    return change if gain > LEAST else None


def positive_root(square: Array, linear: Array, constant: Array) -> Array:
    """Return the positive solution of a t^2 + b t + c = 0 with a > 0 > c, without cancellation.

    >>> positive_root(np.array([1.0]), np.array([1.0]), np.array([-6.0]))
    array([2.])
    """
    root = np.sqrt(linear**2 - 4 * square * constant)
    with np.errstate(divide="ignore", invalid="ignore"):
        small, large = -2 * constant / (linear + root), (root - linear) / (2 * square)
    return np.where(linear >= 0, small, large)
