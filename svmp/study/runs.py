"""A run of the study: what is asked of `svmp.fit`, and what came of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import svmp
from svmp.inference.selection import Option, Selection
from svmp.inference.steps import Steps
from svmp.network.grid import Ints

Method = Literal["full", "children", "share", "batch", "default"]
Policy = Literal["unit", "robbins-monro", "hold", "nodewise", "grow"]
DENSITY = 1.1
"""Ratio of the iterations at which the bound is computed for a figure with a log axis."""
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
    """What came of a run; `trace` has what figures need of `fit.trace`, where the bound is exact."""

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

    def bound_at(self, accesses: float) -> float:
        """Return the bound after so many accesses, between two that are known."""
        return float(np.interp(accesses, self.trace["accesses"], self.trace["bound"]))


def arrange(spec: Spec) -> tuple[Selection | None, Steps | None]:
    """Return the algorithm and the step policy."""
    method: Selection | None = None
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
    [24, 26, 29, 32, 35, 38]
    """
    if iteration < 2:
        return True
    before, now = np.log([iteration - 1, iteration]) // np.log(DENSITY)
    return bool(now > before)


def execute(model: svmp.Model, start: Any, spec: Spec) -> Result:
    """Run it."""
    method, steps = arrange(spec)
    often = None if spec.method == "full" else spread
    fit = svmp.fit(
        model, method, steps=steps, seed=spec.seed, init=start, tol=0, max_sweeps=None,
        max_accesses=spec.accesses, bound_every=often, progress=False, threads=1,
    )  # fmt: skip
    exact = fit.trace["bound_se"] == 0
    trace = {c: fit.trace[c][exact] for c in COLUMNS}
    spent = (fit.iterations, fit.accesses, fit.seconds)
    why = "" if fit.diagnosis is None else str(fit.diagnosis)
    return Result(spec, fit.status, fit.bound, *spent, trace, why)


def fraction(rho: float) -> str:
    """Write a power of two as the paper does.

    >>> fraction(1 / 512), fraction(1.0)
    ('1/512', '1')
    """
    return "1" if rho == 1 else f"1/{round(1 / rho)}"
