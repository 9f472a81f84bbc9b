"""Number of threads, results that do not depend on it, and the notice of compilation."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numba
import numpy as np
import pytest

import svmp
from svmp.datasets import netflix_shaped
from svmp.kernels.machine import compilations, threads
from svmp.study.netflix import matrix_factorization

needs_two = pytest.mark.skipif(threads.CORES < 2, reason="this machine has one core")


@needs_two
@pytest.mark.parametrize(
    "method",
    [None, svmp.FullVB(), svmp.Children(3), svmp.Batch(5000, "b")],
    ids=["default", "full VB", "algorithm 1", "algorithm 2"],
)
def test_the_bits_are_the_same_for_any_number_of_threads(method):
    model = matrix_factorization(netflix_shaped(0.05), 6)
    one, two = (
        svmp.fit(model, method, max_sweeps=3, tol=0, threads=n, progress=False) for n in (1, 2)
    )
    assert one.bound == two.bound
    for name in "uv":
        assert np.array_equal(one.mean(name), two.mean(name))
        assert np.array_equal(one.var(name), two.var(name))


def test_the_environment_sets_the_number_of_threads(monkeypatch):
    monkeypatch.setenv(threads.VARIABLE, "1")
    assert threads.number_of_threads() == 1
    assert threads.threads_in_use() == 1
    assert threads.number_of_threads(2) == min(2, threads.CORES)
    monkeypatch.setenv(threads.VARIABLE, " ")
    assert threads.number_of_threads() == threads.CORES


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "two"])
def test_invalid_numbers_of_threads_are_refused(wrong):
    with pytest.raises(svmp.ModelError, match="threads must be a whole number"):
        threads.number_of_threads(wrong)


def test_an_invalid_environment_variable_is_refused(monkeypatch):
    monkeypatch.setenv(threads.VARIABLE, "many")
    with pytest.raises(svmp.ModelError, match="SVMP_THREADS must be a whole number"):
        threads.number_of_threads()


def test_the_number_of_threads_is_restored():
    before = threads.threads_in_use()
    with threads.use_threads(1, tell=False):
        assert threads.threads_in_use() == 1
        with threads.threads_for(10**9):
            assert threads.threads_in_use() == 1
    with threads.threads_for(1):
        assert threads.threads_in_use() == 1
    assert threads.threads_in_use() == before


@needs_two
def test_concurrent_fits_have_their_own_number_of_threads(monkeypatch):
    monkeypatch.delenv(threads.VARIABLE, raising=False)
    together = Barrier(2)

    def inside(wanted):
        with threads.use_threads(wanted, tell=False):
            together.wait(timeout=60)
            found = threads.threads_in_use()
            together.wait(timeout=60)
        return found, threads.threads_in_use()

    with ThreadPoolExecutor(2) as callers:
        assert list(callers.map(inside, (1, 2))) == [(1, threads.CORES), (2, threads.CORES)]


@pytest.mark.parametrize("wanted", [True, False])
def test_compilation_is_announced_once(capsys, monkeypatch, wanted):
    monkeypatch.setattr(compilations, "_told", False)
    with threads.use_threads(None, tell=wanted):
        for number in (1, 2):
            numba.njit(eval(f"lambda x: x + {number}"))(1)
    assert capsys.readouterr().err.count(compilations.NOTICE) == wanted


def test_several_callers_share_the_thread_pool():
    done = np.zeros((4, 1000), dtype=bool)

    def loop(taken, line):
        while (key := int(taken[0])) < 1000:
            taken[0] += 1
            line[key] = True

    with ThreadPoolExecutor(4) as callers:
        list(callers.map(lambda line: threads.share(loop, line), done))
    assert done.all()


def test_exceptions_on_threads_are_raised():
    def loop(taken):
        raise ArithmeticError("on purpose")

    with pytest.raises(ArithmeticError, match="on purpose"):
        threads.share(loop)


SMALL = """
import time, numpy as np, svmp
began = time.perf_counter()
with svmp.Model(coords={"user": 30, "item": 20, "factor": 2}) as model:
    u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
    v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
    user, item = np.arange(200) % 30, np.arange(200) % 20
    svmp.Normal("r", mu=svmp.dot(u[user], v[item]), tau=1, observed=np.ones(200, np.float32))
svmp.fit(model, max_sweeps=1)
"""


def test_a_second_process_compiles_nothing():
    """It loads the loops of the first from disk, so no compilation is announced."""
    runs = [
        subprocess.run([sys.executable, "-c", SMALL], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert compilations.NOTICE not in runs[1].stderr


BITS = """
import svmp
from svmp.datasets import netflix_shaped
from svmp.study.netflix import matrix_factorization
model = matrix_factorization(netflix_shaped(0.004), 3)
for method in (None, svmp.FullVB(), svmp.Children(2), svmp.Batch(50, "b")):
    fit = svmp.fit(model, method, max_sweeps=10, tol=0)
    print([bound.hex() for bound in fit.trace["bound"].tolist()])
"""


@pytest.mark.slow
def test_compiled_and_loaded_loops_give_the_same_bits(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", BITS]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        for _ in range(2)
    )
    assert compilations.NOTICE in first.stderr
    assert compilations.NOTICE not in second.stderr
    assert first.stdout == second.stdout
