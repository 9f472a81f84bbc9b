"""Groups of parts: how many there are, and which parts each of them has.

One process visits the parts of a group and adds up their sums. Groups decide rounding, so that they
depend on the parts alone, and on nothing that is known about workers. They are of nearly the same
number of rows, and so are those of each half of the tree of `tree.py`: two workers that have one
half each are busy for the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from svmp.network.grid import Ints
from svmp.parts.sources import InMemory, Source

FEWEST, MOST, PARTS_A_GROUP = 4, 16, 16
"""Of parts that are not in memory: fewest and most groups by default, and the least number of parts
of each where there are more than the fewest."""
PUT_TOGETHER, MOST_IN_MEMORY = 8, 8
"""Number of parts in memory that make up a group by default, and most groups."""
ROWS_A_GROUP = 4_000_000
"""Number of rows in memory from which on there are as many groups. With fewer, the sums of a group
take too much of the time of its rows."""


def default_groups(source: Source) -> int:
    """Return a number of groups, which depends on the parts alone."""
    if not source.in_memory:
        return min(max(_power_of_two(len(source) // PARTS_A_GROUP), FEWEST), MOST)
    rows = sum(size or 0 for size in part_sizes(source))
    count = max(len(source) // PUT_TOGETHER, _power_of_two(rows // ROWS_A_GROUP))
    return min(max(count, 1), MOST_IN_MEMORY)


def group_numbers(sizes: Sequence[int | None], count: int) -> Ints:
    """Return the group of each part: groups follow each other, and are of about the same size.

    A part belongs to the group in whose share of all rows its middle lies, but every group has a
    part. Parts of unknown size count as the mean of the others.

    >>> group_numbers([1] * 10, 4)
    array([0, 0, 1, 1, 1, 2, 2, 3, 3, 3])
    >>> group_numbers([90, 5, 5], 3)
    array([0, 1, 2])
    """
    known = [size for size in sizes if size is not None]
    usual = max(sum(known) // len(known), 1) if known else 1
    weights = [usual if size is None else size for size in sizes]
    total, before, last = max(sum(weights), 1), 0, -1
    found = []
    for part, weight in enumerate(weights):
        wanted = (2 * before + weight) * count // (2 * total)
        fewest = max(last, count - (len(weights) - part))
        last = min(max(wanted, fewest, 0), last + 1)
        before += weight
        found.append(last)
    return np.array(found)


def part_sizes(source: Source) -> list[int | None]:
    """Return the number of rows of each part, or the length of its longest array, if known."""
    return [
        _length(source.load(part))
        if (rows := source.rows(part)) is None and isinstance(source, InMemory)
        else rows
        for part in range(len(source))
    ]


def _length(payload: Any) -> int | None:
    """Return the length of the longest array in a part."""
    if isinstance(payload, Mapping):
        payload = list(payload.values())
    pieces = payload if isinstance(payload, list | tuple) else [payload]
    arrays = [piece for piece in pieces if isinstance(piece, np.ndarray) and piece.ndim]
    return max(map(len, arrays), default=None)


def _power_of_two(number: int) -> int:
    """Return the largest power of two that is not above a number; 0 for 0."""
    return 1 << (number.bit_length() - 1) if number else 0
