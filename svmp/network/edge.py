"""An edge of the network: from a hidden variable to a table that depends on it.

Its key gives the rows of the table that are children of each element, whose messages are summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from svmp.families.family import Array, Bools
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import CHUNK, Conditional
from svmp.network.grid import Ints, Kinds, complement, is_range, ragged, take_rows
from svmp.network.means.linear import Linear
from svmp.network.means.regular import RegularTerm
from svmp.network.slot import Product, Single, Slot
from svmp.network.variable import Variable

KEPT = 1 << 20
"""Most rows whose order by element is kept from one sweep to the next."""


class Key(NamedTuple):
    """The rows of a table by the element that they depend on.

    Attributes
    ----------
    begin
        Where the rows of each element begin, and where the last ones end.
    rows
        The rows of the first element, ascending, then those of the second, and so on.
    """

    begin: Ints
    rows: Ints


@dataclass(frozen=True, eq=False)
class Edge:
    """From a hidden parent to the table of a child: its rows, sorted by the parent's element.

    Attributes
    ----------
    present
        The rows of the table that send messages, ascending; None for all of them.
    """

    parent: Variable
    conditional: Conditional
    present: Ints | None

    @cached_property
    def choosing(self) -> bool:
        """Whether the parent is the Categorical that chooses among the child's components."""
        selector = self.conditional.selector
        return selector is not None and any(v is self.parent for v in selector.variables)

    @cached_property
    def slot(self) -> Slot:
        """The parameter of the child that the parent is in."""
        return self.conditional.slot_of(self.parent)[1]

    @cached_property
    def fan(self) -> int:
        """Components per child that read an element."""
        axis = self.conditional.component_axis
        if axis is None or self.choosing or axis in self.slot.labels(self.parent):
            return 1
        return self.conditional.components

    def _pairs(self, rows: Ints) -> tuple[Ints, Ints]:
        """List (element, row) or (element, sub-row) pairs, perhaps with duplicates."""
        if not self.choosing:
            rows = self.conditional.subrows(rows)
        return self.slot.pairs(self.parent, rows)

    @property
    def _reads_once(self) -> bool:
        """Whether `_pairs` has no duplicates."""
        return isinstance(self.slot, Single | Product)

    @property
    def _present(self) -> Ints:
        return self.conditional.variable.plate.cells if self.present is None else self.present

    @cached_property
    def _kept_subrows(self) -> Ints | None:
        """The sub-rows that send messages, the same array each time; None if they are many."""
        many = self.conditional.variable.size * self.conditional.components > KEPT
        return None if many else self.conditional.subrows(self._present)

    @cached_property
    def _absent(self) -> Ints | None:
        return complement(self.present, self.conditional.variable.size)

    @property
    def _row_count(self) -> int:
        return self.conditional.variable.size * (
            1 if self.choosing else self.conditional.components
        )

    def pairs_in(self, rows: Ints) -> tuple[Ints, Ints]:
        """List the distinct (element, row) pairs of these rows, by element."""
        return self._distinct(*self._pairs(rows))

    def _distinct(self, elements: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """Sort and deduplicate pairs."""
        pairs = elements * self._row_count + rows
        if (pairs[1:] > pairs[:-1]).all():
            return elements, rows
        pairs.sort()
        if not self._reads_once:
            pairs = pairs[np.flatnonzero(np.diff(pairs, prepend=-1))]
        return np.divmod(pairs, self._row_count)

    @cached_property
    def _bases(self) -> Ints | None:
        """For each element the first one of its sum, if all of a sum have the same rows."""
        if self.choosing or not self.slot.shares_rows(self.parent):
            return None
        return self.slot.base(self.parent, np.arange(self.parent.size))

    def _base(self, elements: Ints) -> Ints:
        return elements if self._bases is None else self._bases[elements]

    def _first_pairs(self, rows: Ints) -> tuple[Ints, Ints]:
        """List the distinct (element, row) pairs, of elements with the same rows only the first."""
        if self._bases is None:
            return self.pairs_in(rows)
        return self.slot.first_pairs(self.parent, self.conditional.subrows(rows))

    @cached_property
    def _key(self) -> Key:
        """The rows of each element, or only of the first of elements with the same rows."""
        elements, rows = self._first_pairs(self._present)
        if self._bases is not None:
            elements, rows = self._distinct(elements, rows)
        ends = np.cumsum(np.bincount(elements, minlength=self.parent.size))
        return Key(np.concatenate([[0], ends]), rows)

    @property
    def crowded(self) -> bool:
        """Whether there are more reads than elements, so that some element has two rows."""
        if self.choosing or not self.slot.shares_rows(self.parent):
            return False
        size = self.conditional.variable.size
        count = size if self.present is None else len(self.present)
        return count * self.slot.width(self.parent) > self.parent.size

    @cached_property
    def children(self) -> Ints:
        """Number of rows that depend on each element of the parent."""
        return self.children_in(None)

    def mark(self, reached: Bools) -> None:
        """Mark the elements of the parent that some row depends on."""
        reached |= self.children > 0  # counted here, since inference asks for it as well

    def children_in(self, rows: Ints | None) -> Ints:
        """Return the number of these rows, or of all, that depend on each element of the parent.

        Only one row of every kind is listed, so that the components of a mixture, which read all
        rows, need no list of them.
        """
        if self._kinds.each == 1:  # all rows are of different kinds
            elements = self._firsts() if rows is None else None
            if elements is None:
                rows = self._present if rows is None else rows
                elements, _ = self._pairs(rows) if self._reads_once else self._first_pairs(rows)
            count = np.bincount(elements, minlength=self.parent.size)
            return count[self._base(np.arange(self.parent.size))] // self.fan
        times = self._times(rows)
        some = self._kinds.one_of_each(np.flatnonzero(times))
        elements, found = self._first_pairs(some)
        if not self.choosing:
            found = found // self.conditional.components
        count = np.bincount(elements, times[self._kinds.of(found)], self.parent.size)
        return count[self._base(np.arange(self.parent.size))].astype(np.int64) // self.fan

    def _firsts(self) -> Ints | None:
        """Return the first element read by every row, if no row is missing and all read one sum."""
        whole = self.present is None and self.conditional.components == 1
        return self.slot.firsts(self.parent) if whole and not self.choosing else None

    def _times(self, rows: Ints | None) -> Ints:
        """Return the number of these rows, or of all, of each kind."""
        if rows is not None:
            return self._kinds.count(rows)
        if self._absent is None:
            return self._kinds.count(None)
        return self._kinds.each - self._kinds.count(self._absent)  # few are absent

    @cached_property
    def _kinds(self) -> Kinds:
        """Rows grouped by the elements that they read."""
        return Kinds.along(self.conditional.variable.plate, self.slot.labels(self.parent))

    def children_at(self, elements: Ints, owner: Ints, place: Ints) -> tuple[Ints, Ints]:
        """Return children by their position among those of an element: the owners, and the rows."""
        starts = self._key.begin[self._base(elements)[owner]] + place * self.fan
        which, place = ragged(starts, np.full(len(starts), self.fan))
        return owner[which], self._key.rows[place]

    def colours(self) -> Ints | None:
        """Colour the parent's elements so that no two of one colour share a sub-row."""
        if self.choosing:
            return None

        def rows() -> Ints:
            kinds = np.flatnonzero(self._times(None))
            return self.conditional.subrows(self._kinds.one_of_each(kinds))

        return self.slot.colours(self.parent, rows)

    def rows_of(self, elements: Ints) -> tuple[Ints, Ints]:
        """Return the rows of these elements, and the position of the element that owns each."""
        elements = self._base(elements)
        kept = self._kept.get("all")
        if kept is not None and (kept[0] is elements or np.array_equal(kept[0], elements)):
            return kept[1:]
        every = self._bases is None and len(elements) == self.parent.size and is_range(elements)
        if every and self._row_count <= KEPT:
            owner, rows = self.pairs_in(self._present)
        else:
            starts = self._key.begin[elements]
            owner, place = ragged(starts, self._key.begin[elements + 1] - starts)
            rows = self._key.rows[place]
            every = len(self._key.rows) == len(rows)
        if every and len(rows) <= KEPT:
            self._kept["all"] = (elements, owner, rows)
        return owner, rows

    @cached_property
    def _kept(self) -> dict[str, tuple[Ints, Ints, Ints]]:
        """The result of `rows_of` for elements that read all rows, which every sweep asks for."""
        return {}

    def message(
        self,
        q: Beliefs,
        elements: Ints,
        owner: Ints,
        rows: Ints,
        tangents: Array | None = None,
    ) -> Array:
        """Return for each element the sum of the messages of its rows."""
        every = len(elements) == self.parent.size and is_range(elements)
        if self._grid is not None and every and len(rows) == len(self._grid):
            rows = self._grid
        return self.conditional.message_sum(q, self.parent, elements, owner, rows, tangents)

    @cached_property
    def _grid(self) -> Ints | None:
        """All rows in the order of the table, if products of matrices sum over them at once.

        These know by the place of a row which element it reads, and need no owners.
        """
        slot, step = self.slot, self.conditional.chunk(1)
        term = slot.regular(self.parent) if isinstance(slot, Linear) else None
        if term is None or term.table_product is None or self.conditional.variable.size > step:
            return None
        rows = self._present
        return rows if 2 * len(rows) > term.table_product.size else None

    def shift_means(self, q: Beliefs, term: RegularTerm, change: Array) -> None:
        """Add to the stored means of rows what a change of all elements' moments adds."""
        given = self.conditional
        rows, step = self._kept_subrows, max(1, CHUNK // term.size)
        if rows is None:
            rows = given.subrows(self._present)
        for start in range(0, len(rows), step):
            part = rows if len(rows) <= step else rows[start : start + step]
            q.means[given.variable.name][part] += term.shift(q, self.parent, part, change)

    def pooled_message(self, q: Beliefs, elements: Ints) -> Array:
        """Return `message` for elements that read all of their rows, computed kind by kind.

        A message is linear in the moments of the child, so the sum over rows with the same
        parameters is their number times the message of their mean moments.
        """
        owner, rows, kind = self._kind_pairs
        count, child = self.conditional.pooled(q, self._absent)
        name, slot = self.conditional.slot_of(self.parent)
        message = self.conditional.to_slot(q, name, rows, child[kind])
        every, message = np.arange(self.parent.size), count[kind][:, None] * message
        return slot.message_sum(q, self.parent, every, owner, rows, message)[elements]

    def table_message(self, q: Beliefs, elements: Ints) -> Array | None:
        """Return `message` for elements of a mixture that read all of their rows, all rows at once.

        None if the rows are no mixture that is a grid.
        """
        given = self.conditional
        table = given.table_under(q) if self.present is None else None
        if table is None:
            return None
        name, _ = given.slot_of(self.parent)
        place = table.places.get(name)
        if place is None:
            return None
        sums = table.choice_sums if self.choosing else partial(table.message_sums, name)
        total = sums(q, given.children(q))
        if not isinstance(place, slice):
            found, total = total, np.zeros((self.parent.size, total.shape[1]))
            total[place] = found
        return take_rows(total, elements)

    @cached_property
    def _kind_pairs(self) -> tuple[Ints, Ints, Ints]:
        """The (element, row) pairs of one row of each kind, by element, and the kind of each."""
        kinds = self.conditional.kinds
        owner, rows = self.pairs_in(kinds.examples)
        return owner, rows, kinds.of(rows)
