"""Binding: turn a parameter as the user wrote it into a slot, or say why it cannot be one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from svmp import families
from svmp.errors import ModelError
from svmp.families.family import Family
from svmp.network.dims.coords import Coords
from svmp.network.expressions import DiagonalMatrix, Expression, Sum, Term, lift, unused
from svmp.network.grid import Grid, Labelled, Scope, StrayAxisError, UnalignedError
from svmp.network.matrices import Diagonal, Multiple
from svmp.network.means.entry_terms import joined
from svmp.network.means.linear import Linear, LinearTerm
from svmp.network.means.vector_mean import VectorMean
from svmp.network.parameter_forms import (
    check_parents,
    check_rank,
    check_size,
    dims_as_written,
    inner_length,
    is_matrix,
    is_product,
    is_whole_vector,
    largest,
    plain,
)
from svmp.network.partly_known import base_of
from svmp.network.reader import Reader
from svmp.network.slot import Fixed, Product, Single, Slot
from svmp.network.validation import article, shown

NO_AXES = Grid((), ())

_NEEDS: dict[type[Family], str] = {
    families.Normal: "a mean or logit needs numbers, or sums of products of Normal and MvNormal "
    "variables",
    families.Gamma: "a precision or rate needs a positive number, a Gamma, or a product of them",
    families.MvNormal: "a mean vector needs numbers, an MvNormal, or sums of products of Normal "
    "and MvNormal variables",
    families.Wishart: "a precision matrix needs a symmetric positive definite matrix, a Wishart, "
    "one of them times Gammas and positive numbers, or svmp.diag(...) of Gammas",
    families.Beta: "a probability needs a number between 0 and 1 or a Beta; a linear predictor is "
    "the logit= of a Bernoulli or Binomial",
    families.Dirichlet: "probabilities need positive numbers that add up to 1, or a Dirichlet",
    families.Categorical: "the choice among components needs a Categorical, as "
    "z = svmp.Categorical('z', p=w, dims=...)",
}


def needs(kind: type[Family]) -> str:
    """Say what a parameter with the moments of this family may be."""
    return _NEEDS.get(kind, f"it needs a possible value of {article(kind.__name__)}")


@dataclass(frozen=True)
class Binder:
    """Turns the parameters of one variable into slots and constants.

    Attributes
    ----------
    coords, name
        Those of the variable.
    plate
        Its plate, with which plain arrays are aligned.
    rows
        The plate; in a mixture, followed by the axis of the components.
    length
        Length of its vectors, or its number of categories.
    event_dim
        Name of the axis of its vectors, if there is one.
    dims
        All of its dims.
    """

    coords: Coords
    name: str
    plate: Grid
    rows: Grid
    length: int
    event_dim: str = ""
    dims: tuple[str, ...] = ()

    @property
    def scope(self) -> Scope:
        return Scope(self.rows, NO_AXES)

    @contextmanager
    def about(self, parameter: str, sums: bool = False) -> Iterator[None]:
        """Add the parameter and the variable to error messages; `sums` if it may be a sum."""
        try:
            yield
        except StrayAxisError as stray:
            raise ModelError(
                f"{parameter} of '{self.name}': {stray.what} has the dimension '{stray.label}', "
                f"which '{self.name}' does not have; {self._remedy(stray, sums)}"
            ) from None
        except UnalignedError as unaligned:
            raise ModelError(self._unaligned(parameter, unaligned.shape)) from None
        except ModelError as error:
            raise ModelError(f"{parameter} of '{self.name}': {error}") from None

    def _unaligned(self, parameter: str, shape: tuple[int, ...]) -> str:
        """Say that an array has more axes than the variable, and how to give it dims."""
        one = len(shape) == 1
        size = f"length {shape[0]}" if one else f"shape {shape}"
        if not self.dims and not self.plate.labels:
            example = "" if not one else ", as dims='row',"
            return (
                f"{parameter} of '{self.name}' has {size}, but '{self.name}' has no dims; add "
                f"dims={example} or observed= with as many values"
            )
        dims = dims_as_written(self.dims or self.plate.labels)
        return (
            f"{parameter} of '{self.name}' has an array of {size}, but '{self.name}' has only the "
            f"dims {dims}; give it more dims, name the axes of the array, as svmp.data(array, "
            "dims=...), or sum over one, as svmp.dot(array, x)"
        )

    def _remedy(self, stray: StrayAxisError, sums: bool) -> str:
        """Say how to give the variable a missing dimension, or how to remove it."""
        for axis, (label, length) in enumerate(
            zip(self.plate.labels, self.plate.shape, strict=True)
        ):
            if label == f"{self.name}_dim_{axis}" and length == stray.length:
                dims = (*self.dims[:axis], stray.label, *self.dims[axis + 1 :])
                return f"declare '{self.name}' with dims={dims_as_written(dims)}"
        other = ", or sum over it with svmp.dot" if sums else ""
        return (
            f"give '{self.name}' that dimension too, or read one place by a key, as x[key]{other}"
        )

    def parameters(self, given: Mapping[str, Any]) -> dict[str, Expression | DiagonalMatrix]:
        """Return the given parameters as expressions of variables of this model."""
        found: dict[str, Expression | DiagonalMatrix] = {}
        for parameter, value in given.items():
            with self.about(parameter):
                matrix = isinstance(value, DiagonalMatrix)
                expression = value.entries if matrix else lift(value)
                for operand in (o for t in expression.terms for o in t.operands):
                    if operand.variable.coords is not self.coords:
                        raise ModelError(f"'{operand.variable.name}' belongs to another model")
                found[parameter] = value if matrix else expression
        return found

    def constant(self, parameter: str, value: Expression | DiagonalMatrix, events: int) -> Labelled:
        """Return a constant parameter: named axes, then `events` axes of each value."""
        with self.about(parameter):
            array = None if isinstance(value, DiagonalMatrix) else plain(value)
            if array is None:
                raise ModelError(
                    "it is random, but no conjugate prior is known for it; give numbers"
                )
            return self.aligned(array, events)

    def slot(self, parameter: str, value: Expression | DiagonalMatrix, kind: type[Family]) -> Slot:
        """Return the slot of a parameter, given the family of its moments."""
        with self.about(parameter, sums=kind in (families.Normal, families.MvNormal)):
            if isinstance(value, DiagonalMatrix):
                return self._diagonal(value.entries, kind)
            array = plain(value)
            if array is not None:
                return self._fixed(array, kind)
            if kind is families.Normal:
                return Linear(self.name, joined([self._linear_term(t) for t in value.terms]))
            if kind is families.MvNormal and not is_whole_vector(value):
                return self._vector_mean(value)
            if kind is families.Gamma:
                return self._product(value).simplest()
            if kind is families.Wishart and is_product(value):
                return self._multiple(value)
            return self._single(value, kind)

    def _fixed(self, array: Labelled, kind: type[Family]) -> Fixed:
        if kind is families.Categorical:
            raise ModelError(f"it is fixed; {needs(kind)}")
        family = kind.sized(self.length)
        array = self.aligned(array, family.event_ndim)
        possible = family.in_support(array.values)
        if not np.all(possible):
            first = array.values[np.unravel_index(np.argmin(possible), np.shape(possible))]
            raise ModelError(f"it is {shown(first.tolist())}; {needs(kind)}")
        if kind in (families.Normal, families.MvNormal):
            check_size(largest(array))
        return Fixed(replace(array, values=family.statistics(array.values)), self.scope)

    def aligned(self, array: Labelled, events: int) -> Labelled:
        """Return an array with named axes, then `events` axes of each value."""
        values, axes = array.values, array.axes
        if events == 1 and values.ndim == 0:
            values, axes = np.full(self.length, values), (None,)
        expected = (self.length,) * events
        if values.ndim < events or values.shape[values.ndim - events :] != expected:
            raise ModelError(f"its last axes must have shape {expected}, not {values.shape}")
        return self.scope.align(Labelled(values, axes[: values.ndim - events]), self.plate)

    def _product(self, expression: Expression) -> Product:
        term = self._one_term(expression, families.Gamma)
        arrays = tuple(self.scope.align(c, self.plate) for c in term.constants)
        self._check_positive(term, arrays)
        readers = tuple(Reader.of(o, self.scope, self.plate) for o in term.operands)
        return Product(term.scale, arrays, readers, self.scope)

    def _check_positive(self, term: Term, arrays: tuple[Labelled, ...]) -> None:
        if term.scale <= 0 or any(np.any(a.values <= 0) for a in arrays):
            raise ModelError(f"it has a factor that is not positive; {needs(families.Gamma)}")
        least = term.scale * prod(float(a.values.min(initial=1.0)) for a in arrays)
        if least == 0 or term.scale * prod(largest(a) for a in arrays) == np.inf:
            raise ModelError("its numbers multiply to less or more than a 64-bit float can hold")

    def _diagonal(self, entries: Expression, kind: type[Family]) -> Diagonal:
        if kind is not families.Wishart:
            raise ModelError(f"it is a diagonal matrix; {needs(kind)}")
        axis = unused(self.event_dim, self.rows.labels)
        term = self._one_term(entries, families.Gamma).renamed(self.event_dim, axis)
        scope = Scope(self.rows, Grid((axis,), (self.length,)))
        around = Grid((*self.plate.labels, axis), (*self.plate.shape, self.length))
        self._check_names_in_diag(term)
        arrays = tuple(scope.align(c, around) for c in term.constants)
        self._check_positive(term, arrays)
        readers = tuple(Reader.of(o, scope, around) for o in term.operands)
        return Diagonal(Product(term.scale, arrays, readers, scope), self.length)

    def _check_names_in_diag(self, term: Term) -> None:
        """Refuse a plain array with one entry per row: it would be aligned with the vector."""
        keys = (i for o in term.operands for i in o.index if isinstance(i, Labelled))
        for array in (*term.constants, *keys):
            shape, count = np.shape(array.values), array.axes.count(None)
            fits = (
                count > 0 and shape[-1] in (1, self.length) and count <= len(self.plate.shape) + 1
            )
            if count == len(shape) and shape == self.plate.shape[-count:] and not fits:
                dims = dims_as_written(self.plate.labels[-count:])
                raise ModelError(
                    "inside svmp.diag a plain array or key is aligned with the entries of the "
                    f"vector; name its axes with svmp.data(array, dims={dims})"
                )

    def _multiple(self, expression: Expression) -> Slot:
        """Return the slot of a Wishart or a fixed matrix, multiplied by numbers and Gammas."""
        (term, *more) = expression.terms
        check_parents(term, (families.Wishart, families.Gamma), needs(families.Wishart))
        wisharts = [
            o for o in term.operands if isinstance(base_of(o.variable.family), families.Wishart)
        ]
        fixed = [] if wisharts else [c for c in term.constants if is_matrix(c, self.length)]
        if more or term.summed or term.design is not None or len(wisharts) + len(fixed) != 1:
            raise ModelError(f"it is not a multiple of one matrix; {needs(families.Wishart)}")
        factor = self._product(
            Sum(
                (
                    replace(
                        term,
                        operands=tuple(o for o in term.operands if o not in wisharts),
                        constants=tuple(c for c in term.constants if c not in fixed),
                    ),
                )
            )
        )
        if wisharts:
            matrix = self._single(Sum((Term(operands=tuple(wisharts)),)), families.Wishart)
            return Multiple(factor, matrix, self.length)
        check_rank(fixed[0].values)
        return Multiple(factor, self._fixed(fixed[0], families.Wishart), self.length)

    def _single(self, expression: Expression, kind: type[Family]) -> Single:
        term = self._one_term(expression, kind)
        if len(term.operands) != 1 or term.constants or term.scale != 1:
            raise ModelError(f"it is a product; {needs(kind)}")
        (operand,) = term.operands
        variable, cut = operand.variable, len(operand.variable.plate.labels)
        if operand.index[cut:] != variable.event_dims:
            raise ModelError(
                f"'{variable.name}' cannot be indexed along {variable.event_dims}: all of its "
                "entries are needed"
            )
        if variable.event_dims and variable.shape[-1] != self.length:
            raise ModelError(
                f"'{variable.name}' has length {variable.shape[-1]} along "
                f"'{variable.event_dims[-1]}' where {self.length} is needed"
            )
        return Single(
            Reader.of(replace(operand, index=operand.index[:cut]), self.scope, self.plate)
        )

    def _one_term(self, expression: Expression, kind: type[Family]) -> Term:
        (term, *more) = expression.terms
        check_parents(term, (kind,), needs(kind))
        if more or term.summed or term.design is not None:
            raise ModelError(f"it is a sum; {needs(kind)}")
        return term

    def _vector_mean(self, expression: Expression) -> VectorMean:
        """Return the slot of a mean vector that is a sum of terms.

        Plain arrays and keys are aligned with the plate where something else in their term has the
        axis of the vector, and with the plate and that axis where nothing has it.
        """
        axis = unused(self.event_dim, self.rows.labels)
        rows, plate = (
            Grid((*grid.labels, axis), (*grid.shape, self.length))
            for grid in (self.rows, self.plate)
        )
        terms = []
        for given in expression.terms:
            term = given.renamed(self.event_dim, axis)
            around = self.plate if axis in term.labels else plate
            longer = replace(self, rows=rows, plate=around)
            terms.append(longer._linear_term(term, families.MvNormal))
        return VectorMean(tuple(terms), axis, self.length)

    def _linear_term(self, term: Term, kind: type[Family] = families.Normal) -> LinearTerm:
        check_parents(term, (families.Normal, families.MvNormal), needs(kind))
        inner = Grid(term.summed, tuple(inner_length(term, label) for label in term.summed))
        scope = Scope(self.rows, inner)
        design = term.design
        if design is not None:
            if len(term.summed) != 1:
                raise ModelError("a sparse design can be summed over its own axis only")
            design = scope.align(design, self.plate)
        constants = tuple(scope.align(c, self.plate) for c in term.constants)
        arrays = constants if design is None else (*constants, design)
        check_size(abs(term.scale) * prod(largest(a) for a in arrays))
        return LinearTerm(
            term.scale,
            constants,
            tuple(Reader.of(o, scope, self.plate) for o in term.operands),
            scope,
            design,
        )
