"""Starts of chains of vectors with unknown loadings: x_t ~ N(A x_(t-1), .), y_t ~ N(C x_t, .).

States start at principal components of the observations, C at the regression of the observations on
these states, the noise at its residuals, and A and the precision of the steps at the regression of
each state on the one before. Where there are fewer columns than states, the values of the next rows
of a sequence are further columns, as in subspace identification.

Components are found in a random sample of rows, which differs between restarts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from svmp.families.family import Array
from svmp.families.matrix import flat, inverse
from svmp.inference.methods.draw import AllRows
from svmp.inference.starts.loadings import Loadings, loadings_of
from svmp.inference.starts.principal_components import Components, principal_components, scores
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.domain import check_domain
from svmp.inference.updaters.plain import PlainUpdater
from svmp.network.beliefs import Beliefs
from svmp.network.chains.linear_chain import LinearChain
from svmp.network.grid import Ints
from svmp.network.means.coefficients import FixedMatrix
from svmp.network.network import Network

MOST = 5000
"""Most rows in which components are found."""
WIDE = 1000
"""Number of columns from which components are found in as many rows."""
SPARSE = 20
"""Most cells of a table for each value observed."""
VALUES = 1 << 20
"""Most values whose residuals give the start of the noise."""
PASSES = 2
"""How often A and the precision of the steps are updated in turn."""


def start_vectors(
    network: Network, q: Beliefs, name: str, given: Collection[str], rng: np.random.Generator
) -> bool:
    """Start a chain of vectors, its loadings and its dynamics; return whether that was possible.

    Variables in `given` start elsewhere, and are not changed.
    """
    chain = network.chains[name]
    if name in given or not isinstance(chain, LinearChain) or not has_free_basis(chain):
        return False
    found = loadings_of(network, name)
    if found is None:
        return False
    tables = [table_of(one, chain.variable.size) for one in found]
    kept = [table for table in tables if table is not None]
    if {one.variable.name for one in found} & set(given) or len(kept) < len(tables):
        return False
    windows = with_next_rows(np.concatenate(kept, axis=1), chain.sequences.previous, chain.size)
    seen = np.flatnonzero(np.isfinite(windows).any(axis=1))
    if len(seen) <= chain.size or not np.nansum(windows**2) > 0:
        return False
    some = rng.choice(seen, min(len(seen), WIDE if windows.shape[1] > WIDE else MOST))
    basis = principal_components(windows[some], chain.size)
    states, cov = states_of(windows, basis, chain.sequences.order)
    change = basis_change(states, chain, q)
    states, cov = states @ change.T, change @ cov @ change.T
    write_states(network, q, name, states, cov)
    for one, table in zip(found, kept, strict=True):
        write_loadings(network, q, one, table, states, cov)
    free = [n for n in parents_of(network, chain, found) if n not in given]
    for variable in free:
        update(network, q, variable)
    return True


def has_free_basis(chain: LinearChain) -> bool:
    """Return whether A is learned, or is a multiple of the identity, so that x may be rotated."""
    matrix = chain.matrices["A"]
    if not isinstance(matrix, FixedMatrix):
        return True
    values = np.asarray(matrix.values.values).reshape(-1, *matrix.shape)
    return bool(np.all(values == values[:, :1, :1] * np.eye(matrix.shape[0])))


def table_of(one: Loadings, rows: int) -> Array | None:
    """Return the observed values as (rows of the chain, lines of C); None if hardly any is seen.

    Cells without values are NaN. Columns are centred where the mean has other variables.
    """
    row, line, values = one.cells()
    cells = rows * one.lines
    if not len(values) or cells > SPARSE * len(values):
        return None
    place = row * one.lines + line
    count = np.bincount(place, minlength=cells)
    total = np.bincount(place, values, minlength=cells)
    with np.errstate(all="ignore"):
        table = (total / count).reshape(rows, one.lines)
        if one.constant is not None:
            return np.asarray(table - one.constant)
        seen = np.isfinite(table).sum(axis=0)
    return np.asarray(table - np.nansum(table, axis=0) / np.maximum(seen, 1))


def with_next_rows(values: Array, previous: Ints, size: int) -> Array:
    """Add the values of the next rows of a sequence, until there are more columns than states."""
    blocks, block = [values], values
    later = np.flatnonzero(previous >= 0)
    while values.shape[1] * len(blocks) <= size and values.shape[1] < size:
        moved = np.full_like(block, np.nan)
        moved[previous[later]] = block[later]
        blocks.append(moved)
        block = moved
    return np.concatenate(blocks, axis=1)


def states_of(values: Array, basis: Components, order: Ints) -> tuple[Array, Array]:
    """Return scores, interpolated over rows without values, and their covariance in other rows."""
    found = scores(values, basis)
    seen = np.isfinite(values[order]).any(axis=1)
    place = np.arange(len(order))
    for k in range(found.shape[1]):
        column = found[order, k]
        found[order, k] = np.interp(place, place[seen], column[seen])
    precision = np.eye(found.shape[1]) / basis.spread + np.diag(1 / basis.variance)
    return found, inverse(precision)


def basis_change(states: Array, chain: LinearChain, q: Beliefs) -> Array:
    """Return R such that the states R x have steps with the precision that the chain has.

    Where that is learned, states of unit variance are taken.
    """
    size = states.shape[1]
    spread = np.sqrt((states**2).mean(axis=0))
    spread = np.maximum(spread, 1e-3 * spread.max())
    later = np.flatnonzero(chain.sequences.previous >= 0)
    if chain.slots["tau"].variables or len(later) <= size:
        return np.diag(1 / spread)
    now, past = states[later] / spread, states[chain.sequences.previous[later]] / spread
    matrix = np.linalg.solve(past.T @ past + 1e-6 * len(past) * np.eye(size), past.T @ now)
    steps = now - past @ matrix
    noise = steps.T @ steps / len(steps) + 1e-6 * np.eye(size)
    tau, _ = chain.precision(q, chain.subrows(later[:1]))
    root = np.linalg.cholesky(inverse(tau[:1])[0])
    return np.asarray(np.linalg.solve(np.linalg.cholesky(noise).T, root.T).T / spread)


def write_states(network: Network, q: Beliefs, name: str, states: Array, cov: Array) -> None:
    """Set q of a chain to independent rows with these means and this covariance."""
    precision = inverse(cov)
    square = np.broadcast_to(-0.5 * flat(precision), (len(states), precision.size))
    natural = np.concatenate([states @ precision, square], axis=1)
    q.natural[name] = natural
    q.moments[name] = network.hidden[name].family.moments(natural)
    q.joint[name] = network.chains[name].unlinked(natural)


def write_loadings(
    network: Network, q: Beliefs, one: Loadings, table: Array, states: Array, cov: Array
) -> None:
    """Set q of C to the regression of the observations on the states."""
    name, size = one.variable.name, one.size
    seen = np.isfinite(table)
    values = np.where(seen, table, 0.0)
    moments = states[:, :, None] * states[:, None, :] + cov
    gram = (seen.T.astype(np.float64) @ moments.reshape(len(states), -1)).reshape(-1, size, size)
    right = values.T @ states
    ridge = 1e-9 * np.trace(moments.sum(axis=0)) / size * np.eye(size)
    slopes = np.linalg.solve(gram + ridge, right[:, :, None])[:, :, 0]
    left = np.maximum((values**2).sum(axis=0) - (slopes * right).sum(axis=1), 0.0)
    tau = 1 / max(left.sum() / max(seen.sum(), 1), 1e-6 * max((values**2).mean(), 1e-300))
    prior = np.array(network.priors(q, name))
    if one.vectors:
        own = -2 * prior[:, size:].reshape(-1, size, size)
        precision = own + tau * gram
        linear = prior[:, :size] + tau * right
        natural = np.concatenate([linear, -0.5 * flat(precision)], axis=1)
    else:
        each = -2 * prior[:, 1].reshape(-1, size)
        linear = prior[:, 0].reshape(-1, size) + tau * right
        mean = np.linalg.solve(each[:, :, None] * np.eye(size) + tau * gram, linear[:, :, None])
        diagonal = each + tau * np.einsum("nkk->nk", gram)
        natural = np.stack([diagonal * mean[:, :, 0], -0.5 * diagonal], axis=-1).reshape(-1, 2)
    check_domain(one.variable, np.arange(one.variable.size), natural)
    q.natural[name] = natural
    q.moments[name] = one.variable.family.moments(natural)


def parents_of(network: Network, chain: LinearChain, found: list[Loadings]) -> Iterable[str]:
    """Yield the variables that follow from states and loadings, in the order of their updates."""
    for one in found:
        noise = one.table.conditional.slots.get("tau")
        if noise is not None and one.table.count <= VALUES:
            yield from (v.name for v in noise.variables if v.hidden)
    if chain.selector is None:
        slots = (chain.slots[name] for name in chain.transition_slots)
        dynamics = [v.name for slot in slots for v in slot.variables if v.hidden]
        for _ in range(PASSES):
            yield from dynamics
        for name in (*dynamics, *(one.variable.name for one in found)):
            parents = network.hidden[name].conditional.parents()
            yield from (v.name for v in parents if v.hidden and v.family.gaussian != "number")


def update(network: Network, q: Beliefs, name: str) -> None:
    """Set a variable to its optimum given q of all others."""
    rows = AllRows(network)
    for change in PlainUpdater.of(network, name).update(q, rows, StepRule.unit(rows)):
        check_domain(network.hidden[name], change.elements, change.natural)
        network.move(q, name, change.elements, change.natural)
