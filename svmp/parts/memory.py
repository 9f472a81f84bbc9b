"""Amounts of memory as people write them: "4GB", "512 MiB", 1e9."""

from __future__ import annotations

import math
import re
from typing import Any

from svmp.errors import ModelError, called
from svmp.network.validation import shown

UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)(B?)\s*", re.IGNORECASE | re.ASCII)


def parse_memory(amount: str | float, name: str = "memory") -> int:
    """Return an amount of memory in bytes; 1 GB are 10^9 bytes, and 1 GiB are 2^30.

    Parameters
    ----------
    amount
        A number of bytes, or a text with a unit: B, KB, MB, GB, TB, or KiB, MiB, GiB, TiB.
    name
        The argument, for messages.

    >>> parse_memory("4GB"), parse_memory("1.5 MiB"), parse_memory(2e6)
    (4000000000, 1572864, 2000000)
    """
    wrong = f"{called(name)} must be an amount of memory, as 4GB or 512MB, not {shown(amount)}"
    size = _bytes(amount)
    if not 1 <= size < 2**63:
        raise ModelError(wrong)
    return int(size)


def _bytes(amount: Any) -> float:
    """Return an amount in bytes; 0 if it is none."""
    if isinstance(amount, int | float) and not isinstance(amount, bool):
        return amount if math.isfinite(amount) else 0
    found = AMOUNT.fullmatch(amount) if isinstance(amount, str) else None
    if found is None or (found[3] and not found[2]):
        return 0
    return float(found[1]) * (1024 if found[3] else 1000) ** UNITS[found[2].upper()]
