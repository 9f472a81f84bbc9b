"""Extrapolation of the precisions of joint blocks.

A sweep solves a block given the precisions tau of its rows, and then updates them. Where few groups
are known little about, or rows tell a factor and its noise hardly apart, tau creeps: the distance
from the optimum shrinks by a factor near 1. With x_t the logarithms of E[tau] with which sweep t
began, G(x_t) those with which it ended, and f_t = G(x_t) - x_t, the block is solved next at

    x = G(x_t) - sum_j c_j ((x_j+1 - x_j) + (f_j+1 - f_j)),

with the c_j for which f_t - sum_j c_j (f_j+1 - f_j) is smallest (Anderson 1965). Given q of all
else there is one best block for each x, so that the bound at x is that of a sweep: x is kept if the
exact bound is not lower there, and else the sweep begins where the last one ended. The block that
was solved to find out is not solved again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from svmp.families.family import Array
from svmp.families.gamma import Gamma
from svmp.inference.acceleration.relaxation import Means
from svmp.inference.updaters.joint_block import JointBlock
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network

DEPTH = 5
"""Sweeps that are remembered: Anderson's memory is one less."""
FARTHEST = 3.0
"""Longest step of a logarithm from where the sweep has ended."""
NEAREST = 1e-9
"""Steps below which precisions have arrived."""
LARGEST = 4096
"""Most precisions that are extrapolated."""


def precisions_of(network: Network, blocks: Iterable[JointBlock]) -> tuple[str, ...]:
    """Return the Gammas that rows of joint blocks have as precisions; none if they are many."""
    names = dict[str, None]()
    for block in blocks:
        paired = None if block.pair is None else block.pair.name
        for table in block.tables:
            slot = table.conditional.slots.get("tau")
            for variable in () if slot is None else slot.variables:
                if variable.name != paired and is_gamma(network, variable.name):
                    names[variable.name] = None
    size = sum(network.hidden[name].size for name in names)
    return tuple(names) if 0 < size <= LARGEST else ()


def is_gamma(network: Network, name: str) -> bool:
    """Return whether a variable is a hidden Gamma that is not a chain."""
    variable = network.hidden.get(name)
    return variable is not None and isinstance(variable.family, Gamma)


def logarithms(q: Beliefs, names: Collection[str]) -> Means:
    """Return the logarithms of the expected precisions."""
    return {name: np.log(q.moments[name][:, :1]) for name in names}


def note_sweep(history: Means, before: Means, after: Means) -> Means:
    """Return the last sweeps with one more: by variable, (sweeps, start or change, elements)."""
    found = {}
    for name, old in before.items():
        sweep = np.stack([old.ravel(), (after[name] - old).ravel()])[None]
        earlier = history.get(name)
        found[name] = sweep if earlier is None else np.concatenate([earlier, sweep])[-DEPTH:]
    return found


def next_logarithms(history: Means) -> Means | None:
    """Return the logarithms at which the block is to be solved next; None to go on from here."""
    sweeps = np.concatenate(list(history.values()), axis=2)
    start, change = sweeps[-1]
    if len(sweeps) == 1 or np.abs(change).max() < NEAREST:
        return None
    steps = np.diff(sweeps, axis=0)
    shares = np.linalg.lstsq(steps[:, 1].T, change, rcond=1e-10)[0]
    step = np.clip(-shares @ steps.sum(axis=1), -FARTHEST, FARTHEST)
    ends = np.cumsum([own.shape[2] for own in history.values()])[:-1]
    parts = np.split(start + change + step, ends)
    return {name: part[:, None] for name, part in zip(history, parts, strict=True)}


def natural_at(natural: Array, logs: Array) -> Array:
    """Return the natural parameters of Gammas of the same shapes, with other means."""
    alpha = natural[:, 1] + 1
    return np.stack([-alpha / np.exp(logs[:, 0]), natural[:, 1]], axis=1)
