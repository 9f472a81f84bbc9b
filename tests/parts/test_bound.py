"""The bound after the last visit of a sweep, from its sums, and from a visit of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.inference.updaters.joint import JointSolver
from svmp.inference.updaters.solver import (
    LineSolver,
    MultilinearSolver,
    PlainSolver,
    VectorSolver,
)
from svmp.parts import tasks
from tests.parts.networks import CASES

OPTIMISED_FOR_A_BOUND = ["mixture", "topics"]
"""Networks whose choices are not stored by compiled loops, but optimised for every bound."""


@pytest.fixture
def bounds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets longer with every task that visits parts for the bound alone."""
    found, computed = list[int](), tasks.bound_parts

    def counted(*arguments: Any) -> Any:
        found.append(1)
        return computed(*arguments)

    monkeypatch.setattr(tasks, "bound_parts", counted)
    return found


@pytest.mark.parametrize("groups", [1, None], ids=["merged", "groups"])
@pytest.mark.parametrize("joint", [True, False], ids=["joint", "in turn"])
@pytest.mark.parametrize("name", CASES)
def test_bound_from_sums_is_that_of_a_visit(
    name: str, joint: bool, groups: int | None, bounds: list[int]
) -> None:
    case = CASES[name]()
    method = svmp.Growing(1.0, order=case.order) if joint else svmp.FullVB(order=case.order)
    options = {"init": case.init, "tol": 0, "max_sweeps": 5}
    parts = case.divided(groups=groups or len(case.parts))
    found = svmp.fit(parts, method, bound_every=1, **options)
    assert bool(bounds) == (name in OPTIMISED_FOR_A_BOUND)
    bounds.clear()
    visited = svmp.fit(parts, method, bound_every=lambda _: True, **options)
    assert bounds  # a function is asked after the sweep, when sums are gone
    np.testing.assert_allclose(found.trace["bound"], visited.trace["bound"], rtol=1e-14)
    for variable, term in visited.bound_terms.items():
        assert found.bound_terms[variable] == pytest.approx(term, abs=1e-14 * abs(visited.bound))


@pytest.mark.parametrize("every", [2, 3, 100])
def test_bounds_now_and_then_are_those_of_every_sweep(every: int) -> None:
    case = CASES["factorization with biases"]()
    parts = case.divided(groups=len(case.parts))
    runs = [
        svmp.fit(parts, svmp.Growing(1.0), bound_every=often, max_sweeps=7, tol=0, init=case.init)
        for often in (lambda _: True, every)
    ]
    each, some = (dict(zip(r.trace["iteration"], r.trace["bound"], strict=True)) for r in runs)
    assert [some[t] for t in some] == pytest.approx([each[t] for t in some], rel=1e-14)


def log_density(a: Any, square: Any, w: Any, y: Any, mean: Any, second: Any) -> float:
    """Return E[log p(y | a . x)] up to a constant, of rows with E[a], E[a a'] and E[x], E[x x']."""
    return float(sum(w * (y * (a @ mean) - 0.5 * np.einsum("rjk,jk->r", square, second))))


@pytest.mark.parametrize("kind", ["plain", "multilinear", "joint", "vector"])
def test_gains_are_differences_of_expected_log_densities(kind: str) -> None:
    rng = np.random.default_rng(0)
    keys, rows, width = 3, 11, 1 if kind == "plain" else 4
    a = rng.standard_normal((keys, rows, width))
    y, w = rng.standard_normal((keys, rows)), rng.gamma(2, 1, (keys, rows))
    square = np.einsum("krj,kri->krji", a, a) + np.eye(width) * rng.gamma(1, 1, (keys, rows, 1, 1))
    linear = np.einsum("kr,kr,krj->kj", w, y, a)
    gram = np.einsum("kr,krji->kji", w, square)
    diagonal = gram.diagonal(axis1=1, axis2=2)
    row, column = np.tril_indices(width)
    solver: LineSolver
    if kind == "plain":
        solver = PlainSolver.of("x", 2)
        sums = np.concatenate([linear, -0.5 * diagonal], axis=1)
    elif kind == "multilinear":
        solver = MultilinearSolver.of("x", width, True)
        outer = np.einsum("kr,krj,kri->kji", w, a, a)
        sums = np.concatenate([outer[:, row, column], linear, diagonal], axis=1)
    elif kind == "joint":
        solver, apart = JointSolver.of("x", width, 1), row != column
        sums = np.concatenate([gram[:, row[apart], column[apart]], linear, diagonal], axis=1)
    else:
        solver, upper = VectorSolver.of("x", width), np.triu_indices(width, 1)
        sums = np.concatenate([linear, diagonal, gram[:, *upper]], axis=1)
    moments, expected = [], np.zeros(keys)
    for sign in (-1, 1):
        mean, spread = rng.standard_normal((keys, width)), rng.gamma(1, 1, (keys, width))
        second = np.einsum("kj,ki->kji", mean, mean) + np.einsum(
            "kj,ji->kji", spread, np.eye(width)
        )
        for key in range(keys):
            part = a[key], square[key], w[key], y[key], mean[key], second[key]
            expected[key] += sign * log_density(*part)
        if kind == "vector":
            moments.append(np.concatenate([mean, second.reshape(keys, -1)], axis=1))
        else:
            squares = second.diagonal(axis1=1, axis2=2)
            moments.append(np.stack([mean, squares], axis=-1).reshape(-1, 2))
    np.testing.assert_allclose(solver.gains(sums, *moments), expected, rtol=1e-12)
