"""Calibrated prediction intervals (split conformal prediction).

Under q a new rating has the standard deviation s. With z = |r - E[r]| / s of held-out ratings and
Q(p) the p-quantile of z, the interval E[r] ± s Q(p) contains a share p of all ratings, whatever the
distribution of the errors, if new ratings are exchangeable with the held-out ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from svmp.errors import ModelError

GRID = 1001
FEW = 500
"""With fewer held-out ratings than this, the errors are assumed to be Normal."""


@dataclass(frozen=True, eq=False)
class Spread:
    """The distribution of |r - E[r]| / s.

    Attributes
    ----------
    scale
        Root mean square of z, by which reported standard deviations are multiplied.
    quantiles
        Quantiles at 0, 0.001, ..., 1.
    """

    scale: float
    quantiles: NDArray[np.float64]

    @classmethod
    def normal(cls) -> Spread:
        """Return the distribution if q is calibrated and errors are Normal."""
        levels = np.linspace(0, 1, GRID)
        return cls(1.0, ndtri((1 + np.minimum(levels, 1 - 1e-6)) / 2))

    @classmethod
    def of(cls, error: NDArray[Any], std: NDArray[Any]) -> Spread:
        """Estimate the distribution from the errors of held-out ratings."""
        if len(error) < FEW:
            return cls.normal()
        z = np.abs(error.astype(np.float64)) / std
        levels = np.linspace(0, 1, GRID) * (len(z) + 1) / len(z)
        quantiles = np.quantile(z, np.minimum(levels, 1), method="higher")
        return cls(float(np.sqrt(np.mean(z**2))), quantiles)

    def wider(self, times: float) -> Spread:
        """Return the distribution if s becomes `times` times smaller and the errors do not."""
        return Spread(times * self.scale, times * self.quantiles)

    def reach(self, level: float) -> float:
        """Return the half-width, in units of s, of an interval with the given coverage."""
        if not 0 < level < 1:
            raise ModelError(f"the level of an interval must be between 0 and 1, not {level}")
        return float(np.interp(level, np.linspace(0, 1, GRID), self.quantiles))
