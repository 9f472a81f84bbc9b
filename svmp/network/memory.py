"""What does not fit into the memory of this machine is refused before it is allocated."""

from __future__ import annotations

import math
import os

from svmp.errors import ModelError

PARAMETERS = 16
"""Least bytes of q of a number: a natural parameter and a moment."""


def machine_memory() -> int:
    """Return the memory of this machine, in bytes; 8 GiB where it is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return 8 << 30


def check_memory(name: str, shape: tuple[int, ...], dims: tuple[str, ...], vectors: bool) -> None:
    """Refuse a hidden variable whose q does not fit into memory.

    Parameters
    ----------
    name, shape, dims
        The variable, and what it is an array of.
    vectors
        Whether q has a matrix for each line along the last axis.
    """
    needed, memory = PARAMETERS * math.prod(shape), machine_memory()
    needed *= 1 + shape[-1] if vectors else 1
    if needed > memory:
        sizes = " by ".join(f"{n:,}" for n in shape)
        raise ModelError(
            f"'{name}' has {sizes} elements along {dims}, whose q needs {needed / 1e9:,.0f} GB; "
            f"this machine has {memory / 1e9:,.0f} GB of memory. Use smaller dims"
        )
