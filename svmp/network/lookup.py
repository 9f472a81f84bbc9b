"""The density of an observed Categorical, looked up by category without one-hot arrays.

With x_r the category of row r, E[log p(x_r | p)] is entry x_r of E[log p], and the message to p
is a one at x_r. Words of a text have tens of thousands of categories, so neither is written out.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import CHUNK, Conditional
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints, take_rows
from svmp.network.means.linear import scatter
from svmp.network.slot import Fixed, Single


class Lookup(Conditional):
    """The density of an observed Categorical given its probabilities."""

    def categories(self, rows: Ints) -> Ints:
        """Return the category of each row."""
        observed = self.variable.observed
        assert observed is not None
        return take_rows(observed, rows).astype(np.int64)

    @property
    def summarised(self) -> bool:
        """Never: counts of all categories take more space than the rows."""
        return False

    def densities(self, q: Beliefs, rows: Ints) -> Array:
        slot = self.slots["p"]
        assert isinstance(slot, Single | Fixed)
        category = self.categories(rows)
        if self.components > 1:
            category = np.repeat(category, self.components)
        return slot.entry(q, self.subrows(rows), category).reshape(len(rows), self.components)

    def message_sum(
        self,
        q: Beliefs,
        parent: Symbol,
        elements: Ints,
        owner: Ints,
        rows: Ints,
        tangents: Array | None = None,
    ) -> Array:
        _, slot = self.slot_of(parent)
        if slot is self.selector:
            return super().message_sum(q, parent, elements, owner, rows)
        shape = (len(elements), parent.family.size)
        if self.selector is None:
            return scatter(np.ones(len(rows)), owner, self.categories(rows), shape)
        row, component = np.divmod(rows, self.components)
        return scatter(self.weights(q, row, component), owner, self.categories(row), shape)

    def chunk(self, size: int) -> int:
        return CHUNK // self.components
