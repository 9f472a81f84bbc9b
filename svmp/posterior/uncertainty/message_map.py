"""The map from the moments of all variables to their natural parameters, and its derivative.

At a fixed point of VMP, lambda = Phi(m) with

    Phi_i(m) = eta_i(m) + sum over the children e of eta_(e -> i)(m) = d E[log p] / d m_i,

the gradient of the expected log joint with respect to the moments m_i of x_i. Its derivative H is
the Hessian, a symmetric matrix that is never formed. Messages are polynomials in the moments, and
H v is their derivative along v by central differences of fourth order: exact, up to rounding, for
polynomials up to degree 4. That is every density here but products of three variables and convex
bounds, where the error is about the fourth power of the step.

At a fixed point V, the covariance of the statistics under q, is that at the natural parameters
Phi(m). q of a run is a little behind: the last update of a precision comes after those of its
effects. `followed` takes them from Phi(m), so that V and H are of the same moments. The difference
I - V H of the two can be many digits smaller than either.

A chain is not one of these variables. Its q is the optimum given all others, so that it is solved
anew for the moments at which Phi is evaluated; H then has its response in it (the Schur complement
of the chain).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from svmp.families.family import Array
from svmp.inference.methods.draw import AllRows, Draw
from svmp.inference.updaters.chains import ChainUpdater
from svmp.inference.updaters.plain import PlainUpdater
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown, base_of
from svmp.network.variable import Variable

STEP = 0.02
"""Step of the differences, in standard deviations of the statistic that moves most."""
PASSES, SAME = 200, 1e-12
"""Most passes over chains that depend on each other, and the relative change that ends them."""


def solve_chains(network: Network, q: Beliefs) -> None:
    """Set q of all chains to the optimum given the other variables."""
    plain = [PlainUpdater.of(network, name) for name in network.chains]
    updaters = [ChainUpdater.of(network, each, kernels=False) for each in plain]
    for _ in range(PASSES):
        before = {name: q.moments[name].copy() for name in network.chains}
        for updater in updaters:
            updater.optimise(q, None)
        moved = [
            np.abs(q.moments[name] - old).max(initial=0.0)
            <= SAME * np.abs(q.moments[name]).max(initial=1.0)
            for name, old in before.items()
        ]
        if len(updaters) == 1 or all(moved):
            return


@dataclass(frozen=True, eq=False)
class MessageMap:
    """Phi and its derivative at a given q; all variables are one flat vector.

    Attributes
    ----------
    network
        The network.
    q
        The q at which it is differentiated.
    """

    network: Network
    q: Beliefs

    @cached_property
    def variables(self) -> dict[str, Variable]:
        """The hidden variables that are no chains."""
        chains = self.network.chains
        return {name: v for name, v in self.network.hidden.items() if name not in chains}

    @cached_property
    def places(self) -> dict[str, slice]:
        """By variable, its place in a flat vector."""
        found, start = {}, 0
        for name, variable in self.variables.items():
            stop = start + variable.size * variable.family.size
            found[name], start = slice(start, stop), stop
        return found

    @property
    def size(self) -> int:
        """Length of a flat vector."""
        return max((place.stop for place in self.places.values()), default=0)

    def split(self, vector: Array) -> dict[str, Array]:
        """Return a flat vector as arrays of (elements, size), by variable."""
        hidden = self.variables
        return {
            name: vector[place].reshape(-1, hidden[name].family.size)
            for name, place in self.places.items()
        }

    def join(self, arrays: dict[str, Array]) -> Array:
        """Undo `split`."""
        return np.concatenate([np.zeros(0), *(arrays[name].ravel() for name in self.places)])

    @cached_property
    def moments(self) -> Array:
        """The moments of q."""
        return self.join(self.q.moments)

    @cached_property
    def natural(self) -> Array:
        """The natural parameters of q."""
        return self.join(self.q.natural)

    def followed(self) -> MessageMap:
        """Return the map with Phi(m) as the natural parameters of the elements that count.

        Raises
        ------
        FloatingPointError
            If Phi(m) is not in the domain of some family.
        """
        target = self.split(np.where(self.counted > 0, self(self.moments), self.natural))
        for name, natural in target.items():
            if not base_of(self.variables[name].family).in_domain(natural).all():
                raise FloatingPointError(name)
        return MessageMap(self.network, replace(self.q, natural={**self.q.natural, **target}))

    @cached_property
    def is_linear(self) -> bool:
        """Whether messages are linear in each statistic: all but those of convex bounds, chains."""
        tables = (*self.network.hidden.values(), *self.network.observed.values())
        return not self.network.chains and not any(
            table.conditional.factor.convex for table in tables
        )

    @cached_property
    def counted(self) -> Array:
        """1 for elements that the evidence depends on; 0 for others, and for observed elements."""
        ones = {}
        for name, variable in self.variables.items():
            ones[name] = np.zeros((variable.size, variable.family.size))
            ones[name][self.network.rows(variable)] = 1.0
            if isinstance(variable.family, PartlyKnown):
                ones[name][variable.family.known] = 0.0
        return self.join(ones)

    @cached_property
    def _updaters(self) -> dict[str, tuple[PlainUpdater, Ints]]:
        hidden = self.variables
        return {
            name: (PlainUpdater.of(self.network, name), np.arange(hidden[name].size))
            for name in hidden
        }

    def __call__(self, moments: Array, rows: Draw | None = None) -> Array:
        """Phi(m): the message of the parents plus the sum of those of all children, or of some."""
        # The moments of observed parents stay as they are.
        q = Beliefs(self.q.natural, {**self.q.moments, **self.split(moments)})
        if self.network.chains:
            q = replace(self.q, moments=q.moments, means={}).copy()
            solve_chains(self.network, q)
        rows = AllRows(self.network) if rows is None else rows
        targets = {
            name: self.network.priors(q, name) + updater.message_sum(q, rows, elements)[0]
            for name, (updater, elements) in self._updaters.items()
        }
        return self.join(targets)

    def derivative(self, vector: Array) -> Array:
        """H v."""
        size = np.abs(vector * self._scale).max(initial=0.0)
        if size == 0:
            return np.zeros_like(vector)
        step = STEP / size * (vector * self.counted)
        near, far = (
            self(self.moments + times * step) - self(self.moments - times * step)
            for times in (1, 2)
        )
        return self.counted * (8 * near - far) * (size / (12 * STEP))

    @cached_property
    def deviations(self) -> Array:
        """The standard deviation of each statistic under q."""
        return np.sqrt(np.maximum(self.join(dict(self._variances())), 0.0))

    @property
    def _scale(self) -> Array:
        """One over the standard deviation of each statistic under q; 0 where it is constant."""
        some = self.deviations > 0
        return np.where(some, 1 / np.where(some, self.deviations, 1.0), 0.0)

    def _variances(self) -> Iterator[tuple[str, Array]]:
        for name, variable in self.variables.items():
            natural, size = self.q.natural[name], variable.family.size
            found = np.empty_like(natural)
            for place in range(size):
                unit = np.zeros_like(natural)
                unit[:, place] = 1.0
                found[:, place] = base_of(variable.family).fisher_times(natural, unit)[:, place]
            yield name, found

    def fisher_times(self, vector: Array) -> Array:
        """V v, with V the covariance of the statistics under q, of one block for each element."""
        blocks = self.split(vector)
        return self.counted * self.join(
            {
                name: base_of(variable.family).fisher_times(self.q.natural[name], blocks[name])
                for name, variable in self.variables.items()
            }
        )
