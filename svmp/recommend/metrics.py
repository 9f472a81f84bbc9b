"""Scores of predictions and rankings, as pure functions of arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from svmp.inference.running.seeds import Seed, generator

Array = NDArray[np.float64]
CELLS = 200_000
"""Approximate number of resampled values that are in memory at a time."""


class Score(NamedTuple):
    """A score, and a 95% bootstrap interval for it."""

    value: float
    low: float
    high: float


def rmse(rating: ArrayLike, mean: ArrayLike) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((_array(rating) - _array(mean)) ** 2)))


def mae(rating: ArrayLike, mean: ArrayLike) -> float:
    """Mean absolute error."""
    return float(np.mean(np.abs(_array(rating) - _array(mean))))


def log_likelihood(rating: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    """Mean log density of Normals at the ratings, in nats."""
    return float(np.mean(log_density(rating, mean, std)))


def log_density(rating: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    """Log density of a Normal at each rating, in nats."""
    z = (_array(rating) - _array(mean)) / _array(std)
    return -0.5 * z**2 - np.log(_array(std)) - 0.5 * np.log(2 * np.pi)


def coverage(rating: ArrayLike, low: ArrayLike, high: ArrayLike) -> float:
    """Share of the ratings that lie in their interval, including its ends."""
    return float(np.mean(inside(rating, low, high)))


def inside(rating: ArrayLike, low: ArrayLike, high: ArrayLike) -> NDArray[np.bool_]:
    """Whether each rating lies in its interval, including its ends."""
    return (_array(rating) >= _array(low)) & (_array(rating) <= _array(high))


def by_spread(rating: ArrayLike, mean: ArrayLike, std: ArrayLike, parts: int = 5) -> list[Any]:
    """Root mean squared error by quantile of the predicted standard deviation.

    Returns a pair for each of the equal parts: the mean of the predicted standard deviations, and
    the error.
    """
    order = np.argsort(_array(std), kind="stable")
    truth, guess, spread = _array(rating)[order], _array(mean)[order], _array(std)[order]
    rows = [part for part in np.array_split(np.arange(len(order)), parts) if len(part)]
    return [(float(spread[part].mean()), rmse(truth[part], guess[part])) for part in rows]


class Ranks:
    """Ranks of the relevant items of each user, from 1, among all items that could be shown.

    Parameters
    ----------
    user
        User of each relevant item, from 0.
    rank
        Rank of each relevant item.
    shown
        Number of ranked items of each user.
    """

    def __init__(self, user: ArrayLike, rank: ArrayLike, shown: ArrayLike) -> None:
        order = np.lexsort((np.asarray(rank), np.asarray(user)))
        self.user, self.rank = np.asarray(user)[order], np.asarray(rank)[order]
        self.shown = np.asarray(shown)
        self.relevant = np.bincount(self.user, minlength=len(self.shown))
        first = np.concatenate([[0], np.cumsum(self.relevant)])[:-1]
        self.hits = np.arange(len(self.user)) - first[self.user] + 1  # relevant items up to each

    def _sum(self, values: NDArray[Any]) -> Array:
        total: Array = np.zeros(len(self.shown))
        np.add.at(total, self.user, values)
        return total

    def recall(self, n: int) -> Array:
        """Share of the relevant items that are among the top n."""
        return self._sum(self.rank <= n) / self.relevant

    def precision(self, n: int) -> Array:
        """Share of the top n that is relevant."""
        return self._sum(self.rank <= n) / n

    def ndcg(self, n: int) -> Array:
        """Normalised discounted cumulative gain of the top n: sum of 1 / log2(1 + rank)."""
        gain = 1 / np.log2(1 + np.arange(1, n + 1))
        most = np.cumsum(gain)[np.minimum(self.relevant, n) - 1]
        return self._sum(np.where(self.rank <= n, 1 / np.log2(1 + self.rank), 0)) / most

    def average_precision(self, n: int) -> Array:
        """Mean, over the relevant items among the top n, of the precision at each."""
        return self._sum(np.where(self.rank <= n, self.hits / self.rank, 0)) / np.minimum(
            self.relevant, n
        )

    def percentile(self) -> Array:
        """Mean percentile rank of the relevant items: 0 at the top, 1 at the end, 0.5 by chance."""
        last = np.maximum(self.shown - 1, 1)
        return self._sum((self.rank - 1) / last[self.user]) / self.relevant


def bootstrap(
    values: ArrayLike, seed: Seed = 0, draws: int = 500, level: float = 0.95
) -> tuple[float, float]:
    """Return a percentile bootstrap interval for the mean of values."""
    x = _array(values)
    if len(x) < 2:  # which SciPy rejects
        return float(x.mean()), float(x.mean())
    from scipy import stats  # takes most of a second to import, and 40 MB

    found = stats.bootstrap(
        (x,),
        np.mean,
        n_resamples=draws,
        batch=max(1, CELLS // len(x)),
        confidence_level=level,
        method="percentile",
        random_state=generator(seed),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def _array(values: ArrayLike) -> Array:
    return np.asarray(values, np.float64)
