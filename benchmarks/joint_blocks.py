"""Time of joint blocks beside lme4, on grouped data: the same mixed model, one thread each.

Times are processor seconds of `svmp.fit(model, joint="auto")`, the best of three after one that
compiles, and of `lmer(..., REML=FALSE)`. lme4 (Debian: r-base-core and r-cran-lme4) is left out
where R does not have it. svmp's precisions have vague Gamma priors. The notes have the standard
deviations of fixed effects and of groups in both.
"""

from __future__ import annotations

import csv
import gzip
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, Row, Unavailable, last_line, main

import svmp

REPEATS = 3
Table = dict[str, np.ndarray]


def lecturers(quick: bool) -> Table:
    """73,421 ratings of 1,128 lecturers by 2,972 students, in 14 departments."""
    with gzip.open(DATA / "grouped" / "InstEval.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))[:: 10 if quick else 1]
    found = {n: np.unique([r[n] for r in rows], return_inverse=True)[1] for n in ("s", "d", "dept")}
    return found | {n: np.array([float(r[n]) for r in rows]) for n in ("y", "service")}


def declare_lecturers(t: Table) -> svmp.Model:
    with svmp.Model(coords={n: int(t[n].max()) + 1 for n in ("s", "d", "dept")}) as model:
        a = svmp.Normal("intercept", mu=0, tau=1e-4)
        b = svmp.Normal("service", mu=0, tau=1e-4)
        mean = a + b * t["service"]
        for name in ("s", "d", "dept"):
            tau = svmp.Gamma(f"tau_{name}", alpha=1e-3, beta=1e-3)
            mean = mean + svmp.Normal(name, mu=0, tau=tau, dims=name)[t[name]]
        svmp.Normal("y", mu=mean, tau=noise(), observed=t["y"])
    return model


def noise() -> Any:
    return svmp.Gamma("tau_y", alpha=1e-3, beta=1e-3)


def nested(quick: bool) -> Table:
    """A million rows of 100,000 groups in 1,000 regions."""
    rows, groups, regions = (20_000, 2_000, 100) if quick else (1_000_000, 100_000, 1_000)
    rng = np.random.default_rng(0)
    g, region = rng.integers(0, groups, rows), rng.integers(0, regions, groups)
    x, u = rng.normal(size=rows), rng.normal(0, 0.5, regions)[region] + rng.normal(0, 0.7, groups)
    y = 3 + 0.5 * x + u[g] + rng.normal(size=rows)
    return {"g": g, "region": region[g], "x": x, "y": y, "above": region}


def declare_nested(t: Table) -> svmp.Model:
    with svmp.Model(coords={"g": len(t["above"]), "region": int(t["above"].max()) + 1}) as model:
        a = svmp.Normal("intercept", mu=0, tau=1e-4)
        b = svmp.Normal("x", mu=0, tau=1e-4)
        top, tau = (svmp.Gamma(f"tau_{n}", alpha=1e-3, beta=1e-3) for n in ("region", "g"))
        w = svmp.Normal("region", mu=0, tau=top, dims="region")
        u = svmp.Normal("g", mu=w[t["above"]], tau=tau, dims="g")
        svmp.Normal("y", mu=a + b * t["x"] + u[t["g"]], tau=noise(), observed=t["y"])
    return model


def crossed(quick: bool) -> Table:
    """100,000 rows of 2,000 users and 2,000 items."""
    rows, size = (5_000, 200) if quick else (100_000, 2_000)
    rng = np.random.default_rng(0)
    u, i = rng.integers(0, size, rows), rng.integers(0, size, rows)
    y = 3 + rng.normal(0, 0.5, size)[u] + rng.normal(0, 0.7, size)[i] + rng.normal(size=rows)
    return {"u": u, "i": i, "y": y}


def declare_crossed(t: Table) -> svmp.Model:
    with svmp.Model(coords={n: int(t[n].max()) + 1 for n in "ui"}) as model:
        mean = svmp.Normal("intercept", mu=0, tau=1e-4)
        for name in "ui":
            tau = svmp.Gamma(f"tau_{name}", alpha=1e-3, beta=1e-3)
            mean = mean + svmp.Normal(name, mu=0, tau=tau, dims=name)[t[name]]
        svmp.Normal("y", mu=mean, tau=noise(), observed=t["y"])
    return model


CASES: dict[str, tuple[Callable[[bool], Table], Callable[[Table], svmp.Model], str, list[str]]] = {
    "InstEval": (
        lecturers,
        declare_lecturers,
        "y ~ service + (1|s) + (1|d) + (1|dept)",
        ["service", "s", "d", "dept"],
    ),
    "nested groups": (nested, declare_nested, "y ~ x + (1|region) + (1|g)", ["x", "region", "g"]),
    "crossed effects": (crossed, declare_crossed, "y ~ 1 + (1|u) + (1|i)", ["u", "i"]),
}
SCRIPT = """
library(lme4)
d <- read.csv("{data}")
for (n in setdiff(names(d), c("y", "x", "service"))) d[[n]] <- factor(d[[n]])
t <- system.time(m <- lmer({formula}, d, REML = FALSE))
v <- as.data.frame(VarCorr(m))
values <- c(t[["user.self"]] + t[["sys.self"]], sqrt(diag(as.matrix(vcov(m)))), v$sdcor)
names <- c("seconds", rownames(summary(m)$coefficients), paste0("sd_", v$grp))
cat(paste0("{{", paste0('"', names, '":', values, collapse = ","), "}}"))
"""


def lme4(table: Table, formula: str) -> dict[str, float]:
    """Return the seconds of lmer, sds of fixed effects, and those of groups."""
    program = shutil.which("Rscript")
    if program is None:
        raise Unavailable("R is not installed")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.csv"
        names = [name for name, column in table.items() if len(column) == len(table["y"])]
        columns = [table[name] for name in names]
        np.savetxt(data, np.c_[*columns], delimiter=",", header=",".join(names), comments="")
        script = SCRIPT.format(data=data, formula=formula)
        env = {"PATH": str(Path(program).parent), "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            [program, "-e", script], capture_output=True, text=True, env=env, timeout=3600
        )
    if done.returncode:
        raise Unavailable(f"lme4 did not run: {last_line(done.stderr)}")
    return json.loads(done.stdout[done.stdout.index("{") :])


def measure(quick: bool) -> Iterator[Row]:
    for name, (generate, declare, formula, terms) in CASES.items():
        table = generate(quick)
        model, times = declare(table), list[float]()
        for _ in range(2 if quick else REPEATS + 1):
            began = time.process_time()
            fit = svmp.fit(model, joint="auto", threads=1, progress=False)
            times.append(time.process_time() - began)
        fixed = ["intercept", *(t for t in terms if f"tau_{t}" not in fit.posteriors)]
        ours = [float(fit.std(t)) for t in fixed]
        ours += [float(fit.mean(f"tau_{t}")) ** -0.5 for t in terms if t not in fixed]
        note = "sds " + ", ".join(f"{x:.4g}" for x in ours)
        other = None
        try:
            theirs = lme4(table, formula)
            other = theirs["seconds"]
            sds = ["(Intercept)", *fixed[1:], *(f"sd_{t}" for t in terms if t not in fixed)]
            note += "; lme4 " + ", ".join(f"{theirs[key]:.4g}" for key in sds)
        except Unavailable as reason:
            note += f"; {reason}"
        what = f"{name}, {len(table['y']):,} rows, {fit.iterations} sweeps"
        yield Row(what, min(times[1:]), other, "lme4", "CPU s", 1 / 5, note)


if __name__ == "__main__":
    main(measure, __doc__)
