"""Terms of a mean whose entries form a grid: every row reads the same inner indices.

The mean of a row is sum_k c_rk prod_f x_f(r, k), with k the inner index. Where no index array
varies along k, the element that a row reads at k is that at k = 0 plus an offset, the same in all
rows. So coefficients and moments are matrices of (rows, inner indices), and sums over rows are
products of matrices (row_sums.py): no entry is listed by itself.

A term is *separable* if its variables are Normals that have all inner axes: the elements of
different k are independent, and

    Var[mu] = sum_k c_k^2 (prod_f E[x_fk^2] - prod_f E[x_fk]^2).

It is a term *of vectors* if some variable is an MvNormal with k its entry; the others are vectors
of independent entries. With S_f = E[x_f x_f^T],

    Var[mu] = sum_kl c_k c_l (prod_f S_f,kl - prod_f E[x_fk] E[x_fl]).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints, Kinds, Labelled, Scope, is_range, take_rows
from svmp.network.means.columns import KEPT, ONE, Column
from svmp.network.means.row_sums import (
    grams_by_owner,
    quadratic_forms_by_owner,
    sum_by_owner,
    sums_by_owner,
    times_vector,
)
from svmp.network.means.table_product import TableProduct
from svmp.network.reader import Reader

AT_ONCE = 1 << 20
"""Most numbers in an array of (rows, inner indices, inner indices)."""


@dataclass(frozen=True, eq=False)
class RegularTerm:
    """A separable term or one of vectors, over the rows of a table.

    Attributes
    ----------
    kept
        Results for all rows that are likely to be asked for again, with what they belong to.
    """

    scale: float
    constants: tuple[Labelled, ...]
    columns: tuple[Column, ...]
    scope: Scope
    kept: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        scale: float,
        constants: tuple[Labelled, ...],
        readers: Sequence[Reader],
        scope: Scope,
    ) -> RegularTerm | None:
        """Return the regular form of a term; None if it has none."""
        inner = set(scope.inner.labels)
        found = [Column.of(reader) for reader in readers]
        columns = tuple(column for column in found if column is not None)
        if len(columns) < len(readers) or not columns:
            return None
        if not all(c.vector or c.reader.carried == inner for c in columns):
            return None
        return cls(scale, constants, columns, scope)

    @cached_property
    def size(self) -> int:
        """Number of inner indices."""
        return self.scope.inner.size

    @cached_property
    def of_vectors(self) -> bool:
        """Whether it is a term of vectors."""
        return any(column.vector for column in self.columns)

    @property
    def row_size(self) -> int:
        """Numbers that are computed for each row."""
        squares = self.of_vectors and len(self.columns) > 1 and self.table_product is None
        return self.size**2 if squares else self.size

    def column(self, variable: Symbol) -> Column:
        """Return the column of a variable."""
        return self._by_name[variable.name]

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    @cached_property
    def _matrix(self) -> tuple[Array, Kinds] | None:
        """The only constant as a matrix of (kinds of rows, inner indices), if it has that form."""
        if len(self.constants) != 1 or self.scale != 1:
            return None
        array, inner = self.constants[0], self.scope.inner.labels
        kinds = Kinds.along(self.scope.rows, {str(axis) for axis in array.axes})
        if not kinds.grid.labels or array.axes != (*kinds.grid.labels, *inner):
            return None
        return np.asarray(array.values, dtype=np.float64).reshape(-1, self.size), kinds

    def coefficients(self, rows: Ints) -> Array:
        """Return the coefficients: a matrix that broadcasts to (rows, inner indices)."""
        if self._matrix is not None:
            matrix, kinds = self._matrix
            if kinds.each == 1 and is_range(rows):
                return matrix[rows[0] : rows[-1] + 1]
            if len(rows) < self.scope.rows.size or len(rows) * self.size > KEPT:
                return matrix[kinds.of(rows)]
            before = self.kept.get("coefficients", ())
            for asked, found in before:
                if asked is rows or np.array_equal(asked, rows):
                    return found
            found = matrix[kinds.of(rows)]
            self.kept["coefficients"] = (*before[-1:], (rows, found))
            return found
        value = self._scale
        for array in self.constants:
            value = value * self._look_up(array, rows)
        return value

    @cached_property
    def _plain(self) -> bool:
        """Whether all coefficients are 1."""
        return not self.constants and self.scale == 1

    @cached_property
    def _scale(self) -> Array:
        return np.full((1, 1), self.scale)

    def _look_up(self, array: Labelled, rows: Ints) -> Array:
        inner, every = set(self.scope.inner.labels), np.arange(self.size)
        axes = {str(axis) for axis in array.axes}
        if axes <= inner:
            return np.asarray(self.scope.look_up(array, every, every)).reshape(1, -1)
        if not axes & inner:
            return np.asarray(self.scope.look_up(array, rows, rows))[:, None]
        places = np.repeat(rows, self.size), np.tile(every, len(rows))
        return np.asarray(self.scope.look_up(array, *places)).reshape(-1, self.size)

    def slopes(self, q: Beliefs, rows: Ints, skip: Symbol | None = None) -> Array:
        """E[c_k prod_f x_fk], leaving one variable out: broadcasts to (rows, inner indices)."""
        value = None if self._plain else self.coefficients(rows)
        for column in self.columns:
            if column.reader.variable is not skip:
                means = column.take_means(q, rows)
                value = means if value is None else times(value, means)
        return self._scale if value is None else value

    def square_slopes(self, q: Beliefs, rows: Ints, skip: Symbol | None = None) -> Array:
        """E[(c_k prod_f x_fk)^2] of a separable term, leaving one variable out."""
        value = None if self._plain else self.coefficients(rows) ** 2
        for column in self.columns:
            if column.reader.variable is not skip:
                squares = column.take(q.moments[column.name][:, 1], rows)
                value = squares if value is None else times(value, squares)
        return self._scale if value is None else value

    @cached_property
    def table_product(self) -> TableProduct | None:
        """The term as a product of matrices, if the table is a grid of what its factors vary by."""
        if not all(column.vector for column in self.columns):
            return None
        if self.constants and self._matrix is None:
            return None
        return TableProduct.of(self.scale, self._matrix, self.columns, self.scope.rows)

    def _product(self, rows: Ints) -> TableProduct | None:
        """Return `table_product` where most rows are read."""
        return self.table_product if 2 * len(rows) > self.scope.rows.size else None

    def mean(self, q: Beliefs, rows: Ints) -> Array:
        """E[mu] of each row."""
        if self.table_product is not None and (product := self._product(rows)) is not None:
            return take_rows(product.mean(q), rows)
        last = self.columns[-1]
        slopes = self.slopes(q, rows, skip=last.reader.variable)
        return products(slopes, last.take_means(q, rows), len(rows))

    def shift(self, q: Beliefs, variable: Symbol, rows: Ints, change: Array) -> Array:
        """Return the change of E[mu] of each row when the moments of a variable change."""
        column = self._by_name[variable.name]
        change = change[:, : self.size] if column.vector else change[:, 0]
        if self.table_product is not None and (product := self._product(rows)) is not None:
            return take_rows(product.mean(q, {variable.name: change}), rows)
        return products(self.slopes(q, rows, variable), column.take(change, rows), len(rows))

    def variance(self, q: Beliefs, rows: Ints) -> Array:
        """Var[mu] of each row."""
        if self.of_vectors:
            return self._variance_of_vectors(q, rows)
        if len(self.columns) == 1:
            (column,) = self.columns
            spread = column.squares(q) - column.means(q) ** 2
            return products(self.coefficients(rows) ** 2, column.take(spread, rows), len(rows))
        found = self.square_slopes(q, rows) - self.slopes(q, rows) ** 2
        return np.broadcast_to(found, (len(rows), self.size)).sum(axis=1)

    def _variance_of_vectors(self, q: Beliefs, rows: Ints) -> Array:
        """Return `variance` of a term of vectors.

        That of all rows is kept, since the message to the noise and the bound need the same.
        """
        if (product := self._product(rows)) is not None:
            return take_rows(product.variance(q), rows)
        if len(self.columns) > 1:
            return self._variance_of_products(q, rows)
        (column,) = self.columns
        moments = q.moments[column.name]
        whole = len(rows) == self.scope.rows.size and moments.size + len(rows) <= KEPT
        if whole and is_range(rows):
            before = self.kept.get("variance")
            if before is not None and np.array_equal(before[0], moments):
                found: Array = before[1]
                return found
        means = column.means(q)
        spread = column.matrices(q) - means[:, :, None] * means[:, None, :]
        x = self._full(self.coefficients(rows), len(rows))
        if column.same:
            spread, first = spread[column.first(rows)], ONE
        else:
            first = column.first(rows)
        variance = quadratic_forms_by_owner(x, spread, first)
        if whole and is_range(rows):
            self.kept["variance"] = (moments.copy(), variance)
        return variance

    def _variance_of_products(self, q: Beliefs, rows: Ints) -> Array:
        step, out = max(1, AT_ONCE // self.size**2), np.empty(len(rows))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            square = self._squares_of_vectors(q, part)
            mean = self._full(self.slopes(q, part), len(part))
            out[start : start + step] = square.sum(axis=(1, 2)) - mean.sum(axis=1) ** 2
        return out

    def _squares_of_vectors(self, q: Beliefs, rows: Ints, skip: Symbol | None = None) -> Array:
        """E[c_k c_l prod_f x_fk x_fl] of each row, leaving one variable out."""
        c = self.coefficients(rows)
        value: Array = c[:, :, None] * c[:, None, :]
        for column in self.columns:
            if column.reader.variable is not skip:
                value = times(value, column.take_matrices(q, rows))
        return np.broadcast_to(value, (len(rows), self.size, self.size))

    def _full(self, values: Array, count: int) -> Array:
        shape = (count, self.size)
        return values if values.shape == shape else np.broadcast_to(values, shape)

    def message_sum(
        self,
        q: Beliefs,
        variable: Symbol,
        elements: Ints,
        owner: Ints,
        rows: Ints,
        incoming: Array,
        mean: Array | None,
    ) -> Array:
        """Return the sum of the messages of rows to each element of a variable.

        Parameters
        ----------
        q, variable, elements
            The current q, the variable, and some elements of it.
        owner, rows
            The position of the element that each row reads, ascending, and the rows.
        incoming
            The density's message of each row to (mu, mu^2).
        mean
            E[mu] of each row, over all terms; None if the variable is an MvNormal and this term is
            all of it.
        """
        linear, square = incoming[:, 0], incoming[:, 1]
        column, count = self.column(variable), len(elements)
        if not column.vector:
            assert mean is not None
            slope, squares = self._slopes_at(q, variable, elements, owner, rows)
            own = slope * q.moments[variable.name][elements, 0][owner]
            pull = slope * (linear + 2 * square * (mean - own))
            if self.of_vectors:
                pull += 2 * square * self._shared_at(q, variable, elements, owner, rows, slope)
            return sum_by_owner(np.stack([pull, square * squares], axis=1), owner, count)
        product = self._product(rows)
        if product is not None and count == variable.size and is_range(elements):
            return product.message(q, variable.name, rows, incoming, mean)
        slopes = self._full(self.slopes(q, rows, skip=variable), len(rows))
        if mean is not None:
            own = products(slopes, column.take_means(q, rows), len(rows))
            linear = linear + 2 * square * (mean - own)
        vector = sums_by_owner(slopes, linear, owner, count)
        if len(self.columns) == 1:
            matrix = self._grams(slopes, square, owner, count, rows)
        else:
            matrix = self._grams_of_products(q, variable, square, owner, count, rows)
        return np.concatenate([vector, matrix.reshape(count, -1)], axis=1)

    def joint_sums(
        self,
        q: Beliefs,
        variable: Symbol,
        owner: Ints,
        count: int,
        rows: Ints,
        incoming: Array,
        mean: Array,
    ) -> tuple[Array, Array, Array]:
        """Return sums over the rows of each key, for the joint solution of its elements.

        With a the slopes of a row, b the rest of its mean and w its precision, these are the sums
        of w E[a_k a_l] (k != l), of E[a (m_1 - w b)] and of w E[a^2], by key. The arguments are
        those of `message_sum`, with the position of a key as the owner of a row.
        """
        weight = -2 * incoming[:, 1]
        slopes = self._full(self.slopes(q, rows, skip=variable), len(rows))
        column = self._by_name[variable.name]
        own = products(slopes, column.take_means(q, rows), len(rows))
        linear = sums_by_owner(slopes, incoming[:, 0] - weight * (mean - own), owner, count)
        if self.of_vectors:
            found = self._grams_of_products(q, variable, weight, owner, count, rows)
            between = found.reshape(count, self.size, self.size)
            return between, linear, np.einsum("okk->ok", between).copy()
        squares = self._full(self.square_slopes(q, rows, skip=variable), len(rows))
        between = grams_by_owner(slopes, weight, owner, count)
        return between, linear, sums_by_owner(squares, weight, owner, count)

    def _slopes_at(
        self, q: Beliefs, variable: Symbol, elements: Ints, owner: Ints, rows: Ints
    ) -> tuple[Array, Array]:
        """E[a] and E[a^2] of the slope of each row at the element of a Normal that it reads."""
        inner = self.column(variable).reader.inner_of(elements)
        same = len(inner) > 0 and bool((inner == inner[0]).all())
        place = int(inner[0]) if same else inner[owner]
        here = slice(None) if same else np.arange(len(rows))
        values = self.coefficients(rows)
        if same or values.shape[1] > 1:
            values = values[0 if len(values) == 1 else here, place if values.shape[1] > 1 else 0]
        else:
            values = values[:, 0]
        slope, square = values, values**2
        for column in self.columns:
            if column.reader.variable is variable:
                continue
            first = column.first(rows)
            if column.vector:
                slope = slope * column.means(q)[first, place]
                square = square * column.matrices(q)[first, place, place]
            else:
                slope = slope * column.means(q)[first + column.offset[place]]
                square = square * column.squares(q)[first + column.offset[place]]
        shape = rows.shape
        return np.broadcast_to(slope, shape), np.broadcast_to(square, shape)

    def _shared_at(
        self,
        q: Beliefs,
        variable: Symbol,
        elements: Ints,
        owner: Ints,
        rows: Ints,
        slope: Array,
    ) -> Array:
        """Return cov[a_k, sum_l a_l x_l] of each row and the element of a Normal that it reads.

        It is not 0 where a_k and a_l have entries of the same vector.
        """
        column = self.column(variable)
        place, here = column.reader.inner_of(elements)[owner], np.arange(len(rows))
        c = self._full(self.coefficients(rows), len(rows))
        together: Array = c[here, place, None] * c
        for other in self.columns:
            if other is not column:
                together = together * other.take_products(q, rows, place)
        apart = slope[:, None] * self._full(self.slopes(q, rows, skip=variable), len(rows))
        means = self._full(column.take_means(q, rows), len(rows)).copy()
        means[here, place] = 0
        return np.asarray(np.einsum("rk,rk->r", together - apart, means))

    def shift_at(
        self, q: Beliefs, variable: Symbol, elements: Ints, owner: Ints, rows: Ints, change: Array
    ) -> Array:
        """Return the change of E[mu] of each row when the moments of its element change.

        `change` has a row for each of some elements, and `owner` is the position of each row's.
        """
        if not self.column(variable).vector:
            slope, _ = self._slopes_at(q, variable, elements, owner, rows)
            return slope * change[owner, 0]
        slopes = self._full(self.slopes(q, rows, variable), len(rows))
        return np.asarray(np.einsum("rk,rk->r", slopes, change[:, : self.size][owner]))

    def _grams(self, x: Array, weight: Array, owner: Ints, count: int, rows: Ints) -> Array:
        """Return sums of w x x^T; those with w = 1 are kept, for weights that owners share."""
        by_owner = np.zeros(count)
        by_owner[owner] = weight
        if (weight != by_owner[owner]).any():
            return grams_by_owner(x, weight, owner, count)
        before = self.kept.get("grams")
        if before is None or before[0] is not rows or before[1] is not owner:
            grams = grams_by_owner(x, None, owner, count)
            if grams.size > KEPT:
                return by_owner[:, None, None] * grams
            before = self.kept["grams"] = (rows, owner, grams)
        return np.asarray(by_owner[:, None, None] * before[2])

    def _grams_of_products(
        self, q: Beliefs, variable: Symbol, weight: Array, owner: Ints, count: int, rows: Ints
    ) -> Array:
        step, total = max(1, AT_ONCE // self.size**2), np.zeros((count, self.size**2))
        for start in range(0, len(rows), step):
            here = slice(start, start + step)
            square = self._squares_of_vectors(q, rows[here], skip=variable)
            values, who = square.reshape(len(square), -1), owner[here]
            first, last = who[0], who[-1] + 1
            total[first:last] += sums_by_owner(values, weight[here], who - first, int(last - first))
        return total


def times(left: Array, right: Array) -> Array:
    """Return the product of arrays; the right one itself if the left one is 1."""
    return right if left.size == 1 and left.flat[0] == 1 else left * right


def products(left: Array, right: Array, count: int) -> Array:
    """Return the sum over columns of left times right, which broadcast, for each of some rows."""
    if right.shape[0] == 1 and left.shape[0] == count and left.shape[1] == right.shape[1]:
        return times_vector(left, right[0])
    if left.shape == right.shape and left.shape[0] == count:
        return np.asarray(np.einsum("rk,rk->r", left, right))
    return np.array(np.broadcast_to((left * right).sum(axis=1), (count,)))
