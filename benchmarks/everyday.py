"""Ordinary networks of 300 to 100,000 rows against BayesPy: processor seconds a sweep of full VB.

Both use one thread, and processor seconds are little affected by other load on the machine. Where a
few sweeps lead every start to the same optimum, both must have the same bound. A network that
BayesPy cannot express has svmp's figure alone.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import Clock, Row, Unavailable, ask, in_turn, main
from everyday_networks import NETWORKS, Network
from more_networks import MORE

import svmp

SWEEPS = 6
"""Sweeps of BayesPy, of which the fastest counts."""
ITERATIONS = 20
"""Sweeps of svmp, of which the fastest counts: they are short compared with disturbances. A fit
whose first sweep leads to the optimum ends after two or three, so that several fits are made."""
AGREE = 1e-4
DENSE = ("regression_ard", "regression_known_noise", "regression_by_group")
"""Networks that should take at most half of BayesPy's time."""


class ProcessorClock(Clock):
    """A step policy that records the processor time at which each iteration begins."""

    def __call__(self, context: svmp.StepContext) -> Any:
        self.began.setdefault(context.iteration, time.process_time())
        return self.steps(context)


def sweep_seconds(model: svmp.Model) -> float:
    """Return the processor seconds of svmp's quickest sweep."""
    limits = {"tol": 0, "max_sweeps": ITERATIONS, "bound_every": 10**9}
    least, sweeps = float("inf"), 0
    while sweeps < ITERATIONS:
        clock = ProcessorClock(svmp.Constant(1.0))
        svmp.fit(model, svmp.FullVB(), steps=clock, threads=1, progress=False, **limits)
        least, sweeps = min(least, clock.least), sweeps + len(clock.began)
    return least


def compare(network: Network, rows: int, folder: Path, script: str) -> Row:
    name, what = network.draw.__name__, f"{network.what}, {rows:,} rows"
    data, model = network.draw(np.random.default_rng(0), rows)
    path = folder / f"{name}.npz"
    np.savez(path, **data)
    fit = svmp.fit(model, svmp.FullVB(), max_sweeps=SWEEPS, tol=0, progress=False)

    def theirs() -> float:
        request = {"data": str(path), "network": name, "sweeps": SWEEPS, "threads": 1}
        found = ask("bayespy", request, script)
        apart = abs(fit.bound / found["bound"] - 1)
        assert apart < AGREE or not network.settles, f"{what}: the bounds are {apart:.1e} apart"
        return found["seconds"]

    if network.missing:
        return Row(what, sweep_seconds(model), note=network.missing)
    try:
        least = in_turn({"svmp": lambda: sweep_seconds(model), "BayesPy": theirs}, rounds=2)
    except Unavailable as reason:
        return Row(what, sweep_seconds(model), against="BayesPy", note=str(reason))
    wanted = 1 / 2 if name in DENSE else 1
    return Row(what, least["svmp"], least["BayesPy"], "BayesPy", wanted=wanted)


def measure(quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        for networks, script in ((NETWORKS, "bayespy_everyday"), (MORE, "bayespy_more")):
            for network in networks:
                rows = network.rows // (10 if quick else 1)
                yield compare(network, rows, Path(folder), script)


if __name__ == "__main__":
    main(measure, __doc__)
