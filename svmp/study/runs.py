"""A run of the study: what is asked of `svmp.fit`, and what came of it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import svmp
from svmp.families.family import Array
from svmp.inference.methods import Method as Algorithm
from svmp.inference.methods import Option
from svmp.inference.steps import Steps
from svmp.network.grid import Ints
from svmp.study.convergence import Ending, ending

Method = Literal["full", "children", "share", "batch", "default"]
Policy = Literal["unit", "robbins-monro", "hold", "nodewise", "grow"]
DENSITY = 1.1
"""Ratio of the iterations at which the bound is computed for a figure with a log axis."""
PACE = 0.25
"""Seconds after which it is told again how far a run is."""
COLUMNS = ("iteration", "accesses", "seconds", "bound", "step_max")


@dataclass(frozen=True)
class Spec:
    """A run as it is asked for.

    Attributes
    ----------
    method, size, option
        The algorithm, its C or C_global (for "share": one of so many children), and (a) or (b).
    policy, kappa, rho1
        The steps.
    accesses
        The budget.
    """

    method: Method
    size: int = 0
    option: Option = "a"
    policy: Policy = "robbins-monro"
    kappa: float = 0.6
    rho1: float = 1.0
    accesses: float = 0.0
    seed: int = 0

    @property
    def label(self) -> str:
        """What it is called on a terminal."""
        if self.method == "full":
            return "full VB"
        if self.method == "default":
            return "growing sample" if self.policy == "unit" else "growing C"
        sizes = {"children": "C = ", "share": "C = N/", "batch": "C_global = "}
        steps = {"robbins-monro": f"from {fraction(self.rho1)}", "hold": "unit steps held"}
        return f"({self.option}) {sizes[self.method]}{self.size}, " + steps.get(
            self.policy, self.policy
        )

    def key(self, data: str, factors: int) -> str:
        """Return a file name that this run on these data has alone."""
        text = json.dumps([asdict(self), data, factors], sort_keys=True)
        tail = hashlib.sha256(text.encode()).hexdigest()[:12]
        return f"{self.method}-{self.option}-{self.size}-{self.policy}-{tail}"

    def cost(self, elements: int) -> float:
        """Guess how long it takes, in seconds of some machine; progress is measured in it."""
        reading = self.accesses * 6e-9
        if self.method == "batch":
            return reading + self.accesses / (10 * self.size) * (1e-3 + 2e-8 * elements)
        return reading * (1 if self.method in ("full", "default") else 8)


@dataclass(frozen=True)
class Result:
    """What came of a run.

    `trace` has what figures need of `fit.trace`, where the bound is exact; its seconds, and those
    of the run, are without the time that bounds take.
    """

    spec: Spec
    status: str
    bound: float
    iterations: int
    accesses: int
    seconds: float
    trace: dict[str, NDArray[Any]] = field(repr=False)
    where: str = ""

    @property
    def start(self) -> float:
        """The bound of the start, where it was computed: everywhere but in full VB."""
        return float(self.trace["bound"][0])

    def seconds_at(self, accesses: Any) -> Array:
        """Return how long the run took for some numbers of accesses."""
        return np.interp(accesses, self.trace["accesses"], self.trace["seconds"])

    def bound_at(self, accesses: float, start: float | None = None) -> float:
        """Return the bound after so many accesses, between two that are known, or the start's."""
        x, y = self.trace["accesses"], self.trace["bound"]
        if start is not None:
            x, y = np.append(0.0, x), np.append(start, y)
        return float(np.interp(accesses, x, y))

    def ending(self, full: Result, start: float | None = None) -> Ending:
        """Say how it ended, beside full VB from the same start."""
        start = self.start if start is None else start
        reached, lowest = full.bound_at(self.accesses, start), float(self.trace["bound"].min())
        return ending(self.status, self.bound, start, reached, lowest)


def arrange(spec: Spec) -> tuple[Algorithm | None, Steps | None]:
    """Return the algorithm and the step policy."""
    method: Algorithm | None = None
    match spec.method:
        case "full":
            method = svmp.FullVB()
        case "children":
            method = svmp.Children(spec.size, option=spec.option)
        case "share":

            def part(children: Ints) -> Ints:
                return np.maximum(-(-children // spec.size), np.minimum(children, 1))

            method = svmp.Children(part, option=spec.option)
        case "batch":
            method = svmp.Batch(spec.size, option=spec.option)
    steps: Steps | None = None
    match spec.policy:
        case "robbins-monro":
            steps = svmp.RobbinsMonro(kappa=spec.kappa, rho1=spec.rho1)
        case "hold":
            steps = svmp.HoldThenDecay(kappa=spec.kappa)
        case "nodewise":
            steps = svmp.Nodewise(kappa=spec.kappa)
        case "grow":
            steps = svmp.Grow()
    return method, None if spec.method == "full" else steps


def spread(iteration: int) -> bool:
    """Say whether an iteration is one of those that lie evenly on a logarithmic axis.

    >>> [t for t in range(1, 40) if spread(t)][-6:]
    [24, 26, 29, 31, 35, 38]
    """
    if iteration < 2:
        return True
    before, now = np.log([iteration - 1, iteration]) // np.log(DENSITY)
    return bool(now > before)


class Clock:
    """Decides when the bound is computed, and notes when that begins: its time is not the run's."""

    def __init__(self, every: bool) -> None:
        self.every = every
        self.asked: dict[int, float] = {}

    def __call__(self, iteration: int) -> bool:
        due = self.every or spread(iteration)
        if due:
            self.asked[iteration] = time.perf_counter()
        return due

    def net(self, began: float, iterations: Ints, seconds: Array) -> Array:
        """Take the time of bounds off the seconds that a trace has, which are those after each."""
        begun = [self.asked.get(int(t), np.nan) - began for t in iterations]
        spent = seconds - np.array(begun)
        spent[~np.isfinite(spent)] = 0.0
        spent[iterations == 0] = np.median(spent[spent > 0]) if np.any(spent > 0) else 0.0
        return np.maximum.accumulate(np.maximum(seconds - np.cumsum(spent), 1e-6))


def execute(
    model: svmp.Model, start: Any, spec: Spec, tell: Callable[[float], None] | None = None
) -> Result:
    """Run it, and tell now and then which part of it is done."""
    method, steps = arrange(spec)
    clock = Clock(every=spec.method == "full")
    told = time.monotonic()

    def watch(row: dict[str, float]) -> None:
        nonlocal told
        if tell is not None and time.monotonic() - told >= PACE:
            told = time.monotonic()
            tell(min(row["accesses"] / spec.accesses, 1.0))

    fit = svmp.fit(
        model, method, steps=steps, seed=spec.seed, init=start, tol=0, max_sweeps=None,
        max_accesses=spec.accesses, bound_every=clock, progress=False, threads=1,
        watch=watch,
    )  # fmt: skip
    began = time.perf_counter() - fit.seconds
    exact = fit.trace["bound_se"] == 0
    trace = {c: fit.trace[c][exact] for c in COLUMNS}
    trace["seconds"] = clock.net(began, trace["iteration"], trace["seconds"])
    spent = (fit.iterations, fit.accesses, float(trace["seconds"][-1]))
    why = "" if fit.diagnosis is None else fit.diagnosis.event
    return Result(spec, fit.status, fit.bound, *spent, trace, why)


def fraction(rho: float) -> str:
    """Write a power of two as the paper does.

    >>> fraction(1 / 512), fraction(1.0)
    ('1/512', '1')
    """
    return "1" if rho == 1 else f"1/{round(1 / rho)}"
