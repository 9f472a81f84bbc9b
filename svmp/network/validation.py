"""What a person gives to a declaration: numbers, keys, names and dims, each checked in one place.

Whatever an array is kept for is a copy, so that the person may change theirs afterwards.
"""

from __future__ import annotations

from datetime import date, timedelta
from numbers import Number, Real
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError

LARGEST = 1e100
"""Beyond this, squares of numbers and sums of them leave the range of 64-bit floats."""

LITERAL = (str, bytes, Number, date, timedelta, NoneType)
"""What is shown as it is written in Python."""

LONGEST = 40
"""How many characters of what was given stand in a message."""

PRIME = "'"
"""Marks the private name of an axis that a term sums over."""


def shown(value: Any) -> str:
    """Return what was given in a few words on one line, never by an inner repr.

    >>> shown("abc"), shown([1, None]), shown(np.ones((2, 3))), shown(len)
    ("'abc'", '[1, None]', 'an array of shape (2, 3)', 'a builtin_function_or_method')
    """
    if hasattr(type(value), "in_words"):
        return str(value.in_words())
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        items = ", ".join(shown(item) for item in value[:10])
        text = f"[{items}]" if isinstance(value, list) else f"({items})"
    elif isinstance(value, LITERAL):
        try:
            text = " ".join(repr(value).split())
        except ValueError:  # Python writes no number of more than 4300 digits
            text = f"{type(value).__name__} of many digits"
    else:
        return article(type(value).__name__)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def article(noun: str) -> str:
    """Put the indefinite article before a noun.

    >>> article("Exponential"), article("Gamma")
    ('an Exponential', 'a Gamma')
    """
    return f"{'an' if noun[0] in 'aeiouAEIOU' else 'a'} {noun}"


def array(value: Any) -> NDArray[Any] | None:
    """Return booleans, whole or real numbers as an array; None for anything else.

    An array of objects will do if they are numbers; among them None is NaN.
    """
    try:
        found = np.asarray(value)
        if found.dtype.kind == "O":
            absent = type(None) if found.ndim else Real
            if all(isinstance(item, Real | absent) for item in found.flat):
                found = found.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    if found.dtype.kind not in "biuf":
        return None
    return found.astype(found.dtype.newbyteorder("="), copy=False)  # loops know no other order


def numeric(value: Any) -> NDArray[np.float64]:
    """Return a copy of the finite numbers that were given, or say that they are none."""
    found = array(value)
    if found is None:
        named = value is not None and isinstance(value, (*LITERAL, list, tuple))
        kind = f"{type(value).__name__} " if named else ""
        raise ModelError(f"{kind}{shown(value)} is neither a number, an array nor a variable")
    with np.errstate(over="ignore"):
        copy = np.array(found, dtype=np.float64)
    if not np.isfinite(copy).all() or np.ma.is_masked(value):
        raise ModelError("it holds NaN or infinity where a number is needed")
    return copy


def check_real(**numbers: Any) -> None:
    """Refuse arguments that are not one real number each, by their names."""
    for name, value in numbers.items():
        found = array(value)
        if found is None or found.ndim:
            raise ModelError(f"{name} must be a number, not {shown(value)}")


def whole(value: Any, length: int, where: str) -> NDArray[Any]:
    """Return an index into an axis of some length, of a type that adds to NumPy's own."""
    found = array(value)
    if found is None or found.dtype.kind not in "iu":
        kind = shown(value) if found is None else f"of the type {found.dtype}"
        mask = found is not None and found.dtype == bool
        hint = "; a mask has them by np.flatnonzero(mask)" if mask else ""
        raise ModelError(f"{where} must be whole numbers, not {kind}{hint}")
    if np.ma.is_masked(value):
        raise ModelError(f"{where} is masked in places, where whole numbers are needed")
    if found.size and (found.min() < 0 or found.max() >= length):
        worst = found.min() if found.min() < 0 else found.max()
        raise ModelError(f"{where} holds {worst}, but must be in 0..{length - 1}")
    return found.astype(np.int64) if found.dtype == np.uint64 else found


def sound_sparse(matrix: Any) -> bool:
    """Return whether the indices of a sparse matrix fit its shape, on which SciPy relies."""
    try:
        if hasattr(matrix, "check_format"):  # by rows, columns or blocks
            matrix.check_format(full_check=True)
        elif matrix.format == "coo":
            for axis, index in enumerate(matrix.coords):
                inside = (index >= 0) & (index < matrix.shape[axis])
                if index.shape != matrix.data.shape or not inside.all():
                    return False
    except (ValueError, TypeError, IndexError):
        return False
    return True


def text(value: Any, what: str) -> str:
    """Return a name if it is one: some letters, on one line."""
    if not isinstance(value, str) or value.splitlines() != [value]:
        raise ModelError(f"{what} must be text on one line, not {shown(value)}")
    return value


def dim_name(value: Any) -> str:
    """Return the name of a dimension if it is one."""
    if text(value, "the name of a dimension").endswith(PRIME):
        raise ModelError(f"the name of a dimension must not end in a prime, as '{value}' does")
    return str(value)


def dim_names(dims: Any, repeated: bool = False) -> tuple[str, ...]:
    """Return dims as a tuple of names, all different but for the last two where they may be one.

    Parameters
    ----------
    dims
        As given: one name, or several.
    repeated
        Whether the last two may be one, as those of a matrix.
    """
    given = (dims,) if isinstance(dims, str) else dims
    if not isinstance(given, tuple | list):
        raise ModelError(f"dims must be a name or a tuple of names, not {shown(dims)}")
    names = tuple(dim_name(dim) for dim in given)
    distinct = names[:-1] if repeated and names[-1:] == names[-2:-1] else names
    for dim in distinct:
        if distinct.count(dim) > 1:
            raise ModelError(f"the dimension '{dim}' is there twice")
    return names
