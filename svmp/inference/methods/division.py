"""A fixed division of the groups of a dim into parts, which are visited one after the other.

In the first sweeps sums of earlier visits are missing or far out of date. Where global variables
share no rows, each visit of the first five sweeps (in hidden Markov models some 60 visits, in one
to five sweeps) is therefore a step of stochastic variational inference (Hoffman, Blei, Wang &
Paisley, 2013): with S_p the sums of the part, which has a share s of the groups,

    lambda_i <- (1 - rho_t) lambda_i + rho_t (eta_i + S_p / s),    rho_t = (t + 10)^-0.7

and rho_t = (t + 1)^-0.5 in hidden Markov models.

Where global variables share no rows, the groups of the first 20 sweeps read the means of global
Dirichlets, log E[p] in place of E[log p], as collapsed inference does (SCVB0: Foulds, Boyles,
DuBois, Smyth & Welling, 2013). With few counts E[log p] is far lower, so that a word stays in the
topics that it happened to have at first. docs/performance.md has the measurements.

Where earlier rows have taught something (`Fit.update`), the global variables are good from the
start: no visit is a stochastic step, and no group starts anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from svmp.families.family import Array
from svmp.inference.methods.groups import DrawnGroups
from svmp.network.chains.discrete_chain import DiscreteChain
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.network import Network

RESTARTS = 5
"""Number of first sweeps that may take stochastic steps, and in which the variables of a group
start near their prior: those that were fitted to the first, poor global variables would hold these
back. docs/performance.md has the measurements."""
MEANS = 20
"""Number of first sweeps in which groups read the means of global Dirichlets; their variables then
start near their prior in all of these."""
DELAY, FORGETTING_RATE = 10, 0.7
"""tau and kappa of the steps in the first sweeps. docs/performance.md has what was measured with
others."""
CHAIN_VISITS, CHAIN_DELAY, CHAIN_RATE = 60, 1, 0.5
"""The same for chains of states: q of a sequence needs no start, so that the sweeps with some 60
visits are enough, and longer steps resolve slow directions. benchmarks/chains.py measures it."""
PASSES = 10
"""Most passes over a group at a visit; the next sweep goes on from there."""


@dataclass(frozen=True, eq=False)
class Division:
    """The groups of a dim, divided at random into parts of about the same number of groups."""

    network: Network
    dim: str
    count: int
    seed: int
    key: tuple[str, int, int]

    @cached_property
    def parts(self) -> tuple[VisitedPart, ...]:
        """The parts, each as a draw of its rows."""
        grouping = self.network.grouped(self.dim)
        shuffled = np.random.default_rng([self.seed, 7]).permutation(grouping.count)
        return tuple(
            VisitedPart(self.network, grouping, np.sort(groups), number, self)
            for number, groups in enumerate(np.array_split(shuffled, self.count))
        )

    def visited(self, iteration: int) -> VisitedPart:
        """Return the part that an iteration visits; every sweep visits each part once."""
        sweep, turn = divmod(iteration - 1, self.count)
        order = np.random.default_rng([self.seed, sweep, 8]).permutation(self.count)
        return self.parts[order[turn]]

    def restarts(self, iteration: int) -> bool:
        """Return whether the variables of groups start near their prior in an iteration."""
        sweeps = MEANS if self._may_read_means else self.first_sweeps
        return iteration <= sweeps * self.count and not self.network.learned

    @property
    def first_sweeps(self) -> int:
        """Number of first sweeps that may take stochastic steps."""
        return min(RESTARTS, -(-CHAIN_VISITS // self.count)) if self.has_states else RESTARTS

    @cached_property
    def has_states(self) -> bool:
        """Whether the groups have chains, all of them of states."""
        own = self.network.grouped(self.dim).locals
        chains = [chain for name, chain in self.network.chains.items() if name in own]
        return bool(chains) and all(isinstance(chain, DiscreteChain) for chain in chains)

    @cached_property
    def starts_with_steps(self) -> bool:
        """Whether the first visits are stochastic steps."""
        together = self.network.grouped(self.dim).shares_rows
        return not self.network.learned and (self.has_states or not together)

    def first_step(self, iteration: int) -> float | None:
        """Return the step of a stochastic first visit; None if a visit is exact."""
        if not self.starts_with_steps or iteration > self.first_sweeps * self.count:
            return None
        if self.has_states:
            return float((iteration + CHAIN_DELAY) ** -CHAIN_RATE)
        return first_step(iteration)

    def reads_means(self, iteration: int) -> bool:
        """Return whether groups read log E[p] of global Dirichlets, in place of E[log p]."""
        return self._may_read_means and iteration <= MEANS * self.count

    @cached_property
    def _may_read_means(self) -> bool:
        """Whether there is a global Dirichlet, and no two global variables share rows."""
        grouping = self.network.grouped(self.dim)
        found = [
            name
            for name, variable in self.network.hidden.items()
            if variable.family.simplex and name not in grouping.locals
        ]
        return bool(found) and not (self.has_states or grouping.shares_rows)

    def begins_sweep(self, iteration: int) -> bool:
        """Return whether a sweep begins with an iteration."""
        return (iteration - 1) % self.count == 0

    def ends_sweep(self, iteration: int) -> bool:
        """Return whether a sweep ends with an iteration."""
        return iteration % self.count == 0


def first_step(iteration: int) -> float:
    """Return the step of a stochastic visit.

    >>> round(first_step(1), 3)
    0.187
    """
    return float((iteration + DELAY) ** -FORGETTING_RATE)


@dataclass(frozen=True, eq=False)
class VisitedPart(DrawnGroups):
    """One part, with all of its rows; messages are not scaled.

    Attributes
    ----------
    number
        Which part of the division it is.
    """

    number: int
    division: Division = field(repr=False)

    def scale(self, name: str, elements: Ints) -> Array:
        return np.ones(len(elements))

    def restarts(self, iteration: int) -> bool:
        return self.division.restarts(iteration)

    def reads_means(self, iteration: int) -> bool:
        return self.division.reads_means(iteration)

    @cached_property
    def fresh(self) -> dict[str, Ints]:
        """Its observed rows."""
        return super().fresh

    @property
    def share(self) -> float:
        """Share of the groups that are in this part."""
        return len(self.drawn) / self.grouping.count

    @property
    def most_passes(self) -> int:
        return PASSES

    def memoizes(self, edge: Edge) -> bool:
        """Return whether the messages of a table to a global variable are kept by part."""
        return self._is_drawn(edge)
