"""Empirical prior variances: how much users, or items, differ from each other.

The precision of the factors' prior is fixed at a value that gives good rankings. As a statement of
uncertainty it is far too wide: with K factors, u . v of an unknown user and item would have the
variance K. Means hardly depend on that, but exploration by Thompson sampling or UCB would favour
whatever is unknown. So reported variances are computed as if the prior had the variance s^2 of the
population. With c the variance of one element under q and s0^2 that of the prior, the data have the
precision 1/c - 1/s0^2, and so

    c' = 1 / (1/s^2 + 1/c - 1/s0^2),    m' = m c' / c,    s^2 = mean of c' + m'^2,

of which the last is solved by EM, starting from s0^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from svmp.recommend.side import EntityTable, Floats, Side

MOST, STEPS = 5000, 50
"""Size limit of the sample of elements, and number of EM steps."""


@dataclass(frozen=True, eq=False)
class Population:
    """Users or items with variances under the empirical prior.

    Attributes
    ----------
    known
        The users or items.
    bias, factors
        What is added to the precisions of biases and factors, 1/s^2 - 1/s0^2.
    """

    known: EntityTable
    bias: Floats
    factors: Floats

    @classmethod
    def of(cls, known: EntityTable) -> Population:
        """Estimate the prior variances from a sample of the users or items."""
        count = min(len(known), MOST)
        some = known.side.at(np.linspace(0, len(known) - 1, count).astype(np.int64))
        prior = known.prior
        bias = _excess(some.bias[:, None], some.bias_var[:, None], prior.bias_var)
        return cls(known, bias, _excess(some.mean, some.cov, prior.cov[0]))

    @cached_property
    def all(self) -> Side:
        """All users or items, with variances under the empirical prior."""
        return self.shrunk(self.known.side)

    def shrunk(self, side: Side) -> Side:
        """Return elements with their variances under the empirical prior."""
        arrays = 1 / (1 / side.bias_var + self.bias), side.mean, 1 / (1 / side.cov + self.factors)
        return Side(side.bias, *arrays)


def _excess(mean: Floats, var: Floats, prior: Floats) -> Floats:
    """Return 1/s^2 - 1/s0^2 of each column, and 0 if the prior is not too wide."""
    if not len(mean):
        return np.zeros(len(prior), np.float32)
    start = 1 / prior.astype(np.float64)
    data, pull = np.maximum(1 / var - start, 0), mean.astype(np.float64) / var
    precision = start
    for _ in range(STEPS):
        shrunk = 1 / (precision + data)
        # At least the prior's precision: with extreme numbers the mean overflows to infinity.
        precision = np.maximum(1 / np.mean(shrunk + (shrunk * pull) ** 2, axis=0), start)
    return np.maximum(precision - start, 0).astype(np.float32)
