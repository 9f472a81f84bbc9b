"""Which svmp a process runs: bits are the same on all workers only if the code is."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import numba
import numpy as np

import svmp


def versions() -> dict[str, str]:
    """Return the versions of svmp, of its source files, of NumPy and of Numba in this process.

    >>> list(versions())
    ['svmp', 'source', 'numpy', 'numba']
    """
    return {
        "svmp": svmp.__version__,
        "source": source_hash(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


@cache
def source_hash() -> str:
    """Return a hash of all source files of svmp."""
    root = Path(svmp.__file__).parent
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def differences(theirs: dict[str, str], ours: dict[str, str]) -> str:
    """Return how the versions of another process differ, as words; "" if they do not.

    >>> differences({"svmp": "0.2", "numpy": "2.0"}, {"svmp": "0.1", "numpy": "2.0"})
    'svmp 0.2 (here 0.1)'
    """
    return ", ".join(
        f"{name} {theirs.get(name, 'unknown')} (here {version})"
        for name, version in ours.items()
        if theirs.get(name) != version
    )
