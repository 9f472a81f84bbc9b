"""What a run keeps for accelerators (inference/acceleration/) from one iteration to the next."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from svmp.families.family import Array

Means = dict[str, Array]
"""By variable, the means of its elements, (elements, entries)."""


@dataclass
class Relaxation:
    """The part of a run's state that accelerators need.

    Attributes
    ----------
    omega
        The factor of the last iteration.
    change
        Square of the last change of the block that is solved last, in units of its precisions; NaN
        before the first.
    before
        The means of that block before its last update, or those that are extrapolated.
    history
        By variable, the last sweeps of means that are extrapolated (extrapolation.py).
    """

    omega: float = 1.0
    change: float = np.nan
    before: Means = field(default_factory=dict)
    history: Means = field(default_factory=dict)
