"""How much two states of a sequence say about each other: their mutual information, in nats.

Let J_k be the joint distribution of the state of a row and of that k rows beyond it. For states

    J_(k+1)(i, l) = sum_j J_k(i, j) q(z_(k+1) = l | z_k = j),

and for vectors Cov[x, x_(k+1)] = Cov[x, x_k] Cov[x_k]^-1 Cov[x_k, x_(k+1)], since q of a sequence
is Markov in both directions. Their mutual information

    I = KL(J_k || product of the marginals)

is how much knowing the far state would change the marginal of the near one, on average. It falls
with k.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from svmp.families.family import Array
from svmp.families.matrix import inverse
from svmp.network.beliefs import Beliefs
from svmp.network.chains.chain import Chain
from svmp.network.chains.discrete_chain import DiscreteChain
from svmp.network.chains.linear_chain import LinearChain
from svmp.network.grid import Ints

OFTEN = 8
"""Steps between two computations of the mutual information."""


class Joint(Protocol):
    """The joint distributions of near and far states, as an array for each pair."""

    def at(self, q: Beliefs, rows: Ints) -> Array:
        """Return those of rows with themselves."""
        ...

    def step(self, q: Beliefs, found: Array, rows: Ints, beyond: Ints, forward: bool) -> Array:
        """Move the far states from some rows to the next ones beyond them."""
        ...

    def nats(self, q: Beliefs, found: Array, near: Ints, far: Ints) -> Array:
        """Return the mutual information."""
        ...


def dependence(
    chain: Chain, q: Beliefs, near: Ints, steps: Ints, forward: bool, enough: float
) -> Array:
    """Return the mutual information of rows and those some steps before or after them, in nats.

    Parameters
    ----------
    near, steps
        The rows, and the number of steps to the other row of each; the rows between are in q.
    forward
        Whether the other rows come after.
    enough
        Where the information is less already after fewer steps, that is returned: it can only fall.
    """
    joint: Joint = StatePairs(chain) if isinstance(chain, DiscreteChain) else VectorPairs(chain)
    sequences, found = chain.sequences, np.full(len(near), np.inf)
    left, taken = np.arange(len(near)), 0
    both, place = joint.at(q, near), sequences.place[near]
    while len(left):
        ends = steps[left] == taken
        if ends.any() or taken % OFTEN == 0:
            far = sequences.order[place]
            found[left] = joint.nats(q, both, near[left], far)
            more = ~ends & (found[left] > enough)
            left, both, place = left[more], both[more], place[more]
        if len(left):
            beyond = place + (1 if forward else -1)
            rows, after = sequences.order[place], sequences.order[beyond]
            both, place = joint.step(q, both, rows, after, forward), beyond
        taken += 1
    return found


class StatePairs:
    """Joint probabilities of near and far states, (pairs, near, far)."""

    def __init__(self, chain: DiscreteChain) -> None:
        self.chain = chain

    def at(self, q: Beliefs, rows: Ints) -> Array:
        found = q.moments[self.chain.variable.name][rows]
        return np.asarray(found[:, :, None] * np.eye(self.chain.states))

    def step(self, q: Beliefs, found: Array, rows: Ints, beyond: Ints, forward: bool) -> Array:
        chain, arrays = self.chain, q.joint[self.chain.variable.name]
        later = beyond if forward else rows
        version = arrays["version"][chain.sequences.code[later]]
        matrix = arrays["transition"][version, chain.group[later]]
        follows = matrix + arrays["potential"][later][:, None, :]
        links = np.exp(follows - follows.max(axis=2, keepdims=True))
        links /= links.sum(axis=2, keepdims=True)
        if forward:
            return np.asarray(found @ links)
        marginal = q.moments[chain.variable.name]
        given = links * marginal[beyond][:, :, None]  # of the earlier and the later state
        given = given / np.maximum(given.sum(axis=1, keepdims=True), 1e-300)
        return np.asarray(found @ np.swapaxes(given, 1, 2))

    def nats(self, q: Beliefs, found: Array, near: Ints, far: Ints) -> Array:
        apart = found.sum(axis=2, keepdims=True) * found.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(found > 0, found * np.log(found / apart), 0.0)
        return np.maximum(terms.sum(axis=(1, 2)), 0.0)


class VectorPairs:
    """Covariances of near and far states, (pairs, near, far)."""

    def __init__(self, chain: Chain) -> None:
        assert isinstance(chain, LinearChain)
        self.chain = chain

    def at(self, q: Beliefs, rows: Ints) -> Array:
        size = self.chain.size
        moments = q.moments[self.chain.variable.name][rows]
        mean, square = moments[:, :size], moments[:, size:].reshape(-1, size, size)
        return np.asarray(square - mean[:, :, None] * mean[:, None, :])

    def step(self, q: Beliefs, found: Array, rows: Ints, beyond: Ints, forward: bool) -> Array:
        cross = q.joint[self.chain.variable.name]["cross"]
        link = np.swapaxes(cross[beyond], 1, 2) if forward else cross[rows]
        return np.asarray(found @ np.linalg.solve(self.at(q, rows), link))

    def nats(self, q: Beliefs, found: Array, near: Ints, far: Ints) -> Array:
        explained = found @ inverse(self.at(q, far)) @ np.swapaxes(found, 1, 2)
        share = np.linalg.solve(self.at(q, near), explained)
        sign, log = np.linalg.slogdet(np.eye(self.chain.size) - share)
        return np.where(sign > 0, np.maximum(-0.5 * log, 0.0), np.inf)
