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
            first = variable.plate.labels[:1]
            divided = bool(first) and first[0] not in sharing.labels
            mine = resized(variable, joined_shape(counts[name], divided))
            found.variables[name] = mine
            found.sizes.update(zip(mine.plate.labels, mine.plate.shape, strict=True))
        elif name in sharing.shared:
            found.variables[name] = enlarged(found, variable, grown) if grown else variable
    return found


def size(labels: Labels) -> int:
    """Return the number of elements along a dim."""
    return labels if isinstance(labels, int) else len(labels)


def joined_shape(shapes: Sequence[tuple[int, ...]], divided: bool) -> tuple[int, ...]:
    """Return the shape of an own variable of all parts, one part after the other.

    Parts follow each other along the first dim if that is the one that divides them. Otherwise, and
    if parts differ along another dim too, all elements are listed along one axis.
    """
    others = {shape[1:] for shape in shapes}
    if divided and len(others) == 1:
        return (sum(shape[0] for shape in shapes), *others.pop())
    return (sum(int(np.prod(shape)) for shape in shapes),)


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
