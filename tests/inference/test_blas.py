"""BLAS has one thread during a fit, and what it had before afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

import svmp
from svmp.inference.blas import one_blas_thread

PROGRAM = """
import numpy as np, svmp
from threadpoolctl import threadpool_info, threadpool_limits

def threads():
    return {i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}

rng = np.random.default_rng(0)
x = rng.normal(size=(600, 300))
def declare():
    with svmp.Model(coords={"k": 300}) as model:
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        w = svmp.Normal("w", mu=0, tau=tau, dims="k")
        noise = svmp.Gamma("noise", alpha=1, beta=1)
        svmp.Normal("y", mu=svmp.dot(x, w), tau=noise, observed=x @ rng.normal(size=300))
    return model
model, found, seen = declare(), [], set()
for before in (1, 2):
    with threadpool_limits(before, user_api="blas"):
        fit = svmp.fit(model, joint="auto", threads=before, max_sweeps=4,
                       watch=lambda row: seen.update(threads()))
        assert threads() == {before}, threads()
    found.append(fit["w"].natural)
assert seen == {1}, seen
assert np.array_equal(*found)
"""


def of_blas() -> list[int]:
    return [i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"]


def test_bits_do_not_depend_on_threads_that_blas_was_given() -> None:
    """In a process without the variables that our other tests set for BLAS."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    env = {k: v for k, v in os.environ.items() if k not in names}
    env["PYTHONPATH"] = str(Path(svmp.__file__).parents[1])
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, env=env, timeout=600)


def test_fits_in_several_threads_share_one_limit() -> None:
    before, inside = of_blas(), list[list[int]]()
    first, second = threading.Event(), threading.Event()

    def early() -> None:
        with one_blas_thread():
            first.set()
            second.wait(60)

    def late() -> None:
        first.wait(60)
        with one_blas_thread():
            second.set()
            thread.join()  # the first one ends while this one goes on
            inside.append(of_blas())

    thread, other = threading.Thread(target=early), threading.Thread(target=late)
    thread.start(), other.start()
    other.join()
    assert inside == [[1] * len(before)]
    assert of_blas() == before


def test_the_limit_ends_with_an_error() -> None:
    before = of_blas()
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        _ = 1 / 0
    assert of_blas() == before
