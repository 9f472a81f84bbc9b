"""Validation of user input: numbers, keys, names and dims.

Arrays that are kept are copies, so that the caller may change the originals.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from numbers import Number, Real
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError

LARGEST = 1e100
"""Larger numbers have squares whose sums may overflow 64-bit floats."""

LITERAL = (str, bytes, Number, date, timedelta, NoneType)
"""Types that are shown by their Python repr."""

LONGEST = 40
"""Largest number of characters of a value in a message."""

PRIME = "'"
"""Marks the private name of an axis that a term sums over."""


def shown(value: Any) -> str:
    """Describe a value on one line for an error message, without internal reprs.

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
        except ValueError:  # Python does not convert integers of more than 4300 digits
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


def as_array(value: Any) -> NDArray[Any]:
    """Return an array-like as an array, also a column of whole numbers that NumPy has no type for.

    Raises
    ------
    TypeError, ValueError
        If it is none.
    """
    if isinstance(value, np.ndarray) or not hasattr(value, "__array__"):
        return np.asarray(value)
    try:
        return np.asarray(value)
    except Exception as error:  # of the library whose column it is
        listed = list(value) if hasattr(value, "__iter__") else None
        if listed is None or not all(type(x) is int for x in listed):
            raise TypeError(f"{article(type(value).__name__)} is not an array: {error}") from error
        return np.asarray(listed)


def array(value: Any) -> NDArray[Any] | None:
    """Return booleans, integers or real numbers as an array; None for anything else.

    Arrays of objects are converted if all are numbers or None, which becomes NaN; so does the NA of
    pandas.
    """
    try:
        found = as_array(value)
        if found.dtype.kind == "O" and not isinstance(next(iter(found.flat), 0), str):
            numbers, absent = (Real, Decimal), type(None) if found.ndim else Real
            listed = [None if type(x).__name__ == "NAType" else x for x in found.flat]
            if all(isinstance(item, (*numbers, absent)) for item in listed):
                found = np.array(listed, dtype=np.float64).reshape(found.shape)
    except (TypeError, ValueError, OverflowError):
        return None
    if found.dtype.kind not in "biuf":
        return None
    native = found.dtype.newbyteorder("=")  # other byte orders are slow
    return found.astype(native, copy=False)


def large_integers(value: Any, found: NDArray[Any]) -> NDArray[Any] | None:
    """Return whole numbers that no type of NumPy holds as objects; `found` is array(value)."""
    if found.dtype.kind != "f" or (isinstance(value, np.ndarray) and value.dtype.kind != "O"):
        return None
    listed = np.asarray(value, dtype=object)
    whole_numbers = all(isinstance(item, int | np.integer) for item in listed.flat)
    return listed if listed.ndim and listed.size and whole_numbers else None


def numeric(value: Any) -> NDArray[np.float64]:
    """Return a copy as finite floats, or refuse what is not numeric or not finite."""
    found = array(value)
    if found is None:
        if isinstance(value, np.ndarray) and value.size and isinstance(value.flat[0], str):
            raise ModelError(
                f"it holds {shown(value.flat[0])}, ... where numbers are needed; labels are keys, "
                "as u[labels], and not factors"
            )
        named = value is not None and isinstance(value, (*LITERAL, list, tuple))
        kind = f"{type(value).__name__} " if named else ""
        raise ModelError(f"{kind}{shown(value)} is neither a number, an array nor a variable")
    with np.errstate(over="ignore"):
        copy = np.array(found, dtype=np.float64)
    if not np.isfinite(copy).all() or np.ma.is_masked(value):
        raise ModelError(
            "it holds NaN or infinity where a number is needed; leave out such rows, or declare "
            "what is missing as a variable with missing=True"
        )
    return copy


def check_real(**numbers: Any) -> None:
    """Refuse arguments, given by name, that are not single real numbers."""
    for name, value in numbers.items():
        found = array(value)
        if found is None or found.ndim:
            raise ModelError(f"{name} must be a number, not {shown(value)}")


def whole(value: Any, length: int, where: str) -> NDArray[Any]:
    """Return an index array for an axis of this length, as integers that fit in int64."""
    found = array(value)
    if found is None or found.dtype.kind not in "iu":
        kind = shown(value) if found is None else f"of the type {found.dtype}"
        mask = found is not None and found.dtype == bool
        hint = "; a mask has them by np.flatnonzero(mask)" if mask else ""
        if found is not None and found.dtype.kind == "f":
            hint = "; convert them, as by keys.astype(int)"
        raise ModelError(f"{where} must be whole numbers, not {kind}{hint}")
    if np.ma.is_masked(value):
        raise ModelError(f"{where} is masked in places, where whole numbers are needed")
    if found.size and (found.min() < 0 or found.max() >= length):
        worst = found.min() if found.min() < 0 else found.max()
        raise ModelError(f"{where} holds {worst}, but must be in 0..{length - 1}")
    return found.astype(np.int64) if found.dtype == np.uint64 else found


def sound_sparse(matrix: Any) -> bool:
    """Whether the indices of a sparse matrix fit its shape, which SciPy does not check itself."""
    try:
        if hasattr(matrix, "check_format"):  # CSR, CSC, BSR
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
    """Return a name, or refuse what is not a non-empty string on one line."""
    if not isinstance(value, str) or value.splitlines() != [value]:
        raise ModelError(f"{what} must be text on one line, not {shown(value)}")
    if not is_unicode(value):
        raise ModelError(f"{what} has a lone surrogate, which is not a character: {shown(value)}")
    return value


def is_unicode(value: str) -> bool:
    """Whether a text can be written: it has no half of a pair of surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def dim_name(value: Any) -> str:
    """Return the name of a dimension, or refuse it."""
    if text(value, "the name of a dimension").endswith(PRIME):
        raise ModelError(f"the name of a dimension must not end in a prime, as '{value}' does")
    return str(value)


def dim_names(dims: Any, repeated: bool = False) -> tuple[str, ...]:
    """Return dims as a tuple of distinct names.

    Parameters
    ----------
    dims
        One name, or several.
    repeated
        Whether the last two may be equal, as those of a matrix.
    """
    given = (dims,) if isinstance(dims, str) else dims
    if not isinstance(given, tuple | list):
        raise ModelError(f"dims must be a name or a tuple of names, not {shown(dims)}")
    names = tuple(dim_name(dim) for dim in given)
    distinct = names[:-1] if repeated and names[-1:] == names[-2:-1] else names
    for dim in distinct:
        if distinct.count(dim) > 1:
            raise ModelError(
                f"the dimension '{dim}' occurs twice; give each axis a dim of its own in the "
                f"model's coords, as '{dim}' and '{dim}_2'"
            )
    return names
