"""One user given the items: the fixed point of the updates of that user's variables alone.

With x = (1, v) for each item that the user has rated, and y = r - mean - E[b], the messages to the
user's bias and factors add up to a precision and a mean of

    P = diag(prior) + tau sum (E[x] E[x]' + Cov[x]),     m = P^-1 tau sum E[x] y.

Updates of one variable after another, as svmp.fit makes them, end at the mean m, whether q of the
factors is factorised or not; then each variance is that of its own diagonal entry, or block, of P.
The mean is linear in y, so that each rating's part in it is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.recommend.side import Floats, Side

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Conditional:
    """A user's posterior given q of the items.

    Attributes
    ----------
    precision
        P, of the bias and the factors together.
    design
        E[x], a row for each rating.
    residual
        y, of each rating.
    noise
        tau, for all ratings or of each.
    full
        Whether q of the factors has covariances.
    """

    precision: Array
    design: Array
    residual: Array
    noise: float | Array
    full: bool

    @classmethod
    def of(cls, items: Side, centred: Floats, noise: float | Array, prior: Side) -> Conditional:
        """Take in ratings, of which the mean has been subtracted."""
        design = np.column_stack([np.ones(len(items)), items.mean])
        weights = np.broadcast_to(np.asarray(noise, np.float64), len(items))
        total = (design.T * weights) @ design
        spread = np.tensordot(weights, items.cov, axes=1)
        total[1:, 1:] += spread if items.full else np.diag(spread)
        total[0, 0] += 1 / prior.bias_var[0]
        total[1:, 1:] += prior.precision()[0] if items.full else np.diag(prior.precision()[0])
        residual = (centred - items.bias).astype(np.float64)
        return cls(total, design, residual, noise, items.full)

    def side(self) -> Side:
        """Return q of the user."""
        pull = self.design.T @ (self.noise * self.residual)
        mean = np.linalg.solve(self.precision, pull)
        own = np.diag(self.precision)
        cov = np.linalg.inv(self.precision[1:, 1:]) if self.full else 1 / own[1:]
        arrays = mean[:1], 1 / own[:1], mean[None, 1:], cov[None]
        return Side(*(array.astype(np.float32) for array in arrays))

    def parts(self, item: Side) -> Array:
        """Return what each rating adds to the score of an item."""
        wanted = np.concatenate([[1.0], item.mean[0]])
        weight = self.design @ np.linalg.solve(self.precision, wanted)
        return self.noise * weight * self.residual


class Explanation(NamedTuple):
    """Why a prediction is what it is: base + sum(parts) + rest.

    Attributes
    ----------
    prediction
        The expected rating.
    base
        What is expected of this item from anyone: the mean of all ratings and the item's bias.
    items, ratings, parts
        What the user has rated, how, and by how much that moves the prediction; the greatest move
        first.
    rest
        What is left: 0 where q of the user is exactly at rest, given the items.
    """

    prediction: float
    base: float
    items: NDArray[np.generic]
    ratings: Floats
    parts: Array
    rest: float
