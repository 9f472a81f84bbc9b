"""How the loops are compiled: cached on disk, with sums that may be added up in any order."""

from __future__ import annotations

from typing import Any

import numba

njit: Any = numba.njit
SETTINGS: dict[str, Any] = {
    "cache": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz"},
}

jit = njit(**SETTINGS)
parallel = njit(**SETTINGS, parallel=True)
bare = njit(**SETTINGS, _nrt=False)
"""For what allocates nothing: it counts no references, of which a call may hold a dozen."""
inline = njit(**SETTINGS, _nrt=False, forceinline=True)
