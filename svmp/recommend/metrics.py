"""Scores of predictions and of rankings, as pure functions over arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from svmp.inference.seeds import Seed, generator

Array = NDArray[np.float64]


def rmse(rating: ArrayLike, mean: ArrayLike) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((_array(rating) - _array(mean)) ** 2)))


def mae(rating: ArrayLike, mean: ArrayLike) -> float:
    """Mean absolute error."""
    return float(np.mean(np.abs(_array(rating) - _array(mean))))


def log_likelihood(rating: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    """Mean log density of Normals at the ratings, in nats."""
    z = (_array(rating) - _array(mean)) / _array(std)
    return float(np.mean(-0.5 * z**2 - np.log(_array(std)) - 0.5 * np.log(2 * np.pi)))


def coverage(rating: ArrayLike, low: ArrayLike, high: ArrayLike) -> float:
    """Share of the ratings that intervals hold, their ends included."""
    return float(np.mean((_array(rating) >= _array(low)) & (_array(rating) <= _array(high))))


def by_spread(rating: ArrayLike, mean: ArrayLike, std: ArrayLike, parts: int = 5) -> list[Any]:
    """Root mean squared error where the predicted standard deviation is least, ..., greatest.

    Returns a pair for each of so many equal parts: the mean of the predicted standard deviations,
    and the error.
    """
    order = np.argsort(_array(std), kind="stable")
    truth, guess, spread = _array(rating)[order], _array(mean)[order], _array(std)[order]
    rows = [part for part in np.array_split(np.arange(len(order)), parts) if len(part)]
    return [(float(spread[part].mean()), rmse(truth[part], guess[part])) for part in rows]


class Ranks:
    """Where the relevant items of each user stand, counted from 1, among all that could be shown.

    Parameters
    ----------
    user
        Of each relevant item: whose it is, from 0.
    rank
        Where it stands.
    shown
        By user: among how many items.
    """

    def __init__(self, user: ArrayLike, rank: ArrayLike, shown: ArrayLike) -> None:
        order = np.lexsort((np.asarray(rank), np.asarray(user)))
        self.user, self.rank = np.asarray(user)[order], np.asarray(rank)[order]
        self.shown = np.asarray(shown)
        self.relevant = np.bincount(self.user, minlength=len(self.shown))
        first = np.concatenate([[0], np.cumsum(self.relevant)])[:-1]
        self.turn = np.arange(len(self.user)) - first[self.user] + 1  # of its user's, from 1

    def _sum(self, values: NDArray[Any]) -> Array:
        total: Array = np.zeros(len(self.shown))
        np.add.at(total, self.user, values)
        return total

    def recall(self, n: int) -> Array:
        """Share of the relevant items that are among the first n."""
        return self._sum(self.rank <= n) / self.relevant

    def precision(self, n: int) -> Array:
        """Share of the first n that are relevant."""
        return self._sum(self.rank <= n) / n

    def ndcg(self, n: int) -> Array:
        """Discounted gain of the first n: 1 / log2(1 + rank) each, over the most that it can be."""
        gain = 1 / np.log2(1 + np.arange(1, n + 1))
        most = np.cumsum(gain)[np.minimum(self.relevant, n) - 1]
        return self._sum(np.where(self.rank <= n, 1 / np.log2(1 + self.rank), 0)) / most

    def average_precision(self, n: int) -> Array:
        """Mean, over the relevant items among the first n, of the precision up to each."""
        return self._sum(np.where(self.rank <= n, self.turn / self.rank, 0)) / np.minimum(
            self.relevant, n
        )

    def percentile(self) -> Array:
        """Mean place of the relevant items: 0 at the top, 1 at the end, 0.5 by chance."""
        last = np.maximum(self.shown - 1, 1)
        return self._sum((self.rank - 1) / last[self.user]) / self.relevant


def bootstrap(
    values: ArrayLike, seed: Seed = 0, draws: int = 500, level: float = 0.95
) -> tuple[float, float]:
    """Return an interval for the mean of values, by drawing them again and again."""
    x = _array(values)
    rng = generator(seed)
    count = len(x)
    means = [x[rng.integers(0, count, count)].mean() for _ in range(draws)]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _array(values: ArrayLike) -> Array:
    return np.asarray(values, np.float64)
