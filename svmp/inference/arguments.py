"""The arguments of `fit`: what is out of range, or of another kind, is refused in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from svmp.errors import ModelError
from svmp.network.model import Model
from svmp.network.validation import array
from svmp.network.validation import shown as _short


def check_model_and_method(model: Any, method: Any, steps: Any, watch: Any = None) -> None:
    """Refuse what is not a model, an algorithm or a step policy, or is a class and not one of it.

    >>> from svmp.inference.selection import FullVB
    >>> check_model_and_method(Model(), FullVB, None)
    Traceback (most recent call last):
    svmp.errors.ModelError: method must be an algorithm, as svmp.FullVB(), not the class FullVB
    """
    if not isinstance(model, Model):
        raise ModelError(f"model must be a svmp.Model, not {_short(model)}")
    members = ("draw", "option", "order")
    if method is not None and not (_made(method) and all(hasattr(method, m) for m in members)):
        raise ModelError(f"method must be an algorithm, as svmp.FullVB(), not {_short(method)}")
    if steps is not None and not (_made(steps) and callable(steps)):
        raise ModelError(
            f"steps must be a step policy, as svmp.RobbinsMonro(), not {_short(steps)}"
        )
    if watch is not None and not callable(watch):
        raise ModelError(f"watch must be a function of a row of the trace, not {_short(watch)}")
    order = getattr(method, "order", None)
    listed = isinstance(order, Sequence) and not isinstance(order, str)
    if order is not None and not (listed and all(isinstance(name, str) for name in order)):
        raise ModelError(f"order must be a list of names of variables, not {_short(order)}")


def check_numbers(
    seed: Any,
    tol: Any,
    bound_every: Any,
    max_sweeps: Any,
    max_accesses: Any,
    max_seconds: Any,
) -> None:
    """Refuse numbers that are out of range, or are none."""
    if seed is None:
        raise ModelError("seed must be a whole number or a numpy.random.Generator, not None")
    if not _real(tol) or not float(tol) >= 0:
        raise ModelError(f"tol must be a number of at least 0, not {_short(tol)}")
    whole = isinstance(bound_every, Integral) and int(bound_every) > 0
    if bound_every is not None and not (whole or callable(bound_every)):
        raise ModelError(
            "bound_every must be a positive whole number, or a function of the iteration, "
            f"not {_short(bound_every)}"
        )
    limits = {"max_sweeps": max_sweeps, "max_accesses": max_accesses, "max_seconds": max_seconds}
    for name, limit in limits.items():
        if limit is not None and not (_real(limit) and float(limit) > 0):
            raise ModelError(f"{name} must be a positive number or None, not {_short(limit)}")


def _real(value: Any) -> bool:
    """Return whether a value is a real number that a float can hold."""
    return isinstance(value, Real) and array(value) is not None


def _made(value: Any) -> bool:
    """Return whether a value is an object, and not the class that makes it."""
    return not isinstance(value, type)
