"""p(x | parents) over the rows of x's table: a density, and the slots of its parameters.

In a mixture every row has one sub-row per component, weighted by the probability that the row's
Categorical chose it. Otherwise it has a single sub-row of weight 1, the row itself. So

    E[log p(x_r | pa)] = sum_k E[z_r = k] E[log p(x_r | pa_rk)]

covers both, and the messages are its derivatives.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from svmp import families
from svmp.errors import ModelError
from svmp.factors.factor import Factor, Given
from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.binding import Binder
from svmp.network.components import check_components, check_constants, component_axis
from svmp.network.expressions import DiagonalMatrix, Expression, Symbol
from svmp.network.grid import Grid, Ints, Kinds, is_range, take_rows
from svmp.network.means.columns import ORDERS, PLACES, is_kept
from svmp.network.means.linear import Linear
from svmp.network.means.pooling import Summary
from svmp.network.means.row_sums import sum_by_owner
from svmp.network.mixture_table import MixtureTable
from svmp.network.parameter_forms import category_axis
from svmp.network.slot import Fixed, Single, Slot

CHUNK = 1 << 21
"""Most numbers in an array of messages, to bound the memory."""
FIXED = 1 << 16
"""Most numbers of messages that are kept, where they never change."""


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
            axis, self.components = component_axis(variable, self.selector)
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
        check_constants(variable.name, factor, self.constants, self.component_axis)
        self.slots = {
            name: binder.slot(name, self.parameters[name], family)
            for name, family in factor.slots.items()
        }
        if self.component_axis is not None and self.components > 1:
            given, axis = (self.constants.values(), self.slots.values()), self.component_axis
            check_components(variable.name, factor, (axis, self.components), *given)
        first = np.arange(plate.size if self.constants else 0) * self.components
        each = {k: self.scope.look_up(c, first, first) for k, c in self.constants.items()}
        try:
            self.family = factor.family(length, each)
        except ValueError as error:
            raise ModelError(f"'{variable.name}': {error}") from None

    def of(self, variable: Symbol) -> Self:
        """Return a copy for a variable with other observed values."""
        other = copy.copy(self)
        other.variable = variable
        other.reread()
        return other

    def reread(self) -> None:
        """Forget what was computed from the observed values, which have changed."""
        for kept in ("_statistics", "_read", "base", "bases", "summary", "summarised"):
            vars(self).pop(kept, None)

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
        alike = self._kept_alike.get(len(subrows))
        given = {**(self._alike(len(subrows)) if alike is None else alike)}
        for name, slot in self.slots.items():
            if name != but and name not in given:
                joint = q.blocks and q.joins(self.variable.name)
                given[name] = (
                    self.parameter(q, name, subrows) if joint else slot.moments(q, subrows)
                )
        for name, array in self.constants.items():
            given[name] = self.scope.look_up(array, subrows, subrows)
        return given

    def _alike(self, count: int) -> Given:
        """Return the parameters that are the same number in all of some sub-rows, and keep them."""
        fixed = {n: s for n, s in self.slots.items() if isinstance(s, Fixed) and not s.varies}
        some = np.zeros(count, dtype=np.int64)  # of which nothing but the length counts
        if len(self._kept_alike) >= ORDERS:
            self._kept_alike.clear()
        self._kept_alike[count] = {n: s.moments(Beliefs(), some) for n, s in fixed.items()}
        return self._kept_alike[count]

    @cached_property
    def _kept_alike(self) -> dict[int, Given]:
        return {}

    def parameter(self, q: Beliefs, name: str, subrows: Ints) -> Array:
        """Return the moments of a slot at each sub-row, as they are together with the child.

        Where q is joint over elements that a row reads, their covariances are added to the second
        moment of its mean (joint_normal.py).
        """
        moments, table = self.slots[name].moments(q, subrows), self.variable.name
        mean = self.factor.slots[name] in (families.Normal, families.MvNormal)
        if not (q.blocks and mean and q.joins(table)):
            return moments
        added, found = q.added(table, subrows), np.array(moments)
        found[:, -added.shape[1] :] += added
        if added.shape[1] == 1 and self.variable.observed is not None:  # rounding
            np.maximum(found[:, 1], found[:, 0] ** 2, out=found[:, 1])
        return found

    def child(self, q: Beliefs, rows: Ints) -> Array:
        """Return the moments of the child at each row: its statistics where it is observed."""
        variable = self.variable
        if variable.observed is None:
            return q.at(variable.name, rows)
        kept = self._read.get(id(rows))
        if kept is not None and kept[0] is rows:
            return kept[1]
        if is_kept(len(rows), variable.plate.size, variable.family.size):
            found = take_rows(self._statistics, rows)
            if found.size <= PLACES and 2 * len(rows) > variable.plate.size:
                found.flags.writeable = False
                if len(self._read) >= ORDERS:
                    self._read.clear()
                self._read[id(rows)] = rows, found
            return found
        return variable.family.at(rows).statistics(variable.observed[rows])

    @cached_property
    def _read(self) -> dict[int, tuple[Ints, Array]]:
        """By identity of an array of rows, the array and the observed statistics of these rows."""
        return {}

    def children(self, q: Beliefs) -> Array:
        """Return the moments of the child at all rows."""
        variable = self.variable
        if variable.observed is None and variable.name in q.moments:
            return q.moments[variable.name]
        kept = is_kept(variable.size, variable.size, variable.family.size)
        return self._statistics if kept else self.child(q, np.arange(variable.size))

    @cached_property
    def _statistics(self) -> Array:
        """The statistics of all observed rows; those of missing rows mean nothing."""
        variable = self.variable
        assert variable.observed is not None
        with np.errstate(all="ignore"):
            return variable.family.at(variable.rows).statistics(variable.observed)

    @cached_property
    def base(self) -> float:
        """Sum of log f(x_r) over the observed rows, by which their densities do not change."""
        return float(sum(np.sum(block) for block in self._bases()))

    @cached_property
    def bases(self) -> list[Array | float]:
        """Log f(x_r) of observed rows, in blocks of `chunk` rows; 0 for a block of zeros."""
        return [block if np.any(block) else 0.0 for block in self._bases()]

    def _bases(self) -> Iterator[Array]:
        variable = self.variable
        assert variable.observed is not None
        rows = variable.rows if variable.present is None else variable.present
        step = self.chunk(variable.family.size)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            yield variable.family.at(some).log_base(variable.observed[some])

    def subrows(self, rows: Ints) -> Ints:
        """Return the sub-rows of each row, in the order of the rows."""
        if self.components == 1:
            return rows
        return (rows[:, None] * self.components + np.arange(self.components)).ravel()

    def weights(self, q: Beliefs, rows: Ints, components: Ints) -> Array:
        """Return the probability that each row comes from the component at the same position."""
        slot = self.selector
        assert slot is not None
        if isinstance(slot, Single) and slot.reader.variable.name in q.moments:
            return slot.entry(q, rows, components)
        return slot.moments(q, rows)[np.arange(len(rows)), components]

    def to_children(self, q: Beliefs) -> Array:
        """Return the messages to all children; they are cached if no parameter is random."""
        if self.pools:
            known = self._fixed
            each = self._to_child(q, self.kinds.examples) if known is None else known
            return self.kinds.everywhere(each)
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
        if self._fixed is not None:
            return self._fixed[self.kinds.of(rows)]
        return self._to_child(q, rows)

    @cached_property
    def _fixed(self) -> Array | None:
        """The message to the child of each kind, if no parameter is random and kinds are few."""
        count = self.kinds.grid.size
        if self.parents() or not 0 < count * self.family.size <= FIXED:
            return None
        return np.array(self._to_child(Beliefs(), self.kinds.examples))

    def _to_child(self, q: Beliefs, rows: Ints) -> Array:
        if self.pools and len(rows) > self.kinds.grid.size:
            return self._to_child(q, self.kinds.examples)[self.kinds.of(rows)]
        natural = self.factor.to_child(self.given(q, self.subrows(rows)))
        natural = np.broadcast_to(natural, (len(rows) * self.components, natural.shape[-1]))
        if self.selector is None:
            return natural
        weights = self.selector.moments(q, rows)
        return np.einsum("rk,rkd->rd", weights, natural.reshape(*weights.shape, natural.shape[-1]))

    def densities(self, q: Beliefs, rows: Ints) -> Array:
        """E[log p(x_r | pa_rk)] for every row and component, without the base measure."""
        child = self.child(q, rows)
        table = self.table_under(q) if len(rows) == self.variable.plate.size else None
        if table is not None and is_range(rows):
            return table.densities(q, child)
        subrows = self.subrows(rows)
        if self.components > 1:
            child = np.repeat(child, self.components, axis=0)
        log_density = self.factor.log_density(child, self.given(q, subrows))
        return np.broadcast_to(log_density, subrows.shape).reshape(len(rows), self.components)

    @cached_property
    def _mixture(self) -> MixtureTable | None:
        """All sub-rows of a mixture as a grid; None if they are none, or too many for one array."""
        if self.selector is None or self.variable.size > self.chunk(1):
            return None
        parts = self.selector, self.slots, self.constants
        return MixtureTable.of(self.factor, self.variable.plate, self.scope, *parts)

    def table_under(self, q: Beliefs) -> MixtureTable | None:
        """Return all sub-rows of a mixture as a grid, if they are and q of the choice is stored."""
        table = None if q.blocks else self._mixture
        if table is None or table.selector.reader.variable.name not in q.moments:
            return None
        return table

    def pooled_density(self, q: Beliefs, absent: Ints | None) -> float:
        """Sum of E[log p(x_r | pa_r)] over all rows but some, from mean moments by kind."""
        one = self.kinds.examples
        count, child = self.pooled(q, absent)
        density = self.factor.log_density(child, self.given(q, one))
        return float(count @ np.broadcast_to(density, one.shape))

    def pooled(self, q: Beliefs, absent: Ints | None) -> tuple[Ints, Array]:
        """Return the number of rows of each kind, without some, and their mean moments."""
        if self.variable.observed is not None:
            return self.summary.count, self.summary.mean
        moments = q.moments[self.variable.name]
        if absent is None:
            return self.kinds.counts, self.kinds.mean(moments)
        return self.kinds.mean_without(moments, absent)

    def log_density(self, q: Beliefs, rows: Ints) -> Array:
        """E[log p(x_r | pa_r)] of every row, without the base measure."""
        densities = self.densities(q, rows)
        if self.selector is None:
            return densities[:, 0]
        return np.einsum("rk,rk->r", self.selector.moments(q, rows), densities)

    @cached_property
    def kinds(self) -> Kinds:
        """Rows grouped by identical parameters."""
        axes = {axis for slot in self.all_slots() for axis in slot.axes}
        axes |= {str(axis) for array in self.constants.values() for axis in array.axes}
        return Kinds.along(self.variable.plate, axes)

    @cached_property
    def pools(self) -> bool:
        """Whether rows can be pooled: they are hidden, and of few kinds."""
        return self.variable.observed is None and self._few_kinds

    def pools_under(self, q: Beliefs) -> bool:
        """Return whether rows can be pooled: not where each is correlated with its mean."""
        return self.pools and not (q.blocks and q.joins(self.variable.name))

    @property
    def _few_kinds(self) -> bool:
        few = self.kinds.each > 1 and self.kinds.grid.size <= self.chunk(1)
        return few and self.selector is None and not self.factor.convex

    @cached_property
    def summarised(self) -> bool:
        """Whether observed rows are of few kinds, so that their mean statistics suffice."""
        observed = self.variable.observed is not None
        return observed and self._few_kinds and self.summary.is_precise(self.family)

    @cached_property
    def summary(self) -> Summary:
        """The observed rows of each kind."""
        variable, step = self.variable, self.chunk(self.family.size)
        assert variable.observed is not None
        return Summary.of(self.kinds, self.family, variable.observed, variable.present, step)

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
        message = self.weighted_to_slot(q, name, rows, child, tangents)
        return slot.message(q, parent, elements, rows, message)

    def weighted_to_slot(
        self,
        q: Beliefs,
        name: str,
        rows: Ints,
        child: Array | None = None,
        tangents: Array | None = None,
    ) -> Array:
        """Return `to_slot` times the probability that a row comes from its component."""
        message = self.to_slot(q, name, rows, child, tangents)
        if self.selector is None:
            return message
        return message * self.weights(q, *np.divmod(rows, self.components))[:, None]

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
            own = self.parameter(q, name, rows) if tangents is None else tangents[rows]
            given = {**given, name: own}
        if child is None:
            child = self.child(q, rows if self.components == 1 else rows // self.components)
        message = self.factor.to_parent(name, child, given)
        if message.shape[:-1] == rows.shape:
            return message
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
        name, slot = self.slot_of(parent)
        total = np.zeros((len(elements), parent.family.size))
        step = self.chunk(slot.message_size(parent))
        for start in range(0, len(rows), step):
            whole = len(rows) <= step
            who = owner if whole else owner[start : start + step]
            which = rows if whole else rows[start : start + step]
            first, last = (0, len(elements)) if whole else (int(who[0]), int(who[-1]) + 1)
            if slot is self.selector:
                found = sum_by_owner(self.densities(q, which), who - first, last - first)
            else:
                message = self.weighted_to_slot(q, name, which, tangents=tangents)
                who = who if whole else who - first
                found = slot.message_sum(q, parent, elements[first:last], who, which, message)
            total[first:last] += found
        return total

    @cached_property
    def block_size(self) -> int:
        """Number of rows in a block of arrays as large as the statistics of the child."""
        return self.chunk(self.family.size)

    def chunk(self, size: int) -> int:
        """Return the number of rows in a block, which bounds arrays of (rows, components, size)."""
        return max(1, CHUNK // (max(size, self._widest) * self.components))

    @cached_property
    def _widest(self) -> int:
        """Most numbers that are computed for one sub-row."""
        return max([self.family.size, *(slot.row_size for slot in self.all_slots())])

    def slot_of(self, parent: Symbol) -> tuple[str, Slot]:
        """Return the slot that a variable is in, and its name."""
        return self._slot_of[parent.name]

    @cached_property
    def _slot_of(self) -> dict[str, tuple[str, Slot]]:
        chosen = {} if self.selector is None else {"z": self.selector}
        slots = [*chosen.items(), *self.slots.items()]
        return {v.name: (name, slot) for name, slot in reversed(slots) for v in slot.variables}
