"""All sub-rows of a mixture at once, where parameters are told apart by axes and not by keys.

The sub-rows (r, k) of a mixture are a grid: the axes of the table, and the axis of components. Most
parameters vary along few of these axes. They are read once for each kind and broadcast over the
grid, instead of being looked up for every sub-row, in

    E[log p(x_r | pa_rk)]                       of all rows and components,
    sum over r of E[z_r = k] eta_(r -> pa_rk)   the messages to a parameter of the components.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.factors.factor import Factor
from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Grid, Ints, Kinds, Labelled, Scope
from svmp.network.means.linear import Linear
from svmp.network.means.row_sums import sum_of_products
from svmp.network.reader import Reader
from svmp.network.slot import Single, Slot


@dataclass(frozen=True, eq=False)
class MixtureTable:
    """The sub-rows of a mixture as a grid.

    Attributes
    ----------
    plate, scope
        The axes of the table, and those of its sub-rows, of which that of components is last.
    selector
        The slot of the Categorical that chooses, with an element for each kind of rows.
    """

    factor: Factor
    plate: Grid
    scope: Scope
    selector: Single
    slots: Mapping[str, Slot]
    constants: Mapping[str, Labelled]

    @classmethod
    def of(
        cls,
        factor: Factor,
        plate: Grid,
        scope: Scope,
        selector: Slot | None,
        slots: Mapping[str, Slot],
        constants: Mapping[str, Labelled],
    ) -> MixtureTable | None:
        """Return the grid of a mixture; None for other densities, or if rows choose by a key."""
        if factor.convex or not isinstance(selector, Single) or not by_axes(selector.reader):
            return None
        return cls(factor, plate, scope, selector, slots, constants)

    def spread(self, values: NDArray[Any], kinds: Kinds) -> NDArray[Any]:
        """Return values of each kind in a shape that broadcasts over the axes of a grid."""
        grid, own = kinds.plate, kinds.grid.labels
        shape = (n if a in own else 1 for a, n in zip(grid.labels, grid.shape, strict=True))
        return values.reshape(*shape, *values.shape[1:])

    @cached_property
    def _kinds(self) -> dict[str, Kinds]:
        """Kinds of sub-rows, by parameter: those of one kind have the same."""
        axes = {name: slot.axes for name, slot in self.slots.items()}
        axes |= {name: set(map(str, array.axes)) for name, array in self.constants.items()}
        return {name: Kinds.along(self.scope.rows, own) for name, own in axes.items()}

    def given(self, q: Beliefs, but: str | None = None) -> dict[str, Array]:
        """Return the moments of the parameters on the grid; one slot may be left out."""
        found = {}
        for name, slot in self.slots.items():
            if name != but:
                kinds = self._kinds[name]
                found[name] = self.spread(slot.moments(q, kinds.examples), kinds)
        for name, array in self.constants.items():
            kinds = self._kinds[name]
            values = self.scope.look_up(array, kinds.examples, kinds.examples)
            found[name] = self.spread(values, kinds) if array.axes else values
        return found

    def child(self, moments: Array) -> Array:
        """Return the moments of the children of all rows on the grid."""
        return moments.reshape(*self.plate.shape, 1, moments.shape[-1])

    def densities(self, q: Beliefs, moments: Array) -> Array:
        """E[log p(x_r | pa_rk)] of all rows and components, without the base measure."""
        found = self.factor.log_density(self.child(moments), self.given(q))
        return np.broadcast_to(found, self.scope.rows.shape).reshape(self.plate.size, -1)

    @cached_property
    def _choices(self) -> Kinds:
        """Rows grouped by identical choice."""
        return Kinds.along(self.plate, self.selector.reader.labels)

    @cached_property
    def places(self) -> dict[str, Ints | slice]:
        """By slot, the element of its variable of each kind, as an index; "z" for the Categorical.

        Slots that are more than one element, or read it by a key, are left out.
        """
        found = {"z": place_of(self.selector.reader, self._choices)}
        for name, slot in self.slots.items():
            single = slot.single if isinstance(slot, Linear) else slot
            if isinstance(single, Single) and by_axes(single.reader):
                found[name] = place_of(single.reader, self._kinds[name])
        return found

    def choice_sums(self, q: Beliefs, moments: Array) -> Array:
        """Return the sum of the messages of all rows to the choice of each kind."""
        return self._choices.total(self.densities(q, moments))

    def message_sums(self, name: str, q: Beliefs, moments: Array) -> Array:
        """Return the sum of the messages of all rows to the element in a slot of each kind.

        Where they do not depend on the component, they are a product of matrices.
        """
        kinds, grid = self._kinds[name], self.scope.rows
        weights = q.moments[self.selector.reader.variable.name][self.places["z"]]
        message = self.factor.to_parent(name, self.child(moments), self.given(q, but=name))
        alike = message.shape[:-1] == (len(weights), 1)  # of all components of a row
        if alike and kinds.grid.labels == grid.labels[-1:]:
            return sum_of_products(weights, message.reshape(len(weights), -1))
        weighted = self.spread(weights, self._choices)[..., None] * message
        full = np.broadcast_to(weighted, (*grid.shape, weighted.shape[-1]))
        return kinds.total(full.reshape(grid.size, -1))


def by_axes(reader: Reader) -> bool:
    """Return whether an operand is read by axes alone, so that every kind has its own element."""
    return not any(isinstance(place, Labelled) for place in reader.index)


def place_of(reader: Reader, kinds: Kinds) -> Ints | slice:
    """Return the element of each kind as an index: a slice if they are all, in order."""
    elements = reader.element(kinds.examples, kinds.examples)
    every = np.arange(reader.variable.size)
    return slice(None) if np.array_equal(elements, every) else elements
