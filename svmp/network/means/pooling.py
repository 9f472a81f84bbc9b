"""Observed rows that have the same parameters: their number and mean statistics are enough.

The expected log density of a row is linear in the statistics phi(x) of its child,

    E[log p(x | pa)] = E[eta(pa)] . phi(x) + f(x) - E[A(eta(pa))],

so that the sum over the rows of one kind, those with the same parents, is their number times its
value at their mean statistics, and the sum of the base measures f(x). These are computed once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmp.families.family import Array, Family
from svmp.network.grid import Ints, Kinds
from svmp.network.means.row_sums import sum_by_owner

FAR = 1e3
"""Largest square of a mean, in variances, up to which sums of squares have enough digits."""


@dataclass(frozen=True, eq=False)
class Summary:
    """The observed rows of each kind.

    Attributes
    ----------
    count, mean
        Number of rows and mean statistics of each kind; 0 where there are none.
    """

    count: Ints
    mean: Array

    @classmethod
    def of(
        cls, kinds: Kinds, family: Family, observed: Array, present: Ints | None, step: int
    ) -> Summary:
        """Summarise the rows that are present, in blocks of some rows."""
        rows = np.arange(len(observed)) if present is None else present
        count = np.zeros(kinds.grid.size, dtype=np.int64)
        total = np.zeros((len(count), family.size))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            kind, own, values = kinds.of(part), family.at(part), observed[part]
            order = np.argsort(kind, kind="stable")
            count += np.bincount(kind, minlength=len(count))
            total += sum_by_owner(own.statistics(values)[order], kind[order], len(count))
        return cls(count, total / np.maximum(count, 1)[:, None])

    def is_precise(self, family: Family) -> bool:
        """Whether no digits are lost: a variance from squares of large numbers has few."""
        if family.gaussian is None:
            return bool(np.isfinite(self.mean).all())
        size = int(np.sqrt(self.mean.shape[1]))
        square = self.mean[:, :size] ** 2
        return bool((square <= FAR * (self.mean[:, size :: size + 1] - square)).all())
