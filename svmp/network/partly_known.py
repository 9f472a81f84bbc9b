"""A family of which some elements are known values, beside others that are hidden.

A known element has the moments phi(x) of its value, whatever its natural parameter, and no entropy:
only the base measure f(x) is left of its term in the bound. All other elements are as in the family
itself. So q of a variable that is observed in part is stored like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from svmp.families.family import Array, Bools, Family


@dataclass(frozen=True, eq=False)
class PartlyKnown(Family):
    """A family with known values of some elements.

    Attributes
    ----------
    base
        The family of the elements that are not known.
    known
        Whether each element is known.
    values
        The values of the elements; those that are not known mean nothing.

    >>> from svmp.families.normal import Normal
    >>> family = PartlyKnown(Normal(), np.array([True, False]), np.array([3.0, 0.0]))
    >>> family.mean(Normal().natural(mu=[0.0, 1.0], tau=[1.0, 4.0]))
    array([3., 1.])
    >>> family.var(Normal().natural(mu=[0.0, 1.0], tau=[1.0, 4.0]))
    array([0.  , 0.25])
    """

    base: Family
    known: Bools
    values: NDArray[Any]

    @property
    def parameters(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.base.parameters

    @property
    def event_ndim(self) -> int:  # type: ignore[override]
        return self.base.event_ndim

    @property
    def size(self) -> int:
        return self.base.size

    @property
    def unknown(self) -> NDArray[np.int64]:
        """The elements that are not known."""
        return np.flatnonzero(~self.known)

    def at(self, elements: Any) -> Self:
        return type(self)(self.base.at(elements), self.known[elements], self.values[elements])

    @property
    def certain(self) -> NDArray[Any]:
        """The values, with a known one in place of each that is not known."""
        if self.known.all() or not self.known.any():
            return self.values
        first = self.values[np.argmax(self.known)]
        return np.where(self._mask(self.values), self.values, first)

    def _mask(self, array: NDArray[Any]) -> Bools:
        """Return where elements are known, with the number of axes of an array by element."""
        return self.known.reshape(-1, *[1] * (array.ndim - 1))

    def _either(self, known: ArrayLike, hidden: Array) -> Array:
        """Return one array for known elements and another for the rest, on the last axes."""
        if not self.known.any():
            return hidden
        mask = self.known.reshape(-1, *[1] * (np.ndim(known) - 1)) if np.ndim(known) else self.known
        return np.asarray(np.where(mask, known, hidden))

    def natural(self, *args: Any, **kwargs: Any) -> Array:
        return self.base.natural(*args, **kwargs)

    def standard(self, natural: Array) -> dict[str, Array]:
        """Return the standard parameters: those of known elements are the value and infinity."""
        found = self.base.standard(natural)
        mean = self.mean(natural)
        return {
            name: np.where(self._mask(array), mean if name in ("mu", "p") else np.inf, array)
            for name, array in found.items()
        }

    def moments(self, natural: Array) -> Array:
        return self._either(self.base.statistics(self.certain), self.base.moments(natural))

    def log_partition(self, natural: Array) -> Array:
        return self.base.log_partition(natural)

    def entropy(self, natural: Array) -> Array:
        return np.where(self.known, 0.0, self.base.entropy(natural))

    def free_entropy(self, natural: Array, moments: Array | None = None) -> Array:
        if not self.known.any():
            return self.base.free_entropy(natural, moments)
        base = self.base.log_base(self.certain)
        return np.where(self.known, base, self.base.free_entropy(natural, moments))

    def statistics(self, x: ArrayLike) -> Array:
        return self.base.statistics(x)

    def log_base(self, x: ArrayLike) -> Array:
        return self.base.log_base(x)

    def in_domain(self, natural: Array) -> Bools:
        return self.base.in_domain(natural)

    def in_support(self, x: ArrayLike) -> Bools:
        return self.base.in_support(x)

    def _means(self) -> Array:
        """E[x] of known elements, as the family gives it: a Categorical has probabilities."""
        values = self.certain
        if self.base.event_ndim == 0 and self.base.size > 1 and self._categories:
            return self.base.statistics(values)
        return np.asarray(values, dtype=np.float64)

    @property
    def _categories(self) -> bool:
        """Whether E[x] is a vector of probabilities, although a value is one number."""
        return type(self.base).__name__ == "Categorical"

    def mean(self, natural: Array) -> Array:
        return self._either(self._means(), self.base.mean(natural))

    def var(self, natural: Array) -> Array:
        var = self.base.var(natural)
        return np.where(self._mask(var), 0.0, var)

    def cov(self, natural: Array) -> Array:
        cov = self.base.cov(natural)
        return np.where(self._mask(cov), 0.0, cov)

    def log_density(self, natural: Array, x: ArrayLike) -> Array:
        """Return log q(x), infinite at a known value, as it is certain."""
        x = np.asarray(x, dtype=np.float64)
        same = x == self.certain
        events = tuple(range(same.ndim - self.base.event_ndim, same.ndim))
        certain = np.where(same.all(axis=events), np.inf, -np.inf)
        return np.where(self.known, certain, self.base.log_density(natural, x))

    def quantile(self, natural: Array, p: ArrayLike) -> Array:
        found, values = self.base.quantile(natural, p), self.certain
        return np.where(self._mask(values), values, found)

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        values = self.certain
        return np.where(self._mask(values), values, self.base.draw(natural, rng, size))

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        return self.base.start(natural, rng)

    def as_evidence(self, natural: Array) -> Array:
        return self.base.as_evidence(natural)


def base_of(family: Family) -> Family:
    """Return the family of the elements that are not known."""
    return family.base if isinstance(family, PartlyKnown) else family
