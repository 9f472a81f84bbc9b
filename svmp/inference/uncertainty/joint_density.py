"""The exact log joint density of data and draws of the hidden variables.

Every density is evaluated through expected statistics, and a value is a distribution without
spread: its expected statistics are its statistics. So the terms of the bound without entropies,
at the statistics of a draw, are log p(data, draw). A convex bound is exact there: that of a logit
touches at its own z.

A Categorical that only chooses among the components of other tables is summed out,

    log sum_k p(z = k) prod over its rows r of p(x_r | z = k),

which is the log-partition of its natural parameter at the draw. Elements without observed
descendants are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from svmp import families
from svmp.families.family import Array, dot
from svmp.inference.methods.draw import AllRows
from svmp.inference.seeds import Seed, generator
from svmp.inference.updaters.plain import PlainUpdater
from svmp.network.beliefs import Beliefs
from svmp.network.edge import Edge
from svmp.network.network import Network
from svmp.network.variable import Variable

Draws = Mapping[str, Array]
"""By variable, values with the draws on the first axis and the elements on the second."""


@dataclass(frozen=True, eq=False)
class JointDensity:
    """log p(data, draw) under a network, and log q(draw) under a q of it.

    Attributes
    ----------
    network, q
        The network, and q.
    """

    network: Network
    q: Beliefs

    @cached_property
    def summed(self) -> frozenset[str]:
        """The Categoricals that are summed out."""
        found: set[str] = set()
        for name, variable in reversed(self.network.hidden.items()):
            edges = self.network.edges[name]
            if isinstance(variable.family, families.Categorical) and all(
                edge.choosing and edge.conditional.variable.name not in found for edge in edges
            ):
                found.add(name)
        return frozenset(found)

    @cached_property
    def drawn(self) -> dict[str, Variable]:
        """The hidden variables that are drawn."""
        return {n: v for n, v in self.network.hidden.items() if n not in self.summed}

    @cached_property
    def _choices(self) -> dict[str, Edge]:
        """By table whose choices are summed out, the edge from the Categorical that chooses."""
        return {
            edge.conditional.variable.name: edge
            for name in self.summed
            for edge in self.network.edges[name]
        }

    def draw(self, size: int, seed: Seed) -> Draws:
        """Return independent draws from q."""
        return {
            name: variable.family.draw(self.q.natural[name], generator(seed, name), size)
            for name, variable in self.drawn.items()
        }

    def at(self, draws: Draws, place: int) -> Beliefs:
        """Return one draw as a q without spread."""
        moments = {name: self.q.moments[name] for name in self.network.observed_parents}
        for name, variable in self.drawn.items():
            moments[name] = variable.family.statistics(draws[name][place])
        return Beliefs(moments=moments)

    def log_ratio(self, point: Beliefs) -> float:
        """Return log p(data, draw) - log q(draw) at a draw."""
        total = 0.0
        for name, variable in self.drawn.items():
            rows, natural = self.network.rows(variable), self.q.natural[name]
            family = variable.family.at(rows)
            if name not in self._choices:
                total += float(variable.conditional.log_density(point, rows).sum())
            own = dot(natural[rows], point.moments[name][rows])
            total -= float((own - family.log_partition(natural[rows])).sum())
        for name, variable in self.network.observed.items():
            if name not in self._choices:
                total += float(variable.conditional.log_density(point, variable.rows).sum())
        total += sum(float(self.choice_terms(point, name).sum()) for name in self.summed)
        return total + self._base

    @cached_property
    def _base(self) -> float:
        """The base measures of all observed values; those of draws cancel."""
        return sum(float(base_measure(v).sum()) for v in self.network.observed.values())

    def choice_natural(self, point: Beliefs, name: str) -> Array:
        """Return log p(z = k) + sum of log p(x_r | z = k) over the rows of each element."""
        elements, rows = np.arange(self.network.hidden[name].size), AllRows(self.network)
        updater = PlainUpdater.of(self.network, name)
        sums, _ = updater.message_sum(point, rows, elements)
        return self.network.prior(point, name, elements) + sums

    def choice_terms(self, point: Beliefs, name: str) -> Array:
        """Return the term of each element of a Categorical that is summed out."""
        variable = self.network.hidden[name]
        natural = self.choice_natural(point, name)[self.network.rows(variable)]
        return variable.family.log_partition(natural)

    def log_likelihood(self, point: Beliefs) -> Array:
        """Return log p(y_r | draw, other rows) of every observed row, one table after the other.

        Other rows matter only if they share a choice that is summed out.
        """
        found = [np.zeros(0)]
        for name, variable in self.network.observed.items():
            rows, edge = variable.rows, self._choices.get(name)
            if edge is None:
                found.append(variable.conditional.log_density(point, rows) + base_measure(variable))
                continue
            elements, places = edge.pairs_in(rows)
            order = np.argsort(places, kind="stable")  # one element for each row
            natural = self.choice_natural(point, edge.parent.name)[elements[order]]
            family = edge.parent.family
            without = natural - variable.conditional.densities(point, rows)
            gain = family.log_partition(natural) - family.log_partition(without)
            found.append(gain + base_measure(variable))
        return np.concatenate(found)


def base_measure(variable: Variable) -> Array:
    """Return f(x) of every observed row."""
    assert variable.observed is not None
    rows = variable.rows
    return variable.family.at(rows).log_base(variable.observed[rows])
