"""Extrapolation of Gaussian means that are not solved together: beside chains, and under logits.

A linear chain and the effects in the same means are updated in turn, and so are two such chains:
where both can explain the level of the observations, the distance from the optimum shrinks by a
factor near 1. The rows of a logit send tangents of their bound, so that the means of one sweep are
no exact solution: the next sweep has other tangents, and the factor is near 1 where classes are far
apart. With x_t the means at which sweep t began, G(x_t) those at which it ended, and
f_t = G(x_t) - x_t, the next sweep begins at

    G(x_t) - sum_j c_j ((x_j+1 - x_j) + (f_j+1 - f_j)),

with the c_j for which f_t - sum_j c_j (f_j+1 - f_j) is smallest, in units of the precisions
(Anderson 1965). Precisions and the covariances within chains stay as they are. The new means are
kept only if the exact bound is not lower there, so that it rises in every sweep.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from svmp.families.family import Array
from svmp.inference.acceleration.accelerator import Accelerator, Bound
from svmp.inference.acceleration.relaxation import (
    is_gaussian,
    means_of,
    move_beyond,
    relaxed_blocks,
    times_precision,
)
from svmp.inference.methods import Method
from svmp.inference.state.relaxation import Means, Relaxation
from svmp.inference.state.state import State
from svmp.inference.updaters.joint_block import JointBlock
from svmp.inference.updaters.linear_block import connected, fits, is_linear
from svmp.inference.updaters.linear_chain import renew_pairs
from svmp.inference.updaters.setup import Setup
from svmp.inference.updaters.updater import Updater
from svmp.network.beliefs import Beliefs
from svmp.network.chains.linear_chain import LinearChain
from svmp.network.network import Network

DEPTH = 6
"""Sweeps that are remembered."""
LARGEST = 1 << 16
"""Most parameters of q whose means are extrapolated under logits."""
LONGEST = 1 << 20
"""Most parameters of q whose means are extrapolated beside chains."""


@dataclass(frozen=True, eq=False)
class Extrapolation(Accelerator):
    """Moves means to where the last sweeps lead, unless the exact bound is lower there.

    It serves networks in which no blocks are over-relaxed.

    Attributes
    ----------
    names
        The variables whose means are extrapolated.
    """

    network: Network
    method: Method
    names: tuple[str, ...]

    @classmethod
    def find(cls, setup: Setup, updaters: Sequence[Updater]) -> Self | None:
        if relaxed_blocks(updaters, setup.network):
            return None
        names = extrapolated_names(setup.network, setup.joined)
        return cls(setup.network, setup.method, names) if names else None

    def apply(self, state: State, last: Relaxation, bound: Bound) -> Relaxation:
        q, t = state.q, state.iteration
        now, history = means_of(q, self.network, self.names), {}
        if last.before.keys() == now.keys() and self.method.reads_all(t):
            history = remember(last.history, last.before, now)
        known = state.measured.iteration == t
        if known and history and len(history[self.names[0]]) > 1:
            kept = kept_parameters(q, self.names)
            q.means.clear()
            move_means(q, self.network, steps_beyond(q, history))
            if bound(q) >= state.measured.bound:
                now = means_of(q, self.network, self.names)
            else:
                restore(q, kept)
                history = {}
        return Relaxation(before=now, history=history)


def extrapolated_names(network: Network, joined: Mapping[str, JointBlock]) -> tuple[str, ...]:
    """Return the variables whose means are extrapolated.

    Parameters
    ----------
    network
        The network.
    joined
        The joint blocks of variables that have one: they are left as they are, but for the means
        beside chains of blocks without a precision.
    """
    left_out = {*network.locals, *joined}
    if network.chains:
        paired = {name for name, block in joined.items() if block.pair is not None}
        names, most = beside_chains(network, paired), LONGEST
    elif any(v.conditional.factor.convex for v in network.observed.values()):
        every = network.hidden.items()
        names = [n for n, v in every if is_gaussian(v.family) and n not in left_out]
        most = LARGEST
    else:
        return ()
    size = sum(network.hidden[n].family.size * network.hidden[n].size for n in names)
    return tuple(names) if 0 < size <= most else ()


def beside_chains(network: Network, left_out: Collection[str]) -> list[str]:
    """Return the chains of vectors whose rows depend on other such chains or effects, and these.

    The means of all of them are linear, with known coefficients, in the mean of each row.
    """

    def qualifies(name: str) -> bool:
        if not isinstance(network.chains.get(name), LinearChain):
            return name not in left_out and fits(network, network.hidden[name])
        return bool(network.edges[name]) and all(map(is_linear, network.edges[name]))

    variables = [variable for name, variable in network.hidden.items() if qualifies(name)]
    groups = connected(network, variables)
    chained = [g for g in groups if len(g) > 1 and any(v.name in network.chains for v in g)]
    return [variable.name for group in chained for variable in group]


def remember(history: Means, before: Means, after: Means, depth: int = DEPTH) -> Means:
    """Return the last sweeps with one more: by variable, (sweeps, start or change, numbers)."""
    found = {}
    for name, old in before.items():
        sweep = np.stack([old.ravel(), (after[name] - old).ravel()])[None]
        earlier = history.get(name)
        found[name] = sweep if earlier is None else np.concatenate([earlier, sweep])[-depth:]
    return found


def steps_beyond(q: Beliefs, history: Means) -> Means:
    """Return by variable how far its means are to be moved from where the last sweep ended."""
    count = len(next(iter(history.values()))) - 1
    gram, pull = np.zeros((count, count)), np.zeros(count)
    for name, sweeps in history.items():
        change = np.diff(sweeps[:, 1], axis=0)
        shape = (len(q.natural[name]), -1)
        scaled = np.stack(
            [times_precision(q.natural[name], f.reshape(shape)).ravel() for f in change]
        )
        gram += scaled @ change.T
        pull += scaled @ sweeps[-1, 1]
    scale = np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    shares = np.linalg.lstsq(gram / np.outer(scale, scale), pull / scale, rcond=1e-10)[0] / scale
    found = {}
    for name, sweeps in history.items():
        step = -shares @ np.diff(sweeps, axis=0).sum(axis=1)
        found[name] = step.reshape(len(q.natural[name]), -1)
    return found


def move_means(q: Beliefs, network: Network, steps: Means) -> None:
    """Move means; precisions stay as they are."""
    for name, step in steps.items():
        natural, moments, chain = q.natural[name], q.moments[name], network.chains.get(name)
        move_beyond(natural, moments, moments[:, : step.shape[1]] - step, 2.0)
        if isinstance(chain, LinearChain):
            renew_pairs(chain, q, network.present[name])
    q.version += 1


Kept = dict[str, tuple[Array, Array, dict[str, NDArray[np.generic]]]]
"""By variable natural parameters, moments, and what else its joint q has."""


def kept_parameters(q: Beliefs, names: Iterable[str]) -> Kept:
    """Return copies of natural parameters and moments, to return to."""
    return {n: (q.natural[n].copy(), q.moments[n].copy(), dict(q.joint.get(n, {}))) for n in names}


def restore(q: Beliefs, kept: Kept) -> None:
    """Return to natural parameters and moments."""
    for name, (natural, moments, joint) in kept.items():
        q.natural[name][:], q.moments[name][:] = natural, moments
        if joint:
            q.joint[name] = joint
    q.version += 1
