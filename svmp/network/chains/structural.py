"""Dynamics of structural time series: local level and trend, seasonal patterns, and their sums.

A structure is a matrix A for `svmp.LinearGaussianChain`, and a row that gives the part of a state
that is observed. The noise of each part is a precision of the chain: with a Gamma for each state,
the data tell which part changes over time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.network.validation import shown


@dataclass(frozen=True, eq=False)
class Structure:
    """Fixed dynamics of a chain; structures are added with `+`.

    Attributes
    ----------
    A
        Transition matrix.
    design
        Coefficients of the observed value: `svmp.dot(structure.design, x, dim="state")`.
    names
        A name for each state.

    >>> import svmp
    >>> structure = svmp.local_trend() + svmp.seasonal(4, harmonics=1)
    >>> structure.names
    ('level', 'slope', 'season 1 cos', 'season 1 sin')
    >>> structure.design
    array([1., 0., 1., 0.])
    """

    A: Array
    design: Array
    names: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self.names)

    def __add__(self, other: Structure) -> Structure:
        one, two = self.size, other.size
        A = np.zeros((one + two, one + two))
        A[:one, :one], A[one:, one:] = self.A, other.A
        return Structure(A, np.concatenate([self.design, other.design]), self.names + other.names)


def local_level() -> Structure:
    """Return a level that changes as a random walk.

    >>> local_level().A
    array([[1.]])
    """
    return Structure(np.eye(1), np.ones(1), ("level",))


def local_trend() -> Structure:
    """Return a level with a slope; both change as random walks.

    >>> local_trend().A
    array([[1., 1.],
           [0., 1.]])
    """
    return Structure(np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([1.0, 0.0]), ("level", "slope"))


def seasonal(period: float, harmonics: int | None = None) -> Structure:
    """Return a seasonal pattern as a sum of waves, whose sizes and phases change over time.

    Parameters
    ----------
    period
        Number of steps after which the pattern repeats, at least 2; it need not be whole.
    harmonics
        Number of waves: the slowest has the period, the next half of it. By default as many as the
        period allows.

    >>> seasonal(12).size
    11
    """
    if not (np.ndim(period) == 0 and np.isfinite(period) and period >= 2):
        raise ModelError(f"period must be a number of at least 2, not {shown(period)}")
    most = int(period // 2)
    count = most if harmonics is None else harmonics
    if isinstance(count, bool) or count != int(count) or not 1 <= count <= most:
        raise ModelError(
            f"harmonics must be a whole number from 1 to {most}, half of the period, not "
            f"{shown(harmonics)}"
        )
    found: Structure | None = None
    for j in range(1, int(count) + 1):
        angle = 2 * np.pi * j / period
        cos, sin = np.cos(angle), np.sin(angle)
        if 2 * j == period:  # the fastest wave has no sine
            wave = Structure(-np.eye(1), np.ones(1), (f"season {j}",))
        else:
            names = (f"season {j} cos", f"season {j} sin")
            wave = Structure(np.array([[cos, sin], [-sin, cos]]), np.array([1.0, 0.0]), names)
        found = wave if found is None else found + wave
    assert found is not None
    return found
