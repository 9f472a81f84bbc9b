"""Global variables that are updated from the sums of all parts, of which one was read just now.

    S_p <- sum over the rows e of part p of eta_(e -> i)
    lambda_i_temp = eta_i + (S_1 + ... + S_P) + messages of tables outside the parts

In an exact sweep (`Memo.exact`) the variables are updated once, at its end, from sums that are all
computed with the current q. The first visits may be stochastic steps, see methods/division.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from svmp.families.family import Array
from svmp.inference.methods.division import Division, VisitedPart
from svmp.inference.methods.draw import Draw
from svmp.inference.methods.sums_by_part import SumsByPart
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.categorical import ImplicitMessages, TopicUpdater
from svmp.inference.updaters.plain import NONE, Messages, PlainUpdater, Tangents
from svmp.inference.updaters.updater import NO_ELEMENTS, NO_NATURAL, Change, Updater, blend
from svmp.kernels.categorical.topics_sums import Bag, TopicSums
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.network import Network


@dataclass(frozen=True, eq=False)
class MemoizedUpdater(Updater):
    """Updates a variable from the messages of the part that is visited and kept sums of the others.

    Attributes
    ----------
    plain
        The plain updater of the variable.
    division
        The parts.
    """

    network: Network
    plain: PlainUpdater
    division: Division

    @property
    def label(self) -> str:  # type: ignore[override]
        """What it is, in a few words."""
        return f"{self.plain.label}, sums kept by part"

    @property
    def name(self) -> str:
        """The variable."""
        return self.plain.name

    @property
    def names(self) -> tuple[str, ...]:
        return self.plain.names

    def sums_by_part(self) -> dict[str, SumsByPart]:
        variable = self.network.hidden[self.name]
        shape = (variable.size, variable.family.size)
        return {self.name: SumsByPart.empty(shape, [None] * self.division.count)}

    @cached_property
    def _messages(self) -> tuple[list[Messages], list[Messages]]:
        """The messages of tables whose sums are kept by part, and of the other tables."""
        kept: list[Messages] = []
        others: list[Messages] = []
        first = self.division.parts[0]
        for edge, messages in zip(self.network.edges[self.name], self.plain.messages, strict=True):
            (kept if first.memoizes(edge) else others).append(messages)
        return kept, others

    def update(self, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        sums, visited = rho.memo.sums[self.name], parts_to_read(self.division, rows, rho)
        if not visited:
            return
        if self.division.begins_sweep(rho.iteration):
            sums.add_up()
        first = self.division.first_step(rho.iteration)
        groups = self.network.groups[self.name]
        tangents = [self.plain.tangents(q, part, groups) for part in visited]
        means = reads_means_again(self.division, rho)
        for elements in groups:
            accesses = 0
            for part, points in zip(visited, tangents, strict=True):
                found, read = self._read(self._messages[0], q, part, elements, points, means)
                sums.replace(part.number, found, elements)
                accesses += read
            others, read = self._read(self._messages[1], q, rows, elements, NONE)
            accesses += read
            if first is not None:
                prior = self.network.prior(q, self.name, elements)
                target = prior + found / visited[0].share + others
            else:
                target = self._target(q, sums, elements) + others
            if not self.network.hidden[self.name].family.at(elements).in_domain(target).all():
                sums.add_up()  # the total has lost digits
                target = self._target(q, sums, elements) + others
            count = rows.read(self.name, elements)
            step = rho(q, self.name, elements, count, target) * (first or 1.0)
            natural = blend(q.natural[self.name][elements], target, step)
            yield Change(self.name, elements, natural, accesses, step, count)

    def _target(self, q: Beliefs, sums: SumsByPart, elements: Ints) -> Array:
        return np.asarray(self.network.prior(q, self.name, elements) + sums.total[elements])

    def _read(
        self,
        tables: list[Messages],
        q: Beliefs,
        rows: Draw,
        elements: Ints,
        tangents: Tangents,
        means: bool = False,
    ) -> tuple[Array, int]:
        """Return the sum of the messages of some tables, and the number of rows read."""
        total = np.zeros((len(elements), self.network.hidden[self.name].family.size))
        accesses = 0
        for messages in tables:
            if means and isinstance(messages, ImplicitMessages):
                messages.implicit.read_means(q, rows)
            found = messages(q, rows, elements, tangents)
            total += found.total
            accesses += found.accesses
        return total, accesses

    def bound_term(self, q: Beliefs) -> dict[str, float]:
        return self.plain.bound_term(q)


@dataclass(frozen=True, eq=False)
class MemoizedTopics(Updater):
    """Updates all topics from the sums over the words of all documents, in compiled code.

    Only the words that occur in a part have sums there, so that little memory is needed.
    """

    network: Network
    topics: TopicUpdater
    division: Division
    label = "compiled (topics), sums kept by part"

    @property
    def names(self) -> tuple[str, ...]:
        return self.topics.names

    @cached_property
    def _words(self) -> list[Ints]:
        """By part, the words that occur in it."""
        (edge,) = self.network.edges[self.topics.name]
        table = edge.conditional.variable
        assert table.observed is not None
        grouping = self.network.grouped(self.division.dim)
        rows = [grouping.rows(table.name, part.drawn) for part in self.division.parts]
        return [np.unique(table.observed[some]) for some in rows]

    def sums_by_part(self) -> dict[str, SumsByPart]:
        words = self.network.hidden[self.topics.name].family.size
        shape = (words, len(self.topics.loops.topics))
        return {self.topics.name: SumsByPart.empty(shape, self._words)}

    def update(self, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        name, loops = self.topics.name, self.topics.loops
        sums, visited = rho.memo.sums[name], parts_to_read(self.division, rows, rho)
        if not visited:
            return
        if self.division.begins_sweep(rho.iteration):
            sums.add_up()
        accesses, elements = 0, loops.topics
        means = reads_means_again(self.division, rho)
        for part in visited:
            if means:
                self.topics.implicit.read_means(q, part)
            found = self.topics.implicit.sums(q, part)
            sums.replace(part.number, found.to_phi)
            accesses += loops.reads(found, self.network.edges[name][0], elements)
        read = rows.read(name, elements)
        first = self.division.first_step(rho.iteration)
        step = rho(q, name, elements, read) * (first or 1.0)
        prior: Array = np.array(self.network.prior(q, name, elements))
        scale = np.full(len(elements), 1.0 if first is None else 1 / visited[0].share)
        steps = np.broadcast_to(step, len(elements)).copy()
        np.maximum(sums.total, 0, out=sums.total)  # counts: what is below 0 is rounding
        used = every_word(sums.total) if first is None else found
        loops.update(q, used, prior, steps, scale, at_once=True)
        yield Change(name, NO_ELEMENTS, NO_NATURAL, accesses, step, read, applied=True)

    def bound_term(self, q: Beliefs) -> dict[str, float]:
        return self.topics.bound_term(q)


def parts_to_read(division: Division, rows: Draw, rho: StepRule) -> Sequence[VisitedPart]:
    """Return the parts whose sums are computed in an iteration: one, or in an exact sweep all."""
    if not rho.memo.exact:
        return (division.visited(rho.iteration),)
    return division.parts if division.ends_sweep(rho.iteration) else ()


def reads_means_again(division: Division, rho: StepRule) -> bool:
    """Return whether sums of local choices that are not stored are to be computed at means.

    The sums of the one part that an iteration visits were kept when its choices were updated. At
    the end of an exact sweep the sums of all parts are computed again, as the choices were made.
    """
    return rho.memo.exact > 0 and division.reads_means(rho.iteration)


def every_word(to_phi: Array) -> TopicSums:
    """Return sums that have a row for each word of the vocabulary."""
    none = np.zeros(0, dtype=np.int64)
    small = none.astype(np.int32)
    times = np.zeros(0)
    bag = Bag(none, np.arange(len(to_phi)), none, small, times, none, small, small)
    return TopicSums(bag, np.zeros((0, 0)), to_phi, np.nan)
