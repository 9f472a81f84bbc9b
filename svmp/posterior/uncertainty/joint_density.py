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
from scipy import linalg

from svmp.errors import ModelError
from svmp.families.family import Array, dot
from svmp.families.normal import LOG_2PI
from svmp.inference.methods.draw import AllRows
from svmp.inference.running.seeds import Seed, generator
from svmp.inference.updaters.plain import PlainUpdater
from svmp.network.beliefs import Beliefs
from svmp.network.edge import Edge
from svmp.network.joint_normal import GivenPrecision, JointNormal
from svmp.network.network import Network
from svmp.network.variable import Variable

MOST = 5000
"""Most numbers of a joint block, whose covariance matrix is factorised."""
Draws = Mapping[str, Array]
"""By variable, values with the draws on the first axis and the elements on the second."""


@dataclass(frozen=True, eq=False)
class JointDensity:
    """log p(data, draw) under a network, and log q(draw) under a q of it, which may be joint.

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
            if variable.family.nominal and all(
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
        """Return independent draws from q, those of a joint block together."""
        found = {}
        for block in self.q.blocks:
            around = block.covariance.draw(generator(seed, *block.layout.names), size)
            given = None
            if block.pair is not None:
                pair, rng = block.pair.name, generator(seed, block.pair.name)
                family, natural = self.drawn[pair].family, self.q.natural[pair]
                found[pair] = family.draw(natural, rng, size)
                given = GivenPrecision.of(family, natural, found[pair])
            for name in block.layout.names:
                places = block.layout.places(name)
                mean, x = self.drawn[name].family.mean(self.q.natural[name]), around[:, places]
                if given is not None and block.pair is not None:
                    x = given.apply(x, block.pair.classes[places[:, 0]])
                found[name] = mean + x.reshape(size, *mean.shape)
        for name, variable in self.drawn.items():
            if name not in found:
                rng = generator(seed, name)
                found[name] = variable.family.draw(self.q.natural[name], rng, size)
        return found

    def log_q(self, draws: Draws) -> Array:
        """Return log q of each draw, without base measures."""
        size = len(next(iter(draws.values()))) if draws else 0
        total = np.zeros(size)
        for block in self.q.blocks:
            total += self._log_block(block, draws)
        for name, variable in self.drawn.items():
            if self.q.block_of(name) is None:
                rows = self.network.rows(variable)
                natural, family = self.q.natural[name][rows], variable.family.at(rows)
                partition = float(family.log_partition(natural).sum())
                for place, x in enumerate(draws[name]):
                    total[place] += (
                        float(dot(natural, family.statistics(x[rows])).sum()) - partition
                    )
        return total

    def _log_block(self, block: JointNormal, draws: Draws) -> Array:
        """Return the log density of the elements of a joint block that count."""
        unknowns, around, log_det, given = [], [], np.zeros(1), None
        if block.pair is not None:
            pair = block.pair.name
            family, natural = self.drawn[pair].family, self.q.natural[pair]
            given = GivenPrecision.of(family, natural, draws[pair])
        for name in block.layout.names:
            rows = self.network.rows(self.drawn[name])
            mean = self.drawn[name].family.mean(self.q.natural[name])
            own = block.layout.places(name)[rows]
            unknowns.append(own.ravel())
            x = (draws[name] - mean)[:, rows].reshape(len(draws[name]), *own.shape)
            if given is not None and block.pair is not None:
                x, log = given.undo(x, block.pair.classes[own[:, 0]])
                log_det = log_det + log
            around.append(x.reshape(len(x), -1))
        places = np.concatenate(unknowns)
        if len(places) > MOST:
            raise ModelError(
                f"the joint q of {list(block.layout.names)} has {len(places):,} numbers, and PSIS "
                f"takes at most {MOST:,}; fit without joint="
            )
        root = np.linalg.cholesky(block.covariance.dense(places))
        white = linalg.solve_triangular(root, np.concatenate(around, axis=1).T, lower=True)
        log_root = float(np.log(np.diagonal(root)).sum())
        log_q = -0.5 * (white**2).sum(axis=0) - log_root - 0.5 * len(places) * LOG_2PI
        return np.asarray(log_q + log_det)

    def at(self, draws: Draws, place: int) -> Beliefs:
        """Return one draw as a q without spread."""
        moments = {name: self.q.moments[name] for name in self.network.observed_parents}
        for name, variable in self.drawn.items():
            moments[name] = variable.family.statistics(draws[name][place])
        return Beliefs(moments=moments)

    def log_joint(self, point: Beliefs) -> float:
        """Return log p(data, draw) at a draw, without the base measures of hidden variables."""
        total = self._base
        for name, variable in (*self.drawn.items(), *self.network.observed.items()):
            if name not in self._choices:
                rows = self.network.rows(variable)
                total += float(variable.conditional.log_density(point, rows).sum())
        return total + sum(float(self.choice_terms(point, name).sum()) for name in self.summed)

    @cached_property
    def _base(self) -> float:
        """The base measures of all observed values; those of draws are left out in p and q."""
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
