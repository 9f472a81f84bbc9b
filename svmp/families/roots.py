"""Root finding, for the families whose moments have no closed inverse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from svmp.families.family import Array


def decreasing_root(
    function: Callable[[Array], tuple[Array, Array]], start: Array, low: float, high: float
) -> Array:
    """Solve f(t) = 0 element by element, f decreasing, by Newton steps inside a bracket.

    A step that would leave the bracket halves it instead, so the root is found from any start;
    where f has no root, the end of the bracket nearest to one is. Nan stays nan.

    Parameters
    ----------
    function
        Returns f(t) and its slope.
    start
        First guess.
    low, high
        The bracket.

    Examples
    --------
    >>> decreasing_root(lambda t: (2 - t**3, -3 * t**2), np.array([0.1]), 0.0, 9.0) ** 3
    array([2.])
    """
    t = np.clip(np.asarray(start, dtype=np.float64), low, high)
    below, above = np.full(t.shape, low), np.full(t.shape, high)
    for _ in range(200):
        with np.errstate(all="ignore"):
            value, slope = function(t)
            newton = t - value / slope
        below, above = np.where(value > 0, t, below), np.where(value <= 0, t, above)
        trusted = ((below <= newton) & (newton <= above)) | np.isnan(value)
        previous, t = t, np.where(trusted, newton, 0.5 * (below + above))
        if not np.any(np.abs(t - previous) > 1e-15 * np.maximum(1, np.abs(t))):
            break
    return t
