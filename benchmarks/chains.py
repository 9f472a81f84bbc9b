"""Hidden Markov models: other libraries, many short sequences, memory, and sequences drawn.

- A million steps, 10 states, Normal emissions: seconds of a sweep against an iteration of
  hmmlearn's VariationalGaussianHMM, by logarithms (its default) and scaled, and of EM in dynamax.
- The same steps as 100,000 sequences of 10 against one sequence.
- Peak memory beside q itself: the marginals as natural parameters and moments, and the potentials.
- 10,000 sequences: accesses to the bound of full VB, of batches of sequences, of sums that are kept
  by part, and of full VB.
- One sequence of 300,000 steps: subchains with buffers and full VB, at equal accesses, and in time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, Unavailable, ask, iteration_seconds, main

import svmp

STATES, STAY = 10, 0.95
NEAR = 1e-4
"""How near the bound of full VB a run must come, relative to its size."""


def draw(steps: int, length: int, seed: int = 0) -> Any:
    """Draw sequences of a chain that mostly stays, with Normal emissions."""
    rng = np.random.default_rng(seed)
    count = steps // length
    state = rng.integers(0, STATES, (count, length))
    stays = rng.random((count, length)) < STAY
    for t in range(1, length):
        state[:, t] = np.where(stays[:, t], state[:, t - 1], state[:, t])
    return rng.normal(3.0 * state, 1.0).ravel()


def network(y: Any, length: int) -> svmp.Model:
    night = np.repeat(np.arange(len(y) // length), length)
    with svmp.Model(coords={"state": STATES, "to": STATES, "row": len(y)}) as model:
        start = svmp.Dirichlet("start", a=1, dims="state")
        move = svmp.Dirichlet("move", a=1, dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", start, move, sequence=night, dims="row")
        mu = svmp.Normal("mu", mu=0, tau=0.01, dims="state")
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="state")
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=tau), dims="row", observed=y)
    return model


def sweep(model: svmp.Model, sweeps: int = 5) -> float:
    """Return the seconds of the fastest sweep of full VB."""
    return iteration_seconds(
        model, svmp.FullVB(), svmp.Constant(1.0), sweeps, bound=True, kernels=True
    )


PEERS: dict[str, tuple[str, str, dict[str, str], float | None]] = {
    "hmmlearn (log)": ("hmmlearn", "hmmlearn_vb", {"implementation": "log"}, 1 / 3),
    "hmmlearn (scaling)": ("hmmlearn", "hmmlearn_vb", {"implementation": "scaling"}, None),
    "dynamax, EM": ("dynamax", "dynamax_em", {}, 1 / 2),
}
"""By name: environment, script, what is asked besides the data, and the ratio wanted."""


def against_others(steps: int, rounds: int) -> Iterator[Row]:
    """Compare a sweep with an iteration of other libraries, in turn."""
    y = draw(steps, steps)
    model = network(y, steps)
    what = f"a sweep over {steps:,} steps, {STATES} states"
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.npz"
        np.savez(data, y=y, lengths=[steps])
        for name, (peer, script, more, wanted) in PEERS.items():
            request = {"data": str(data), "states": STATES, "iterations": 2, **more}
            ours, theirs = [], []
            try:
                for _ in range(rounds):
                    ours.append(sweep(model, 3))
                    theirs.append(ask(peer, request, script)["seconds"])
            except Unavailable as reason:
                yield Row(what, against=name, wanted=wanted, note=str(reason))
                continue
            yield Row(what, min(ours), min(theirs), name, wanted=wanted)


def short_and_long(steps: int) -> Row:
    """Compare many short sequences with one long one, in turn."""
    short, long = network(draw(steps, 10), 10), network(draw(steps, steps), steps)
    times = [(sweep(short, 4), sweep(long, 4)) for _ in range(2)]
    what = f"a sweep over {steps // 10:,} sequences of 10 steps"
    against = "svmp, one sequence"
    return Row(what, min(a for a, _ in times), min(b for _, b in times), against, wanted=1.2)


def memory(steps: int) -> Row:
    """Compare the peak of the memory that a fit allocates with the size of q."""
    request = json.dumps({"steps": steps})
    done = subprocess.run(
        [sys.executable, __file__, "--peak"], input=request, capture_output=True, text=True
    )
    what = f"peak memory of a fit to {steps:,} steps"
    if done.returncode:
        return Row(what, note="did not run")
    q = 3 * 8 * STATES * steps / 2**20
    return Row(what, float(done.stdout), q, "q itself", "MB", wanted=3.0)


def peak() -> None:
    """Print the most memory that a fit has allocated at a time, in MB, without compiled code."""
    steps = json.load(sys.stdin)["steps"]
    svmp.fit(network(draw(10_000, 10), 10), svmp.FullVB(), max_sweeps=1, kernels=True)  # compile
    model = network(draw(steps, steps), steps)
    tracemalloc.start()
    svmp.fit(model, svmp.FullVB(), max_sweeps=3, tol=0, kernels=True)
    print(tracemalloc.get_traced_memory()[1] / 2**20)


def drawn_sequences(count: int) -> Iterator[Row]:
    """Compare accesses to the bound of full VB: of drawn sequences, and of full VB."""
    model = network(draw(count * 20, 20, seed=1), 20)
    options: dict[str, Any] = {"seed": 1, "progress": False, "kernels": True}
    full = svmp.fit(model, svmp.FullVB(), tol=1e-8, max_sweeps=200, **options)
    goal = full.bound - NEAR * abs(full.bound)

    def accesses(fit: svmp.Fit) -> float | None:
        exact = fit.trace["bound_se"] == 0
        near = exact & (fit.trace["bound"] >= goal)
        return float(fit.trace["accesses"][np.argmax(near)]) if near.any() else None

    methods: list[tuple[svmp.Batch | svmp.Memoized, int | None]] = [
        (svmp.Batch(max(10, count // 100), over="sequence"), 10),
        (svmp.Memoized(over="sequence", parts=100), None),
    ]
    for method, every in methods:
        few = svmp.fit(model, method, max_sweeps=10, tol=0, bound_every=every, **options)
        what = f"accesses to the bound of full VB, {count:,} sequences, {method.label}"
        ours, theirs = accesses(few), accesses(full)
        note = "" if ours else "did not come near it"
        yield Row(what, ours, theirs, "full VB", "accesses", wanted=1 / 3, note=note)


def subchains(steps: int) -> Iterator[Row]:
    """Compare subchains of one sequence with full VB: the bound after 4 sweeps' accesses, time."""
    rng = np.random.default_rng(1)
    jumps, places = rng.random(steps) > STAY, rng.integers(0, STATES, steps)
    last = np.maximum.accumulate(np.where(jumps, np.arange(steps), 0))
    model = network(rng.normal(1.5 * places[last], 1.0), steps)
    options: dict[str, Any] = {"seed": 1, "progress": False, "kernels": True, "tol": 0}
    best = svmp.fit(model, svmp.FullVB(), max_sweeps=60, **options).bound
    method = svmp.Batch(20, over="row", length=500)
    runs = [svmp.fit(model, m, max_sweeps=4, **options) for m in (method, svmp.FullVB())]
    what = f"one sequence of {steps:,} steps, subchains of 500, the accesses of 4 sweeps: "
    few, full = ((best - fit.bound) / abs(best) for fit in runs)
    buffer, left = (runs[0].trace[column][-1] for column in ("buffer", "buffer_left"))
    note = f"longest buffer {buffer:.0f} rows, {left:.1g} nats left"
    yield Row(what + "relative gap of the bound", few, full, "full VB", "", note=note)
    few, full = (fit.seconds for fit in runs)
    yield Row(what + "seconds", few, full, "full VB")


def measure(quick: bool) -> Iterator[Row]:
    steps = 20_000 if quick else 1_000_000
    yield from against_others(steps, 1 if quick else 2)
    yield short_and_long(steps)
    yield memory(200_000 if quick else 1_000_000)
    yield from drawn_sequences(500 if quick else 10_000)
    yield from subchains(20_000 if quick else 300_000)


if __name__ == "__main__":
    peak() if "--peak" in sys.argv else main(measure, __doc__)
