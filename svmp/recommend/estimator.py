"""Parameters by name, as scikit-learn's tools expect them; scikit-learn itself is not needed."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self, get_args

from svmp.errors import Interface, ModelError, called
from svmp.inference.running.seeds import check_seed
from svmp.ratings.columns import ColumnSelection
from svmp.ratings.table import Duplicates


def check_whole(name: str, value: Any, least: int) -> None:
    """Raise unless a value is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ModelError(
            f"{called(name)} must be a whole number of at least {least}, not {value!r:.60}"
        )


def check_number(name: str, value: Any, least: float, most: float = math.inf) -> None:
    """Raise unless a value is a finite number from `least` to `most`."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not real or not least <= float(value) <= most or not math.isfinite(value):
        above = "" if least == -math.inf else f" of at least {least:g}"
        below = "" if most == math.inf else f", at most {most:g}"
        raise ModelError(f"{called(name)} must be a number{above}{below}, not {value!r:.60}")


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise unless a value is one of the choices."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        listed = ", ".join(map(str, choices)) if Interface.flags else str(tuple(choices))
        raise ModelError(f"{called(name)} must be one of {listed}, not {value!r:.60}")


class BaseEstimator:
    """A model whose parameters are the keywords of its constructor, stored as attributes.

    The names of learned attributes end in an underscore.
    """

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        signature = inspect.signature(cls)
        return {name: parameter.default for name, parameter in signature.parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name."""
        known = self._defaults()
        for name in parameters:
            if name not in known:
                kind = type(self).__name__
                raise ModelError(f"{kind} has no parameter '{name}'; there are {list(known)}")
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def _check_reading(self, events: bool) -> None:
        """Check the parameters for reading data and for running, which all models have."""
        found = self.get_params()
        if found["columns"] is not None:
            ColumnSelection(found["columns"], events).check()
        check_choice("duplicates", found["duplicates"], get_args(Duplicates))
        check_seed(found["seed"])
        if found["threads"] is not None:
            check_whole("threads", found["threads"], 1)
        check_choice("progress", found["progress"], (None, False, True))

    @property
    def is_fitted(self) -> bool:
        """Whether `fit` has been called."""
        return hasattr(self, "users_")

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise ModelError(f"this {type(self).__name__} is not fitted yet: call fit first")

    def __repr__(self) -> str:
        changed = [
            f"{name}={value!r}"
            for name, default in self._defaults().items()
            if (value := getattr(self, name)) != default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"
