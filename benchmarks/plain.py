"""plain.c from Python: compiled on demand, and called through ctypes."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from svmp.ratings import Ratings

COMPILE = ("gcc", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
ROW = np.dtype([("other", np.int32), ("rating", np.float32)])


class _Side(ctypes.Structure):
    _fields_ = (
        ("keys", ctypes.c_int32),
        ("longest", ctypes.c_int64),
        ("first", ctypes.c_void_p),
        ("rows", ctypes.c_void_p),
        ("q", ctypes.c_void_p),
        ("natural", ctypes.c_void_p),
    )


def compiled() -> ctypes.CDLL:
    """Compile plain.c for this machine."""
    source = Path(__file__).with_suffix(".c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "plain.so"
        subprocess.run([*COMPILE, "-o", library, source, "-lm"], check=True)
        c = ctypes.CDLL(str(library))
    c.bound.restype = ctypes.c_double
    return c


class Side:
    """All users, or all items: their ratings by key, and q."""

    def __init__(self, key: Any, other: Any, rating: Any, keys: int, mean: Any) -> None:
        order = np.argsort(key, kind="stable")
        self.rows = np.empty(len(key), ROW)
        self.rows["other"], self.rows["rating"] = other[order], rating[order]
        counts = np.bincount(key, minlength=keys)
        self.first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.q = np.concatenate([mean, np.ones_like(mean)], axis=1).astype(np.float32)
        self.natural = self.q.copy()  # unit precisions
        arrays = (self.first, self.rows, self.q, self.natural)
        self.struct = _Side(keys, int(counts.max()), *(a.ctypes.data for a in arrays))
        self.pointer = ctypes.byref(self.struct)


class Plain:
    """The paper's matrix factorization in plain C, from given means and unit variances."""

    def __init__(self, c: ctypes.CDLL, ratings: Ratings, u: Any, v: Any) -> None:
        user, item, rating = ratings.user, ratings.item, ratings.rating
        self.c, self.factors = c, u.shape[1]
        self.u = Side(user, item, rating, ratings.users, u)
        self.v = Side(item, user, rating, ratings.items, v)

    def sweep(self) -> None:
        """Run a sweep of full VB."""
        self.c.sweep(self.factors, self.u.pointer, self.v.pointer)

    def bound(self) -> float:
        """Return the exact bound."""
        return self.c.bound(self.factors, self.u.pointer, self.v.pointer)

    def iterate(self, C: int, rho: float, seed: int, iteration: int) -> None:
        """Run an iteration of Algorithm 1 (a)."""
        stream = (ctypes.c_uint64(seed), ctypes.c_uint64(iteration))
        sides = (self.u.pointer, self.v.pointer)
        self.c.iterate(self.factors, C, ctypes.c_float(rho), *stream, *sides)

    @property
    def means(self) -> tuple[Any, Any]:
        """E[u] and E[v]."""
        return self.u.q[:, : self.factors], self.v.q[:, : self.factors]
