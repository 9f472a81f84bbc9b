"""Expressions: sums of products of variables, arrays and numbers, indexed and summed.

Every expression is kept in one normal form, a sum of terms

    scale * constants * x_1[index] * x_2[index] * ...      summed over some named axes,

which shows whether a mean is linear in each variable, and whether a precision is a product.
Axes are named. Axes of a plain array, which have no names, are aligned with the last plate axes of
the variable that is being declared, as in NumPy broadcasting.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from svmp.errors import ModelError
from svmp.families.family import Family
from svmp.network.dims.column_arrays import source_of
from svmp.network.dims.coords import Coords
from svmp.network.grid import Grid, Labelled
from svmp.network.refusals import Symbolic
from svmp.network.validation import PRIME, numeric, shown, sound_sparse

Index = str | int | Labelled
"""How one axis of a variable is indexed: in full under a name, by an integer, or by a key."""


@dataclass(frozen=True, eq=False)
class Operand:
    """A variable in a product, with an index for each of its axes."""

    variable: Symbol
    index: tuple[Index, ...]

    def renamed(self, old: str, new: str) -> Operand:
        def rename(index: Index) -> Index:
            if isinstance(index, Labelled):
                return index.renamed(old, new)
            return new if index == old else index

        return replace(self, index=tuple(rename(i) for i in self.index))

    @property
    def labels(self) -> set[str]:
        names: set[str] = set()
        for index in self.index:
            if isinstance(index, str):
                names.add(index)
            elif isinstance(index, Labelled):
                names.update(a for a in index.axes if a is not None)
        return names


@dataclass(frozen=True, eq=False)
class Term:
    """A product of a number, arrays, at most one sparse design and variables, summed over axes."""

    scale: float = 1.0
    constants: tuple[Labelled, ...] = ()
    operands: tuple[Operand, ...] = ()
    summed: tuple[str, ...] = ()
    design: Labelled | None = None

    @property
    def labels(self) -> set[str]:
        names = {a for c in self._arrays() for a in c.axes if a is not None}
        return names.union(self.summed, *(o.labels for o in self.operands))

    @property
    def free(self) -> set[str]:
        return self.labels - set(self.summed)

    def _arrays(self) -> tuple[Labelled, ...]:
        return self.constants if self.design is None else (*self.constants, self.design)

    def renamed(self, old: str, new: str) -> Term:
        return Term(
            self.scale,
            tuple(c.renamed(old, new) for c in self.constants),
            tuple(o.renamed(old, new) for o in self.operands),
            tuple(new if s == old else s for s in self.summed),
            None if self.design is None else self.design.renamed(old, new),
        )

    def __mul__(self, other: Term) -> Term:
        names = [o.variable.name for o in self.operands + other.operands]
        for name in names:
            if names.count(name) > 1:
                raise ModelError(
                    f"'{name}' occurs twice in one product; a mean must be linear in each variable"
                )
        if self.design is not None and other.design is not None:
            raise ModelError(
                "a product can hold one sparse design only; others may be dense arrays"
            )
        for label in other.summed:  # the name of a summed axis is private to its term
            other = other.renamed(label, unused(label, self.labels | other.labels))
        left = self
        for label in self.summed:
            if label in other.labels:
                left = left.renamed(label, unused(label, left.labels | other.labels))
        return Term(
            left.scale * other.scale,
            left.constants + other.constants,
            left.operands + other.operands,
            left.summed + other.summed,
            left.design or other.design,
        )

    def sum_over(self, label: str) -> Term:
        if not isinstance(label, str):
            raise ModelError(f"cannot sum over {shown(label)}: give the name of an axis")
        if label not in self.free:
            there = ", ".join(sorted(self.free)) or "none"
            raise ModelError(
                f"cannot sum over {shown(label)}: not every term has that axis; "
                f"the axes of one are: {there}"
            )
        private = unused(label, self.labels)
        renamed = self.renamed(label, private)
        return replace(renamed, summed=(*renamed.summed, private))


class Expression(Symbolic):
    """A sum of terms; the simplest expression is a variable."""

    @property
    @abstractmethod
    def terms(self) -> tuple[Term, ...]:
        """The terms that are added up."""

    @property
    def free(self) -> set[str]:
        """Names of the axes that are not summed over."""
        return set().union(*(t.free for t in self.terms))

    def __add__(self, other: Any) -> Expression:
        with about(self, other):
            return Sum(self.terms + lift(other).terms)

    def __radd__(self, other: Any) -> Expression:
        with about(self):
            return lift(other) + self

    def __neg__(self) -> Expression:
        return self * -1.0

    def __sub__(self, other: Any) -> Expression:
        with about(self, other):
            return self + -lift(other)

    def __rsub__(self, other: Any) -> Expression:
        with about(self):
            return lift(other) - self

    def __mul__(self, other: Any) -> Expression:
        with about(self, other):
            right = lift(other)
            return Sum(tuple(a * b for a in self.terms for b in right.terms))

    def __rmul__(self, other: Any) -> Expression:
        with about(self):
            return lift(other) * self

    def __truediv__(self, other: Any) -> Expression:
        with about(self, other):
            if isinstance(other, Expression):
                raise ModelError("division by a variable is not conjugate; divide by numbers only")
            with np.errstate(divide="ignore", over="ignore"):
                inverse = 1.0 / numeric(other)
            if not np.isfinite(inverse).all():
                raise ModelError("division by 0, or by a number too close to it")
            return self * inverse

    def __rtruediv__(self, other: Any) -> Expression:
        return lift(1.0) / self

    def __matmul__(self, other: Any) -> Expression:
        if not isinstance(other, Expression):
            with about(self):
                raise ModelError("an array must be on the left of @, as in design @ weights")
        return dot(self, other)

    def __rmatmul__(self, other: Any) -> Expression:
        return dot(other, self)

    def __pos__(self) -> Expression:
        return self

    def __iter__(self) -> Iterator[Expression]:
        with about(self):
            axes = " or ".join(f'.sum("{axis}")' for axis in sorted(self.free)) or ".sum(axis)"
            raise ModelError(f"its elements cannot be listed in Python; to add them up, use {axes}")

    def sum(self, dim: str | None = None) -> Expression:
        """Return the sum over a named axis."""
        with about(self):
            if dim is None:
                axes = f"one of {sorted(self.free)}" if self.free else "but it has none"
                raise ModelError(f"say which axis to sum over, {axes}")
            return Sum(tuple(t.sum_over(dim) for t in self.terms))


class Symbol(Expression):
    """A variable as expressions and parameters see it; `variable.Variable` adds its density.

    Attributes
    ----------
    name, family, dims, coords
        As declared. Dims count the axes of one value (of a vector, say) as the last ones.
    shape
        Sizes of the dims.
    plate
        The axes over which the elements repeat.
    event_dims
        The dims of one value.
    observed
        The values, or None where the variable is hidden.
    present
        Flat indices of the elements that are not missing, or None where none is missing.
    category_axis
        Of a Categorical: name, if it has one, and length of the axis of its probabilities.
    """

    name: str
    coords: Coords
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    plate: Grid
    event_dims: tuple[str, ...]
    family: Family
    observed: NDArray[Any] | None
    present: NDArray[np.int64] | None
    category_axis: tuple[str | None, int] | None

    @property
    def terms(self) -> tuple[Term, ...]:
        return (Term(operands=(Operand(self, self.dims),)),)

    @property
    def hidden(self) -> bool:
        return self.observed is None

    @property
    def size(self) -> int:
        """Number of elements, missing ones included."""
        return self.plate.size

    @property
    def rows(self) -> NDArray[np.int64]:
        """Flat indices of the elements that are not missing."""
        return np.arange(self.size) if self.present is None else self.present

    @property
    def count(self) -> int:
        """Number of elements that are not missing."""
        return self.size if self.present is None else len(self.present)

    @property
    def values(self) -> NDArray[Any]:
        """The observed values that are not missing."""
        if self.observed is None:
            raise AttributeError("values")  # __getattr__ says what to write instead
        return self.observed if self.present is None else self.observed[self.present]


@dataclass(frozen=True, eq=False, repr=False)
class Sum(Expression):
    """An expression as the sum of its terms."""

    parts: tuple[Term, ...]

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.parts

    def in_words(self) -> str:
        names = names_of(self)
        return f"the expression of {' and '.join(names)}" if names else "the array of svmp.data"


@dataclass(frozen=True, eq=False, repr=False)
class DiagonalMatrix(Symbolic):
    """A diagonal matrix with an expression as its diagonal, for use as a precision matrix."""

    hint: ClassVar[str] = "; put the other factors inside, as in svmp.diag(2 * x)"
    entries: Expression

    def in_words(self) -> str:
        return "the DiagonalMatrix of svmp.diag"


def diag(entries: Any) -> DiagonalMatrix:
    """Make a diagonal precision matrix of positive numbers or Gammas, as tau of an MvNormal.

    >>> import svmp
    >>> with svmp.Model(coords={"feature": 2}) as model:
    ...     alpha = svmp.Gamma("alpha", alpha=1, beta=1, dims="feature")
    ...     w = svmp.MvNormal("w", mu=0, tau=svmp.diag(alpha), dims="feature")
    ...     y = svmp.Normal("y", mu=svmp.dot([[1, 2], [3, 4]], w), tau=1, observed=[1, 2])
    >>> svmp.fit(model).status
    'converged'
    """
    return DiagonalMatrix(lift(entries))


@contextmanager
def about(*values: Any) -> Iterator[None]:
    """Name the variables of an expression in the errors that it raises."""
    try:
        yield
    except ModelError as error:
        names = names_of(*values)
        if all(name in str(error) for name in names):
            raise
        raise ModelError(f"in an expression of {', '.join(names)}: {error}") from None


def names_of(*values: Any) -> list[str]:
    """Return the quoted names of all variables in some expressions."""
    terms = [t for v in values if isinstance(v, Expression) for t in v.terms]
    return list(dict.fromkeys(f"'{o.variable.name}'" for t in terms for o in t.operands))


def unused(label: str, taken: Iterable[str]) -> str:
    """Append primes to a name until it is not taken."""
    taken = set(taken)
    while label in taken:
        label += PRIME
    return label


def lift(value: Any) -> Expression:
    """Convert a number or an array to an expression; return expressions as they are."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, Symbolic):
        raise ModelError(
            f"{value.in_words()} is neither a number, an array nor a variable{value.hint}"
        )
    if sparse.issparse(value):
        raise ModelError("use a sparse design in svmp.dot(design, weights)")
    return constant(numeric(value), source=source_of(value))


def constant(
    values: NDArray[Any], axes: tuple[str | None, ...] | None = None, source: str | None = None
) -> Expression:
    """Convert an array to an expression, with or without names for its axes."""
    if values.ndim == 0:
        return Sum((Term(scale=float(values)),))
    return Sum((Term(constants=(Labelled(values, axes or (None,) * values.ndim, source),)),))


def dot(*operands: Any, dim: str | None = None) -> Expression:
    """Multiply expressions and sum over a named axis.

    Parameters
    ----------
    operands
        Two or more variables, expressions or arrays. The last axis of a plain array or of a
        scipy.sparse design is the one summed over, as in a matrix product.
    dim
        The axis to sum over. It may be omitted if the variables and expressions have exactly one
        axis in common.

    >>> import svmp
    >>> with svmp.Model(coords={"feature": 2}):
    ...     w = svmp.Normal("w", mu=0, tau=1, dims="feature")
    ...     y = svmp.Normal(
    ...         "y", mu=svmp.dot([[1, 2], [3, 4], [5, 6]], w), tau=1, observed=[1, 2, 3]
    ...     )
    >>> y.shape
    (3,)
    """
    if dim is None and len(operands) > 2 and isinstance(operands[-1], str):
        *operands, dim = operands  # type: ignore[assignment]
    with about(*operands):
        if len(operands) < 2:
            raise ModelError(f"dot needs two operands or more, not {len(operands)}")
        random = [x for x in operands if isinstance(x, Expression)]
        if not random:
            raise ModelError("dot needs at least one variable")
        if dim is None:
            shared = set.intersection(*(x.free for x in random))
            if len(shared) != 1:
                axes = f"the axes {', '.join(sorted(shared))}" if shared else "no axis"
                raise ModelError(
                    f"they share {axes}; say with dim= which one dot sums over"
                    if any(x.free for x in random)
                    else "they are single numbers, without an axis to sum over; write x * y"
                )
            (dim,) = shared
        product: Expression | None = None
        for x in operands:
            factor = x if isinstance(x, Expression) else _design(x, dim)
            product = factor if product is None else product * factor
        assert product is not None
        return product.sum(dim)


def _design(values: Any, dim: str) -> Expression:
    """Name the last axis of a plain or sparse array."""
    if sparse.issparse(values):
        return Sum((Term(design=Labelled(sparse_rows(values), (None, dim))),))
    dense = numeric(values)
    if dense.ndim == 0:
        raise ModelError("dot needs an array with at least one axis beside a variable")
    return constant(dense, (*(None,) * (dense.ndim - 1), dim), source_of(values))


def sparse_rows(values: Any) -> Any:
    """Return a checked copy of a sparse design, by rows."""
    if not sound_sparse(values):
        raise ModelError("a sparse design holds indices that do not fit its shape")
    rows = sparse.csr_array(values, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    if not np.isfinite(rows.data).all():
        raise ModelError("a sparse design holds NaN or infinity")
    return rows
