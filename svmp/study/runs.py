"""A run of the study: the arguments of `svmp.fit`, and its result."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import svmp
from svmp.families.family import Array
from svmp.inference.methods import Method, Option
from svmp.inference.steps import Policy
from svmp.network.grid import Ints
from svmp.study.choices import defaults, methods_by_name, policies_by_name, takes_option
from svmp.study.convergence import Ending, ending

DENSITY = 1.1
"""Ratio of successive iterations at which the bound is computed, for a log axis."""
PACE = 0.25
"""Seconds between two reports of progress."""
COLUMNS = ("iteration", "accesses", "seconds", "bound", "step_max")


@dataclass(frozen=True)
class Spec:
    """Description of a run.

    Attributes
    ----------
    method
        Name of a method, as in `methods_by_name`; "default" for svmp's default; "share" for
        Algorithm 1 with one in `size` children.
    size, option
        C or C_global, and the option (a) or (b).
    policy, kappa, rho1
        Name of a step policy, as in `policies_by_name`, or "unit" for none; its forgetting rate and
        first step.
    accesses
        The budget.
    """

    method: str
    size: int = 0
    option: Option = "a"
    policy: str = "robbins-monro"
    kappa: float = 0.6
    rho1: float = 1.0
    accesses: float = 0.0
    seed: int = 0

    @property
    def label(self) -> str:
        """Short description, for the terminal."""
        if self.method == "full":
            return "full VB"
        if self.method == "default":
            return "growing sample" if self.policy == "unit" else "growing C"
        sizes = {"children": "C = ", "share": "C = N/", "batch": "C_global = "}
        steps = {
            "robbins-monro": f"from {fraction(self.rho1)}",
            "hold-then-decay": "unit steps held",
        }
        size = f"{sizes[self.method]}{self.size}" if self.method in sizes else self.method
        return f"({self.option}) {size}, {steps.get(self.policy, self.policy)}"

    def key(self, data: str, factors: int) -> str:
        """Return the file name of this run on these data, which no other run has."""
        text = json.dumps([asdict(self), data, factors], sort_keys=True)
        tail = hashlib.sha256(text.encode()).hexdigest()[:12]
        return f"{self.method}-{self.option}-{self.size}-{self.policy}-{tail}"

    def cost(self, elements: int) -> float:
        """Estimate the seconds of the run, as the unit of progress."""
        reading = self.accesses * 6e-9
        if self.method == "batch":
            return reading + self.accesses / (10 * self.size) * (1e-3 + 2e-8 * elements)
        return reading * (1 if self.method in ("full", "default") else 8)


@dataclass(frozen=True)
class Result:
    """Result of a run.

    `trace` has the columns of `fit.trace` that figures need, where the bound is exact. Seconds do
    not include the time for computing bounds.
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
        """Bound at the start, which is computed in all runs except full VB."""
        return float(self.trace["bound"][0])

    def seconds_at(self, accesses: Any) -> Array:
        """Return the seconds after some numbers of accesses."""
        return np.interp(accesses, self.trace["accesses"], self.trace["seconds"])

    def bound_at(self, accesses: float, start: float | None = None) -> float:
        """Return the bound after some accesses, by interpolation."""
        x, y = self.trace["accesses"], self.trace["bound"]
        if start is not None:
            x, y = np.append(0.0, x), np.append(start, y)
        return float(np.interp(accesses, x, y))

    def ending(self, full: Result, start: float | None = None) -> Ending:
        """Return how the run ended, compared with full VB from the same start."""
        start = self.start if start is None else start
        reached, lowest = full.bound_at(self.accesses, start), float(self.trace["bound"].min())
        return ending(self.status, self.bound, start, reached, lowest)


def arrange(spec: Spec) -> tuple[Method | None, Policy | None]:
    """Return the method and the step policy of a run; None for svmp's default."""
    policy = policies_by_name().get(spec.policy)
    steps = None
    if policy is not None:
        given = {"kappa": spec.kappa, "rho1": spec.rho1}
        chosen = {name: given.get(name, value) for name, value in defaults(policy).items()}
        steps = policy(**chosen)
    if spec.method == "default":
        return None, steps
    if spec.method == "share":
        return svmp.Children(partial(one_in, spec.size), option=spec.option), steps
    method = methods_by_name()[spec.method]
    arguments: dict[str, Any] = {
        name: spec.size if setting.whole else defaults(method)[name]
        for name, setting in method.settings.items()
    }
    if takes_option(method):
        arguments["option"] = spec.option
    return method(**arguments), None if method.unit_steps else steps


def one_in(share: int, children: Ints) -> Ints:
    """Return the number of children to read where one in `share` is read, at least one.

    >>> one_in(2, np.array([0, 1, 4, 5])).tolist()
    [0, 1, 2, 3]
    """
    return np.maximum(-(-children // share), np.minimum(children, 1))


def spread(iteration: int) -> bool:
    """Return whether an iteration is one of those that are evenly spread on a log axis.

    >>> [t for t in range(1, 40) if spread(t)][-6:]
    [24, 26, 29, 31, 35, 38]
    """
    if iteration < 2:
        return True
    before, now = np.log([iteration - 1, iteration]) // np.log(DENSITY)
    return bool(now > before)


class Clock:
    """Decides when the bound is computed, and notes the time, which is not counted."""

    def __init__(self, every: bool) -> None:
        self.every = every
        self.asked: dict[int, float] = {}

    def __call__(self, iteration: int) -> bool:
        due = self.every or spread(iteration)
        if due:
            self.asked[iteration] = time.perf_counter()
        return due

    def net(self, began: float, iterations: Ints, seconds: Array) -> Array:
        """Subtract the time for computing bounds from the seconds of a trace."""
        begun = [self.asked.get(int(t), np.nan) - began for t in iterations]
        spent = seconds - np.array(begun)
        spent[~np.isfinite(spent)] = 0.0
        spent[iterations == 0] = np.median(spent[spent > 0]) if np.any(spent > 0) else 0.0
        return np.maximum.accumulate(np.maximum(seconds - np.cumsum(spent), 1e-6))


def execute(
    model: svmp.Model, start: Any, spec: Spec, report: Callable[[float], None] | None = None
) -> Result:
    """Make a run, and report the share that is done from time to time."""
    method, steps = arrange(spec)
    clock = Clock(every=spec.method == "full")
    reported = time.monotonic()

    def watch(row: dict[str, float]) -> None:
        nonlocal reported
        if report is not None and time.monotonic() - reported >= PACE:
            reported = time.monotonic()
            report(min(row["accesses"] / spec.accesses, 1.0))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", svmp.DivergenceWarning)  # the report says it
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
    """Format a power of two as the paper does.

    >>> fraction(1 / 512), fraction(1.0)
    ('1/512', '1')
    """
    return "1" if rho == 1 else f"1/{round(1 / rho)}"
