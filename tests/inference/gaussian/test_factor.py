"""Factors of random systems against dense inverses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from svmp.inference.gaussian import analysis, factor
from svmp.inference.gaussian.analysis import Analysis
from svmp.inference.gaussian.factor import Factor
from svmp.inference.gaussian.system import System
from svmp.kernels.machine.threads import use_threads
from tests.inference.gaussian.systems import KINDS, crossed, made, nested


@pytest.fixture(params=[True, False], ids=["sparse", "as chosen"])
def eliminated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        monkeypatch.setattr(analysis, "SMALL", 0)
        monkeypatch.setattr(analysis, "FEW", 0)
        monkeypatch.setattr(factor, "AT_ONCE", 3000)  # several parts


def close(computed: Any, truth: Any, tolerance: float) -> None:
    """Compare with the truth, relative to the largest number of it."""
    size = np.max(np.abs(truth), initial=0.0)
    np.testing.assert_allclose(computed, truth, rtol=tolerance, atol=tolerance * size)


@pytest.mark.usefixtures("eliminated")
@pytest.mark.parametrize("kind", KINDS)
def test_factors_match_dense_inverses(kind: Callable[..., Any]) -> None:
    for seed in range(25):
        system, weights, precision, _ = made(kind, seed)
        values = system.values(weights)
        close(system.matrix(values), precision, 1e-13)
        found, truth = system.factor(values), np.linalg.inv(precision)
        size = len(truth)
        every, b = np.arange(size), np.random.default_rng(seed).normal(size=(size, 3))
        assert found.log_det == pytest.approx(np.linalg.slogdet(precision)[1], rel=1e-10, abs=1e-9)
        close(found.solve(b), truth @ b, 1e-10)
        close(found.solve(b[:, 0]), truth @ b[:, 0], 1e-10)
        close(found.variances, np.diag(truth), 1e-8)
        close(found.dense(every), truth, 1e-8)
        close(found.precision.toarray(), precision, 1e-13)
        lines = sparse.csr_array(np.where(np.abs(b.T) > 1, b.T, 0))
        x = lines.toarray()
        close(found.quadratic(lines), np.einsum("ri,ij,rj->r", x, truth, x), 1e-9)
        if kind is crossed and size > 20:
            assert analysis.SMALL or found.analysis.sparse > 0


@pytest.mark.usefixtures("eliminated")
@pytest.mark.parametrize("kind", KINDS)
def test_selected_inverse_and_sums_over_rows(kind: Callable[..., Any]) -> None:
    """x cov x^T of each row from pairs of different elements, in the pattern of the factor."""
    for seed in range(25):
        system, weights, precision, tables = made(kind, seed)
        found, truth = system.factor(system.values(weights)), np.linalg.inv(precision)
        known, order = system.analysis, system.analysis.order
        column = np.repeat(np.arange(known.sparse), np.diff(known.lower.starts))
        close(found.selected[0], truth[order[known.lower.row], order[column]], 1e-8)
        rng = np.random.default_rng(seed)
        alone = np.flatnonzero(rng.random(len(truth)) < 0.2 * (seed % 2))
        scale = rng.random(len(truth)) + 0.5
        for factor_, cov in ((found, truth), (found.scaled(scale), truth * scale * scale[:, None])):
            between = cov.copy()
            between[system.tables[0].element[:, None] == system.tables[0].element] = 0
            between[alone] = between[:, alone] = 0
            for x, rows in zip(tables, system.tables, strict=True):
                lines = x.reshape(len(rows), rows.size, len(truth))
                exact = (lines @ between @ lines.swapaxes(1, 2)).reshape(len(rows), -1)
                close(rows.sums(factor_, alone), exact, 1e-8)


@pytest.mark.usefixtures("eliminated")
@pytest.mark.parametrize("kind", KINDS)
def test_scaled_factors_and_draws(kind: Callable[..., Any]) -> None:
    system, weights, precision, _ = made(kind, 1)
    size = len(precision)
    scale = np.random.default_rng(0).random(size) + 0.5
    found = system.factor(system.values(weights)).scaled(scale)
    truth = np.linalg.inv(precision) * scale * scale[:, None]
    close(found.dense(np.arange(size)), truth, 1e-9)
    close(found.variances, np.diag(truth), 1e-9)
    close(found.solve(scale), truth @ scale, 1e-9)
    close(found.precision.toarray(), precision / scale / scale[:, None], 1e-12)
    close(found.inflation, np.diag(truth) * np.diag(precision) / scale**2, 1e-9)
    assert found.log_det == pytest.approx(-np.linalg.slogdet(truth)[1])
    draws = found.draw(np.random.default_rng(0), 40_000)
    sd = np.sqrt(np.diag(truth))
    np.testing.assert_allclose(np.cov((draws / sd).T), truth / sd / sd[:, None], atol=0.03)


@pytest.mark.usefixtures("eliminated")
def test_covariances_of_any_pairs() -> None:
    system, weights, precision, _ = made(crossed, 3)
    found, truth = system.factor(system.values(weights)), np.linalg.inv(precision)
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, len(truth), (2, 500))
    close(found.entries(left, right), truth[left, right], 1e-9)
    places = rng.permutation(len(truth) // 3 * 3).reshape(-1, 3)
    close(found.blocks(places), truth[places[:, :, None], places[:, None, :]], 1e-9)


@pytest.mark.usefixtures("eliminated")
def test_matrices_of_other_rows_are_factorised() -> None:
    """The covariances of earlier rows, in the rows of a table that has others."""
    system, weights, precision, tables = made(crossed, 3)
    rows, element = system.tables[0], system.tables[0].element
    few = sparse.csr_array(tables[0][:1])
    variables = [np.arange(len(precision))]
    stored = system.factor(system.values(weights)).precision
    other = System.of([(few, 1)], element, variables, stored)
    found, truth = other.factor(other.entries_of(stored)), np.linalg.inv(precision)
    close(found.dense(np.arange(len(truth))), truth, 1e-9)
    x = tables[0][:1]
    none = np.zeros(0, dtype=np.int64)
    close(other.tables[0].sums(found, none), x @ (truth * (1 - np.eye(len(truth)))) @ x.T, 1e-9)
    assert len(rows) == len(tables[0])


def test_a_larger_factor_is_eliminated_whole() -> None:
    """Of two crossed factors only the smaller one stays, however similar their degrees are."""
    rng = np.random.default_rng(0)
    size, rows = 300, 6000
    keys = rng.integers(0, size, (2, rows))
    x = sparse.csr_array(np.c_[np.eye(size)[keys[0]], np.eye(size)[keys[1]]])
    reads = (x.T @ x).tocsr()
    found = Analysis.of(reads, np.arange(2 * size), np.split(np.arange(2 * size), 2))
    assert sorted(found.tail) == list(range(size, 2 * size))


def test_nested_groups_and_chains_have_no_fill() -> None:
    """A child is eliminated before its parent; a chain of n states has n - 1 entries."""
    size = 2000
    walk = sparse.diags_array([np.ones(size - 1), np.ones(size - 1)], offsets=[1, -1])
    found = Analysis.of(walk.tocsr(), np.arange(size), [np.arange(size)])
    assert len(found.tail) <= analysis.FEW
    assert len(found.lower.row) <= 2 * size
    parent = np.repeat(np.arange(200), 10)
    graph = sparse.csr_array((np.ones(2000), (np.arange(200, 2200), parent)), shape=(2200, 2200))
    variables = [np.arange(200), np.arange(200, 2200)]
    found = Analysis.of(graph + graph.T, np.arange(2200), variables)
    assert len(found.lower.row) <= 2000
    place = found.position
    assert (place[200:] < place[parent]).all()


def test_patterns_that_fill_up_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A random graph would have a dense factor: few of its unknowns are eliminated."""
    rng, size = np.random.default_rng(0), 3000
    ends = rng.integers(0, size, (2, 3 * size))
    graph = sparse.csr_array((np.ones(3 * size), (ends[0], ends[1])), shape=(size, size))
    every = [np.arange(size)]
    whole = Analysis.of(graph + graph.T, np.arange(size), every)
    monkeypatch.setattr(analysis, "WORK", 2e5)
    found = Analysis.of(graph + graph.T, np.arange(size), every)
    assert len(found.tail) > len(whole.tail)
    counts = np.diff(found.lower.starts).astype(float)
    assert 2e5 < counts @ counts < 3e5


def test_indefinite_matrices_are_refused() -> None:
    for matrix in (np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros((1, 1)), np.array([[np.nan]])):
        with pytest.raises(np.linalg.LinAlgError):
            Factor.of_matrix(matrix)


def test_indefinite_sparse_matrices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "SMALL", 0)
    monkeypatch.setattr(analysis, "FEW", 0)
    system, weights, _, _ = made(nested, 0)
    values = system.values(weights)
    on = system.analysis.matrix.row == system.analysis.column
    with pytest.raises(np.linalg.LinAlgError):
        system.factor(np.where(on, -values, values))
    found = system.factor(values)
    assert "sparse with" in str(found.analysis)


def test_no_bits_depend_on_threads() -> None:
    rng = np.random.default_rng(0)
    rows, users, items = 20_000, 700, 150
    x = sparse.csr_array(
        (
            np.ones(2 * rows),
            (
                np.repeat(np.arange(rows), 2),
                np.c_[rng.integers(0, users, rows), users + rng.integers(0, items, rows)].ravel(),
            ),
        )
    )
    size = users + items
    prior = sparse.csr_array(np.eye(size))
    variables = np.split(np.arange(size), [users])
    weights = [rng.random((rows, 1)), np.ones((size, 1))]
    found = []
    for threads in (1, 2):
        with use_threads(threads, tell=False):
            system = System.of([(x, 1), (prior, 1)], np.arange(size), variables)
            found.append(system.factor(system.values(weights)))
    assert np.array_equal(found[0].variances, found[1].variances)
    assert np.array_equal(found[0].solve(np.ones(size)), found[1].solve(np.ones(size)))
