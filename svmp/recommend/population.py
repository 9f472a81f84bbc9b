"""How far users, or items, differ from each other: what is to be expected of one that is unknown.

The prior of the factors has a precision that is given, and chosen for good rankings. It is far too
wide: with K factors u . v would have a variance of K where nothing is known. That does little to
means, but spreads would be those of the prior, and whatever is unknown would seem to be wonderful
at times. So spreads are told as if the prior had the variance s^2 that the population has. With
c the variance of one element under q, and s0^2 that of the prior, its data have the precision
1/c - 1/s0^2, and so

    c' = 1 / (1/s^2 + 1/c - 1/s0^2),    m' = m c' / c,    s^2 = mean of c' + m'^2,

where the last is the fixed point of EM, from s0^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from svmp.recommend.side import EntityTable, Floats, Side

MOST, STEPS = 5000, 50
"""So many elements are looked at, at most, and so many steps of EM are made."""


@dataclass(frozen=True, eq=False)
class Population:
    """What is known of all users, or of all items, together.

    Attributes
    ----------
    known
        The users or items.
    bias, factors
        By how much the precisions of its prior are too small.
    """

    known: EntityTable
    bias: Floats
    factors: Floats

    @classmethod
    def of(cls, known: EntityTable) -> Population:
        """StepContext at a sample of users, or of items."""
        count = min(len(known), MOST)
        some = known.side.at(np.linspace(0, len(known) - 1, count).astype(np.int64))
        prior = known.prior
        bias = _excess(some.bias[:, None], some.bias_var[:, None], prior.bias_var)
        return cls(known, bias, _excess(some.mean, some.cov, prior.cov[0]))

    @cached_property
    def all(self) -> Side:
        """Return all of them, told."""
        return self.told(self.known.side)

    def told(self, side: Side) -> Side:
        """Return some of them with the spread that they have as members of the population."""
        arrays = 1 / (1 / side.bias_var + self.bias), side.mean, 1 / (1 / side.cov + self.factors)
        return Side(side.bias, *arrays)


def _excess(mean: Floats, var: Floats, prior: Floats) -> Floats:
    """Return 1/s^2 - 1/s0^2 of each column; 0 where the prior is not too wide."""
    if not len(mean):
        return np.zeros(len(prior), np.float32)
    start = 1 / prior.astype(np.float64)
    data, pull = np.maximum(1 / var - start, 0), mean.astype(np.float64) / var
    precision = start
    for _ in range(STEPS):
        told = 1 / (precision + data)
        # At least the prior's precision: with extreme numbers the mean overflows to infinity.
        precision = np.maximum(1 / np.mean(told + (told * pull) ** 2, axis=0), start)
    return np.maximum(precision - start, 0).astype(np.float32)
