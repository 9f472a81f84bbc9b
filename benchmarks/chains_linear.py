"""Chains of vectors: a sweep against BayesPy's, the smoother per step, and memory.

The network is a linear dynamical system with unknown dynamics, precisions and emissions: states of
4 numbers, 6 sensors, 100,000 steps. BayesPy's time grows in proportion to the steps, so it is
measured on 5,000 steps and scaled; the note says so.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import Row, in_turn, main, seconds

import svmp
from svmp.kernels.chains import smoother
from svmp.kernels.chains.dynamics import Dynamics, OrderedRows, Output

SIZE, SENSORS = 4, 6


def draw(steps: int) -> Any:
    """Draw observations of a slowly rotating state."""
    rng = np.random.default_rng(0)
    A = 0.98 * np.linalg.qr(rng.standard_normal((SIZE, SIZE)))[0]
    x, noise = np.zeros((steps, SIZE)), 0.3 * rng.standard_normal((steps, SIZE))
    for t in range(1, steps):
        x[t] = A @ x[t - 1] + noise[t]
    C = rng.standard_normal((SENSORS, SIZE))
    return x @ C.T + 0.5 * rng.standard_normal((steps, SENSORS))


def network(y: Any) -> svmp.Model:
    coords = {"row": len(y), "latent": SIZE, "from": SIZE, "sensor": SENSORS}
    with svmp.Model(coords=coords) as model:
        relevance = svmp.Gamma("relevance", alpha=1, beta=1, dims="from")
        A = svmp.MvNormal("A", mu=0, tau=svmp.diag(relevance), dims=("latent", "from"))
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="latent")
        x = svmp.LinearGaussianChain("x", svmp.Normal.dist(0, 1), A, tau, dims=("row", "latent"))
        C = svmp.MvNormal("C", mu=0, tau=np.eye(SIZE), dims=("sensor", "latent"))
        noise = svmp.Gamma("noise", alpha=1, beta=1)
        mean = svmp.dot(C, x, dim="latent")
        svmp.Normal("y", mean, noise, dims=("row", "sensor"), observed=y)
    return model


def our_sweep(model: svmp.Model) -> float:
    """Return the time of a sweep, with its bound: the difference of a longer and a shorter run."""

    def run(sweeps: int) -> float:
        limits = {"max_sweeps": sweeps, "tol": 0, "progress": False}
        return seconds(lambda: svmp.fit(model, svmp.FullVB(), **limits))

    return (run(12) - run(2)) / 10


def their_sweep(y: Any) -> float:
    """Return the time of BayesPy's sweep, with its bound."""
    import bayespy.nodes as bp
    from bayespy.inference import VB

    relevance = bp.Gamma(1, 1, plates=(SIZE,))
    A = bp.GaussianARD(0, relevance, shape=(SIZE,), plates=(SIZE,))
    tau = bp.Gamma(1, 1, plates=(SIZE,))
    x = bp.GaussianMarkovChain(np.zeros(SIZE), np.eye(SIZE), A, tau, n=len(y))
    C = bp.GaussianARD(0, 1, shape=(SIZE,), plates=(SENSORS, 1))
    noise = bp.Gamma(1, 1)
    node = bp.GaussianARD(bp.SumMultiply("i,i", C, x), noise)
    node.observe(y.T)
    C.initialize_from_random()
    vb = VB(x, C, A, relevance, tau, noise, node)
    return seconds(lambda: vb.update(repeat=1, verbose=False, tol=0), repeat=2)


def smoother_step(size: int, steps: int) -> float:
    """Return the seconds per step of the smoother alone, on one sequence."""
    rng, none = np.random.default_rng(1), np.zeros(steps, dtype=np.int64)
    A, eye = 0.9 * np.eye(size)[None], np.eye(size)[None]
    evidence = np.zeros((steps, size + size**2))
    evidence[:, :size] = rng.standard_normal((steps, size))
    evidence[:, size:] = -0.5 * np.eye(size).ravel()
    zero, end = np.zeros(1), np.array([steps])
    spread, offset = np.zeros((0, size, size)), np.zeros((0, size))
    dynamics = Dynamics(
        np.zeros((1, size)), eye, none[:1], A, eye, A, 0.9 * A, spread, (zero, zero), none,
        np.ones(steps), offset,
    )  # fmt: skip
    rows, out = OrderedRows(np.arange(steps), none[:1], end, end), Output.empty(steps, size)
    return seconds(lambda: smoother.smooth(rows, dynamics, evidence, out), repeat=5) / steps


def peak_memory(model: svmp.Model) -> tuple[float, float]:
    """Return the peak of memory during a fit, and the size of q, in bytes."""
    tracemalloc.start()
    fit = svmp.fit(model, svmp.FullVB(), max_sweeps=2, tol=0, progress=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    q = fit["x"]
    return peak, 2 * q.natural.nbytes + q.cross.nbytes


def measure(quick: bool) -> Iterator[Row]:
    steps, few = (10_000, 500) if quick else (100_000, 5_000)
    y = draw(steps)
    model = network(y)
    svmp.fit(model, svmp.FullVB(), max_sweeps=2, tol=0, progress=False)  # compiles the loops
    times = in_turn(
        {"svmp": lambda: our_sweep(model), "BayesPy": lambda: their_sweep(y[:few])},
        1 if quick else 3,
    )
    theirs = times["BayesPy"] * steps / few
    note = f"BayesPy measured on {few:,} steps and scaled"
    what = f"linear chain, {SIZE} dimensions, {steps:,} steps: seconds a sweep"
    yield Row(what, times["svmp"], theirs, "BayesPy", "s", 1 / 50, note)
    for size in (1, 2, 4, 10):
        found = 1e6 * smoother_step(size, steps)
        wanted = {"other": 1.0, "against": "1 us", "wanted": 1.0} if size == 2 else {}
        yield Row(f"smoother of {size} dimensions, a step", found, unit="us", **wanted)
    peak, q = peak_memory(model)
    yield Row("peak memory of a fit, with the data", peak / 1e6, q / 1e6, "q itself", "MB", 3.0)


if __name__ == "__main__":
    main(measure, __doc__)
