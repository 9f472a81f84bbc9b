"""Fold-in: the posterior of one user's bias and factors given q of the items.

With x = (1, v) for each item that the user has rated, m0 the mean of the prior, and y = r - mean -
E[b] - E[x]' m0, the messages to the user's bias and factors add up to the precision and the mean

    P = diag(prior) + tau sum (E[x] E[x]' + Cov[x]),
    m = m0 + P^-1 tau sum (E[x] y - Cov[x] m0).

Coordinate updates, as in svmp.fit, converge to the mean m whether q of the factors is factorised or
not; each variance is then the inverse of its own diagonal entry, or block, of P. The mean is linear
in y, so each rating's contribution to it is known.
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
    full
        Whether q of the factors has covariances.
    """

    precision: Array
    pulls: Array
    centre: Array
    full: bool

    @classmethod
    def of(cls, items: Side, centred: Floats, noise: float | Array, prior: Side) -> UserPosterior:
        """Return the posterior given ratings minus their mean, with noise precision `noise`."""
        design = np.column_stack([np.ones(len(items)), items.mean])
        weights = np.broadcast_to(np.asarray(noise, np.float64), len(items))
        total = (design.T * weights) @ design
        spread = np.tensordot(weights, items.cov, axes=1)
        total[1:, 1:] += spread if items.full else np.diag(spread)
        total[0, 0] += 1 / prior.bias_var[0]
        total[1:, 1:] += prior.precision()[0] if items.full else np.diag(prior.precision()[0])
        centre = np.concatenate([prior.bias, prior.mean[0]]).astype(np.float64)
        residual = centred - items.bias - design @ centre
        pulls = design * residual[:, None]
        pulls[:, 1:] -= items.cov @ centre[1:] if items.full else items.cov * centre[1:]
        return cls(total, weights[:, None] * pulls, centre, items.full)

    def side(self) -> Side:
        """Return q of the user."""
        own = np.diag(self.precision)
        try:
            mean = self.centre + np.linalg.solve(self.precision, self.pulls.sum(axis=0))
            cov = np.linalg.inv(self.precision[1:, 1:]) if self.full else 1 / own[1:]
        except np.linalg.LinAlgError:
            raise ModelError(TOO_FAR) from None
        if not np.abs(mean).max() <= FAR:  # also if it is NaN
            raise ModelError(TOO_FAR)
        arrays = mean[:1], 1 / own[:1], mean[None, 1:], cov[None]
        return Side(*(array.astype(np.float32) for array in arrays))

    def parts(self, item: Side) -> Array:
        """Return what each rating adds to the score of an item, compared with the prior."""
        wanted = np.concatenate([[1.0], item.mean[0]])
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
        The remainder: 0 if q of the user has fully converged given the items.
    """

    prediction: float
    base: float
    items: NDArray[np.generic]
    ratings: Floats
    parts: Array
    rest: float
