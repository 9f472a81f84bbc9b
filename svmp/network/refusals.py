"""Operators and functions that variables do not support, and what to write instead.

Every unsupported operator and protocol of Python and NumPy raises a `ModelError` from one table, so
that none ends in an exception of another library, an object array or a silent wrong answer.
Subclasses override what they support.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import numpy as np

from svmp.errors import ModelError
from svmp.network.other_names import EXP, LOG

_UNKNOWN = "it has no value before the fit; after it, use fit.mean({name}) or fit[{name}].draw(...)"
_NOT_LINEAR = "only sums and products are conjugate; apply other functions to the data"

OPERATORS: dict[str, tuple[str, str]] = {
    "if, and, or, not": (
        "bool",
        "is neither true nor false; to choose between densities, use svmp.Mixture",
    ),
    "<, >, <=, >=, ==, !=": ("lt le gt ge eq ne", f"cannot be compared: {_UNKNOWN}"),
    "float, int, complex, math": (
        "float int complex index",
        f"is not a number: {_UNKNOWN}",
    ),
    "len": ("len", "has no length; sizes are in the coords of the model"),
    "in": ("contains", f"cannot be searched: {_UNKNOWN}"),
    "iteration": (
        "iter reversed",
        'cannot be gone through one by one; to add up, use .sum("axis")',
    ),
    "[]": ("getitem", "cannot be indexed; index each variable or array in it, as x[key]"),
    "[] =": (
        "setitem delitem",
        "cannot be changed; give values with observed=, or a start with init= of svmp.fit",
    ),
    "abs, round": (
        "abs round floor ceil trunc invert",
        f"cannot be rounded, inverted or made positive: {_NOT_LINEAR}",
    ),
    "+, -": (
        "add radd sub rsub pos neg",
        "cannot be added to or subtracted from",
    ),
    "*, /": (
        "mul rmul matmul rmatmul truediv rtruediv",
        "cannot be multiplied or divided",
    ),
    "**": ("pow rpow", f"cannot be raised to a power, nor be an exponent: {_NOT_LINEAR}"),
    "//, %, &, |, ^, <<, >>": (
        "floordiv rfloordiv mod rmod divmod rdivmod and rand or ror xor rxor lshift rlshift "
        "rshift rrshift",
        f"has only +, -, * and @, and / by numbers: {_NOT_LINEAR}",
    ),
}
"""Unsupported special methods, and the message after the name of the variable."""

UFUNCS: dict[Any, str] = {
    np.add: "add",
    np.subtract: "sub",
    np.multiply: "mul",
    np.true_divide: "truediv",
    np.matmul: "matmul",
    np.power: "pow",
    np.negative: "neg",
    np.positive: "pos",
}
"""NumPy's ufuncs that are operators of Python."""

INSTEAD = {
    **dict.fromkeys(
        ("dot", "inner", "vdot", "matmul", "tensordot", "einsum", "vecdot", "matvec", "linalg"),
        "write svmp.dot(x, y)",
    ),
    **dict.fromkeys(("sum", "nansum", "cumsum"), 'write x.sum("axis")'),
    **dict.fromkeys(
        ("mean", "std", "var", "median", "average", "min", "max", "argmax", "argmin"), _UNKNOWN
    ),
    **dict.fromkeys(
        ("T", "transpose", "reshape", "squeeze", "ravel", "flatten", "swapaxes", "expand_dims"),
        "axes are named, so their order does not matter",
    ),
    **dict.fromkeys(
        ("values", "to_numpy", "item", "tolist", "astype", "copy", "draw", "sample"), _UNKNOWN
    ),
    **dict.fromkeys(("sel", "at", "xs", "get"), "labels are read by x[label] or x.loc[label]"),
    **dict.fromkeys(("isel", "iat"), "places are read by x[place] or x.iloc[place]"),
    **dict.fromkeys(
        ("where", "select", "maximum", "minimum", "clip"),
        "to choose between densities, use svmp.Mixture",
    ),
    **dict.fromkeys(
        ("concatenate", "stack", "hstack", "vstack", "append", "take", "repeat", "tile"),
        "declare one variable with dims, and read it by keys, as x[key]",
    ),
    **dict.fromkeys(
        ("sqrt", "square", "sin", "cos", "tanh", "logaddexp", "power", "abs", "absolute"),
        _NOT_LINEAR,
    ),
    **dict.fromkeys(("exp", "exp2", "expm1"), EXP),
    **dict.fromkeys(("log", "log2", "log10", "log1p"), LOG),
}
"""What to write instead of a function or an attribute of NumPy or Pandas."""


class AttributeModelError(ModelError, AttributeError):
    """An unknown attribute of a variable; also an AttributeError, as `hasattr` needs."""


class ClassOnly:
    """A method that is found on the class, where NumPy looks, and is None on instances.

    numpy.ma looks it up on the instance, where None makes it leave `masked * x` to x.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __get__(self, instance: Any, owner: Any) -> Callable[..., Any] | None:
        return self.function if instance is None else None


class Symbolic(ABC):
    """Part of a declaration, without a value: what it does not support is refused.

    Attributes
    ----------
    hint
        What to write instead of arithmetic.
    """

    hint: ClassVar[str] = ""
    __pandas_priority__ = 10_000  # Pandas then defers to us, as in `frame["x"] * variable`
    __hash__ = object.__hash__

    @abstractmethod
    def in_words(self) -> str:
        """Describe it for error messages."""

    def _error(self, says: str, kind: type[ModelError] = ModelError) -> ModelError:
        """Return the error for something it does not support."""
        name = f'"{self.name}"' if "name" in self.__dict__ else "name"
        return kind(f"{self.in_words()} {says.replace('{name}', name)}")

    def __repr__(self) -> str:
        return f"<{self.in_words()}>"

    def __format__(self, how: str) -> str:
        if how:
            raise self._error(f"is not a number: {_UNKNOWN}")
        return str(self)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        instead = f"; {INSTEAD[name]}" if name in INSTEAD else ""
        raise self._error(f"has no attribute '{name}'{instead}", AttributeModelError)

    def __array__(self, *_: Any, **__: Any) -> Any:
        if sys._getframe(1).f_code.co_name == "_matmul_dispatch":
            return np.array(None, dtype=object)  # makes scipy.sparse leave `design @ x` to us
        raise self._error(
            "cannot become an array; beside an array, write x * array or svmp.dot(array, x), "
            "and after the fit, fit.mean({name})"
        )

    @ClassOnly
    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        name, called = UFUNCS.get(function), method == "__call__"
        if name is None or not called:
            self._refuse(function.__name__ if called else f"{function.__name__}.{method}")
        if options:
            raise self._error("cannot be put into an array; write y = y + x and not y += x")
        first, *others = inputs
        if isinstance(first, Symbolic):
            return getattr(first, f"__{name}__")(*others)
        return getattr(others[0], f"__r{name}__")(first)

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        module = ".".join((function.__module__ or "").split(".")[1:])  # as of np.linalg.norm
        self._refuse(f"{module}.{function.__name__}" if module else function.__name__)

    def _refuse(self, function: str) -> NoReturn:
        raise self._error(
            f"cannot go through np.{function}; {INSTEAD.get(function.split('.')[-1], _NOT_LINEAR)}"
        )


def _refusal(says: str) -> Callable[..., NoReturn]:
    def refuse(self: Symbolic, *_: Any) -> NoReturn:
        raise self._error(f"{says}{self.hint}")

    return refuse


for _names, _says in OPERATORS.values():
    for _name in _names.split():
        setattr(Symbolic, f"__{_name}__", _refusal(_says))
