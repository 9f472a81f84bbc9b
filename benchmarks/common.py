"""Shared by the benchmarks: machine facts, interleaved timing, peers in their own environments.

A benchmark is a script with a function `measure(quick)` that yields rows; `main(measure)` runs it,
prints the rows and writes them to results/<script>.json, or .quick/<script>.json with --quick.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np

import svmp

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "shared" / "data"
RESULTS, QUICK = HERE / "results", HERE / ".quick"
THREADS = len(os.sched_getaffinity(0))
LADDER = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
Curve = list[tuple[float, float]]
"""Pairs of seconds and the error at that time."""


@dataclass(frozen=True)
class Row:
    """One measurement: svmp against another program.

    Attributes
    ----------
    what
        What was measured.
    svmp, other
        Both figures, in `unit`; `other` is None if there is nothing to compare with.
    against
        Name of the other program.
    wanted
        Largest acceptable ratio svmp / other.
    note
        Remark for the reader, or why there is no figure.
    """

    what: str
    svmp: float | None = None
    other: float | None = None
    against: str = ""
    unit: str = "s"
    wanted: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.svmp is None or not self.other else self.svmp / self.other


def in_turn(functions: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Call each function once a round, in turn; return the least seconds that each reported.

    So other load on the machine affects all of them alike, and the minimum is the least affected.
    """
    least = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for name, function in functions.items():
            least[name] = min(least[name], function())
    return least


def seconds(function: Callable[[], Any], repeat: int = 1) -> float:
    """Return the least time of some calls."""
    least = float("inf")
    for _ in range(repeat):
        began = time.perf_counter()
        function()
        least = min(least, time.perf_counter() - began)
    return least


class Clock:
    """A step policy that wraps another one and records when each iteration begins."""

    def __init__(self, steps: svmp.inference.steps.Steps) -> None:
        self.steps = steps
        self.began: dict[int, float] = {}

    def __call__(self, context: svmp.StepContext) -> Any:
        self.began.setdefault(context.iteration, time.perf_counter())
        return self.steps(context)

    @property
    def least(self) -> float:
        """Seconds of the quickest iteration."""
        return float(np.diff(list(self.began.values())).min())


def iteration_seconds(
    model: svmp.Model,
    method: svmp.inference.methods.Method,
    steps: svmp.inference.steps.Steps,
    iterations: int = 4,
    bound: bool = False,
    **options: Any,
) -> float:
    """Return the seconds of svmp's quickest iteration, with or without its bound."""
    clock = Clock(steps)
    svmp.fit(
        model,
        method,
        steps=clock,
        tol=0,
        bound_every=1 if bound else 10**9,
        progress=False,
        **{"max_sweeps": iterations, **options},
    )
    return clock.least


def ladder(
    run: Callable[[int], svmp.Fit], error: Callable[[svmp.Fit], float], enough: float, goal: float
) -> Curve:
    """Return the (seconds, error) curve of one run, until it reaches the goal or the time limit.

    The run is stopped after each number of sweeps in `LADDER` and resumed. Seconds are those of its
    own clock plus the set-up, as if it had run to that point without a stop.
    """
    curve: Curve = []
    began = time.perf_counter()
    fit = run(LADDER[0])
    setup = time.perf_counter() - began - fit.trace["seconds"][-1]
    for sweeps in LADDER:
        fit = fit if sweeps == LADDER[0] else run(sweeps)
        curve.append((setup + float(fit.trace["seconds"][-1]), error(fit)))
        if curve[-1][1] <= goal or curve[-1][0] > enough or fit.status == "converged":
            break
    return curve


def first_at(curve: Curve, goal: float) -> float | None:
    """Return the seconds at which a curve reaches the goal; None if it does not."""
    return next((seconds for seconds, error in curve if error <= goal), None)


class Unavailable(Exception):
    """A peer could not be installed or run; the message says why."""


def environment(peer: str) -> Path:
    """Return the Python of a peer's environment; make it from requirements/<peer>.txt if needed."""
    requirements = HERE / "requirements" / f"{peer}.txt"
    folder = HERE / ".envs" / peer
    python, stamp = folder / "bin" / "python", folder / "requirements.sha256"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"Installing {peer} in {folder.relative_to(HERE.parent)} ...", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    install = [python, "-m", "pip", "install", "-q", "-r", requirements]
    for command in ([sys.executable, "-m", "venv", folder], install):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Unavailable(f"could not be installed: {last_line(done.stderr)}")
    stamp.write_text(wanted)
    return python


def ask(peer: str, request: Mapping[str, Any], script: str | None = None) -> dict[str, Any]:
    """Run peers/<script>.py in the peer's environment; return its answer.

    The time limit is `request["most"]` seconds, by default an hour.
    """
    path = HERE / "peers" / f"{script or peer}.py"
    threads = {
        f"{kind}_NUM_THREADS": str(request.get("threads", THREADS)) for kind in ("OMP", "MKL")
    }
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        most = request.get("most", 3600)
        try:
            done = subprocess.run(
                [environment(peer), path, answer],
                input=json.dumps(dict(request)),
                env={**os.environ, **threads, "PYTHONPATH": ""},
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=most,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"stopped after {most} s") from None
        if done.returncode:
            raise Unavailable(f"did not run: {last_line(done.stderr) or done.returncode}")
        return json.loads(answer.read_text())


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else ""


def machine() -> dict[str, Any]:
    """Return facts about the machine and the software."""
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        cpu = names[0].split(":")[1].strip() if names else cpu
    gcc = shutil.which("gcc")
    version = gcc and subprocess.run([gcc, "--version"], capture_output=True, text=True).stdout
    return {
        "cpu": cpu,
        "cores": THREADS,
        "memory_GB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "gcc": version.splitlines()[0].split()[-1] if version else None,
        "svmp": svmp.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def main(measure: Callable[[bool], Iterable[Row]], doc: str | None) -> None:
    """Run a benchmark as a script; results are written after each row."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to check that it runs")
    quick = parser.parse_args().quick
    folder = QUICK if quick else RESULTS
    folder.mkdir(exist_ok=True)
    path = folder / f"{Path(sys.argv[0]).stem}.json"
    result: dict[str, Any] = {
        "title": (doc or "").splitlines()[0],
        "machine": machine(),
        "rows": [],
    }
    for row in measure(quick):
        print(describe(row), flush=True)
        result["rows"].append({**asdict(row), "ratio": row.ratio})
        path.write_text(json.dumps(result, indent=1) + "\n")


def describe(row: Row) -> str:
    """Return a row as text."""
    ratio = "" if row.ratio is None else f"  ratio {row.ratio:.3g}"
    wanted = "" if row.wanted is None else f" (wanted: at most {row.wanted:.3g})"
    names = (("svmp", row.svmp), (row.against, row.other))
    figures = [f"{name} {x:.4g} {row.unit}" for name, x in names if x is not None]
    return f"{row.what}: {', '.join(figures) or row.against}{ratio}{wanted} {row.note}".rstrip()
