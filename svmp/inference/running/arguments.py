"""Check the arguments of `fit`: values of a wrong type or out of range raise a ModelError."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from svmp.errors import ModelError
from svmp.inference.earlier import EarlierBeliefs, EarlierQ
from svmp.inference.methods.method import check_method
from svmp.network.model import Model
from svmp.network.validation import array, shown


def check_model_and_method(model: Any, method: Any, steps: Any, watch: Any = None) -> None:
    """Refuse anything but a model, an algorithm and a step policy; classes are refused too.

    >>> from svmp import FullVB
    >>> check_model_and_method(Model(), FullVB, None)
    Traceback (most recent call last):
    svmp.errors.ModelError: method must be an algorithm, as svmp.FullVB(), not the class FullVB
    """
    check_model(model)
    check_method_and_steps(method, steps, watch)


def check_model(model: Any) -> None:
    """Refuse anything but a model."""
    if not isinstance(model, Model):
        raise ModelError(f"model must be a svmp.Model, not {shown(model)}")


def check_method_and_steps(method: Any, steps: Any, watch: Any = None) -> None:
    """Refuse anything but an algorithm, a step policy and a function to watch a run."""
    if method is not None:
        check_method(method)
    if steps is not None and not (_is_instance(steps) and callable(steps)):
        raise ModelError(f"steps must be a step policy, as svmp.RobbinsMonro(), not {shown(steps)}")
    if watch is not None and not callable(watch):
        raise ModelError(f"watch must be a function of a row of the trace, not {shown(watch)}")


def check_numbers(
    seed: Any,
    tol: Any,
    bound_every: Any,
    max_sweeps: Any,
    max_accesses: Any,
    max_seconds: Any,
) -> None:
    """Refuse values that are not numbers or are out of range."""
    if seed is None:
        raise ModelError("seed must be a whole number or a numpy.random.Generator, not None")
    if tol is not None and not (_real(tol) and float(tol) >= 0):
        raise ModelError(f"tol must be a number of at least 0, or None, not {shown(tol)}")
    whole = isinstance(bound_every, Integral) and int(bound_every) > 0
    if bound_every is not None and not (whole or callable(bound_every)):
        raise ModelError(
            "bound_every must be a positive whole number, or a function of the iteration, "
            f"not {shown(bound_every)}"
        )
    limits = {"max_sweeps": max_sweeps, "max_accesses": max_accesses, "max_seconds": max_seconds}
    for name, limit in limits.items():
        if limit is not None and not (_real(limit) and float(limit) > 0):
            raise ModelError(f"{name} must be a positive number or None, not {shown(limit)}")


def given_values(init: Any) -> set[str]:
    """Return the variables for which the user gave starting values, and not a posterior."""
    if not isinstance(init, Mapping) or isinstance(init, EarlierBeliefs):
        return set()
    return {name for name, value in init.items() if not isinstance(value, EarlierQ | None)}


def _real(value: Any) -> bool:
    """Return whether a value is a real number that a float can hold."""
    return isinstance(value, Real) and array(value) is not None


def _is_instance(value: Any) -> bool:
    """Return whether a value is an instance, and not a class."""
    return not isinstance(value, type)
