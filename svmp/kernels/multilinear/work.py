"""The input of an update loop: the keys to update, and the rows of each."""

from __future__ import annotations

from typing import NamedTuple

from svmp.families.family import Array
from svmp.kernels.multilinear.table import Keyed
from svmp.network.grid import Ints


class Drawn(NamedTuple):
    """Random draws of at most `most` rows for each element, made in the loop."""

    seed: int
    iteration: int
    variable: int
    most: Ints


class Work(NamedTuple):
    """Keys to update, their rows, the scale of messages, and the rows read and owned by each."""

    keyed: Keyed
    keys: Ints
    scale: Array
    read: Ints
    children: Ints
    drawn: Drawn | None = None
