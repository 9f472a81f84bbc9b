"""The unknown means of a linear block, and their coefficients in the rows of tables.

They are the x of A = sum over rows of w x x^T (linear_block.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from svmp.families.family import Array
from svmp.inference.methods.draw import Draw
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import CHUNK, Conditional
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints
from svmp.network.means import row_sums
from svmp.network.means.linear import LinearTerm, dimension, scatter
from svmp.network.network import Network
from svmp.network.variable import Variable

KEPT = 1 << 24
"""Most coefficients of a table that are kept between sweeps; more are recomputed in each."""
DENSE = 0.1
"""Share of nonzero coefficients from which products of dense matrices are faster."""
SMALL = 1 << 19
"""Most multiplications in A of a block of rows whose coefficients are a dense array: for so few,
SciPy takes longer to look at a sparse matrix."""


@dataclass(frozen=True, eq=False)
class LinearBlock:
    """Normals and MvNormals whose means are solved together.

    Attributes
    ----------
    variables, starts, size
        The variables, the number of the first unknown of each, and the number of unknowns: one for
        each element of a Normal, and for each entry of each element of an MvNormal.
    tables
        The densities whose rows are quadratic in the unknowns.
    designs
        Coefficients of the tables, where all of their rows are read.
    """

    network: Network
    variables: tuple[Variable, ...]
    starts: dict[str, int]
    size: int
    tables: tuple[Conditional, ...]
    designs: dict[Any, Design] = field(default_factory=dict)

    @classmethod
    def of(cls, network: Network, variables: list[Variable]) -> LinearBlock:
        """Number the unknowns of some variables, and find the tables that depend on them."""
        starts, size = {}, 0
        for variable in variables:
            starts[variable.name] = size
            size += unknowns(variable)
        tables = {e.conditional: None for v in variables for e in network.edges[v.name]}
        tables |= {v.conditional: None for v in variables if dimension(v) == 1}
        return cls(network, tuple(variables), starts, size, tuple(tables))

    def places(self, variable: Symbol) -> Ints:
        """Return the numbers of a variable's unknowns, (elements, entries)."""
        start = self.starts[variable.name]
        return start + np.arange(unknowns(variable)).reshape(-1, dimension(variable))

    def design(self, draw: Draw, table: Conditional) -> Design:
        """Return the coefficients of the rows of a table that are read."""
        rows = draw.drawn_rows(table.variable.name)
        memory = self.designs if rows is None else draw.memory
        if (self, table) not in memory:
            rows = self.network.rows(table.variable) if rows is None else rows
            memory[self, table] = Design(self, table, rows)
        found: Design = memory[self, table]
        return found


@dataclass(frozen=True, eq=False)
class Design:
    """The coefficients of a block in some rows of a table."""

    block: LinearBlock
    table: Conditional
    rows: Ints
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Largest number of coefficients in a row."""
        count = 1
        for term in terms_of(self.block, self.table):
            design: Any = None if term.design is None else term.design.values
            every = design is None
            count += term.scope.inner.size if every else int(np.diff(design.indptr).max(initial=0))
        return count

    def parts(self, q: Beliefs) -> Iterator[tuple[Ints, Coefficients]]:
        """Yield blocks of rows, with their coefficients."""
        if "parts" in self.kept:
            yield from self.kept["parts"]
            return
        parts: list[tuple[Ints, Coefficients]] = []
        count = 0
        for rows in self.row_blocks():
            x = coefficients(self.block, self.table, q, rows)
            count += x.count
            if count <= KEPT:
                parts.append((rows, x))
            else:
                parts.clear()
            yield rows, x
        if count <= KEPT:
            self.kept["parts"] = parts

    def row_blocks(self) -> Iterator[Ints]:
        """Yield the rows in blocks, to bound the memory."""
        step = max(1, CHUNK // self.width)
        return (self.rows[start : start + step] for start in range(0, len(self.rows), step))

    def gram(self, q: Beliefs) -> Array:
        """Return the sum over rows of x x^T."""
        if "gram" not in self.kept:
            self.kept["gram"] = sum(
                x.weighted_gram(np.ones(len(rows))) for rows, x in self.parts(q)
            )
        found: Array = self.kept["gram"]
        return found

    def counts(self, q: Beliefs) -> Array:
        """Return the number of rows that read each mean."""
        if "counts" not in self.kept:
            size, counts = self.block.size, np.zeros(self.block.size)
            for rows in self.row_blocks():
                row, column, _ = entries(self.block, self.table, q, rows)
                counts += np.bincount(np.unique(row * size + column) % size, minlength=size)
            self.kept["counts"] = counts
        found: Array = self.kept["counts"]
        return found


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The coefficients x of some rows: an array if it is small (SMALL), or a sparse matrix."""

    x: Any

    @property
    def dense(self) -> bool:
        """Whether they are an array."""
        return isinstance(self.x, np.ndarray)

    @property
    def count(self) -> int:
        """Number of stored coefficients."""
        return int(self.x.size if self.dense else self.x.nnz)

    def times(self, vector: Array) -> Array:
        """Return x . v of each row."""
        return row_sums.times_vector(self.x, vector) if self.dense else np.asarray(self.x @ vector)

    def squares(self) -> Coefficients:
        """Return the squares of the coefficients."""
        return Coefficients(self.x**2)

    def weighted_sum(self, weight: Array) -> Array:
        """Return the sum over rows of w x."""
        x = self.x
        return row_sums.weighted_sum(x, weight) if self.dense else np.asarray(x.T @ weight)

    def weighted_gram(self, weight: Array) -> Array:
        """Return the sum over rows of w x x^T, as a dense matrix."""
        x = self.x
        if self.dense:
            return row_sums.weighted_gram(x, weight)
        count, size = x.shape
        if x.nnz <= DENSE * count * size:
            return np.asarray((x.T @ (sparse.diags_array(weight) @ x)).toarray())
        total, step = np.zeros((size, size)), CHUNK // size
        for start in range(0, count, step):
            part = x[start : start + step].toarray()
            total += row_sums.weighted_gram(part, weight[start : start + step])
        return total


def unknowns(variable: Symbol) -> int:
    """Return the number of means of a variable."""
    return variable.size * dimension(variable)


def terms_of(block: LinearBlock, table: Conditional) -> list[LinearTerm]:
    """Return the terms of a table's mean that read the block."""
    terms = () if table.linear is None else table.linear.terms
    return [t for t in terms if any(r.variable.name in block.starts for r in t.readers)]


def entries(
    block: LinearBlock, table: Conditional, q: Beliefs, rows: Ints
) -> tuple[Ints, Ints, Array]:
    """Return coefficients of unknowns in the means of rows: position of the row, unknown, value.

    Those of the same row and unknown are added. Where the child of a row is itself in the block,
    it has coefficient -1 (residual y - mu).
    """
    found = []
    for term in terms_of(block, table):
        reader = next(r for r in term.readers if r.variable.name in block.starts)
        at, variable = term.entries(rows), reader.variable
        element, entry = reader.element(at.rows, at.inner), reader.component(at.rows, at.inner)
        column = block.places(variable)[element, entry]
        found.append((at.owner, column, term.mean(q, at, skip=variable)))
    if table.variable.name in block.starts:
        here = np.arange(len(rows))
        found.append((here, block.places(table.variable)[rows, 0], np.full(len(rows), -1.0)))
    row, column, value = (np.concatenate(part) for part in zip(*found, strict=True))
    return row, column, value


def coefficients(block: LinearBlock, table: Conditional, q: Beliefs, rows: Ints) -> Coefficients:
    """Return the coefficient of each unknown in the mean of each row."""
    row, column, value = entries(block, table, q, rows)
    shape = len(rows), block.size
    if len(rows) * block.size**2 <= SMALL:
        return Coefficients(scatter(value, row, column, shape))
    x = sparse.csr_array((value, (row, column)), shape=shape)
    x.sum_duplicates()
    return Coefficients(x)
