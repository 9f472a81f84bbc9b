"""What a loop is asked to do: which keys to update, from which of their rows."""

from __future__ import annotations

from typing import NamedTuple

from svmp.families.family import Array
from svmp.kernels.table import Keyed
from svmp.network.grid import Ints


class Drawn(NamedTuple):
    """Every element draws at most so many of its rows for itself."""

    seed: int
    iteration: int
    variable: int
    most: Ints


class Work(NamedTuple):
    """Keys to update, the rows of each, by what they count, and how many each reads."""

    keyed: Keyed
    keys: Ints
    scale: Array
    read: Ints
    drawn: Drawn | None = None
