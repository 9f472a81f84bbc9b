"""Put the networks of several parts together into one.

Every part costs something, whatever its number of rows. So parts of a group that are in memory
anyway are put together: rows and own elements follow each other in the order of the parts, keys to
own elements are moved by the number of those before, and shared elements stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from svmp.network.declaration import Declaration
from svmp.network.expressions import DiagonalMatrix, Expression, Index, Operand, Sum, Term
from svmp.network.grid import Labelled
from svmp.network.means.vector_mean import VectorMean
from svmp.network.network import Network
from svmp.network.variable import Component, Variable
from svmp.parts.sharing import Sharing


class ApartError(Exception):
    """The networks cannot be put together."""


def merged(models: Sequence[Declaration], sharing: Sharing) -> Declaration | None:
    """Return one network for the rows of several parts; None if they cannot be put together.

    Shared dims must have the same labels in all of them.
    """
    try:
        return Merger.of(models, sharing).merged()
    except ApartError:
        return None


def merged_observations(
    models: Sequence[Declaration],
    every: Sequence[Mapping[str, Variable]],
    whole: Declaration,
    sharing: Sharing,
) -> dict[str, Variable] | None:
    """Return variables that are observed with other values than in the networks put together.

    None if they cannot be put together.

    Parameters
    ----------
    models, whole
        The networks of the parts, and the one of all of them.
    every
        For each part, its variables with other values; of those that it does not have, all values
        are missing.
    sharing
        What the parts share.
    """
    try:
        return _merged_observations(Merger.of(models, sharing), every, whole)
    except ApartError:
        return None


def _merged_observations(
    merger: Merger, every: Sequence[Mapping[str, Variable]], whole: Declaration
) -> dict[str, Variable]:
    found = {}
    for name in dict.fromkeys(name for some in every for name in some):
        values, missing = [], []
        for model, some in zip(merger.models, every, strict=True):
            here = some.get(name)
            declared = model.variables[name]
            values.append(np.zeros(declared.shape) if here is None else _values(here))
            missing.append(np.ones(declared.plate.shape, bool) if here is None else _missing(here))
        variable = whole.variables[name]
        array = merger.joined(values, variable.dims)
        mask = merger.joined(missing, variable.plate.labels)
        mask = mask.reshape(mask.shape + (1,) * (array.ndim - mask.ndim))
        mask = np.broadcast_to(mask, array.shape)
        found[name] = variable.observing(np.ma.masked_array(array, mask))
    return found


@dataclass(frozen=True, eq=False)
class Merger:
    """Puts networks together.

    Attributes
    ----------
    models
        The networks of the parts.
    sizes
        By dim along which parts follow each other, its size in each part.
    found
        The network of all of them.
    """

    models: Sequence[Declaration]
    sizes: Mapping[str, list[int]]
    found: Declaration

    @classmethod
    def of(cls, models: Sequence[Declaration], sharing: Sharing) -> Merger:
        """Find the dims along which parts follow each other."""
        first = models[0]
        network = Network(first)
        if network.chains:
            raise ApartError  # their sequences would have to be put together too
        shared = {d for n in sharing.shared for d in network.hidden[n].dims}
        sizes: dict[str, list[int]] = {}
        coords: dict[str, Any] = {}
        for dim in first.sizes:
            every = [model.sizes[dim] for model in models]
            follows = any(
                dim in v.dims and (v.name in sharing.own or not v.hidden)
                for v in first.variables.values()
            )
            if dim in shared or not follows:
                if len(set(every)) > 1:
                    raise ApartError
                coords[dim] = every[0]
            else:
                sizes[dim], coords[dim] = every, sum(every)
        return cls(models, _only_divided(first, sharing, sizes, coords), Declaration(coords))

    def merged(self) -> Declaration:
        """Declare all variables again."""
        for name in self.models[0].variables:
            self.found.variables[name] = self.variable([m.variables[name] for m in self.models])
        return self.found

    def variable(self, every: Sequence[Variable]) -> Variable:
        """Return a variable with the elements of all parts."""
        first = every[0]
        conditionals = [v.conditional for v in every]
        if any(isinstance(slot, VectorMean) for slot in first.conditional.slots.values()):
            raise ApartError  # its plain arrays are aligned by another rule
        parameters = {
            name: self.parameter(first, [c.parameters[name] for c in conditionals], name)
            for name in conditionals[0].parameters
        }
        selector = None
        if conditionals[0].chooser is not None:
            selector = self.parameter(first, [c.chooser for c in conditionals], "z")
        observed = missing = None
        if first.observed is not None:
            observed = self.joined([_values(v) for v in every], first.dims)
            if any(v.present is not None for v in every):
                missing = self.joined([_missing(v) for v in every], first.plate.labels)
        return Variable(
            self.found.coords,
            first.name,
            Component(conditionals[0].factor, parameters),
            first.dims,
            observed,
            False if missing is None else missing,
            selector,
        )

    def parameter(
        self, variable: Variable, every: Sequence[Any], name: str
    ) -> Expression | DiagonalMatrix:
        """Return a parameter of the rows of all parts."""
        first = every[0]
        if isinstance(first, DiagonalMatrix):
            entries = self.expression(variable, [e.entries for e in every], ())
            return DiagonalMatrix(entries)
        return self.expression(variable, every, variable.plate.labels, self.events(variable, name))

    @staticmethod
    def events(variable: Variable, name: str) -> int:
        """Return the number of axes that each value of a parameter has."""
        factor = variable.conditional.factor
        if name in factor.constants:
            return int(factor.constants[name])
        return factor.slots[name].event_ndim if name in factor.slots else 0

    def expression(
        self,
        variable: Variable,
        every: Sequence[Expression],
        plate: Sequence[str],
        events: int = 0,
    ) -> Sum:
        """Return an expression of the rows of all parts."""
        counts = {len(e.terms) for e in every}
        if len(counts) > 1:
            raise ApartError
        terms = zip(*(e.terms for e in every), strict=True)
        return Sum(tuple(self.term(some, plate, events) for some in terms))

    def term(self, every: Sequence[Term], plate: Sequence[str], events: int) -> Term:
        """Return a term of the rows of all parts."""
        first = every[0]
        alike = {
            (t.scale, len(t.constants), len(t.operands), t.summed, t.design is None) for t in every
        }
        if len(alike) > 1:
            raise ApartError
        constants = zip(*(t.constants for t in every), strict=True)
        operands = zip(*(t.operands for t in every), strict=True)
        design = None
        if first.design is not None:
            designs = [t.design for t in every if t.design is not None]
            design = self.labelled(designs, plate, 0)
        return Term(
            first.scale,
            tuple(self.labelled(some, plate, events) for some in constants),
            tuple(self.operand(some, plate) for some in operands),
            first.summed,
            design,
        )

    def operand(self, every: Sequence[Operand], plate: Sequence[str]) -> Operand:
        """Return a variable in a product, with the keys of all parts."""
        first = every[0].variable
        if len({o.variable.name for o in every}) > 1:
            raise ApartError
        indices = zip(*(o.index for o in every), strict=True)
        found = tuple(
            self.index(some, dim, plate) for some, dim in zip(indices, first.dims, strict=True)
        )
        return Operand(self.found.variables[first.name], found)

    def index(self, every: Sequence[Index], dim: str, plate: Sequence[str]) -> Index:
        """Return the index of one axis of a variable."""
        first = every[0]
        keys = [index for index in every if isinstance(index, Labelled)]
        if not keys:
            if len(set(every)) > 1 or (isinstance(first, int) and dim in self.sizes):
                raise ApartError
            return first
        if len(keys) < len(every):
            raise ApartError
        if dim in self.sizes:
            before = np.cumsum([0, *self.sizes[dim][:-1]])
            keys = [
                Labelled(key.values + begin, key.axes)
                for key, begin in zip(keys, before.tolist(), strict=True)
            ]
        found = self.labelled(keys, plate, 0)
        return Labelled(self.found.coords.kept(found.values), found.axes)

    def labelled(self, every: Sequence[Labelled], plate: Sequence[str], events: int) -> Labelled:
        """Return an array for the rows of all parts."""
        axes = every[0].axes
        if any(array.axes != axes for array in every):
            raise ApartError
        return Labelled(self.joined([a.values for a in every], _names(axes, plate, events)), axes)

    def joined(self, every: Sequence[Any], names: Sequence[str | None]) -> NDArray[Any]:
        """Return arrays of all parts as one, along the axis in which parts follow each other."""
        along = [axis for axis, name in enumerate(names) if name in self.sizes]
        if not along:
            first = every[0]
            for other in every[1:]:
                if sparse.issparse(first) or not np.array_equal(first, other):
                    raise ApartError
            return first
        if len(along) > 1:
            raise ApartError
        sizes = self.sizes[str(names[along[0]])]
        if [np.shape(array)[along[0]] for array in every] != sizes:
            raise ApartError  # an axis of length 1 that is repeated
        if not sparse.issparse(every[0]):
            return np.concatenate(every, axis=along[0])
        if along != [0]:
            raise ApartError
        return sparse.vstack(every, format="csr")


def _only_divided(
    model: Declaration, sharing: Sharing, sizes: dict[str, list[int]], coords: dict[str, Any]
) -> dict[str, list[int]]:
    """Return the dims along which parts follow each other; each table has one of them.

    A dim of observed rows that is the same in all parts, beside one that divides them, is shared.
    """
    divided = set(sharing.divided) & set(sizes)
    for variable in model.variables.values():
        mine = [dim for dim in variable.dims if dim in sizes]
        if not variable.hidden and not set(mine) & divided:
            divided |= set(mine[:1])
    for dim in [dim for dim in sizes if dim not in divided]:
        if len(set(sizes[dim])) > 1:
            raise ApartError
        coords[dim] = sizes.pop(dim)[0]
    for name in sharing.own:  # elements of one part must follow each other
        follows = [dim in sizes for dim in model.variables[name].plate.labels]
        if follows[:1] != [True] or any(follows[1:]):
            raise ApartError
    return sizes


def _names(axes: Sequence[str | None], plate: Sequence[str], events: int) -> list[str | None]:
    """Return the names of the axes of an array; those of a plain array are the last of a plate.

    The last `events` axes belong to each value. Inside a diagonal matrix there is no plate, and an
    array must be the same in all parts.
    """
    if None not in axes or not plate:
        return list(axes)
    lead = len(axes) - events
    if lead < 0 or any(axis is not None for axis in axes[:lead]) or lead > len(plate):
        raise ApartError
    return [*plate[len(plate) - lead :], *[None] * events]


def _values(variable: Variable) -> NDArray[Any]:
    """Return the observed values of a variable."""
    return np.asarray(variable.observed).reshape(variable.shape)


def _missing(variable: Variable) -> NDArray[np.bool_]:
    """Return a mask of the missing elements of a variable."""
    mask = np.zeros(variable.size, dtype=bool)
    if variable.present is not None:
        mask[:] = True
        mask[variable.present] = False
    return mask.reshape(variable.plate.shape)
