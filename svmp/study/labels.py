"""Heights of the labels where lines end, so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def groups(places: Sequence[float], within: float) -> list[list[int]]:
    """Return the indices of places in groups, in each of which every place is close to the next.

    >>> groups([50.0, 0.0, 10.0], within=15)
    [[1, 2], [0]]
    """
    found: list[list[int]] = []
    for i in np.argsort(places, kind="stable").tolist():
        if found and places[i] - places[found[-1][-1]] < within:
            found[-1].append(i)
        else:
            found.append([i])
    return found


def spread(heights: Sequence[float], gap: float) -> NDArray[np.float64]:
    """Return the heights nearest to those given, in squares, that are at least `gap` apart.

    Sorted heights minus (0, gap, 2 gap, ...) must not fall, which is isotonic regression:
    neighbours that violate the order are replaced by their mean.

    >>> spread([5.0, 0.0, 5.0], gap=2).tolist()
    [4.0, 0.0, 6.0]
    """
    order = np.argsort(heights, kind="stable")
    means: list[float] = []
    sizes: list[int] = []
    for i, at in enumerate(np.asarray(heights, dtype=float)[order]):
        means.append(float(at) - i * gap)
        sizes.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            total = sizes[-2] + sizes[-1]
            mean = (means[-2] * sizes[-2] + means[-1] * sizes[-1]) / total
            means[-2:], sizes[-2:] = [mean], [total]
    places = np.empty(len(order))
    places[order] = np.repeat(means, sizes) + gap * np.arange(len(order))
    return places
