"""Scales of the factors of a product, before every sweep over all rows.

A product x_ik y_jk z_lk stays the same if factor k is multiplied by s in one variable and divided
by s in another. q of Normals can be scaled exactly, so that the bound changes only through priors
and entropies. With n elements of a variable x, its scales have the terms

    n log s - S s^2 / 2,                          S = sum_i a_i E[x_i^2],   precisions a_i known,
    n log s - (u + n / 2) log(r + S s^2 / 2),     S = sum_i E[x_i^2],       precision Gamma(u, r),

the latter with q of the precision at its optimum (automatic relevance determination). Both are
concave in log s, and the log s of a factor add up to 0. So with one multiplier v for each factor

    s^2 = (n - v) / S,        s^2 = 2 r (n - v) / ((2 u + v) S),

where the product of the s falls as v grows. Sweeps of coordinate ascent change scales slowly. The
bound never falls. Parameter-expanded variational Bayes (Qi & Jaakkola 2006) does the like.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from svmp.families.family import Array
from svmp.inference.acceleration.accelerator import BeforeWholeSweeps
from svmp.inference.acceleration.chain_rotating import change_vectors
from svmp.inference.acceleration.factor_rotating import Relevance, prior_of_gammas, relevance_of
from svmp.inference.starts.products import width_of
from svmp.inference.starts.seeding import read_rows
from svmp.inference.state.relaxation import Means
from svmp.inference.updaters.setup import Setup
from svmp.inference.updaters.updater import Updater
from svmp.network.beliefs import Beliefs
from svmp.network.means.linear import dimension
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from svmp.network.reader import Reader
from svmp.network.slot import Single
from svmp.network.variable import Variable

PAIR = 2
"""Fewest variables whose factors are scaled."""
HALVINGS = 40
"""Halvings of the interval that has the multiplier."""
LEAST = 1e-6
"""Least gain for which factors are scaled, in nats."""


@dataclass(frozen=True, eq=False)
class Operand:
    """A variable of a product.

    Attributes
    ----------
    name
        Its name.
    precision
        Known precisions of its elements, (elements, factors); None if they are learned.
    relevance
        Learned precisions of its factors; None if they are known.
    """

    name: str
    precision: Array | None
    relevance: Relevance | None

    def sum_of_squares(self, network: Network, q: Beliefs, width: int) -> Array:
        """Return S of each factor."""
        moments, size = q.moments[self.name], dimension(network.hidden[self.name])
        squares = moments[:, size :: size + 1].reshape(-1, width)
        return np.asarray((squares if self.precision is None else self.precision * squares).sum(0))


@dataclass(frozen=True, eq=False)
class ScaledProduct:
    """A product whose factors are scaled.

    Attributes
    ----------
    operands
        The variables that can be scaled, at least two.
    width
        Number of factors.
    """

    operands: tuple[Operand, ...]
    width: int


@dataclass(frozen=True, eq=False)
class FactorScaling(BeforeWholeSweeps):
    """Scales the factors of products before every sweep over all rows.

    Attributes
    ----------
    products
        The products.
    """

    products: list[ScaledProduct]

    @classmethod
    def find(cls, setup: Setup, updaters: Sequence[Updater]) -> Self | None:
        found = scaled_products(setup.network, setup.joined)
        return cls(setup.network, setup.method, found) if found else None

    def change(self, q: Beliefs, before: Means) -> None:
        for product in self.products:
            scale_factors(self.network, q, product, before)


def scaled_products(network: Network, joined: Collection[str]) -> list[ScaledProduct]:
    """Return the products of a network that are served, without variables of joint blocks.

    Pairs of variables with known precisions are rotated (rotating.py, factor_rotating.py).
    """
    found = []
    for table in network.observed.values():
        mean = table.conditional.linear
        if mean is None or table.conditional.selector is not None:
            continue
        for term in mean.terms:
            width = width_of(term)
            operands = [_operand(network, reader, width, joined) for reader in term.readers]
            able = tuple(operand for operand in operands if operand is not None)
            learned = any(operand.relevance is not None for operand in able)
            vectors = all(dimension(network.hidden[operand.name]) > 1 for operand in able)
            pays = len(term.readers) > PAIR or (learned and not vectors)
            if width and len(able) >= PAIR and pays:
                found.append(ScaledProduct(able, width))
    return found


def _operand(
    network: Network, reader: Reader, width: int, joined: Collection[str]
) -> Operand | None:
    """Return a variable that is in no other term and has a prior mean of 0; None for others."""
    name = reader.variable.name
    variable = network.hidden.get(name)
    if variable is None or not width or name in {*joined, *network.chains, *network.learned}:
        return None
    (edge, *others), mean = network.edges[name], variable.conditional.slots["mu"]
    alone = not others and edge.slot.width(variable) in (1, width) and not edge.choosing
    if not alone or isinstance(variable.family, PartlyKnown) or network.present[name] is not None:
        return None
    if not any(parent.hidden for parent in variable.conditional.parents()):
        prior, size = network.priors(Beliefs(), name), dimension(variable)
        if np.any(prior[:, :size]):
            return None
        square = prior[:, size:].reshape(-1, size, size)
        precision = -2 * np.einsum("ekk->ek", square)
        if np.count_nonzero(square) > np.count_nonzero(precision):
            return None
        return Operand(name, precision.reshape(-1, width), None)
    relevance = relevance_of(network, name) if dimension(variable) > 1 else None
    if dimension(variable) == 1 and not mean.variables:
        relevance = _relevance_of_normals(network, variable, width)
    return None if relevance is None else Operand(name, None, relevance)


def _relevance_of_normals(network: Network, variable: Variable, width: int) -> Relevance | None:
    """Return the Gammas that are the precisions of Normals, one for each factor."""
    slot, mean = variable.conditional.slots["tau"], variable.conditional.slots["mu"]
    if not isinstance(slot, Single):
        return None
    every = np.arange(variable.size)
    own = np.array_equal(slot.reader.element(every, np.zeros_like(every)), every % width)
    if not own or np.any(mean.moments(Beliefs(), every)[:, 0]):
        return None
    return prior_of_gammas(network, slot.reader.variable.name, width)


def scale_factors(
    network: Network, q: Beliefs, product: ScaledProduct, before: Mapping[str, Array]
) -> None:
    """Scale the factors of a product in place, and the earlier means of `before` with them."""
    operands, width = product.operands, product.width
    counts = [network.hidden[o.name].size * dimension(network.hidden[o.name]) for o in operands]
    sums = np.stack([operand.sum_of_squares(network, q, width) for operand in operands])
    scales = best_scales(sums, np.array(counts) // width, [o.relevance for o in operands])
    if scales is None:
        return
    for operand, scale in zip(operands, scales, strict=True):
        name, size = operand.name, dimension(network.hidden[operand.name])
        if size > 1:
            change_vectors(q, name, np.diag(scale))
        else:
            each = np.tile(scale, len(q.natural[name]) // width)[:, None] ** np.array([1, 2])
            q.natural[name] /= each
            q.moments[name] *= each
        if name in before:
            before[name][:] = (before[name].reshape(-1, width) * scale).reshape(before[name].shape)
        q.changed(name)
    for operand in operands:
        if operand.relevance is not None:
            read_rows(network, q, network.hidden[operand.relevance.name])


def best_scales(sums: Array, counts: Array, relevance: list[Relevance | None]) -> Array | None:
    """Return the best scales, (variables, factors); None where they gain nothing.

    Parameters
    ----------
    sums, counts
        S of each variable and factor, and n of each variable.
    relevance
        The priors of learned precisions, or None for known ones.
    """
    if not (np.isfinite(sums) & (sums > 0)).all():
        return None
    n = counts[:, None].astype(np.float64)
    learned = np.array([r is not None for r in relevance])[:, None]
    shape = np.stack([np.zeros(sums.shape[1]) if r is None else r.shape for r in relevance])
    rate = np.stack([np.ones(sums.shape[1]) if r is None else r.rate for r in relevance])

    def log_squares(v: Array) -> Array:
        known = np.log(np.maximum(n - v, 1e-300) / sums)
        free = np.log(2 * rate) - np.log(np.maximum(2 * shape + v, 1e-300))
        return known + np.where(learned, free, 0.0)

    high = n.min(axis=0) + np.zeros(sums.shape[1])
    if learned.any():
        low = np.where(learned, -2 * shape, -np.inf).max(axis=0)
    else:
        low = high - np.exp(np.log(sums).mean(axis=0))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        above = log_squares(middle).sum(axis=0) > 0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    logs = 0.5 * log_squares(0.5 * (low + high))
    scales = np.exp(logs - logs.mean(axis=0))

    def value(squares: Array) -> Array:
        free = (2 * shape + n) * np.log(rate + 0.5 * sums * squares)
        return -0.5 * np.where(learned, free, sums * squares)

    gain: Array = (n * np.log(scales) + value(scales**2) - value(np.ones(1))).sum(axis=0)
    return np.where(gain > 0, scales, 1.0) if gain.sum() > LEAST else None
