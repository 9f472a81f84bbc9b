"""Local Categoricals that are not stored, and the topics that they choose among.

Between two iterations the q of such a variable is the optimum given the others. Within an iteration
the others read the sums that were computed when it was updated, as they would read a stored q.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.inference.methods.draw import Draw
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.mixture_products import MixtureProducts
from svmp.inference.updaters.plain import MessageSum, Tangents
from svmp.inference.updaters.solver import PlainSolver, Solver
from svmp.inference.updaters.updater import (
    NO_ELEMENTS,
    NO_NATURAL,
    Change,
    SummingUpdater,
    Term,
    Updater,
)
from svmp.kernels.categorical.topics_sums import Topics
from svmp.kernels.categorical.updater import ImplicitCategorical
from svmp.network.beliefs import Beliefs
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.network import Network


class Cached(NamedTuple):
    """Sums over rows, with the q, its version and the draw (None: all rows) they belong to."""

    q: Beliefs
    version: int
    draw: Draw | None
    sums: Any


@dataclass(eq=False)
class ImplicitUpdater(Updater):
    """A local Categorical that is not stored: an update computes new sums over its rows."""

    network: Network
    loops: ImplicitCategorical
    _cached: Cached | None = field(default=None, repr=False)

    @property
    def label(self) -> str:  # type: ignore[override]
        """What it is, in a few words."""
        products = isinstance(self.loops, MixtureProducts)
        return f"{'products of matrices' if products else 'compiled (categorical)'}, not stored"

    @property
    def name(self) -> str:
        """The variable."""
        return self.loops.variable.name

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def update(self, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        self.refresh(q)
        if rows.reads_means(rho.iteration):
            self.read_means(q, rows)
        read = sum(int(rows.children_drawn(e).sum()) for e in self.network.edges[self.name])
        yield Change.of_rows_read(self.name, read)

    def refresh(self, q: Beliefs) -> None:
        """Discard sums that were computed before q changed."""
        if self._cached is not None and self._cached.version != q.version:
            self._cached = None

    def sums(self, q: Beliefs, rows: Draw | None = None) -> Any:
        """Return the sums over the rows drawn, or over all, as they were last computed."""
        draw = None if rows is None or rows.whole else rows
        known = self._cached
        if known is None or known.q is not q or known.draw is not draw:
            self.keep(q, draw, self.loops.sums(q, self._elements(draw)))
        assert self._cached is not None
        return self._cached.sums

    def _elements(self, draw: Draw | None) -> Ints | None:
        return None if draw is None else draw.drawn_rows(self.name)

    def keep(self, q: Beliefs, draw: Draw | None, sums: Any) -> None:
        """Keep sums of the current q."""
        self._cached = Cached(q, q.version, draw, sums)

    def read_means(self, q: Beliefs, rows: Draw) -> None:
        """Compute the sums over the rows drawn with the means of global Dirichlets."""
        draw = None if rows.whole else rows
        sums = self.loops.sums(at_means(self.network, q, rows.locals), self._elements(draw))
        self.keep(q, draw, sums)

    def bound_term(self, q: Beliefs) -> dict[str, float]:
        self.refresh(q)
        return self.loops.bound_terms(q, self.sums(q))


def at_means(network: Network, q: Beliefs, own: Collection[str]) -> Beliefs:
    """Return q with log E[p] in place of E[log p] of the Dirichlets that are not in `own`.

    All other arrays are those of q.
    """
    means = {
        name: variable.family.log_mean(q.natural[name])
        for name, variable in network.hidden.items()
        if name not in own and variable.family.simplex
    }
    return replace(q, moments=q.moments | means)


@dataclass(frozen=True, eq=False)
class ImplicitMessages:
    """The messages of a Categorical's tables, from its sums over rows."""

    implicit: ImplicitUpdater
    edge: Edge

    def __call__(self, q: Beliefs, rows: Draw, elements: Ints, tangents: Tangents) -> MessageSum:
        loops, sums = self.implicit.loops, self.implicit.sums(q, rows)
        message = loops.message(q, sums, self.edge, elements)
        scale = rows.scale(self.edge.parent.name, elements)
        return MessageSum(message, scale, loops.reads(sums, self.edge, elements))


@dataclass(frozen=True, eq=False)
class TopicUpdater(SummingUpdater):
    """Updates all topics from sums over the words, in compiled code."""

    network: Network
    name: str
    implicit: ImplicitUpdater
    loops: Topics
    term: Term
    label = "compiled (topics)"

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def update(self, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        elements = self.loops.topics
        read, scale = rows.read(self.name, elements), rows.scale(self.name, elements)
        step, sums = rho(q, self.name, elements, read), self.implicit.sums(q, rows)
        prior: Array = np.array(self.network.prior(q, self.name, elements))
        at_once, steps = rho.at_once(self.name), np.broadcast_to(step, len(elements)).copy()
        natural = self.loops.update(q, sums, prior, steps, scale, at_once)
        accesses = self.loops.reads(sums, self.network.edges[self.name][0], elements)
        applied = at_once and bool(self.network.hidden[self.name].family.in_domain(natural).all())
        if applied:
            elements, natural = NO_ELEMENTS, NO_NATURAL
        else:
            natural = natural[elements]
        yield Change(self.name, elements, natural, accesses, step, read, applied)

    def sums(self, q: Beliefs, rows: Draw) -> Array:
        edge, sums = self.network.edges[self.name][0], self.implicit.sums(q, rows)
        return self.loops.message(q, sums, edge, np.arange(edge.parent.size))

    @property
    def solver(self) -> Solver:
        return PlainSolver.of(self.name, self.network.hidden[self.name].family.size)

    def bound_term(self, q: Beliefs) -> dict[str, float]:
        return {self.name: self.term(q)}
