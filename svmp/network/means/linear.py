"""A mean that is linear in each Gaussian variable: biases, regressions, (bi-, tri-)linear models.

The mean of a row is a sum of entries, mu = sum_e c_e prod_f x_f(e). An entry reads one element of
each of its operands. As a function of one element x it is mu = a . x + b, where a and b are random
and depend on the other variables. So a message (m_1, m_2) to (mu, mu^2) becomes, to (x, x x^T),

    (m_1 E[a] + 2 m_2 E[a b],  m_2 E[a a^T]).

For the paper's matrix factorization this is equation (6). All expectations are exact, even where
two entries of a row share a variable (x y + y) or read entries of one vector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from svmp.families.family import Array, stack
from svmp.network.beliefs import Beliefs
from svmp.network.colouring import greedy_colours
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints, Labelled
from svmp.network.means.entry_sums import message_sums
from svmp.network.means.regular import RegularTerm
from svmp.network.means.terms import LinearTerm as LinearTerm
from svmp.network.means.terms import dimension as dimension
from svmp.network.means.terms import (
    pair_by_owner,
    reading_entries,
    second_moment,
    share_variable,
)
from svmp.network.means.terms import scatter as scatter
from svmp.network.slot import Single, Slot


@dataclass(frozen=True, eq=False)
class Linear(Slot):
    """The mean of the Normal `name` as a sum of terms."""

    name: str
    terms: tuple[LinearTerm, ...]

    @property
    def varies(self) -> bool:
        return True

    @property
    def variables(self) -> list[Symbol]:
        seen = {r.variable.name: r.variable for t in self.terms for r in t.readers}
        return list(seen.values())

    @property
    def arrays(self) -> tuple[Labelled, ...]:
        return tuple(c for t in self.terms for c in (*t.constants, t.design) if c is not None)

    @cached_property
    def single(self) -> Single | None:
        """The mean as one element of a Normal, if it is that and nothing else.

        Moments and messages then pass unchanged.
        """
        (first, *others) = self.terms or (None,)
        if first is None or others or first.constants or first.design is not None:
            return None
        (reader, *more) = first.readers
        plain = first.scale == 1 and not first.scope.inner.labels and not more
        return Single(reader) if plain and not reader.variable.event_dims else None

    @cached_property
    def _same(self) -> bool:
        """Whether the mean of all rows is one element of a Normal, so that none is looked up."""
        return self.single is not None and not self.single.varies

    def mean(self, q: Beliefs, rows: Ints) -> Array:
        """E[mu] of each row: stored in q, or computed."""
        if self.name in q.means:
            return q.means[self.name][rows]
        if self.name in q.row_moments and not self._same:
            return q.row_moments[self.name](q, rows)[:, 0]
        if self.single is not None:
            return self.single.moments(q, rows)[:, 0]
        total = np.zeros(len(rows))
        for term in self.terms:
            if term.regular is not None:
                total += term.regular.mean(q, rows)
                continue
            at = term.entries(rows)
            total += np.bincount(at.owner, term.mean(q, at), len(rows))
        return total

    @cached_property
    def _alone(self) -> dict[str, RegularTerm]:
        """By variable, its term, where that is regular and has no variable of another term."""
        return {
            reader.variable.name: term.regular
            for term in self.terms
            if term.regular is not None
            and not any(share_variable(term, t) for t in self.terms if t is not term)
            for reader in term.readers
        }

    def regular(self, variable: Symbol) -> RegularTerm | None:
        """Return the only term of a variable, if it is regular and shares none with another."""
        return self._alone.get(variable.name)

    @cached_property
    def row_size(self) -> int:
        return max([self.message_size(variable) for variable in self.variables], default=1)

    def message_size(self, variable: Symbol) -> int:
        return self._message_sizes[variable.name]

    @cached_property
    def _message_sizes(self) -> dict[str, int]:
        found = {}
        for variable in self.variables:
            term, size = self.regular(variable), variable.family.size
            if term is not None:
                size = max(term.row_size, 2)
            elif variable.event_dims:
                entries = sum(t.most_entries for t in self.terms if t.reader(variable) is not None)
                size = min(size, max(entries**2, 2))
            found[variable.name] = size
        return found

    def moments(self, q: Beliefs, rows: Ints) -> Array:
        if self.name in q.row_moments and not self._same:
            return q.row_moments[self.name](q, rows)
        if self.single is not None:
            return self.single.moments(q, rows)
        mean = self.mean(q, rows)
        return stack(mean, mean**2 + self.variance(q, rows))

    def variance(self, q: Beliefs, rows: Ints) -> Array:
        """Var[mu] of each row: the sum of the covariances of entries that share a variable."""
        total = np.zeros(len(rows))
        for i, left in enumerate(self.terms):
            for right in self.terms[i:]:
                if left is right and left.regular is not None:
                    total += left.regular.variance(q, rows)
                    continue
                if not share_variable(left, right):
                    continue
                a = b = left.entries(rows)
                if left is not right or not left.separable:
                    a, b = pair_by_owner(a, right.entries(rows))
                cross = second_moment(q, left, a, right, b) - left.mean(q, a) * right.mean(q, b)
                total += (1 if left is right else 2) * np.bincount(a.owner, cross, len(rows))
        return total

    def message(
        self, q: Beliefs, variable: Symbol, elements: Ints, rows: Ints, incoming: Array
    ) -> Array:
        if self.single is not None:
            return incoming
        every, mean = np.arange(len(rows)), self.mean(q, rows)
        return message_sums(q, self.terms, variable, elements, every, rows, incoming, mean)

    def message_sum(
        self,
        q: Beliefs,
        variable: Symbol,
        elements: Ints,
        owner: Ints,
        rows: Ints,
        incoming: Array,
    ) -> Array:
        if self.single is not None:
            return super().message_sum(q, variable, elements, owner, rows, incoming)
        term = self.regular(variable)
        if term is None:
            mean = self.mean(q, rows)
            return message_sums(q, self.terms, variable, elements, owner, rows, incoming, mean)
        alone = len(self.terms) == 1 and variable.event_dims and self.name not in q.row_moments
        total = None if alone else self.mean(q, rows)
        return term.message_sum(q, variable, elements, owner, rows, incoming, total)

    def pairs(self, variable: Symbol, rows: Ints) -> tuple[Ints, Ints]:
        found = []
        for term in self.terms:
            reader = term.reader(variable)
            if reader is not None:
                at = term.entries(rows)
                found.append((reader.element(at.rows, at.inner), at.rows))
        elements, where = (np.concatenate(part) for part in zip(*found, strict=True))
        return elements, where

    def labels(self, variable: Symbol) -> set[str]:
        found: set[str] = set()
        for term in self.terms:
            reader = term.reader(variable)
            if reader is not None:
                design = () if term.design is None else term.design.axes  # of elements read
                found |= reader.labels | {str(axis) for axis in design}
        return found

    def width(self, variable: Symbol) -> int:
        widths = []
        for term in self.terms:
            reader = term.reader(variable)
            if reader is not None:
                widths.append(reader.width if term.design is None else term.most_entries)
        return sum(widths)

    def shares_rows(self, variable: Symbol) -> bool:
        reads = [(t, r) for t in self.terms if (r := t.reader(variable)) is not None]
        term, reader = reads[0]
        inner = term.scope.inner
        every = reader.carried in (set(), set(inner.labels)) and inner.size > 0
        return len(reads) == 1 and term.design is None and every and not reader.keyed_by_inner

    def first_pairs(self, variable: Symbol, rows: Ints) -> tuple[Ints, Ints]:
        reader = next(r for t in self.terms if (r := t.reader(variable)) is not None)
        return reader.element(rows, np.zeros_like(rows)), rows

    def firsts(self, variable: Symbol) -> Ints | None:
        reader = next(r for t in self.terms if (r := t.reader(variable)) is not None)
        return reader.everywhere() if self.shares_rows(variable) else None

    def base(self, variable: Symbol, elements: Ints) -> Ints:
        reads = [r for t in self.terms if (r := t.reader(variable)) is not None]
        return reads[0].base_of(elements) if len(reads) == 1 else elements

    def colours(self, variable: Symbol, rows: Callable[[], Ints]) -> Ints | None:
        """Elements in one sum are co-parents and must not be updated together."""
        reads = [(t, r) for t in self.terms if (r := t.reader(variable)) is not None]
        if len(reads) == 1:
            ((term, reader),) = reads
            if term.design is None and not reader.keyed_by_inner:
                return reader.inner_of(np.arange(variable.size)) if reader.carried else None
        elements, where = self.pairs(variable, rows())
        return greedy_colours(elements, where, variable.size)

    def shift(
        self, q: Beliefs, variable: Symbol, elements: Ints, owner: Ints, rows: Ints, change: Array
    ) -> Array:
        """Return the change of E[mu] of each row when the moments of its element change."""
        term = self.regular(variable)
        if term is not None:
            return term.shift_at(q, variable, elements, owner, rows, change)
        total = np.zeros(len(rows))
        for _, reader, at, a in reading_entries(self.terms, q, variable, elements[owner], rows):
            component = reader.component(at.rows, at.inner)
            total += np.bincount(at.owner, a * change[owner[at.owner], component], len(rows))
        return total
