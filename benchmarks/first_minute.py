"""The first minute: imports, and first fits on a machine that has compiled nothing.

Each figure is of a fresh Python with an empty cache of compiled loops. The bytecode of svmp is
there, as after an installation by pip.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from common import Row, main

ROOT = Path(__file__).parents[1]
REPORT = """
import json, os, sys, time
def report(since=None):
    used = os.times()
    cpu = used.user + used.system + used.children_user + used.children_system
    print(json.dumps({"seconds": time.time() - since if since else None, "cpu": cpu}))
"""
README = """
import numpy as np
import svmp
rng = np.random.default_rng(1)
user, item = rng.integers(0, 100, 2000), rng.integers(0, 60, 2000)
truth = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 60))
rating = truth[user, item] + rng.normal(size=2000)
with svmp.Model(coords={{"user": 100, "item": 60, "factor": 2}}) as model:
    u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
    v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
    svmp.Normal("r", mu=svmp.dot(u[user], v[item]), tau=1, observed=rating)
svmp.fit(model{method})
"""
MILLION = """
import svmp
from svmp.datasets import netflix_shaped
from svmp.study.netflix import matrix_factorization
model = matrix_factorization(netflix_shaped({scale}), 5)
begun = time.time()
def watch(row):
    if row["iteration"] >= 1:
        report(begun)
        sys.stdout.flush()
        os._exit(0)
svmp.fit(model, progress=False, watch=watch)
"""
LIBRARIES = "import numpy, scipy.special, scipy.linalg, numba"
USED = "import svmp; svmp.fit, svmp.Model, svmp.Normal, svmp.dot"
HELP = """
from svmp.cli import main
sys.argv = ["svmp", "--help"]
try:
    main()
except SystemExit:
    pass
"""


def run(code: str, cache: str) -> tuple[float, float]:
    """Run code in a fresh Python; return the seconds until it ends, or as it says, and of CPU."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", f"{REPORT}\n{code}\nreport()"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    seconds, said = time.perf_counter() - began, json.loads(done.stdout.splitlines()[-1])
    return said["seconds"] or seconds, said["cpu"]


def least(code: str, rounds: int, cold: bool = True) -> tuple[float, float]:
    """Return the least seconds, and the least CPU seconds, of some rounds."""
    runs = []
    with tempfile.TemporaryDirectory() as kept:
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as empty:
                runs.append(run(code, empty if cold else kept))
    return min(seconds for seconds, _ in runs), min(cpu for _, cpu in runs)


def measure(quick: bool) -> Iterator[Row]:
    rounds = 1 if quick else 3
    libraries = least(LIBRARIES, 3 * rounds)
    for what, code in (("import svmp", "import svmp"), ("import svmp, and use it", USED)):
        seconds, cpu = least(f"{LIBRARIES}\n{code}", 3 * rounds)
        more, spent = seconds - libraries[0], cpu - libraries[1]
        yield Row(f"{what}, beyond NumPy, SciPy and Numba", more, 0.3, "goal", note=note(spent))
    seconds, cpu = least(HELP, 3 * rounds)
    yield Row("`svmp --help`", seconds, 1.0, "goal", note=note(cpu))
    for name, method in (("FullVB()", ", svmp.FullVB()"), ("the default", "")):
        seconds, cpu = least(README.format(method=method), rounds)
        yield Row(f"README example, {name}", seconds, 5.0, "goal", note=note(cpu))
    million = MILLION.format(scale=0.1 if quick else 1)
    seconds, cpu = least(million, rounds)
    what = "a million ratings, K = 5: from `fit` to the end of the first sweep"
    yield Row(what, seconds, 15.0, "goal", note=note(cpu))
    seconds, cpu = least(million, rounds + 1, cold=False)
    yield Row(f"{what}, loops compiled before", seconds, note=note(cpu))


def note(cpu: float) -> str:
    return f"{cpu:.2f} s of CPU"


if __name__ == "__main__":
    main(measure, __doc__)
