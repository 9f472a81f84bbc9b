"""The variables of the groups that are drawn: a document's topics, a user's factors.

They are optimised by coordinate ascent until each group has converged, before the global variables
are updated. They start near their prior, whatever their q was before, unless the method keeps q of
all groups (`Memoized`): then they start from there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from svmp.families.family import Array, dot
from svmp.inference.methods.draw import Draw, by_colour
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.categorical import ImplicitUpdater, at_means
from svmp.inference.updaters.chains import ChainUpdater
from svmp.inference.updaters.domain import check_domain
from svmp.inference.updaters.plain import PlainUpdater
from svmp.inference.updaters.updater import Change, Updater
from svmp.kernels.categorical.topics_sums import Topics
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.grouping import Grouping
from svmp.network.network import Network

TOLERANCE = 1e-4
"""Convergence of a group: the largest change of its q in a pass, in nats per element. For a Normal
it is a hundredth of its standard deviation, which is little beside the noise of drawing groups."""
MOST_PASSES = 100
"""Most passes over a group, so that slow convergence of one does not delay the others."""


@dataclass(frozen=True, eq=False)
class GroupsUpdater(Updater):
    """Optimises the variables of the drawn groups by passes over their rows.

    Attributes
    ----------
    variables
        The plain updater of each variable.
    chains
        The updaters of those that are chains, by name.
    """

    network: Network
    grouping: Grouping
    variables: Mapping[str, PlainUpdater]
    chains: Mapping[str, ChainUpdater] = field(default_factory=dict)

    @property
    def label(self) -> str:  # type: ignore[override]
        """Short description."""
        return f"plain, optimised for each '{self.grouping.dim}' drawn"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.variables)

    def update(self, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        active, grouping, accesses = rows.groups_drawn, self.grouping, 0
        if rows.restarts(rho.iteration):
            restart(self.network, q, grouping, self.names, active)
        if rows.reads_means(rho.iteration):
            q = at_means(self.network, q, rows.locals)
        for _ in range(rows.most_passes or MOST_PASSES):
            moved = np.zeros(grouping.count)
            for name, updater in self.variables.items():
                if name in self.chains:
                    rows_of = grouping.rows(name, active)
                    change, read = self.chains[name].optimise_rows(q, rows_of, rows.tolerance)
                    moved += np.bincount(grouping.group[name], change, grouping.count)
                    accesses += read
                    continue
                groups = by_colour(self.network, name, grouping.rows(name, active))
                tangents = updater.tangents(q, rows, groups)
                for elements in groups:
                    sums, read = updater.message_sum(q, rows, elements, tangents)
                    target = self.network.prior(q, name, elements) + sums
                    change = optimise(self.network, q, name, elements, target)
                    moved += np.bincount(grouping.group[name][elements], change, grouping.count)
                    accesses += read
            active = active[moved[active] > TOLERANCE * grouping.sizes[active]]
            if not len(active):
                break
        yield Change.of_rows_read(self.names[0], accesses)

    def bound_term(self, q: Beliefs) -> dict[str, float]:
        terms: dict[str, float] = {}
        for updater in self.variables.values():
            terms |= updater.bound_term(q)
        return terms


@dataclass(frozen=True, eq=False)
class DocumentsUpdater(Updater):
    """Optimises the topics of the drawn documents and of their words, in compiled code.

    Attributes
    ----------
    shares
        The plain updater of the shares of each document; None where they belong to no document.
    words
        The topics of the words, which are not stored.
    """

    network: Network
    grouping: Grouping
    shares: PlainUpdater | None
    words: ImplicitUpdater
    loops: Topics

    @property
    def label(self) -> str:  # type: ignore[override]
        """Short description."""
        return f"compiled (topics), optimised for each '{self.grouping.dim}' drawn"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.grouping.locals)

    def update(self, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        self.words.refresh(q)
        if self.shares is None:
            if rows.reads_means(rho.iteration):
                self.words.read_means(q, rows)
            words = self.grouping.rows(self.words.name, rows.groups_drawn)
            yield Change.of_rows_read(self.words.name, len(words))
            return
        name, drawn = self.shares.name, rows.groups_drawn
        if rows.restarts(rho.iteration):
            restart(self.network, q, self.grouping, [name], drawn)
        documents = self.grouping.rows(name, drawn)
        prior = self.network.prior(q, name, documents)
        most = rows.most_passes or MOST_PASSES
        if self.loops not in rows.memory:  # parts that are visited again keep their pairs
            rows.memory[self.loops] = self.loops.pairs_of(documents)
        bag = rows.memory[self.loops]
        means = rows.reads_means(rho.iteration)
        reading = at_means(self.network, q, rows.locals) if means else q
        natural, sums, read = self.loops.optimise(reading, documents, bag, prior, TOLERANCE, most)
        self.network.move(q, name, documents, natural)
        self.words.keep(q, rows, sums)
        yield Change.of_rows_read(name, read)

    def bound_term(self, q: Beliefs) -> dict[str, float]:
        own = {} if self.shares is None else self.shares.bound_term(q)
        return own | self.words.bound_term(q)


def restart(
    network: Network, q: Beliefs, grouping: Grouping, names: Collection[str], drawn: Ints
) -> None:
    """Restart the variables of some groups near their prior."""
    for number, (name, variable) in enumerate(network.hidden.items()):
        if name in names and name not in network.chains:  # whose q needs no start
            elements = grouping.rows(name, drawn)
            prior = np.array(network.prior(q, name, elements))
            natural = variable.family.at(elements).start(prior, np.random.default_rng([number, 5]))
            network.move(q, name, elements, natural)


def optimise(network: Network, q: Beliefs, name: str, elements: Ints, target: Array) -> Array:
    """Set elements to `target`; return the symmetrised KL between their old and new q, in nats."""
    before, moments = q.natural[name][elements], q.moments[name][elements]
    check_domain(network.hidden[name], elements, target)
    network.move(q, name, elements, target)
    return dot(target - before, q.moments[name][elements] - moments)
