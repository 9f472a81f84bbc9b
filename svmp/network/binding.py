"""From what the user wrote as a parameter to a slot, or a sentence on why it cannot be one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from svmp import families
from svmp.errors import ModelError
from svmp.families.family import Family
from svmp.network.expressions import (
    DiagonalMatrix,
    Expression,
    Labelled,
    Sum,
    Term,
    lift,
    unused,
)
from svmp.network.grid import Grid, Scope
from svmp.network.linear import Linear, LinearTerm
from svmp.network.matrices import Diagonal, Multiple
from svmp.network.reader import Reader
from svmp.network.slot import Fixed, Product, Single, Slot

NO_SLOTS = Grid((), ())

_NEEDS: dict[type[Family], str] = {
    families.Normal: "a mean needs numbers, or sums of products of Normal and MvNormal variables",
    families.Gamma: "a precision or rate needs a positive number, a Gamma, or a product of them",
    families.MvNormal: "a mean vector needs numbers or an MvNormal",
    families.Wishart: "a precision matrix needs a symmetric positive definite matrix, a Wishart "
    "or a multiple of one, or svmp.diag(...) of Gammas",
    families.Beta: "a probability needs a number between 0 and 1 or a Beta",
    families.Dirichlet: "probabilities need positive numbers that add up to 1, or a Dirichlet",
    families.Categorical: "the choice among components needs a Categorical",
}


def needs(kind: type[Family]) -> str:
    """Say what a parameter with the moments of a family may be."""
    return _NEEDS.get(kind, f"it needs a possible value of a {kind.__name__}, or such a variable")


@dataclass(frozen=True)
class Binder:
    """Binds the parameters of one variable.

    Attributes
    ----------
    name
        The variable's.
    plate
        Its plate, to which plain arrays are lined up.
    rows
        The plate, and in a mixture the components' axis after it.
    length
        Length of its vectors, or number of its categories.
    event_dim
        Name of the axis of its vectors, if it has any.
    """

    name: str
    plate: Grid
    rows: Grid
    length: int
    event_dim: str = ""

    @property
    def scope(self) -> Scope:
        return Scope(self.rows, NO_SLOTS)

    @contextmanager
    def _about(self, parameter: str) -> Iterator[None]:
        """Say whose parameter an error is about."""
        try:
            yield
        except ModelError as error:
            raise ModelError(f"{parameter} of '{self.name}': {error}") from None

    def constant(self, parameter: str, value: Any, events: int) -> Labelled:
        """Return a fixed parameter as an array with named axes, then `events` axes of its own."""
        with self._about(parameter):
            expression = lift(value)
            array = plain(expression)
            if array is None:
                raise ModelError(
                    "it is random, but no conjugate prior is known for it; give numbers"
                )
            return self._aligned(array, events)

    def slot(self, parameter: str, value: Any, kind: type[Family]) -> Slot:
        """Return the slot for a parameter whose moments are those of a family."""
        with self._about(parameter):
            if isinstance(value, DiagonalMatrix):
                return self._diagonal(value.entries, kind)
            expression = lift(value)
            array = plain(expression)
            if array is not None and kind is not families.Categorical:
                return self._fixed(array, kind)
            if kind is families.Normal:
                terms = tuple(self._linear_term(t) for t in expression.terms)
                return Linear(self.name, terms)
            if kind is families.Gamma:
                return self._product(expression)
            if kind is families.Wishart and is_product(expression):
                return self._multiple(expression)
            return self._single(expression, kind)

    def _fixed(self, array: Labelled, kind: type[Family]) -> Fixed:
        family = kind.sized(self.length)
        array = self._aligned(array, family.event_ndim)
        possible = family.in_support(array.values)
        if not np.all(possible):
            first = array.values[np.unravel_index(np.argmin(possible), np.shape(possible))]
            raise ModelError(f"it is {np.array2string(first, threshold=6)}; {needs(kind)}")
        return Fixed(replace(array, values=family.statistics(array.values)), self.scope)

    def _aligned(self, array: Labelled, events: int) -> Labelled:
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

    def _diagonal(self, entries: Expression, kind: type[Family]) -> Diagonal:
        if kind is not families.Wishart:
            raise ModelError(f"it is a diagonal matrix; {needs(kind)}")
        axis = unused(self.event_dim, self.rows.labels)
        term = self._one_term(entries, families.Gamma).renamed(self.event_dim, axis)
        slots = Scope(self.rows, Grid((axis,), (self.length,)))
        around = Grid((*self.plate.labels, axis), (*self.plate.shape, self.length))
        arrays = tuple(slots.align(c, around) for c in term.constants)
        self._check_positive(term, arrays)
        readers = tuple(Reader.of(o, slots, around) for o in term.operands)
        return Diagonal(Product(term.scale, arrays, readers, slots), self.length)

    def _multiple(self, expression: Expression) -> Slot:
        """Return the slot of a Wishart that numbers and Gammas multiply."""
        (term, *more) = expression.terms
        matrices = [o for o in term.operands if isinstance(o.variable.family, families.Wishart)]
        if more or term.summed or term.design is not None or len(matrices) != 1:
            raise ModelError(f"it is not one Wishart; {needs(families.Wishart)}")
        check_parents(term, (families.Wishart, families.Gamma), needs(families.Wishart))
        others = tuple(o for o in term.operands if o not in matrices)
        factor = self._product(Sum((replace(term, operands=others),)))
        single = self._single(Sum((Term(operands=tuple(matrices)),)), families.Wishart)
        return Multiple(factor, single.reader, self.length)

    def _single(self, expression: Expression, kind: type[Family]) -> Single:
        term = self._one_term(expression, kind)
        if len(term.operands) != 1 or term.constants or term.scale != 1:
            raise ModelError(f"it is a product; {needs(kind)}")
        (operand,) = term.operands
        variable, cut = operand.variable, len(operand.variable.plate.labels)
        if operand.index[cut:] != variable.event_dims:
            raise ModelError(f"'{variable.name}' cannot be indexed along {variable.event_dims}")
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

    def _linear_term(self, term: Term) -> LinearTerm:
        check_parents(term, (families.Normal, families.MvNormal), needs(families.Normal))
        slots = Grid(term.summed, tuple(slot_length(term, label) for label in term.summed))
        scope = Scope(self.rows, slots)
        design = term.design
        if design is not None:
            if len(term.summed) != 1:
                raise ModelError("a sparse design can be summed over its own axis only")
            design = scope.align(design, self.plate)
        return LinearTerm(
            term.scale,
            tuple(scope.align(c, self.plate) for c in term.constants),
            tuple(Reader.of(o, scope, self.plate) for o in term.operands),
            scope,
            design,
        )


def check_parents(term: Term, kinds: tuple[type[Family], ...], wanted: str) -> None:
    """Refuse a parent that is not conjugate, or that is observed only in part."""
    for operand in term.operands:
        variable = operand.variable
        if not isinstance(variable.family, kinds):
            kind = type(variable.family).__name__
            raise ModelError(f"it depends on {kind} '{variable.name}'; {wanted}")
        if len(variable.rows) < variable.size:
            raise ModelError(f"it depends on '{variable.name}', of which some values are missing")


def is_product(expression: Expression) -> bool:
    """Return whether more than one thing is multiplied."""
    term = expression.terms[0]
    return len(term.operands) + len(term.constants) > 1 or term.scale != 1


def plain(expression: Expression) -> Labelled | None:
    """Return an expression that is one array of numbers as such."""
    term, *more = expression.terms
    if more or term.operands or term.summed or term.design is not None or len(term.constants) > 1:
        return None
    if not term.constants:
        return Labelled(np.asarray(term.scale), ())
    (array,) = term.constants
    return replace(array, values=array.values * term.scale)


def slot_length(term: Term, label: str) -> int:
    """Return the length of an axis that a term sums over."""
    for operand in term.operands:
        if label in operand.index:
            return operand.variable.shape[operand.index.index(label)]
    arrays = (*term.constants, *(i for o in term.operands for i in o.index), term.design)
    for array in arrays:
        if isinstance(array, Labelled) and label in array.axes:
            return int(array.values.shape[array.axes.index(label)])
    raise AssertionError(f"no array has the axis {label}")


def category_axis(p: Any) -> tuple[str | None, int]:
    """Return the name, if it has one, and the length of the last axis of probabilities."""
    (term, *_) = lift(p).terms
    for operand in term.operands:
        if operand.variable.dims:
            return operand.variable.dims[-1], operand.variable.shape[-1]
    for array in term.constants:
        return array.axes[-1], array.values.shape[-1]
    return None, 1
