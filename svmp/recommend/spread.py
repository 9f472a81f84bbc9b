"""How far ratings fall from their prediction: what q says, and what ratings held out say of that.

q says that a new rating has a standard deviation s. Some ratings are held out, and with
z = |r - E[r]| / s of each of them, an interval that should hold a share p of all ratings is
E[r] ± s Q(p), where Q(p) is the p-quantile of the z's. If ratings to come are like those held out,
such intervals hold what they say, whatever the shape of the errors (split conformal prediction).
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
"""With fewer ratings held out than this, the errors are taken for Normal."""


@dataclass(frozen=True, eq=False)
class Spread:
    """The distribution of |r - E[r]| / s.

    Attributes
    ----------
    scale
        The root of the mean square: what s is to be multiplied with.
    quantiles
        At 0, 0.001, ..., 1.
    """

    scale: float
    quantiles: NDArray[np.float64]

    @classmethod
    def normal(cls) -> Spread:
        """Return what holds if q is right."""
        levels = np.linspace(0, 1, GRID)
        return cls(1.0, ndtri((1 + np.minimum(levels, 1 - 1e-6)) / 2))

    @classmethod
    def of(cls, error: NDArray[Any], std: NDArray[Any]) -> Spread:
        """Learn it from the errors of ratings that were held out."""
        if len(error) < FEW:
            return cls.normal()
        z = np.abs(error.astype(np.float64)) / std
        levels = np.linspace(0, 1, GRID) * (len(z) + 1) / len(z)
        quantiles = np.quantile(z, np.minimum(levels, 1), method="higher")
        return cls(float(np.sqrt(np.mean(z**2))), quantiles)

    def wider(self, times: float) -> Spread:
        """Return what it is where s has become so many times smaller, and errors have not."""
        return Spread(times * self.scale, times * self.quantiles)

    def reach(self, level: float) -> float:
        """Return how many s an interval must reach either way to hold a share of all ratings."""
        if not 0 < level < 1:
            raise ModelError(f"the level of an interval must be between 0 and 1, not {level}")
        return float(np.interp(level, np.linspace(0, 1, GRID), self.quantiles))
