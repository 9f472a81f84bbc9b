"""Extrapolation of the precisions of joint blocks.

A sweep solves a block given the precisions tau of its rows, and then updates them. Where there are
few groups with few rows, or rows hardly distinguish an effect from the noise, tau converges slowly:
a sweep reduces the distance from the optimum by a factor near 1. With x_t the logarithms of E[tau]
with which sweep t began, G(x_t) those with which it ended, and f_t = G(x_t) - x_t, the block is
solved next at

    x = G(x_t) - sum_j c_j ((x_j+1 - x_j) + (f_j+1 - f_j)),

with the c_j for which f_t - sum_j c_j (f_j+1 - f_j) is smallest (Anderson 1965). x is kept if the
exact bound of the block that is solved there is not lower; otherwise the sweep begins where the
last one ended. The block that was solved for this comparison is not solved again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from svmp.families.family import Array
from svmp.inference.acceleration.accelerator import Accelerator, Bound
from svmp.inference.acceleration.extrapolation import (
    extrapolated_names,
    kept_parameters,
    remember,
    restore,
)
from svmp.inference.acceleration.relaxation import relaxed_blocks
from svmp.inference.methods import Method
from svmp.inference.methods.draw import AllRows
from svmp.inference.state.relaxation import Means, Relaxation
from svmp.inference.state.state import State
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.joint_block import JointBlock, JointBlockUpdater
from svmp.inference.updaters.setup import Setup
from svmp.inference.updaters.updater import Updater
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


@dataclass(frozen=True, eq=False)
class PrecisionExtrapolation(Accelerator):
    """Solves joint blocks at extrapolated precisions, unless the exact bound is lower there.

    It serves networks in which no means are over-relaxed or extrapolated.

    Attributes
    ----------
    names
        The Gammas that are extrapolated.
    blocks
        The updaters of the joint blocks.
    """

    network: Network
    method: Method
    names: tuple[str, ...]
    blocks: tuple[JointBlockUpdater, ...]

    @classmethod
    def find(cls, setup: Setup, updaters: Sequence[Updater]) -> Self | None:
        names = precisions_of(setup.network, setup.joint)
        others = relaxed_blocks(updaters, setup.network)
        if not names or others or extrapolated_names(setup.network, setup.joined):
            return None
        blocks = tuple(u for u in updaters if isinstance(u, JointBlockUpdater))
        return cls(setup.network, setup.method, names, blocks)

    def apply(self, state: State, last: Relaxation, bound: Bound) -> Relaxation:
        q, t, names = state.q, state.iteration, self.names
        now, history = logarithms(q, names), {}
        if last.before.keys() == now.keys() and self.method.reads_all(t):
            history = remember(last.history, last.before, now, DEPTH)
        following = next_logarithms(history) if history else None
        if following is None or state.measured.iteration != t:
            return Relaxation(before=now, history=history)
        kept = kept_parameters(q, [*names, *(n for u in self.blocks for n in u.names)])
        joint, rows = q.blocks, AllRows(self.network)
        q.means.clear()
        for name, logs in following.items():
            natural = natural_at(q.natural[name], logs)
            self.network.move(q, name, np.arange(len(natural)), natural)
        for updater in self.blocks:
            for change in updater.update(q, rows, StepRule.unit(rows)):
                self.network.move(q, change.name, change.elements, change.natural)
        if bound(q) >= state.measured.bound:
            return Relaxation(before=logarithms(q, names), history=history)
        restore(q, kept)
        q.blocks = joint
        return Relaxation(before=now)


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
    return variable is not None and variable.family.precision == "number"


def logarithms(q: Beliefs, names: Collection[str]) -> Means:
    """Return the logarithms of the expected precisions."""
    return {name: np.log(q.moments[name][:, :1]) for name in names}


def next_logarithms(history: Means) -> Means | None:
    """Return the logarithms at which to solve the block next; None for the present ones."""
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
