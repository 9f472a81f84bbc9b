"""What a fit on workers has moved and what it waits for, for the progress line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np


@dataclass
class Transfer:
    """Counts of a fit on workers.

    Attributes
    ----------
    groups, waiting
        Number of tasks of the current round, and of those that are not finished.
    bytes_sent, bytes_received
        Bytes of arrays in q and own variables, and in results. q counts once a round.
    retries
        Number of rounds that were run again.
    """

    groups: int = 0
    waiting: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    retries: int = 0

    def begin(self, groups: int) -> None:
        """Note a new round."""
        self.groups = self.waiting = groups

    def __str__(self) -> str:
        """Return the counts as a part of the progress line.

        >>> print(Transfer(8, 3, 2_500_000, 1_000_000))
        groups 5/8   moved 3.5 MB
        """
        if not self.groups:
            return ""
        moved = (self.bytes_sent + self.bytes_received) / 1e6
        again = f"   {self.retries} rounds run again" if self.retries else ""
        return f"groups {self.groups - self.waiting}/{self.groups}   moved {moved:,.1f} MB{again}"


def size_of(value: Any) -> int:
    """Return the number of bytes of the arrays in a value.

    >>> size_of({"a": np.zeros(3), "b": [np.zeros(2), None]})
    40
    """
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, Mapping):
        return sum(map(size_of, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(size_of, value))
    if is_dataclass(value) and not isinstance(value, type):
        return sum(size_of(value.__dict__[f.name]) for f in fields(value))
    return 0
