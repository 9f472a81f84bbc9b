"""When fits stop: the default beside tol=1e-4 and 1e-6, and how far each is from a long run.

The last column is of a run three times as long as that with tol=1e-4, whatever would stop it.

    python benchmarks/stopping.py --data real --most 100000 --documents 1500 --only football
    python benchmarks/stopping.py --data everyday --seed 1

Seconds are processor time of one thread. Distances are root mean squares in sds of the long run: of
rows' means, and the largest of the parameters that are identified; sds are relative.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass

import numpy as np
from stopping_networks import everyday, real

import svmp
from svmp.inference.execute import execute
from svmp.inference.running.problem import OneTable
from svmp.inference.running.run import Run
from svmp.inference.running.stopping import Status
from svmp.inference.state.visible import Seen, Visible
from svmp.network.network import Network

LONG = 1e-13
"""Tolerance of the long run."""
LONGER = 3
"""How many times as many sweeps as with tol=1e-4 the run of the last column has."""
HEADS = ("network", "sweeps: 1e-4", "1e-6", "default", "seconds: 1e-4", "1e-6", "default")


@dataclass(frozen=True)
class Ended:
    """A run that has ended: its sweeps, seconds, bound, and what can be seen of its q."""

    sweeps: int
    seconds: float
    bound: float
    seen: Seen
    status: str


def run(model: svmp.Model, tol: float | None, seed: int, sweeps: int, seconds: float) -> Ended:
    network, began = Network(model), time.process_time()

    def patience(run: Run) -> Status | None:
        return "stopped" if time.process_time() - began > seconds else None

    found = execute(
        OneTable(network), seed=seed, tol=tol, max_sweeps=sweeps, threads=1, progress=False,
        observers=(patience,),
    )  # fmt: skip
    took, state = time.process_time() - began, found.run.state
    seen = Visible(network).read(state.q)
    return Ended(state.iteration, took, state.measured.bound, seen, found.status)


def distances(model: svmp.Model, ended: Ended, limit: Ended) -> tuple[float, float, float]:
    """Return the distance of rows, that of the farthest parameter, and that of sds."""
    visible = Visible(Network(model))
    rows = parameters = sds = 0.0
    for name, seen in ended.seen.items():
        if name in visible.traded:
            continue
        other = limit.seen[name]
        unit = np.maximum(seen[1], other[1])
        shift = np.sqrt(np.mean((seen[0] - other[0]) ** 2 / np.where(unit > 0, unit, 1)))
        both = (seen[1] > 0) & (other[1] > 0)
        ratio = np.log(seen[1][both] / other[1][both]) / 2
        if name in visible.network.hidden:
            parameters = max(parameters, float(shift))
        else:
            rows = max(rows, float(shift))
        if name not in visible.shares and len(ratio):
            sds = max(sds, float(np.sqrt(np.mean(ratio**2))))
    return rows, parameters, sds


def main() -> None:
    ask = argparse.ArgumentParser()
    ask.add_argument("--data", choices=["real", "everyday"], default="real")
    ask.add_argument("--most", type=int, default=100_000)
    ask.add_argument("--documents", type=int, default=1500)
    ask.add_argument("--seed", type=int, default=0)
    ask.add_argument("--only", default="")
    ask.add_argument("--sweeps", type=int, default=5000)
    ask.add_argument("--seconds", type=float, default=60)
    given = ask.parse_args()
    warnings.simplefilter("ignore")
    networks = real(given.most, given.documents) if given.data == "real" else everyday()
    shown = " | ".join((*HEADS, "rows, parameters, sds, lost nats: 1e-4", "default", "3 x 1e-4"))
    print(f"| {shown} |\n|---" + "|--:" * 9 + "|")
    for name, build in networks.items():
        if given.only not in name:
            continue
        model, limits = build(given.seed), (given.sweeps, given.seconds)
        run(model, 1e-4, given.seed, 2, 9)  # compiles
        found = [run(model, tol, given.seed, *limits) for tol in (1e-4, 1e-6, None, LONG)]
        *_, last = found
        longer = run(model, 0, given.seed, LONGER * found[0].sweeps, given.seconds)
        cells = [
            name,
            *(str(f.sweeps) for f in found[:3]),
            *(f"{f.seconds:.2f}" for f in found[:3]),
        ]
        for ended in (found[0], found[2], longer):
            far = ", ".join(f"{d:.3f}" for d in distances(model, ended, last))
            cells.append(f"{far}, {last.bound - ended.bound:.2g}")
        if found[2].status != "converged":
            cells[3] += " (not yet)"
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
