"""Forecasts of chains: rows that the fit does not know follow from the row before them.

    states    P(z_t = j) = sum_i P(z_(t-1) = i) P[i, j]
    vectors   E[x_t] = A E[x_(t-1)] + B u_t,    Var[x_t] = A Var[x_(t-1)] A' + s_t / tau

given draws of the parameters. The row before is drawn, or has the moments of one that is integrated
over; that of a known row is its q, so that the last known row of a sequence has what filtering
gives. Known rows are drawn one by one, each from its own q.
"""

from __future__ import annotations

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array, Bools
from svmp.families.matrix import apply, inverse
from svmp.network.beliefs import Beliefs
from svmp.network.chains.chain import Chain
from svmp.network.chains.discrete_chain import DiscreteChain
from svmp.network.chains.linear_chain import LinearChain
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints
from svmp.network.variable import Variable
from svmp.posterior.prediction.marginals import TINY


def chain_of(variable: Symbol | Variable) -> Chain | None:
    """Return the density of a chain, None of any other variable."""
    given = getattr(variable, "conditional", None)
    return given if isinstance(given, Chain) else None


def mark_earlier(chain: Chain, marks: Bools, known: Bools) -> None:
    """Mark the rows before those that are needed and not known, up to one that is known."""
    rows = np.flatnonzero(marks & ~known)
    while len(rows):
        before = chain.sequences.previous[rows]
        before = np.unique(before[before >= 0])
        before = before[~marks[before]]
        marks[before] = True
        rows = before[~known[before]]


def in_turn(chain: Chain, rows: Ints) -> list[Ints]:
    """Return rows in sets, each of which depends on earlier sets only."""
    left = np.zeros(chain.variable.size, dtype=bool)
    left[rows] = True
    found = []
    while len(rows):
        before = chain.sequences.previous[rows]
        ready = (before < 0) | ~left[before]
        found.append(rows[ready])
        left[rows[ready]] = False
        rows = rows[~ready]
    return found


def forecast(chain: Chain, q: Beliefs, rows: Ints) -> Array:
    """Return the natural parameters of rows, given the moments of the rows before them."""
    if isinstance(chain, DiscreteChain):
        return next_states(chain, q, rows)
    if isinstance(chain, LinearChain):
        return next_vectors(chain, q, rows)
    raise ModelError(
        f"rows of '{chain.variable.name}' that the fit does not know cannot be predicted: there is "
        f"no forecast of a {chain.title}"
    )


def next_states(chain: DiscreteChain, q: Beliefs, rows: Ints) -> Array:
    """Return log P(z_t) of rows."""
    before = chain.sequences.previous[rows]
    transition = np.exp(chain.log_transition(q))
    moments = q.moments[chain.variable.name]
    later = np.einsum("ri,rij->rj", moments[before], transition[chain.group[rows]])
    found = np.where((before < 0)[:, None], np.exp(chain.log_initial(q, rows)), later)
    return np.log(np.maximum(found, TINY))


def next_vectors(chain: LinearChain, q: Beliefs, rows: Ints) -> Array:
    """Return the natural parameters of x_t of rows."""
    size = chain.size
    natural = np.array(chain.to_child(q, rows))
    later = np.flatnonzero(chain.sequences.previous[rows] >= 0)
    if not len(later):
        return natural
    some = rows[later]
    subrows = some
    if chain.selector is not None:
        subrows = some * chain.components + chain.selector.moments(q, some).argmax(axis=1)
    coefficients = chain.coefficients(q, subrows)
    tau, _ = chain.precision(q, subrows)
    before = q.moments[chain.variable.name][chain.sequences.previous[some]]
    mean = before[:, :size]
    spread = before[:, size:].reshape(-1, size, size) - mean[:, :, None] * mean[:, None, :]
    A, noise = chain.whole_steps(coefficients, tau)
    cov = chain.step[some][:, None, None] * noise + A @ spread @ np.swapaxes(A, 1, 2)
    ahead = apply(A, mean)
    if chain.inputs.shape[1]:
        ahead += apply(coefficients[:, :, size:], chain.inputs[some])
    natural[later] = chain.family.natural(ahead, inverse(cov))
    return natural
