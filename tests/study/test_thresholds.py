"""The search finds the largest first step that converges, wherever it is, in few runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from svmp.datasets import netflix_shaped
from svmp.study import thresholds
from svmp.study.netflix import beginning, matrix_factorization
from svmp.study.runs import Result, Spec, execute, fraction
from svmp.study.thresholds import SMALLEST, search

START, FULL = -100.0, -10.0


class Scripted:
    """A runner that only makes specs."""

    def spec(self, method, which, **options):
        return Spec(method, accesses=1.0, **options)


def ended(spec: Spec, bound: float, lowest: float = START, status: str = "budget") -> Result:
    trace = {"bound": np.array([START, lowest, bound]), "accesses": np.array([0.0, 0.5, 1.0])}
    return Result(spec, status, bound, 1, 1, 0.0, trace)


def slow(spec: Spec) -> Result:
    """The smaller the steps, the less is gained."""
    return ended(spec, START + 40.0 * spec.rho1)


def lost(spec: Spec) -> Result:
    return ended(spec, -50.0, status="diverged")


def fallen(spec: Spec) -> Result:
    return ended(spec, -50.0, lowest=-500.0)


def noisy(spec: Spec) -> Result:
    """Steps a little too large: the bound never falls, and smaller steps gain more."""
    return ended(spec, START + 40.0 * (1 - spec.rho1))


def there(spec: Spec) -> Result:
    return ended(spec, FULL)


def found_among(runs, full=None, method="children", size=1) -> tuple[dict, int]:
    """Search where a first step of 2^-p gives `runs[p]`; count the runs."""
    plan = search(Scripted(), full or there(Spec("full")), method, "a", size)
    spec, asked = next(plan), 0
    try:
        while True:
            asked += 1
            spec = plan.send(runs[round(-np.log2(spec.rho1))](spec))
    except StopIteration as over:
        return over.value, asked


@pytest.mark.parametrize("too_large", [lost, fallen])
def test_the_largest_first_step_that_converges_is_found(too_large):
    """Wherever the window is, and however narrow, between too large and too slow."""
    for first in range(SMALLEST + 2):
        for last in range(first, SMALLEST + 2):
            runs = [too_large] * first + [there] * (last - first + 1) + [slow] * (SMALLEST - last)
            cell, asked = found_among(runs)
            assert cell["rho1"] == (2.0**-first if first <= SMALLEST else None)
            assert asked == len(cell["tried"]) <= 6
            assert cell["paper"] == 1 / 512
            assert "1/512" in cell["tried"]


@pytest.mark.parametrize("first", range(SMALLEST + 1))
def test_it_is_reported_if_no_first_step_converges(first):
    cell, asked = found_among([lost] * first + [slow] * (SMALLEST + 1 - first))
    assert cell["rho1"] is None
    assert asked <= 7
    large = f"{fraction(2.0 ** (1 - first))} is too large, " if first else ""
    assert thresholds.found(cell) == f"none: {large}{fraction(2.0**-first)} too slow"


@pytest.mark.parametrize("noise", [1, 2, 3])
@pytest.mark.parametrize("first", range(4, SMALLEST + 1))
def test_noisy_runs_are_distinguished_from_slow_runs(first, noise):
    runs = [lost] * (first - noise) + [noisy] * noise + [there] * (SMALLEST + 1 - first)
    assert found_among(runs)[0]["rho1"] == 2.0**-first


def test_slow_runs_of_few_ratings_are_distinguished_from_failures():
    """Of all first steps on two thousand ratings, the largest that converges is named."""
    ratings = netflix_shaped(0.002)
    model, begin = matrix_factorization(ratings, 2), beginning(ratings, 2)
    budget = 1.5 * 2 * 2 * len(ratings)

    def made(spec: Spec) -> Result:
        return execute(model, begin, replace(spec, accesses=budget))

    full = made(Spec("full", policy="unit"))
    for method, size in (("children", 5), ("batch", 100)):
        every = [made(Spec(method, size, "a", rho1=2.0**-p)) for p in range(SMALLEST + 1)]
        cell, _ = found_among([lambda _, run=run: run for run in every], full, method, size)
        ends = [run.ending(full) for run in every]
        good = [2.0**-p for p, end in enumerate(ends) if end == "converged"]
        assert cell["rho1"] == max(good, default=None), ends
        assert ends[-1] == "slow"


def test_the_papers_values():
    assert thresholds.papers("children", "b", 1) == 1 / 64
    assert thresholds.papers("children", "b", 2) is None
    assert [thresholds.papers("batch", o, 700) for o in "ab"] == [1, 1 / 32]
