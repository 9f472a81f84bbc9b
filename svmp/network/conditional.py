"""p(x | parents) over the rows of x's table: a density, and the slots of its parameters.

In a mixture every row has one sub-row per component, weighted by the probability that the row's
Categorical chose it. Otherwise it has a single sub-row of weight 1, the row itself. So

    E[log p(x_r | pa)] = sum_k E[z_r = k] E[log p(x_r | pa_rk)]

covers both, and the messages are its derivatives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from svmp import families
from svmp.errors import ModelError
from svmp.factors.factor import Factor, Given
from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.binding import Binder, category_axis
from svmp.network.expressions import DiagonalMatrix, Expression, Symbol
from svmp.network.grid import Grid, Ints, Kinds
from svmp.network.linear import Linear
from svmp.network.slot import Slot

CHUNK = 1 << 21
"""Most numbers in an array of messages, to bound the memory."""


class Conditional:
    """The density of one variable given its parents, row by row.

    Attributes
    ----------
    slots
        The random parameters, by name.
    selector
        In a mixture, the slot of the Categorical that chooses.
    components
        Number of sub-rows of a row.
    """

    def __init__(
        self,
        variable: Symbol,
        factor: Factor,
        parameters: Mapping[str, Any],
        length: int | None,
        selector: Any,
    ) -> None:
        self.variable, self.factor = variable, factor
        plate = variable.plate
        binder = Binder(variable.coords, variable.name, plate, plate, 1, dims=variable.dims)
        self.parameters = binder.parameters(parameters)
        self.selector: Slot | None = None
        self.chooser: Expression | DiagonalMatrix | None = None
        self.components = 1
        self.component_axis: str | None = None
        if selector is not None:
            self.chooser = binder.parameters({"z": selector})["z"]
            self.selector = binder.slot("z", self.chooser, families.Categorical)
            axis, self.components = self._component_axis()
            rows = Grid((*plate.labels, axis), (*plate.shape, self.components))
            binder = replace(binder, rows=rows)
            self.component_axis = axis
        choice = factor.child is families.Categorical
        self.category_axis = category_axis(self.parameters["p"]) if choice else None
        if length is None:
            length = 1 if self.category_axis is None else self.category_axis[1]
        event_dim = variable.event_dims[-1] if variable.event_dims else ""
        binder = replace(binder, length=length, event_dim=event_dim)
        self.scope = binder.scope
        self.constants = {
            name: binder.constant(name, self.parameters[name], events)
            for name, events in factor.constants.items()
        }
        self._check_constants()
        self.slots = {
            name: binder.slot(name, self.parameters[name], family)
            for name, family in factor.slots.items()
        }
        self._check_components()
        first = np.arange(plate.size if self.constants else 0) * self.components
        self.family = factor.family(
            length, {k: self.scope.look_up(c, first, first) for k, c in self.constants.items()}
        )

    def _check_constants(self) -> None:
        name = self.variable.name
        trouble = self.factor.check({k: c.values for k, c in self.constants.items()})
        if trouble:
            raise ModelError(f"'{name}': {trouble}")
        trials = self.constants.get("n")
        if trials is not None and self.component_axis in trials.axes:
            # The base measure of a row would depend on its component, and so would its support.
            raise ModelError(f"n of '{name}' must be the same for all components")

    def _check_components(self) -> None:
        """Refuse a mixture of components that are all the same."""
        axis, arrays = self.component_axis, self.constants.values()
        differs = any(axis in c.axes for c in arrays) or any(
            axis in slot.axes for slot in self.slots.values()
        )
        if axis is not None and self.components > 1 and not differs:
            raise ModelError(
                f"all {self.components} {type(self.factor).__name__} components of "
                f"'{self.variable.name}' are the same; give a parameter of them the dimension "
                f"'{axis}', along which z chooses"
            )

    def _component_axis(self) -> tuple[str, int]:
        """Return the axis of a mixture's components: that of its Categorical's probabilities."""
        name = self.variable.name
        (chooser,) = self.selector.variables  # type: ignore[union-attr]
        label, length = chooser.category_axis or (None, 1)
        if label is None:
            raise ModelError(
                f"z of '{name}': the categories of '{chooser.name}' have no dimension; give its p "
                "as a Dirichlet or as svmp.data(p, dims=...)"
            )
        if label in self.variable.plate.labels:
            raise ModelError(f"'{name}' has the components' own dimension '{label}'")
        return label, length

    def all_slots(self) -> list[Slot]:
        """Return every slot, the selector's first."""
        chosen = [] if self.selector is None else [self.selector]
        return [*chosen, *self.slots.values()]

    def parents(self) -> list[Symbol]:
        """Return the variables that it depends on, including observed ones."""
        seen = {v.name: v for slot in self.all_slots() for v in slot.variables}
        return list(seen.values())

    @property
    def title(self) -> str:
        """Name of the density, for people."""
        name = type(self.factor).__name__
        return name if self.selector is None else f"Mixture of {self.components} {name}"

    @cached_property
    def linear(self) -> Linear | None:
        """The mean or logit, where it is linear in variables."""
        return next((s for s in self.slots.values() if isinstance(s, Linear)), None)

    def given(self, q: Beliefs, subrows: Ints, but: str | None = None) -> Given:
        """Return the moments of the parameters at each sub-row; one slot may be left out."""
        given = {n: slot.moments(q, subrows) for n, slot in self.slots.items() if n != but}
        for name, array in self.constants.items():
            given[name] = self.scope.look_up(array, subrows, subrows)
        return given

    def child(self, q: Beliefs, rows: Ints) -> Array:
        """Return the moments of the child at each row: its statistics where it is observed."""
        variable = self.variable
        if variable.observed is None:
            return q.at(variable.name, rows)
        return variable.family.at(rows).statistics(variable.observed[rows])

    def subrows(self, rows: Ints) -> Ints:
        """Return the sub-rows of each row, in the order of the rows."""
        if self.components == 1:
            return rows
        return (rows[:, None] * self.components + np.arange(self.components)).ravel()

    def weights(self, q: Beliefs, rows: Ints, components: Ints) -> Array:
        """Return the probability that each row comes from the component at the same position."""
        assert self.selector is not None
        return self.selector.moments(q, rows)[np.arange(len(rows)), components]

    def to_children(self, q: Beliefs) -> Array:
        """Return the messages to all children; they are cached if no parameter is random."""
        if self.pools:
            one = self.kinds.one_of_each(np.arange(self.kinds.grid.size))
            return self.kinds.everywhere(self.to_child(q, one))
        return self.to_first(q, self.variable.size)

    def to_first(self, q: Beliefs, count: int) -> Array:
        """Return the messages to the first children; they are cached if no parameter is random."""
        if self.parents():
            return self.to_child(q, np.arange(count))
        if count not in self._known:
            self._known[count] = np.array(self.to_child(q, np.arange(count)))
        return self._known[count]

    @cached_property
    def _known(self) -> dict[int, Array]:
        return {}

    def to_child(self, q: Beliefs, rows: Ints) -> Array:
        """Return the message to the child: the expected natural parameter of its prior."""
        if self.pools and len(rows) > self.kinds.grid.size:
            one = self.kinds.one_of_each(np.arange(self.kinds.grid.size))
            return self.to_child(q, one)[self.kinds.of(rows)]
        natural = self.factor.to_child(self.given(q, self.subrows(rows)))
        natural = np.broadcast_to(natural, (len(rows) * self.components, natural.shape[-1]))
        if self.selector is None:
            return natural
        weights = self.selector.moments(q, rows)
        return np.einsum("rk,rkd->rd", weights, natural.reshape(*weights.shape, natural.shape[-1]))

    def densities(self, q: Beliefs, rows: Ints) -> Array:
        """E[log p(x_r | pa_rk)] for every row and component, without the base measure."""
        subrows = self.subrows(rows)
        child = self.child(q, rows)
        if self.components > 1:
            child = np.repeat(child, self.components, axis=0)
        log_density = self.factor.log_density(child, self.given(q, subrows))
        return np.broadcast_to(log_density, subrows.shape).reshape(len(rows), self.components)

    def pooled_density(self, q: Beliefs, absent: Ints | None) -> float:
        """Sum of E[log p(x_r | pa_r)] over all rows but some, from mean moments by kind."""
        one = self.kinds.one_of_each(np.arange(self.kinds.grid.size))
        count, child = self.pooled(q, absent)
        density = self.factor.log_density(child, self.given(q, one))
        return float(count @ np.broadcast_to(density, one.shape))

    def pooled(self, q: Beliefs, absent: Ints | None) -> tuple[Ints, Array]:
        """Return the number of rows of each kind, without some, and their mean moments."""
        moments = q.moments[self.variable.name]
        if absent is None:
            return self.kinds.count(None), self.kinds.mean(moments)
        return self.kinds.mean_without(moments, absent)

    def log_density(self, q: Beliefs, rows: Ints) -> Array:
        """E[log p(x_r | pa_r)] of every row, without the base measure."""
        densities = self.densities(q, rows)
        if self.selector is None:
            return densities[:, 0]
        return np.einsum("rk,rk->r", self.selector.moments(q, rows), densities)

    @cached_property
    def kinds(self) -> Kinds:
        """Kinds of rows: those of one kind have the same parameters."""
        axes = {axis for slot in self.all_slots() for axis in slot.axes}
        axes |= {str(axis) for array in self.constants.values() for axis in array.axes}
        return Kinds.along(self.variable.plate, axes)

    @cached_property
    def pools(self) -> bool:
        """Whether rows can be pooled: they are hidden, and of few kinds."""
        hidden = self.variable.observed is None and self.selector is None
        few = self.kinds.each > 1 and self.kinds.grid.size <= self.chunk(1)
        return hidden and few and not self.factor.convex

    def message(
        self,
        q: Beliefs,
        parent: Symbol,
        elements: Ints,
        rows: Ints,
        child: Array | None = None,
        tangents: Array | None = None,
    ) -> Array:
        """Return the message of each row to the element of the parent at the same position.

        Parameters
        ----------
        q, parent, elements
            The current q, a parent, and the element of it that each row sends its message to.
        rows
            Sub-rows; for the Categorical that chooses among components, rows.
        child
            Moments of the child of each row, instead of those in q.
        tangents
            For a convex factor, the moments of its parameter at the points of contact, by sub-row;
            by default the current moments.
        """
        name, slot = self.slot_of(parent)
        if slot is self.selector:
            return self.densities(q, rows)
        message = self.to_slot(q, name, rows, child, tangents)
        if self.selector is not None:
            weights = self.weights(q, *np.divmod(rows, self.components))
            message = message * weights[:, None]
        return slot.message(q, parent, elements, rows, message)

    def to_slot(
        self,
        q: Beliefs,
        name: str,
        rows: Ints,
        child: Array | None = None,
        tangents: Array | None = None,
    ) -> Array:
        """Return the density's message of each sub-row to a slot."""
        given = self.given(q, rows, but=name)
        if self.factor.convex:
            own = self.slots[name].moments(q, rows) if tangents is None else tangents[rows]
            given = {**given, name: own}
        if child is None:
            child = self.child(q, rows // self.components)
        message = self.factor.to_parent(name, child, given)
        return np.broadcast_to(message, (len(rows), message.shape[-1]))

    def message_sum(
        self,
        q: Beliefs,
        parent: Symbol,
        elements: Ints,
        owner: Ints,
        rows: Ints,
        tangents: Array | None = None,
    ) -> Array:
        """Return for each element of a parent the sum of the messages of its rows.

        `owner` is the position of the element that each row belongs to, in ascending order.
        """
        total = np.zeros((len(elements), parent.family.size))
        step = self.chunk(parent.family.size)
        for start in range(0, len(rows), step):
            who, which = owner[start : start + step], rows[start : start + step]
            message = self.message(q, parent, elements[who], which, tangents=tangents)
            first, last = who[0], who[-1] + 1
            bounds = np.searchsorted(who, np.arange(first, last + 1))
            adder = sparse.csr_array(
                (np.ones(len(who)), np.arange(len(who)), bounds), shape=(last - first, len(who))
            )
            total[first:last] += adder @ message
        return total

    def chunk(self, size: int) -> int:
        """Return the number of rows in a block, which bounds arrays of (rows, components, size)."""
        widest = max([size, self.family.size, *(p.family.size for p in self.parents())])
        return max(1, CHUNK // (widest * self.components))

    def slot_of(self, parent: Symbol) -> tuple[str, Slot]:
        """Return the slot that a variable is in, and its name."""
        if self.selector is not None and any(v is parent for v in self.selector.variables):
            return "z", self.selector
        return next((n, s) for n, s in self.slots.items() if any(v is parent for v in s.variables))
