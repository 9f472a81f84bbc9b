"""The signature that is compiled in another process is the one that fits call."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.kernels.multilinear import update
from svmp.kernels.multilinear.ahead import signature
from svmp.kernels.vectors import update as vectors
from svmp.warm.recipes import factorization

OPTIONS = {"kernels": True, "max_sweeps": 1, "tol": 0, "progress": False}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fits_call_the_loop_that_is_compiled_ahead(dtype: str) -> None:
    for model, method, loop in (
        (factorization(dtype), None, update.update_whole_from_sums),
        (factorization(dtype, 20), svmp.FullVB(), update.update_whole),
        (factorization(dtype, vectors=True), None, vectors.update),
    ):
        svmp.fit(model, method, **OPTIONS)
        assert signature(np.dtype(dtype)) in loop.signatures
