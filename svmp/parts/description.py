"""What is known about a part before it is fitted: its dims, its variables, and its children.

The descriptions of all parts decide which variables they share (sharing.py). They are small, so
that those of many parts fit into memory and can be sent by workers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.inference.updaters.setup import implicit_loops
from svmp.network.declaration import Declaration
from svmp.network.expressions import DiagonalMatrix, Expression
from svmp.network.grid import Ints, Labelled
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown

SAMPLED = 256
"""Number of labels of a dim by which two declarations of a part are compared, at least."""
Labels = NDArray[Any] | int
"""The labels along a dim, or its size if it has none."""


class VariableShape(NamedTuple):
    """What must be the same in all parts: the density of a variable, its dims and its parents."""

    density: str
    dims: tuple[str, ...]
    parents: tuple[str, ...]


class ChildCounts(NamedTuple):
    """Numbers of children of the elements of a variable, in little memory.

    Attributes
    ----------
    packed
        One number for each stretch of elements that have the same, as the factors of a user; bits
        where none has more than one child, as in a row of its own.
    stretches, each
        Number of stretches, and of elements in each of them.
    total
        The sum over all elements.
    """

    packed: NDArray[Any]
    stretches: int
    each: int
    total: int

    @classmethod
    def of(cls, counts: Ints, each: int) -> ChildCounts:
        """Pack numbers of children, which may be the same for `each` elements in a row."""
        lines = counts.reshape(-1, each)
        if each > 1 and (lines != lines[:, :1]).any():
            return cls.of(counts, 1)
        few = lines[:, 0]
        bits = few.max(initial=0) <= 1
        return cls(np.packbits(few > 0) if bits else few.copy(), len(few), each, int(counts.sum()))

    def unpacked(self) -> Ints:
        """Return the number of children of each element."""
        few = self.packed
        if few.dtype == np.uint8:
            few = np.unpackbits(few, count=self.stretches).astype(np.int64)
        return np.repeat(few, self.each)


@dataclass(frozen=True, eq=False)
class PartDims:
    """The dims and the variables of one part.

    Attributes
    ----------
    name
        Name of the part, for messages.
    labels
        By dim, its labels or its size.
    hidden, observed
        The variables of the part.
    keyed
        Dims that some table reads by a key.
    rows
        Dims of observed tables.
    per_row
        Hidden variables with one element for each observed row of one table, chains of states, and
        choices with one element for each row of several tables.
    shapes
        By hidden variable, the shape of its plate.
    children
        By hidden variable and table, the number of children of each element in that table.
    observations
        Number of observed rows.
    implicit
        Hidden variables whose q need not be stored: chains, and those of compiled loops.
    prints
        By dim a number for its size and labels, the same whenever the part is declared.
    """

    name: str
    labels: dict[str, Labels]
    hidden: dict[str, VariableShape]
    observed: dict[str, VariableShape]
    keyed: frozenset[str]
    rows: frozenset[str]
    per_row: frozenset[str]
    shapes: dict[str, tuple[int, ...]]
    children: dict[tuple[str, str], ChildCounts]
    observations: int
    implicit: frozenset[str]
    prints: dict[str, int]

    @classmethod
    def of(cls, name: str, model: Declaration) -> PartDims:
        """Describe the network that was declared for a part."""
        network = Network(model)
        network.check()
        for variable in network.hidden.values():
            if isinstance(variable.family, PartlyKnown):
                raise ModelError(
                    f"'{variable.name}' is observed in part and other variables depend on it, "
                    "which rows in parts do not support; fit all rows as one network"
                )
        variables = model.variables.values()
        dims = {d: model.sizes[d] for v in variables for d in v.dims}
        rows = frozenset(d for v in network.observed.values() for d in v.plate.labels)
        keyed = frozenset(
            d for v in variables for d in keyed_dims(v.conditional.parameters.values())
        )
        per_row = frozenset(
            name
            for name in network.hidden
            if set(network.hidden[name].dims) & rows
            and not set(network.hidden[name].dims) & keyed
            and (name in (*network.locals, *network.chains) or chooses_rows(network, name))
        )
        shapes = {
            v.name: VariableShape(
                v.conditional.title, v.dims, tuple(p.name for p in v.conditional.parents())
            )
            for v in variables
        }
        return cls(
            name,
            {d: as_labels(model.labels[d]) if d in model.labels else n for d, n in dims.items()},
            {name: shapes[name] for name in network.hidden},
            {name: shapes[name] for name in network.observed},
            keyed,
            rows,
            per_row,
            {name: v.plate.shape for name, v in network.hidden.items()},
            {
                (name, edge.conditional.variable.name): ChildCounts.of(
                    edge.children, max([1, *network.hidden[name].plate.shape[-1:]])
                )
                for name, edges in network.edges.items()
                for edge in edges
            },
            sum(v.count for v in network.observed.values()),
            frozenset(
                name
                for name in network.hidden
                if name in network.chains or implicit_loops(network, name)
            ),
            dim_prints(model),
        )


def chooses_rows(network: Network, name: str) -> bool:
    """Whether each element of a variable chooses the component of at most one row of each table."""
    edges = network.edges[name]
    return bool(edges) and all(e.choosing and e.children.max(initial=0) <= 1 for e in edges)


def dim_prints(model: Declaration) -> dict[str, int]:
    """Return by dim a number for its size and for labels spread over it.

    A function must declare the same model for a part whenever it is called, also on another
    machine. Labels from a set, which has another order in every process, have another number.
    """
    found = {}
    for dim, size in model.sizes.items():
        labels = model.labels.get(dim, ())
        some = labels[:: max(1, len(labels) // SAMPLED)]
        found[dim] = zlib.crc32(repr((size, [_text(label) for label in some])).encode())
    return found


def _text(label: Any) -> str:
    """Return a label as it is written, and of an object of other types its type alone."""
    if isinstance(label, tuple):
        return f"({', '.join(map(_text, label))})"
    return repr(label) if isinstance(label, str | Number | date) else type(label).__name__


def as_labels(labels: Sequence[Any]) -> NDArray[Any]:
    """Return labels as an array that can be compared."""
    try:
        found = np.asarray(labels)
    except ValueError:  # labels of different lengths
        found = np.zeros(0)
    if found.shape == (len(labels),) and found.dtype.kind in "iufUSM":
        kinds = {type(label) for label in labels[:1]} if len(labels) else set()
        if all(isinstance(label, tuple(kinds)) for label in labels):
            return found
    array = np.empty(len(labels), dtype=object)
    array[:] = list(labels)
    return array


def keyed_dims(parameters: Iterable[Expression | DiagonalMatrix]) -> Iterable[str]:
    """Yield the dims of variables that parameters read by a key."""
    for parameter in parameters:
        expression = parameter.entries if isinstance(parameter, DiagonalMatrix) else parameter
        for term in expression.terms:
            for operand in term.operands:
                for dim, index in zip(operand.variable.dims, operand.index, strict=True):
                    if isinstance(index, Labelled):
                        yield dim
