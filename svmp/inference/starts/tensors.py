"""The start of products of three or more variables: rank-one fits of the data (rank_one.py).

    y_e ~ Normal(sum_k a_ik b_jk c_lk + d_i + ..., tau),        a, b and c with prior means of 0.

The terms of such a mean start one after the other, those with the fewest variables first, each at a
fit of what the earlier ones leave of a sample of the rows. q has the precision that the sample
gives it.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from svmp import factors
from svmp.families.family import Array
from svmp.inference.starts.products import is_number, is_product
from svmp.inference.starts.rank_one import rank_ones
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.means.linear import LinearTerm, dimension
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from svmp.network.variable import Variable

FEWEST = 3
"""Fewest variables in a product that is flat where all of them are 0."""
SAMPLE = 1 << 16
"""Most rows that are read."""


def tensors(network: Network) -> dict[str, list[LinearTerm]]:
    """Return, by table that has a product of three or more variables, the terms that are fitted."""
    found = {}
    for name, variable in network.observed.items():
        given = variable.conditional
        if given.linear is None or given.selector is not None:
            continue
        terms = [t for t in given.linear.terms if _is_fitted(network, given.linear.terms, t)]
        terms.sort(key=lambda term: len(term.readers))
        if isinstance(given.factor, factors.Normal) and terms and len(terms[-1].readers) >= FEWEST:
            found[name] = terms
    return found


def _is_fitted(network: Network, terms: Collection[LinearTerm], term: LinearTerm) -> bool:
    """Return whether a term is a product of different variables that are in no other term."""
    names = [reader.variable.name for reader in term.readers]
    for name in names:
        variable = network.hidden.get(name)
        if variable is None or name in network.chains or len(network.edges[name]) != 1:
            return False
        again = any(t.reader(variable) is not None for t in terms if t is not term)
        if again or isinstance(variable.family, PartlyKnown):
            return False
    if term.scope.inner.labels:
        return is_product(term) and 0 < len(names) == len(set(names))
    plain = term.design is None and not term.constants and term.scale == 1
    single = all(dimension(reader.variable) == 1 for reader in term.readers)
    return plain and single and 0 < len(names) == len(set(names))


def start_tensors(
    network: Network, q: Beliefs, rng: np.random.Generator, but: Collection[str] = ()
) -> None:
    """Start the variables of products and of the terms beside them at rank-one fits, in place.

    Terms that have a variable of `but`, or a product of variables with another prior mean than 0,
    stay where they are.
    """
    for name, terms in tensors(network).items():
        rows, left = _sample(network.observed[name], terms, rng)
        for term in terms:
            names = [reader.variable.name for reader in term.readers]
            priors = {n: network.priors(q, n) for n in names}
            sizes = {n: dimension(network.hidden[n]) for n in names}
            elsewhere = len(names) > 1 and any(np.any(priors[n][:, : sizes[n]]) for n in names)
            if elsewhere or set(names) & set(but):
                continue
            keys, counts = _keys(network, term, rows)
            found = rank_ones(keys, counts, left, term.scope.inner.size, rng)
            if found is None:
                continue
            left = left - found.values(keys)
            for n, mean, precision in zip(names, found.factors, found.precision, strict=True):
                q.natural[n] = _natural(priors[n], sizes[n], mean, precision)
                q.moments[n] = network.hidden[n].family.moments(q.natural[n])


def _sample(
    table: Variable, fitted: Collection[LinearTerm], rng: np.random.Generator
) -> tuple[Ints, Array]:
    """Return some rows, and their values without the numbers in the mean.

    If other terms are in the mean, the values have a mean of 0.
    """
    rows, values = table.rows, table.values
    if len(rows) > SAMPLE:
        some = np.sort(rng.choice(len(rows), SAMPLE, replace=False))
        rows, values = rows[some], values[some]
    mean = table.conditional.linear
    assert mean is not None
    rest = [term for term in mean.terms if term not in fitted]
    numbers = [term.scale for term in rest if is_number(term)]
    left = np.asarray(values, dtype=np.float64) - sum(numbers)
    return rows, left if len(numbers) == len(rest) else left - left.mean()


def _keys(network: Network, term: LinearTerm, rows: Ints) -> tuple[list[Ints], list[int]]:
    """Return the line of numbers that each row reads of each variable, and how many there are."""
    keys, counts = [], []
    for reader in term.readers:
        variable = network.hidden[reader.variable.name]
        each = term.scope.inner.size if dimension(variable) == 1 else 1
        keys.append(reader.element(rows, np.zeros_like(rows)) // each)
        counts.append(variable.size // each)
    return keys, counts


def _natural(prior: Array, size: int, mean: Array, precision: Array) -> Array:
    """Return natural parameters with some means, and more precision than the prior.

    >>> _natural(np.array([[0.0, -0.5]]), 1, np.array([[2.0]]), np.array([[3.0]]))
    array([[ 8., -2.]])
    """
    known = -2 * prior[:, size:].reshape(-1, size, size)
    found = known + precision.reshape(-1, size, 1) * np.eye(size)
    linear = np.einsum("eij,ej->ei", found, mean.reshape(-1, size))
    return np.concatenate([linear, -0.5 * found.reshape(len(found), -1)], axis=1)
