"""What a parameter as written is: a constant, a product, a matrix or a vector; and its checks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from svmp import families
from svmp.errors import ModelError
from svmp.families.family import Family
from svmp.families.matrix import is_symmetric
from svmp.network.expressions import DiagonalMatrix, Expression, Term
from svmp.network.grid import Labelled
from svmp.network.partly_known import base_of
from svmp.network.validation import LARGEST


def dims_as_written(dims: tuple[str, ...]) -> str:
    """Return dims as Python source.

    >>> dims_as_written(("row",)), dims_as_written(("row", "k"))
    ('"row"', '("row", "k")')
    """
    names = ", ".join(f'"{dim}"' for dim in dims)
    return names if len(dims) == 1 else f"({names})"


def check_parents(term: Term, kinds: tuple[type[Family], ...], wanted: str) -> None:
    """Refuse a parent that is not conjugate."""
    for operand in term.operands:
        variable = operand.variable
        family = base_of(variable.family)
        if not isinstance(family, kinds):
            kind = type(family).__name__
            raise ModelError(f"it depends on {kind} '{variable.name}'; {wanted}")


def largest(array: Labelled) -> float:
    """Return the largest absolute value in an array, dense or sparse; 1 if it is empty."""
    values = np.asarray(array.values.data if sparse.issparse(array.values) else array.values)
    return float(max(values.max(), -values.min())) if values.size else 1.0


def check_size(size: float) -> None:
    """Refuse numbers whose squares overflow."""
    if not size <= LARGEST:
        raise ModelError(
            f"it holds numbers of size {size:.3g}, but beyond {LARGEST:g} squares overflow; use "
            "other units"
        )


def is_whole_vector(expression: Expression) -> bool:
    """Whether an expression is one MvNormal, with all entries of its vectors."""
    if len(expression.terms) > 1 or is_product(expression):
        return False
    (term,) = expression.terms
    if term.summed or term.design is not None or len(term.operands) != 1:
        return False
    (operand,) = term.operands
    variable = operand.variable
    if not isinstance(base_of(variable.family), families.MvNormal):
        return False
    return operand.index[len(variable.plate.labels) :] == variable.event_dims


def is_matrix(array: Labelled, length: int) -> bool:
    """Whether the last axes of an array are a square matrix of this length, without names."""
    return array.axes[-2:] == (None, None) and array.values.shape[-2:] == (length, length)


def check_rank(matrices: NDArray[Any]) -> None:
    """Refuse symmetric matrices without negative eigenvalues that are not of full rank."""
    if not is_symmetric(matrices).all():
        return  # refused for that reason
    values = np.linalg.eigvalsh(matrices)
    tiny = 1e-12 * np.abs(values).max(axis=-1, keepdims=True)
    if (values > tiny).all() or (values < -tiny).any():
        return
    size, rank = values.shape[-1], int((values > tiny).sum(axis=-1).min())
    raise ModelError(
        f"its matrix has rank {rank} of {size}, so that the prior is improper; add a small "
        f"multiple of np.eye({size}), or declare the vector as svmp.dot(basis, z) in the "
        f"basis of its other {rank} eigenvectors, see docs/networks.md"
    )


def is_product(expression: Expression) -> bool:
    """Whether an expression is a product of more than one factor."""
    term = expression.terms[0]
    return len(term.operands) + len(term.constants) > 1 or term.scale != 1


def plain(expression: Expression) -> Labelled | None:
    """Return an expression that is a constant as one array; None if it is not constant."""
    term, *more = expression.terms
    if more or term.operands or term.summed or term.design is not None or len(term.constants) > 1:
        return None
    if not term.constants:
        return Labelled(np.asarray(term.scale), ())
    (array,) = term.constants
    with np.errstate(over="ignore"):
        return replace(array, values=array.values * term.scale)


def inner_length(term: Term, label: str) -> int:
    """Return the length of an axis that a term sums over."""
    for operand in term.operands:
        if label in operand.index:
            return operand.variable.shape[operand.index.index(label)]
    arrays = (*term.constants, *(i for o in term.operands for i in o.index), term.design)
    for array in arrays:
        if isinstance(array, Labelled) and label in array.axes:
            return int(array.values.shape[array.axes.index(label)])
    raise AssertionError(f"no array has the axis {label}")


def category_axis(p: Expression | DiagonalMatrix) -> tuple[str | None, int]:
    """Return the name (if any) and the length of the last axis of probabilities."""
    (term, *_) = (p.entries if isinstance(p, DiagonalMatrix) else p).terms
    for operand in term.operands:
        if operand.variable.dims:
            return operand.variable.dims[-1], operand.variable.shape[-1]
    for array in term.constants:
        return array.axes[-1], array.values.shape[-1]
    return None, 1
