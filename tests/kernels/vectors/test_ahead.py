"""The signatures that are compiled in other processes are those that fits call."""

from __future__ import annotations

import numpy as np

from svmp.datasets import netflix_shaped
from svmp.kernels.multilinear.ahead import signature
from svmp.kernels.vectors.ahead import signatures
from svmp.kernels.vectors.update import update
from svmp.recommend import RatingModel


def test_fits_call_the_loops_that_are_compiled_ahead() -> None:
    RatingModel(2, covariance="full", max_sweeps=30, progress=False).fit(netflix_shaped(0.02))
    assert signature(np.dtype(np.float32)) in update.signatures
    for loop, types in signatures():
        assert types in loop.signatures, loop.py_func.__name__
