"""Memoized against batches of documents and svmp's default: time to the same held-out perplexity.

The data, the network and the perplexity are those of lda.py, with 20 topics and three seeds.
Batches are tried in several sizes and with several schedules. Each run is stopped after a time
limit. One goal is the perplexity at which the best schedule of batches ends, another that at which
Memoized ends, both within half a percent; the time to a goal is the median over the seeds. Times
are processor seconds of one thread, which other programs on the machine hardly affect. A fit by
batches begins with an exact bound, as every stochastic fit does, and its time includes that.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from common import Curve, Row, first_at, main
from lda import NEAR, load, network, perplexity

import svmp
from svmp.inference.program.default import choose
from svmp.inference.program.program import Program
from svmp.inference.running.recording import Recorder
from svmp.inference.running.run import Run
from svmp.inference.running.stopping import Budget, Interrupt
from svmp.inference.starts.start import start
from svmp.inference.state.state import State
from svmp.kernels.machine.threads import use_threads
from svmp.network.network import Network
from svmp.posterior.record.run_record import Status

MINE, DEFAULT = "Memoized", "the default"
HOFFMAN = svmp.RobbinsMonro(kappa=0.7, tau=10)
ROUTES: dict[str, dict[str, Any]] = {
    MINE: {"method": svmp.Memoized(over="document")},
    "Batch(256), kappa 0.7, tau 10": {
        "method": svmp.Batch(256, over="document"),
        "steps": HOFFMAN,
    },
    "Batch(1024), kappa 0.7, tau 10": {
        "method": svmp.Batch(1024, over="document"),
        "steps": HOFFMAN,
    },
    "Batch(256), kappa 0.6, tau 64": {
        "method": svmp.Batch(256, over="document"),
        "steps": svmp.RobbinsMonro(kappa=0.6, tau=64),
    },
    "Batch(1024), kappa 0.6, tau 10": {
        "method": svmp.Batch(1024, over="document"),
        "steps": svmp.RobbinsMonro(kappa=0.6, tau=10),
    },
    "Batch(512), node-wise steps": {"method": svmp.Batch(512, over="document")},
    DEFAULT: {},
}
Curves = dict[str, list[Curve]]
"""By route, a curve for each seed."""


def curve(net: Network, held: Any, route: Mapping[str, Any], seed: int, most: float) -> Curve:
    """Return the (seconds, perplexity) curve of one run; the time of scoring is not counted."""
    began, found = time.process_time(), [(0.0, np.inf)]

    def score(run: Run) -> Status | None:
        nonlocal began
        now = time.process_time()
        if now - began >= max(1.1 * found[-1][0], 0.2):
            phi = 1 + run.state.q.natural["phi"]
            error = perplexity(phi / phi.sum(axis=1, keepdims=True), held)
            found.append((now - began, error))
            began += time.process_time() - now
        return "budget" if now - began > most else None

    net.derived.clear()
    with use_threads(1, False), np.errstate(all="ignore"):
        method, policy, persistent = choose(net, route.get("method"), route.get("steps"))
        program = Program.of(net, method, policy=policy, seed=seed)
        q = start(net, seed, implicit={n: u.loops for n, u in program.implicit.items()})
        budget, state = Budget(), State(program.attach(q), memo=program.memo())
        run = Run(program, state, budget, 0.0, persistent, Recorder(budget), (score,))
        run.go(Interrupt())
    return found


def median_time(curves: list[Curve], goals: list[float]) -> float:
    """Return the median over the seeds of the time to the goals; infinite if most miss theirs."""
    times = [first_at(c, goal) for c, goal in zip(curves, goals, strict=True)]
    return float(np.median([np.inf if t is None else t for t in times]))


def ends(curves: list[Curve]) -> list[float]:
    """Return the least perplexity of each curve."""
    return [min(p for _, p in c) for c in curves]


def rows(name: str, curves: Curves) -> Iterator[Row]:
    batches = [route for route in curves if route.startswith("Batch")]
    lowest = min(batches, key=lambda route: np.median(ends(curves[route])))
    for goal_of in (lowest, MINE):
        goals = [NEAR * p for p in ends(curves[goal_of])]
        times = {route: median_time(curves[route], goals) for route in curves}
        fastest = min(batches, key=times.__getitem__)
        for other, wanted in ((fastest, 1.0), (DEFAULT, None)):
            mine, theirs = (t if np.isfinite(t) else None for t in (times[MINE], times[other]))
            what = f"{name}, time to the perplexity at which {goal_of} ends"
            note = f"{np.median(goals):,.0f}; ends: " + ", ".join(
                f"{np.median(ends(curves[route])):,.0f} ({route})" for route in (MINE, other)
            )
            yield Row(what, mine, theirs, other, "s", wanted, note)


def measure(quick: bool) -> Iterator[Row]:
    for name, most in (("sotu", 1.0),) if quick else (("sotu", 6.0), ("twentynews", 15.0)):
        train, held = load(name, 0.02 if quick else 1.0)
        topics = 5 if quick else 20
        for how in ROUTES.values():  # compiles the loops
            curve(Network(network(train[:50], topics)), held[:10], how, 0, 0.5)
        net = Network(network(train, topics))
        curves: Curves = {route: [] for route in ROUTES}
        for seed in range(1 if quick else 3):
            for route, how in ROUTES.items():  # in turn: other load affects all of them
                curves[route].append(curve(net, held, how, seed, most))
        yield from rows(name, curves)


if __name__ == "__main__":
    main(measure, __doc__)
