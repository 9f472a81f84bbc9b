"""What every exponential family can do.

    log p(x | lam) = lam . phi(x) + f(x) - A(lam)        (the paper's equation 2)

`natural` (lam), `moments` (E[phi(x)], the gradient of A) and the statistics phi(x) are arrays
whose last axis has length `size`; every axis before it is a plate. One layout for all families
makes the blend (1 - rho) lam + rho lam', a summed message and a KL the same line everywhere.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Family(Protocol):
    """An exponential family; its methods are pure functions over arrays.

    Attributes
    ----------
    parameters
        Names of the standard parameters, as PyMC calls them.
    event_ndim
        How many trailing axes one value has: 0 a number, 1 a vector, 2 a matrix.
    """

    parameters: ClassVar[tuple[str, ...]]
    event_ndim: ClassVar[int]

    @classmethod
    def sized(cls, length: int) -> Self:
        """Return the family for values (or categories) of this length; scalars ignore it."""
        return cls()

    @property
    def size(self) -> int:
        """Length of a natural parameter."""
        ...

    def natural(self, *args: Any, **kwargs: Any) -> Array:
        """Natural parameter from the standard parameters, given by name."""
        ...

    def standard(self, natural: Array) -> dict[str, Array]:
        """Return the standard parameters, by name."""
        ...

    def moments(self, natural: Array) -> Array:
        """E[phi(x)], the gradient of the log-partition."""
        ...

    def log_partition(self, natural: Array) -> Array:
        """A(lam)."""
        ...

    def entropy(self, natural: Array) -> Array:
        """-E[log q(x)] in nats (differential for densities): A(lam) - lam . E[phi(x)] if f = 0."""
        return self.free_entropy(natural)

    def statistics(self, x: ArrayLike) -> Array:
        """phi(x)."""
        ...

    def log_base(self, x: ArrayLike) -> Array:
        """f(x), which is zero in most families."""
        return np.zeros(np.shape(x)[: np.ndim(x) - self.event_ndim])

    def in_domain(self, natural: Array) -> Bools:
        """Where the natural parameter is that of a proper, finite distribution."""
        ...

    def in_support(self, x: ArrayLike) -> Bools:
        """Where x is a possible value."""
        ...

    def mean(self, natural: Array) -> Array:
        """E[x], with the event axes last."""
        ...

    def var(self, natural: Array) -> Array:
        """Variance of every entry of x, in the shape of the mean."""
        ...

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        """Independent draws, with a new first axis of this length."""
        ...

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        """Return a starting point near this prior, moved at random so that no two are alike."""
        ...

    def at(self, elements: Any) -> Self:
        """Return the family of some elements of a plate; differs only where trials do."""
        return self

    def free_entropy(self, natural: Array) -> Array:
        """A(lam) - lam . E[phi(x)]: the entropy, but for the base measure."""
        return self.log_partition(natural) - dot(natural, self.moments(natural))


def dot(a: Array, b: Array) -> Array:
    """Inner product over the last axis.

    >>> dot(np.array([1.0, 2.0]), np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([11.,  2.])
    """
    return np.asarray(np.einsum("...i,...i->...", a, b))


def stack(*columns: ArrayLike) -> Array:
    """Put broadcast columns side by side on a new last axis.

    >>> stack(0.0, [1.0, 2.0])
    array([[0., 1.],
           [0., 2.]])
    """
    arrays = [np.asarray(c, dtype=np.float64) for c in columns]
    return np.stack(np.broadcast_arrays(*arrays), axis=-1)
