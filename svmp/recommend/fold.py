"""Fold-in: the posterior of one user's bias and factors given q of the items.

With x = (1, v) for each item that the user has rated, m0 the mean of the prior, and y = r - mean -
E[b] - E[x]' m0, the messages to the user's bias and factors add up to the precision and the mean

    P = diag(prior) + tau sum (E[x] E[x]' + Cov[x]),
    m = m0 + P^-1 tau sum (E[x] y - Cov[x] m0).

Coordinate updates, as in svmp.fit, converge to the mean m whether q of the factors is factorised or
not; each variance is then the inverse of its own diagonal entry, or block, of P. The mean is linear
in y, so each rating's contribution to it is known. Where the bias is one of the factors, x = v.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.recommend.side import Floats, Side

Array = NDArray[np.float64]
FAR = 1e18
"""Means of q that are further from 0 than this are rejected."""
TOO_FAR = "these ratings are too far from those that the model has learned from"


@dataclass(frozen=True, eq=False)
class UserPosterior:
    """A user's posterior given q of the items.

    Attributes
    ----------
    precision
        P, the precision matrix of the bias and the factors.
    pulls
        tau (E[x] y - Cov[x] m0), one row per rating.
    centre
        m0.
    full, biases
        Whether q of the factors has covariances; and the number of biases before the factors.
    """

    precision: Array
    pulls: Array
    centre: Array
    full: bool
    biases: int

    @classmethod
    def of(cls, items: Side, centred: Floats, noise: float | Array, prior: Side) -> UserPosterior:
        """Return the posterior given ratings minus their mean, with noise precision `noise`."""
        first = 0 if prior.joined else 1
        design = np.column_stack([np.ones((len(items), first)), items.mean])
        weights = np.broadcast_to(np.asarray(noise, np.float64), len(items))
        total = (design.T * weights) @ design
        spread = np.tensordot(weights, items.cov, axes=1)
        total[first:, first:] += spread if items.full else np.diag(spread)
        of_factors = prior.precision()[0]
        total[first:, first:] += of_factors if items.full else np.diag(of_factors)
        total[:first, :first] += 1 / prior.bias_var[:first]
        centre = np.concatenate([prior.bias[:first], prior.mean[0]]).astype(np.float64)
        residual = centred - items.bias - design @ centre
        pulls = design * residual[:, None]
        around = centre[first:]
        pulls[:, first:] -= items.cov @ around if items.full else items.cov * around
        return cls(total, weights[:, None] * pulls, centre, items.full, first)

    def side(self) -> Side:
        """Return q of the user."""
        own, first = np.diag(self.precision), self.biases
        try:
            mean = self.centre + np.linalg.solve(self.precision, self.pulls.sum(axis=0))
            block = self.precision[first:, first:]
            cov = np.linalg.inv(block) if self.full else 1 / own[first:]
        except np.linalg.LinAlgError:
            raise ModelError(TOO_FAR) from None
        if not np.abs(mean).max() <= FAR:  # also if it is NaN
            raise ModelError(TOO_FAR)
        bias = (mean[:1], 1 / own[:1]) if first else np.zeros((2, 1))
        return Side(*(array.astype(np.float32) for array in (*bias, mean[None, first:], cov[None])))

    def parts(self, item: Side) -> Array:
        """Return what each rating adds to the score of an item, compared with the prior."""
        wanted = np.concatenate([np.ones(self.biases), item.mean[0]])
        return self.pulls @ np.linalg.solve(self.precision, wanted)


class Explanation(NamedTuple):
    """Why a prediction is what it is: base + sum(parts) + rest.

    Attributes
    ----------
    prediction
        The expected rating.
    base
        Expected rating of the item by a user without any ratings.
    items, ratings, parts
        The items that the user has rated, the ratings, and how much each moves the prediction, in
        decreasing order of absolute value.
    rest
        The remainder: close to 0 if q of the user has converged given the items.
    """

    prediction: float
    base: float
    items: NDArray[np.generic]
    ratings: Floats
    parts: Array
    rest: float
