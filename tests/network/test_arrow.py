"""Covariances from sparse precision matrices, against dense inverses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from svmp.network import arrow
from svmp.network.arrow import Arrow, split_unknowns


def crossed(seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the precision of crossed effects with slopes, and the unknowns of each variable."""
    rng = np.random.default_rng(seed)
    users, items, rows = 40, 7, 300
    u, v = rng.integers(0, users, rows), rng.integers(0, items, rows)
    x, here = np.zeros((rows, 2 * users + items + 1)), np.arange(rows)
    x[here, u], x[here, users + u], x[here, 2 * users + v] = 1, rng.normal(size=rows), 1
    x[:, -1] = 1
    precision = x.T @ (rng.random(rows)[:, None] * x) + np.diag(rng.random(x.shape[1]) + 0.1)
    cuts = np.cumsum([users, users, items])
    return precision, np.split(np.arange(x.shape[1]), cuts)


@pytest.mark.parametrize(("small", "rest"), [(0, 8), (1000, 88)])
def test_covariances_match_the_dense_inverse(
    small: int, rest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "AT_ONCE", 50)  # several parts
    precision, variables = crossed(small)
    sparse_precision = sparse.csr_array(precision)
    split = split_unknowns(sparse_precision, variables, small)
    assert len(split.rest) == rest
    found, truth = Arrow.of(split, sparse_precision), np.linalg.inv(precision)
    every = np.arange(len(truth))
    assert found.dense(every) == pytest.approx(truth, abs=1e-12)
    assert found.log_det == pytest.approx(np.linalg.slogdet(precision)[1])
    assert found.solve(np.sqrt(every)) == pytest.approx(truth @ np.sqrt(every))
    pairs = every[::-1].reshape(-1, 4)
    blocks = truth[pairs[:, :, None], pairs[:, None, :]]
    assert found.blocks(pairs) == pytest.approx(blocks, abs=1e-12)
    draws = found.draw(np.random.default_rng(0), 40_000)
    assert np.cov(draws.T) == pytest.approx(truth, abs=0.04 * truth.max())


def test_groups_without_other_unknowns() -> None:
    precision = sparse.csr_array(np.kron(np.eye(3), [[2.0, 1.0], [1.0, 2.0]]))
    split = split_unknowns(precision, [np.arange(6)], small=0)
    assert split.shape == (3, 2)
    found = Arrow.of(split, precision)
    assert found.dense(np.arange(6)) == pytest.approx(np.linalg.inv(precision.toarray()))
    assert found.draw(np.random.default_rng(0), 2).shape == (2, 6)


def test_indefinite_matrices_are_refused() -> None:
    split = split_unknowns(sparse.csr_array(np.eye(2)), [np.arange(2)])
    with pytest.raises(np.linalg.LinAlgError):
        Arrow.of(split, sparse.csr_array([[1.0, 2.0], [2.0, 1.0]]))
