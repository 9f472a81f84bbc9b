"""Categorical with probabilities p: phi(x) = one-hot of x, lam = log p up to a constant.

lam has one redundant entry: adding a constant to it changes only the log-partition, log-sum-exp.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax

from svmp.families.family import Array, Bools, Family, Features, dot, every

FEW = 8
"""Categories from which `exponentials` reduces the last axis at once."""


@dataclass(frozen=True)
class Categorical(Family):
    """The Categorical family on 0, ..., categories - 1.

    The mean of a category's index is meaningless, so `mean` and `var` are those of its one-hot
    vector, p and p (1 - p), on a last axis of length `categories`.

    >>> family = Categorical(categories=3)
    >>> family.mean(family.natural(p=[0.2, 0.3, 0.5]))
    array([0.2, 0.3, 0.5])
    """

    categories: int

    parameters: ClassVar[tuple[str, ...]] = ("p",)
    event_ndim: ClassVar[int] = 0
    nominal: ClassVar[bool] = True
    possible: ClassVar[str] = "whole numbers from 0, one for each category"

    @classmethod
    def sized(cls, length: int) -> Self:
        return cls(length)

    @property
    def length(self) -> int:
        return self.categories

    @property
    def size(self) -> int:
        return self.categories

    def natural(self, p: ArrayLike) -> Array:
        return np.log(np.asarray(p, dtype=np.float64))

    def standard(self, natural: Array) -> dict[str, Array]:
        return {"p": self.mean(natural)}

    def moments(self, natural: Array) -> Array:
        return self.mean(natural)

    def log_partition(self, natural: Array) -> Array:
        with np.errstate(invalid="ignore"):  # inf - inf
            largest, _, total = exponentials(natural)
            found = np.asarray(np.log(total) + largest)
        np.copyto(found, largest, where=np.isinf(largest))
        return found

    def entropy(self, natural: Array) -> Array:
        return -dot(self.mean(natural), np.asarray(log_softmax(natural, axis=-1)))

    def statistics(self, x: ArrayLike) -> Array:
        return np.asarray(
            (np.asarray(x)[..., None] == np.arange(self.categories)).astype(np.float64)
        )

    def in_domain(self, natural: Array) -> Bools:
        return every(np.isfinite(natural))

    def in_support(self, x: ArrayLike) -> Bools:
        x = np.asarray(x, dtype=np.float64)
        return np.asarray((x >= 0) & (x < self.categories) & (x == np.floor(x)))

    def mean(self, natural: Array) -> Array:
        return softmax(natural)

    def var(self, natural: Array) -> Array:
        p = self.mean(natural)
        return p * (1 - p)

    def cov(self, natural: Array) -> Array:
        return one_hot_cov(self.mean(natural))

    def why_impossible(self, x: Array) -> str:
        return f"its categories are 0 to {self.categories - 1}"

    def features(self, statistics: Array, trials: Array | float = 1.0) -> Features:
        return Features(statistics, "shares")

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        """Draw by the Gumbel-max trick: the argmax of lam + noise, whatever the constant in lam."""
        noisy = natural + rng.gumbel(size=(size, *natural.shape))
        return np.asarray(noisy.argmax(axis=-1).astype(np.float64))

    def fisher_times(self, natural: Array, vector: Array) -> Array:
        p = self.mean(natural)
        return p * (vector - dot(p, vector)[..., None])

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        return natural + 0.3 * rng.standard_normal(natural.shape)


def softmax(natural: Array) -> Array:
    """Return exp(lam) divided by its sum over the last axis.

    >>> softmax(np.log([1.0, 3.0]))
    array([0.25, 0.75])
    """
    _, weights, total = exponentials(natural)
    return np.asarray(weights / total[..., None])


def exponentials(natural: Array) -> tuple[Array, Array, Array]:
    """Return the largest lam on the last axis, exp(lam) divided by exp of it, and their sum.

    Few categories are taken one by one, since NumPy reduces a short axis many times slower.
    """
    size = natural.shape[-1]
    if not 0 < size < FEW:
        largest = natural.max(axis=-1, initial=-np.inf)
        weights = np.exp(natural - largest[..., None])
        return largest, weights, weights.sum(axis=-1)
    largest = reduce(np.maximum, [natural[..., k] for k in range(size)])
    weights = np.exp(natural - largest[..., None])
    return largest, weights, reduce(np.add, [weights[..., k] for k in range(size)])


def one_hot_cov(p: Array) -> Array:
    """Covariance diag(p) - p p' of a one-hot vector with probabilities p.

    >>> one_hot_cov(np.array([0.5, 0.5]))
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    return p[..., :, None] * (np.eye(p.shape[-1]) - p[..., None, :])
