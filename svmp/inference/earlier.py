"""The part of an earlier fit that a run can start from: q of its variables.

The posteriors of a fit are of these classes (posterior/marginals/posterior.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from svmp.families.family import Array, Family


class EarlierQ:
    """q of one variable.

    Attributes
    ----------
    plate
        Sizes of the plate axes.
    family, natural
        Its family, and its natural parameters, (elements, size).
    """

    plate: tuple[int, ...]
    family: Family
    natural: Array


Q = TypeVar("Q", bound=EarlierQ, covariant=True)


class EarlierBeliefs(Mapping[str, Q]):
    """q of all hidden variables of a fit, by name.

    Attributes
    ----------
    stored
        Those of stored variables; the others follow from them.
    """

    stored: Mapping[str, Q]
