"""What a fit keeps about the rate of forgetting (posterior/updating/drifting.py)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmp.families.family import Array

RATES = np.array([1.0, 0.9, 0.7, 0.4])
"""Shares of what was learned that are kept in each update."""


@dataclass(frozen=True, eq=False)
class Drift:
    """What is carried of one variable from one update to the next.

    Attributes
    ----------
    weights
        w_r of each rate.
    offsets
        S_r less the S that the fit has, for each rate, of all elements.
    """

    weights: Array
    offsets: Array
