"""Extrapolation of Gaussian means where updates are the tangents of a convex bound.

The rows of a logit send tangents of their bound, so that the means of one sweep are no exact
solution: the next sweep has other tangents, and the distance from the optimum shrinks by a factor
that is near 1 where classes are far apart. With x_t the means at which sweep t began, G(x_t) those
at which it ended, and f_t = G(x_t) - x_t, the next sweep begins at

    G(x_t) - sum_j c_j ((x_j+1 - x_j) + (f_j+1 - f_j)),

with the c_j for which f_t - sum_j c_j (f_j+1 - f_j) is smallest, in units of the precisions
(Anderson 1965). Precisions stay as they are. The new means are kept only if the exact bound is not
lower there, so that it rises in every sweep.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from svmp.families.family import Array
from svmp.inference.acceleration.relaxation import Means, is_gaussian, times_precision
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network

DEPTH = 6
"""Sweeps that are remembered."""
LARGEST = 4096
"""Most means that are extrapolated together."""


def extrapolated_names(network: Network, joined: Iterable[str]) -> tuple[str, ...]:
    """Return the variables whose means are extrapolated: none without tangents of convex bounds.

    Parameters
    ----------
    network
        The network.
    joined
        Variables with a joint q, which are left as they are.
    """
    if network.chains or not any(v.conditional.factor.convex for v in network.observed.values()):
        return ()
    left_out = {*network.locals, *joined}
    names = [n for n, v in network.hidden.items() if is_gaussian(v.family) and n not in left_out]
    size = sum(network.hidden[n].family.size * network.hidden[n].size for n in names)
    return tuple(names) if 0 < size <= LARGEST * 16 else ()


def remember(history: Means, before: Means, after: Means) -> Means:
    """Return the last sweeps with one more: by variable, (sweeps, start or change, means)."""
    found = {}
    for name, old in before.items():
        sweep = np.stack([old.ravel(), (after[name] - old).ravel()])[None]
        earlier = history.get(name)
        found[name] = sweep if earlier is None else np.concatenate([earlier, sweep])[-DEPTH:]
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
        natural = q.natural[name].copy()
        natural[:, : step.shape[1]] += times_precision(natural, step)
        q.natural[name][:] = natural
        q.moments[name][:] = network.hidden[name].family.moments(natural)
    q.version += 1


def kept_parameters(q: Beliefs, names: Iterable[str]) -> dict[str, tuple[Array, Array]]:
    """Return copies of natural parameters and moments, to return to."""
    return {name: (q.natural[name].copy(), q.moments[name].copy()) for name in names}


def restore(q: Beliefs, kept: dict[str, tuple[Array, Array]]) -> None:
    """Return to natural parameters and moments."""
    for name, (natural, moments) in kept.items():
        q.natural[name][:], q.moments[name][:] = natural, moments
    q.version += 1
