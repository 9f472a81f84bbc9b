"""The interface of exponential families.

    log p(x | lam) = lam . phi(x) + f(x) - A(lam)        (the paper's equation 2)

`natural` (lam), `moments` (E[phi(x)], the gradient of A) and the statistics phi(x) are arrays
whose last axis has length `size`; the axes before it are the plate. With one layout for all
families, the blend (1 - rho) lam + rho lam' and a sum of messages are the same line for each.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Features(NamedTuple):
    """Numbers whose distances say how similar rows are, as k-means needs them.

    Attributes
    ----------
    values
        One or more numbers for each row, (rows, numbers).
    kind
        "shares": counts of categories, compared as shares; "numbers": standardised before they are
        compared; "scaled": compared as they are.
    """

    values: Array
    kind: Literal["shares", "numbers", "scaled"]


class Family(Protocol):
    """An exponential family; its methods are pure functions over arrays.

    Attributes
    ----------
    parameters
        Names of the standard parameters, as PyMC calls them.
    event_ndim
        Number of trailing axes of one value: 0 for a number, 1 for a vector, 2 for a matrix.

    The other attributes are capabilities. Code outside this room checks these instead of the name
    of a family, so that everything that is made for a capability works for a new family too.

    gaussian
        Whether it is a Normal distribution, of a number or of a vector: its statistics are
        (x, x x'), and means in one linear predictor can be solved together.
    precision
        Whether a value can be the precision of Normals: a number, or a matrix.
    nominal
        Whether values are categories, whose order and distances have no meaning.
    simplex
        Whether a value is a vector of probabilities of categories.
    invertible
        Whether values are numbers on a continuum, drawn by inverting the distribution function.
    counts
        Whether values are whole numbers that count something.
    possible
        The possible values, in words; "" if every finite number is possible.
    """

    parameters: ClassVar[tuple[str, ...]]
    event_ndim: ClassVar[int]
    gaussian: ClassVar[Literal["number", "vector"] | None] = None
    precision: ClassVar[Literal["number", "matrix"] | None] = None
    nominal: ClassVar[bool] = False
    simplex: ClassVar[bool] = False
    invertible: ClassVar[bool] = False
    counts: ClassVar[bool] = False
    possible: ClassVar[str] = ""

    @classmethod
    def sized(cls, length: int) -> Self:
        """Return the family for vectors (or categories) of this length; scalars ignore it."""
        return cls()

    @property
    def length(self) -> int:
        """The length of `sized`: that of a vector, or the number of categories; 1 for numbers."""
        return 1

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
        """Where the natural parameter is finite and defines a proper distribution."""
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

    def log_mean(self, natural: Array) -> Array:
        """Return log E[x] of a vector of probabilities."""
        kind = type(self).__name__
        raise NotImplementedError(f"values of the {kind} family are not vectors of probabilities")

    def why_impossible(self, x: Array) -> str:
        """Return in words why x is not a possible value; "" if unknown."""
        return f"its values are {self.possible}" if self.possible else ""

    def features(self, statistics: Array, trials: Array | float = 1.0) -> Features:
        """Return numbers whose distances say how similar observed rows are; by default none.

        Parameters
        ----------
        statistics
            phi(x) of the rows.
        trials
            The n of each row, in families that have one.
        """
        return Features(statistics[:, :0], "numbers")

    def std(self, natural: Array) -> Array:
        """Standard deviation of every entry of x, also where its square overflows."""
        return np.asarray(np.sqrt(self.var(natural)))

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        """Independent draws, with a new first axis of this length."""
        ...

    def cov(self, natural: Array) -> Array:
        """Covariance of the entries of x: the variance of a number, a matrix for a vector."""
        return self.var(natural)

    def log_density(self, natural: Array, x: ArrayLike) -> Array:
        """Return log p(x | lam), -inf where x is not a possible value."""
        x = np.asarray(x, dtype=np.float64)
        possible = self.in_support(x)
        with np.errstate(all="ignore"):
            energy = dot(natural, self.statistics(x)) + self.log_base(x)
            return np.where(possible, energy - self.log_partition(natural), -np.inf)

    def quantile(self, natural: Array, p: ArrayLike) -> Array:
        """Return the smallest value that x is at most with probability p, entry by entry.

        p broadcasts with the mean.
        """
        kind = type(self).__name__
        raise NotImplementedError(f"the {kind} family has no quantiles")

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        """Return a random starting point near this prior, different for each element."""
        ...

    def as_evidence(self, natural: Array) -> Array:
        """Return the nearest natural parameter that a sum of messages of rows can have.

        Added to the natural parameter of any proper distribution, it leaves it proper.
        """
        return natural

    def at(self, elements: Any) -> Self:
        """Return the family of some elements of a plate, as their trials may differ."""
        return self

    def fisher_times(self, natural: Array, vector: Array) -> Array:
        """Cov[phi(x)] v: the Fisher information, which is the Hessian of A, times a vector.

        It is the derivative of the moments along v, here by central differences of fourth order;
        families with a closed form have their own.
        """
        size = np.abs(vector / np.maximum(np.abs(natural), 1.0)).max(axis=-1, keepdims=True)
        step = 1e-3 / np.where(size > 0, size, 1.0)
        near, far = (
            self.moments(natural + times * step * vector)
            - self.moments(natural - times * step * vector)
            for times in (1, 2)
        )
        return (8 * near - far) / (12 * step)

    def cross_covariance(self, natural: Array) -> Array:
        """Cov[x, phi(x)], with a row for each entry of x; here the entries come first in phi(x)."""
        entries = self.mean(natural)[..., None].reshape(*natural.shape[:-1], -1).shape[-1]
        unit = np.broadcast_to(np.eye(self.size), (*natural.shape[:-1], self.size, self.size))
        return self.fisher_times(natural[..., None, :], unit[..., :entries, :])

    def free_entropy(self, natural: Array, moments: Array | None = None) -> Array:
        """A(lam) - lam . E[phi(x)]: the entropy without the base measure, -E[log q(x) - f(x)].

        Moments that are known need not be computed again.
        """
        moments = self.moments(natural) if moments is None else moments
        return self.log_partition(natural) - dot(natural, moments)


def every(found: Bools) -> Bools:
    """Return where all on the last axis are true.

    If all are true everywhere, as is usual, one look at the whole array is much faster.

    >>> every(np.array([[True, False], [True, True]]))
    array([False,  True])
    """
    if found.all():
        return np.ones(found.shape[:-1], dtype=bool)
    return np.asarray(found.all(axis=-1))


def dot(a: Array, b: Array) -> Array:
    """Inner product over the last axis.

    >>> dot(np.array([1.0, 2.0]), np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([11.,  2.])
    """
    return np.asarray(np.einsum("...i,...i->...", a, b))


_as_floats = partial(np.asarray, dtype=np.float64)


def stack(*columns: ArrayLike) -> Array:
    """Put broadcast columns side by side on a new last axis.

    >>> stack(0.0, [1.0, 2.0])
    array([[0., 1.],
           [0., 2.]])
    """
    arrays = [*map(_as_floats, columns)]
    out = np.empty((*np.broadcast(*arrays).shape, len(arrays)))
    for place, array in enumerate(arrays):
        out[..., place] = array
    return out
