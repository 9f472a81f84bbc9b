"""Over-relaxation of the means of Gaussian blocks that are solved together.

Where two blocks share rows, as the factors of users and of items do, the optimum of each depends on
the other, and coordinate ascent approaches the joint optimum in a zigzag. A block whose means have
the optimum m*, given all else, is therefore moved beyond it:

    m <- m + omega (m* - m),        precisions as solved.

Given all else the bound is a concave quadratic in m with its largest value at m*, so that it rises
for every 0 < omega < 2: nothing can diverge. For two blocks in a linear model this is successive
over-relaxation (Young 1954). With g the rate of coordinate ascent, which is the factor by which a
sweep reduces the distance from the optimum, the rate r under omega and the best omega are

    (r + omega - 1)^2 = r omega^2 g,        omega* = 2 / (1 + sqrt(1 - g)).

Each move raises the bound. But after a move far beyond the joint optimum, the next bound may be
lower: the block that is solved last was at its optimum before, and is not while the others are
solved. Two iterations without over-relaxation then measure the rate anew.

The block that is solved last is reported and kept at m*. It is moved on when the next iteration
begins, so that every q and every bound that is seen from outside has it at its optimum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from svmp.families.family import Array, Family
from svmp.inference.acceleration.accelerator import Accelerator, Bound
from svmp.inference.acceleration.rotating import rotate
from svmp.inference.loops import loops_in_use
from svmp.inference.methods import Method
from svmp.inference.methods.draw import Draw
from svmp.inference.state.relaxation import Means, Relaxation
from svmp.inference.state.state import State
from svmp.inference.steps.rule import StepRule
from svmp.inference.trace import Trace
from svmp.inference.updaters.setup import Setup
from svmp.inference.updaters.updater import Change, Updater
from svmp.kernels.machine.elements import move_normals, normal_change
from svmp.network.beliefs import Beliefs
from svmp.network.means.linear import dimension
from svmp.network.network import Network

BLOCK = 4096
"""Elements that are moved at a time."""
ALL = (slice(0, BLOCK),)
"""Blocks of fewer elements."""
PAIR = 2
"""Variables in a product whose blocks are updated in a zigzag."""
IN_PRODUCTS = 1.3
"""Largest factor where a product has more variables."""


@dataclass(frozen=True, eq=False)
class OverRelaxation(Accelerator):
    """Moves the block that was solved last beyond its solution.

    In one of the first sweeps over all rows, factors are rotated instead if that raises the bound.

    Attributes
    ----------
    blocks
        The blocks of variables whose means are over-relaxed, in the order of their updates.
    largest
        Largest factor: lower where blocks are multiplied by more than one other.
    rotates
        Whether factors may be rotated.
    """

    network: Network
    method: Method
    blocks: tuple[tuple[str, ...], ...]
    largest: float
    rotates: bool = True

    @classmethod
    def find(cls, setup: Setup, updaters: Sequence[Updater]) -> Self | None:
        return cls.of(setup, relaxed_blocks(updaters, setup.network))

    @classmethod
    def of(
        cls, setup: Setup, blocks: tuple[tuple[str, ...], ...], rotates: bool = True
    ) -> Self | None:
        """Return the over-relaxation of some blocks; None if there are none."""
        if not blocks:
            return None
        most = largest_omega(setup.network, blocks)
        return cls(setup.network, setup.method, blocks, most, rotates)

    def apply(self, state: State, last: Relaxation, bound: Bound) -> Relaxation:
        q, t, method = state.q, state.iteration + 1, self.method
        change, rate = change_of(q, last.before), np.nan
        if t > 2 and method.reads_all(t - 2) and last.change > 0:
            rate = float(np.sqrt(change / last.change))
        omega = next_omega(last.omega, rate, min(method.relaxation(t), self.largest))
        if fell_last(state.trace, t - 1):
            omega, change = 1.0, np.nan
        elif last.omega == 1 and np.isnan(rate) and method.reads_all(t - 2):
            omega = 1.0  # the second plain sweep after a fall, from which the rate is known again
        q.means.clear()
        known = state.measured.bound if state.measured.iteration == state.iteration else None
        if self.rotates and method.rotates(t) and rotate(self.network, q, bound, known):
            change = np.nan
        else:
            relax(q, self.network, last.before, omega)
        before = last.before or means_of(q, self.network, self.blocks[-1])
        for name, means in before.items():  # in place: new memory for them would cost more
            np.copyto(means, q.moments[name][:, : means.shape[1]])
        return replace(last, omega=omega, change=change, before=before)


def means_of(q: Beliefs, network: Network, names: Iterable[str]) -> Means:
    """Return copies of the means of some variables."""
    return {n: q.moments[n][:, : dimension(network.hidden[n])].copy() for n in names}


def times_precision(natural: Array, step: Array) -> Array:
    """Return the precision of each element times a vector."""
    size = step.shape[1]
    if size == 1:
        return np.asarray(-2 * natural[:, 1:] * step)
    return np.einsum("eij,ej->ei", -2 * natural[:, size:].reshape(-1, size, size), step)


def blocks_of(count: int) -> Sequence[slice]:
    """Return blocks of elements whose temporary arrays stay in the cache."""
    if 0 < count <= BLOCK:
        return ALL
    return [slice(first, first + BLOCK) for first in range(0, count, BLOCK)]


def in_loops(old: Array) -> bool:
    """Return whether compiled loops move these elements, which they do for many Normals.

    Small networks compile nothing, and neither does `kernels=False`.
    """
    return old.shape[1] == 1 and len(old) > BLOCK and loops_in_use()


def change_of(q: Beliefs, before: Mapping[str, Array]) -> float:
    """Return the square of the change of means, in units of the precisions."""
    change = 0.0
    for name, old in before.items():
        natural, moments = q.natural[name], q.moments[name]
        if in_loops(old):
            change += normal_change(natural, moments, old)
            continue
        for some in blocks_of(len(old)):
            step = moments[some, : old.shape[1]] - old[some]
            change += float(np.vdot(step, times_precision(natural[some], step)))
    return change


def relax(q: Beliefs, network: Network, before: Mapping[str, Array], omega: float) -> None:
    """Move means from where they were to beyond where they are, in place."""
    if omega == 1:
        return
    for name, old in before.items():
        natural, moments, size = q.natural[name], q.moments[name], old.shape[1]
        stored = False
        for edge in network.edges[name]:
            stored = stored or edge.conditional.variable.name in q.means
        if stored:
            moved = natural.copy()
            step = moments[:, :size] - old
            moved[:, :size] += (omega - 1) * times_precision(natural, step)
            network.move(q, name, np.arange(len(natural)), moved)
            continue
        if in_loops(old):
            move_normals(natural, moments, old, omega - 1)
        else:
            for some in blocks_of(len(old)):
                move_beyond(natural[some], moments[some], old[some], omega)
        q.changed(name)


def move_beyond(natural: Array, moments: Array, old: Array, omega: float) -> None:
    """Move the means of some elements beyond their solution, in place."""
    size = old.shape[1]
    means = moments[:, :size].copy()
    step = (omega - 1) * (means - old)
    natural[:, :size] += times_precision(natural, step)
    moments[:, :size] += step
    if size == 1:  # (m + d)^2 - m^2 = d (2 m + d)
        moments[:, 1:] += step * (2 * means + step)
        return
    new = means + step
    outer = new[:, :, None] * new[:, None, :] - means[:, :, None] * means[:, None, :]
    moments[:, size:] += outer.reshape(len(new), -1)


def relaxed_update(
    updater: Updater, q: Beliefs, rows: Draw, rho: StepRule, network: Network
) -> Iterator[Change]:
    """Yield the changes of an updater; once they are applied, move relaxed means on."""
    before = means_of(q, network, updater.names) if rho.relaxes(updater.names) else {}
    yield from updater.update(q, rows, rho)
    relax(q, network, before, rho.omega)


def next_omega(omega: float, rate: float, most: float) -> float:
    """Return the factor of the next iteration.

    Parameters
    ----------
    omega, rate
        The last factor, and the factor by which the size of the change has shrunk.
    most
        Largest factor that the method allows.
    """
    if not 0 < rate < 1:
        return most
    if rate <= omega - 1:  # too far: with such a factor no rate is smaller than omega - 1
        return min(1 + rate, most)
    ascent = (rate + omega - 1) ** 2 / (rate * omega**2)
    return most if ascent >= 1 else min(2 / (1 + np.sqrt(1 - ascent)), most)


def fell_last(trace: Trace, iteration: int) -> bool:
    """Return whether the exact bound of an iteration is lower than the one before it."""
    if len(trace) < PAIR or trace.last("iteration") != iteration:
        return False
    exact = not np.any(trace["bound_se"][-PAIR:] > 0)
    before, now = trace["bound"][-PAIR:]
    return bool(exact and now < before)


def largest_omega(network: Network, blocks: Iterable[tuple[str, ...]]) -> float:
    """Return the largest factor for some blocks.

    In a product of three or more variables blocks are no pairs, and large factors make them
    oscillate: measured in a tensor factorization.
    """
    terms = (
        term
        for names in blocks
        for name in names
        for edge in network.edges[name]
        if edge.conditional.linear is not None
        for term in edge.conditional.linear.terms
    )
    return IN_PRODUCTS if any(len(term.readers) > PAIR for term in terms) else 2.0


def relaxed_blocks(updaters: Sequence[Updater], *networks: Network) -> tuple[tuple[str, ...], ...]:
    """Return the blocks of variables that are over-relaxed, in the order of their updates.

    Blocks are connected where they are in the same mean, or one is above the other. Two or more
    connected blocks are over-relaxed if the elements of each are solved together. A block without
    others is solved for good at once, and moving beyond its solution would lose what was gained.
    The same holds beside a block whose elements are updated in turn: measured in factor analysis.

    All variables are in the first of the networks, and tables that depend on them in any.
    """
    hidden, groups = networks[0].hidden, list[tuple[set[str], list[Updater]]]()
    for updater in updaters:
        if not all(is_gaussian(hidden[n].family) for n in updater.names):
            continue
        edges = (e for net in networks for n in updater.names for e in net.edges.get(n, ()))
        tables = {edge.conditional.variable.name for edge in edges} | set(updater.names)
        members = [updater]
        for group in [g for g in groups if g[0] & tables]:
            groups.remove(group)
            tables, members = tables | group[0], group[1] + members
        groups.append((tables, members))
    relaxed = {
        updater.names
        for _, members in groups
        if len(members) > 1 and all(u.solves_together for u in members)
        for updater in members
    }
    return tuple(updater.names for updater in updaters if updater.names in relaxed)


def is_gaussian(family: Family) -> bool:
    """Return whether a family is that of Normals or MvNormals."""
    return family.gaussian is not None
