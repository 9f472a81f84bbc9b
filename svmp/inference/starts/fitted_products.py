"""Products of variables that start at rank-one fits of the data (rank_one.py).

    y_e ~ Normal(sum_k a_ik b_jk c_lk + d_i + ..., tau),        a, b and c with prior means of 0.

The terms of such a mean start one after the other, those with the fewest variables first, each at a
fit of what the earlier ones leave of a sample of the rows. q has the precision that the sample
gives it.

Products of three or more variables start so in all tables, as a run that starts near 0 can stay
there. Products of two do in small tables with as many rows as they have numbers. In larger ones the
fits take longer than the sweeps that they save, and of fewer rows they fit the noise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from svmp import factors
from svmp.families.family import Array
from svmp.inference.starts.products import is_number, width_of
from svmp.inference.starts.rank_one import rank_ones
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.means.linear import LinearTerm, dimension
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from svmp.network.variable import Variable

PAIR = 2
"""Variables in a product that is not flat where all of them are 0."""
SMALL = 10_000
"""Most rows of a table in which such products start at fits."""
SAMPLE = 1 << 16
"""Most rows that are read."""


def fitted_terms(network: Network, given: Collection[str] = ()) -> dict[str, list[LinearTerm]]:
    """Return the terms that start at fits, by table.

    A table has none if a variable of these terms is in `given`, and so starts elsewhere.
    """
    found = {}
    for name, variable in network.observed.items():
        density = variable.conditional
        normal = isinstance(density.factor, factors.Normal) and density.selector is None
        every = density.linear.terms if normal and density.linear is not None else ()
        terms = [term for term in every if _can_be_fitted(network, every, term)]
        terms.sort(key=lambda term: len(term.readers))
        names = {reader.variable.name for term in terms for reader in term.readers}
        if terms and not names & set(given) and _pays(network, variable, terms[-1]):
            found[name] = terms
    return found


def _pays(network: Network, table: Variable, longest: LinearTerm) -> bool:
    """Return whether the terms of a table start at fits, by the one with the most variables."""
    operands = [network.hidden[reader.variable.name] for reader in longest.readers]
    numbers = sum(variable.size * dimension(variable) for variable in operands)
    return len(operands) > PAIR or (len(operands) == PAIR and numbers <= table.count <= SMALL)


def _can_be_fitted(network: Network, terms: Collection[LinearTerm], term: LinearTerm) -> bool:
    """Return whether a term is a product of different variables that no other term has."""
    for name in (reader.variable.name for reader in term.readers):
        variable = network.hidden.get(name)
        if variable is None or name in network.chains or len(network.edges[name]) != 1:
            return False
        again = any(t.reader(variable) is not None for t in terms if t is not term)
        if again or isinstance(variable.family, PartlyKnown):
            return False
    return not term.constants and term.scale == 1 and width_of(term) > 0


def start_at_fits(
    network: Network, q: Beliefs, rng: np.random.Generator, given: Collection[str] = ()
) -> None:
    """Start the variables of products and of the terms beside them at rank-one fits, in place.

    Those of a table stay as they are if a variable of a product has a prior mean other than 0.
    """
    for name, terms in fitted_terms(network, {*given, *network.learned}).items():
        priors = {
            reader.variable.name: network.priors(q, reader.variable.name)
            for term in terms
            for reader in term.readers
        }
        if not all(_is_centred(network, term, priors) for term in terms):
            continue
        rows, left = _sample(network.observed[name], terms, rng)
        for term in terms:
            keys, counts = _keys(network, term, rows)
            found = rank_ones(keys, counts, left, term.scope.inner.size, rng)
            if found is None:
                continue
            left = left - found.values(keys)
            fits = zip(term.readers, found.factors, found.precision, strict=True)
            for reader, mean, precision in fits:
                variable = network.hidden[reader.variable.name]
                natural = _natural(priors[variable.name], dimension(variable), mean, precision)
                q.natural[variable.name] = natural
                q.moments[variable.name] = variable.family.moments(natural)


def _is_centred(network: Network, term: LinearTerm, priors: Mapping[str, Array]) -> bool:
    """Return whether the prior means of a product are 0; those of a single variable may differ."""
    names = [reader.variable.name for reader in term.readers]
    sizes = [dimension(network.hidden[name]) for name in names]
    zero = (not priors[n][:, :size].any() for n, size in zip(names, sizes, strict=True))
    return len(names) < PAIR or all(zero)


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
    """Return, by variable, the index of the factors that each row reads, and how many there are."""
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
