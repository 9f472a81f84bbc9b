"""Parameters of a model by name, in the way that scikit-learn's tools expect; without it."""

from __future__ import annotations

import inspect
from numbers import Integral
from typing import Any, Self

from svmp.errors import ModelError


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number, or too small."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ModelError(f"{name} must be a whole number of at least {least}, not {value!r:.60}")


class Estimator:
    """A model whose parameters are the keywords of its constructor, kept as attributes.

    What `fit` learns is in attributes that end in an underscore.
    """

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        signature = inspect.signature(cls)
        return {name: parameter.default for name, parameter in signature.parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **parameters: Any) -> Self:
        """Change some of the parameters."""
        known = self._defaults()
        for name in parameters:
            if name not in known:
                kind = type(self).__name__
                raise ModelError(f"{kind} has no parameter '{name}'; there are {list(known)}")
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    @property
    def is_fitted(self) -> bool:
        """Whether `fit` has been called."""
        return hasattr(self, "users_")

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise ModelError(f"this {type(self).__name__} has seen no data yet: call fit first")

    def __repr__(self) -> str:
        changed = [
            f"{name}={value!r}"
            for name, default in self._defaults().items()
            if (value := getattr(self, name)) != default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"
