"""What a loop is asked to do: which keys to update, from which of their rows."""

from __future__ import annotations

from typing import NamedTuple

from svmp.families.family import Array
from svmp.kernels.multilinear.table import Keyed
from svmp.network.grid import Ints


class Drawn(NamedTuple):
    """Every element draws at most so many of its rows for itself."""

    seed: int
    iteration: int
    variable: int
    most: Ints


class Work(NamedTuple):
    """Keys to update, their rows, by what those count, how many each reads, and of how many."""

    keyed: Keyed
    keys: Ints
    scale: Array
    read: Ints
    children: Ints
    drawn: Drawn | None = None
