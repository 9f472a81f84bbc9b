"""The network of all parts together, without their rows: what the coordinator of a fit holds.

It has every hidden variable, with the elements of all parts. The densities of shared variables
count here, once; those of own variables and of observed rows count in the parts.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from svmp.errors import ModelError
from svmp.network.declaration import Declaration
from svmp.network.expressions import DiagonalMatrix, Expression, Operand, Sum, Term
from svmp.network.grid import Grid, Ints, Labelled
from svmp.network.network import Network
from svmp.network.variable import Component, Variable
from svmp.parts.description import Labels
from svmp.parts.sharing import Sharing


class SharedNetwork(Network):
    """All hidden variables, with the elements of all parts.

    Attributes
    ----------
    observations
        Number of observed rows in all parts.
    sweep_accesses
        Number of accesses of a sweep over all parts.
    """

    def __init__(
        self,
        model: Declaration,
        sharing: Sharing,
        remote: Mapping[str, Ints],
        observations: int,
        accesses: int,
    ) -> None:
        super().__init__(model, elsewhere=sharing.own, remote=remote)
        self.observations = observations
        within = sum(int(e.children.sum()) for n in sharing.shared for e in self.edges[n])
        self.sweep_accesses = accesses + within
        self.locals = list(sharing.own)  # no average of them decides on convergence
        self.chains = {}  # those of the parts are solved there
        self.derived["own"] = frozenset(sharing.own)


def declare_all(
    model: Declaration, sharing: Sharing, counts: Mapping[str, Sequence[tuple[int, ...]]]
) -> Declaration:
    """Return the declaration of all hidden variables with the elements of all parts.

    Parameters
    ----------
    model
        The network of one part.
    sharing
        Which variables are shared, and the labels of all parts.
    counts
        By own variable, the shape of its plate in each part. Their elements follow each other in
        the order of the parts, along the first dim in which the parts differ.
    """
    coords: dict[str, Any] = dict(model.coords.sizes) | {
        dim: labels if isinstance(labels, int) else list(labels)
        for dim, labels in (sharing.divided | sharing.labels).items()
    }
    grown = {dim for dim, labels in sharing.labels.items() if size(labels) != model.sizes[dim]}
    found = Declaration(coords)
    for name, variable in model.variables.items():
        if name in sharing.own:
            axis = dividing_axis(variable.plate.labels, sharing, counts[name])
            mine = resized(variable, joined_shape(counts[name], axis))
            found.variables[name] = mine
            found.sizes.update(zip(mine.plate.labels, mine.plate.shape, strict=True))
        elif name in sharing.shared:
            found.variables[name] = enlarged(found, variable, grown) if grown else variable
    return found


def size(labels: Labels) -> int:
    """Return the number of elements along a dim."""
    return labels if isinstance(labels, int) else len(labels)


def dividing_axis(
    dims: Sequence[str], sharing: Sharing, shapes: Sequence[tuple[int, ...]]
) -> int | None:
    """Return the axis along which the elements of an own variable follow each other.

    It is that of a dim that is not shared: the only one, or the only one with labels, or the only
    one in which parts differ in size, or the first. None if parts differ along another dim too.
    """
    axes = [axis for axis, dim in enumerate(dims) if dim not in sharing.labels]
    labelled = [a for a in axes if not isinstance(sharing.divided.get(dims[a], 0), int)]
    uneven = [a for a in axes if len({shape[a] for shape in shapes}) > 1]
    for some in (axes, labelled, uneven, axes[:1]):
        if len(some) == 1:
            (axis,) = some
            alike = len({shape[:axis] + shape[axis + 1 :] for shape in shapes}) == 1
            return axis if alike else None
    return None


def joined_shape(shapes: Sequence[tuple[int, ...]], axis: int | None) -> tuple[int, ...]:
    """Return the shape of an own variable of all parts.

    Parts follow each other along an axis; without one, all elements are listed part after part.
    """
    if axis is None:
        return (sum(int(np.prod(shape)) for shape in shapes),)
    first = shapes[0]
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def resized(variable: Variable, shape: tuple[int, ...]) -> Variable:
    """Return a variable with another plate; its density is not used."""
    other = copy.copy(variable)
    labels = variable.plate.labels
    if len(shape) != len(labels):
        labels = ("*".join(labels) or "part",)
    other.plate = Grid(labels, shape)
    other.dims = (*labels, *variable.event_dims)
    other.shape = (*shape, *variable.shape[len(variable.plate.shape) :])
    return other


def enlarged(model: Declaration, variable: Variable, grown: set[str]) -> Variable:
    """Declare a shared variable again, for dims that are longer than in one part."""
    conditional = variable.conditional
    if conditional.selector is not None:
        raise ModelError(_give_all(variable, sorted(grown)[0], "is a mixture"))
    if set(variable.event_dims) & grown:
        dim = next(d for d in variable.event_dims if d in grown)
        raise ModelError(_give_all(variable, dim, f"has values along '{dim}'"))
    parameters: dict[str, Any] = {}
    for name, value in conditional.parameters.items():
        if isinstance(value, DiagonalMatrix):
            entries = _on(model, variable, value.entries, grown)
            parameters[name] = replace(value, entries=entries)
        else:
            parameters[name] = _on(model, variable, value, grown)
    component = Component(conditional.factor, parameters)
    return Variable(model.coords, variable.name, component, variable.dims)


def _on(model: Declaration, variable: Variable, value: Expression, grown: set[str]) -> Sum:
    """Return an expression of variables of the larger model."""
    terms = []
    for term in value.terms:
        arrays = [*term.constants, *(i for o in term.operands for i in o.index)]
        for array in (a for a in arrays if isinstance(a, Labelled)):
            plate = variable.plate.labels
            free = plate[len(plate) - array.axes.count(None) :] if None in array.axes else ()
            along = ({a for a in array.axes if a is not None} | set(free)) & grown
            if along:
                dim = sorted(along)[0]
                raise ModelError(_give_all(variable, dim, f"has numbers along '{dim}'"))
        for operand in term.operands:
            for dim, index in zip(operand.variable.dims, operand.index, strict=True):
                if dim in grown and not isinstance(index, str):
                    raise ModelError(_give_all(variable, dim, f"reads '{dim}' by a key"))
        operands = tuple(Operand(model.variables[o.variable.name], o.index) for o in term.operands)
        terms.append(Term(term.scale, term.constants, operands, term.summed, term.design))
    return Sum(tuple(terms))


def _give_all(variable: Variable, dim: str, why: str) -> str:
    return (
        f"'{variable.name}' {why}, and the labels of '{dim}' differ between parts; give every part "
        f"all labels of '{dim}' in coords, also those that it has no rows of"
    )
