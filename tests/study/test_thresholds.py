"""The search finds the largest first step that converges, wherever it is, in few runs."""

from __future__ import annotations

import numpy as np
import pytest

from svmp.study import thresholds
from svmp.study.runs import Result, Spec
from svmp.study.thresholds import SMALLEST, search

START, FULL = -100.0, -10.0


class Scripted:
    """A bench that makes specs, and nothing else."""

    def spec(self, method, which, **options):
        return Spec(method, accesses=1.0, **options)


def ended(spec: Spec, converges: bool, lost: bool = True) -> Result:
    bound = FULL if converges else -50.0
    status = "diverged" if lost and not converges else "budget"
    trace = {"bound": np.array([START, bound]), "accesses": np.array([0.0, 1.0])}
    return Result(spec, status, bound, 1, 1, 0.0, trace)


def carried_out(plan, run):
    """Answer all that a plan asks; return what it returns, and how much it asked."""
    spec, runs = next(plan), 0
    try:
        while True:
            runs += 1
            spec = plan.send(run(spec))
    except StopIteration as over:
        return over.value, runs


@pytest.mark.parametrize("lost", [True, False])
@pytest.mark.parametrize("power", range(SMALLEST + 2))
def test_the_largest_first_step_that_converges_is_found(power, lost):
    full = ended(Spec("full"), True)
    plan = search(Scripted(), full, "children", "a", 1)
    found, runs = carried_out(plan, lambda spec: ended(spec, -np.log2(spec.rho1) >= power, lost))
    assert found["rho1"] == (2.0**-power if power <= SMALLEST else None)
    assert runs == len(found["tried"]) <= 5
    assert found["paper"] == 1 / 512


def test_the_papers_values():
    assert thresholds.papers("children", "b", 1) == 1 / 64
    assert thresholds.papers("children", "b", 2) is None
    assert [thresholds.papers("batch", o, 700) for o in "ab"] == [1, 1 / 32]
