"""Conjugate gradients on crossed systems, against dense inverses and exact determinants."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from svmp.inference.gaussian.conjugate_gradients import Reduced, signs


def crossed(
    seed: int, users: int, items: int, rows: int, slopes: bool = False
) -> tuple[sparse.csr_array, np.ndarray]:
    """Return a precision matrix of users, items and two covariates, and the unknowns of users."""
    rng = np.random.default_rng(seed)
    width = 2 if slopes else 1
    keys = rng.integers(0, users, rows), rng.integers(0, items, rows)
    size, row = width * users + items + 2, np.arange(rows)
    entries = [
        (row, width * keys[0], np.ones(rows)),
        (row, width * users + keys[1], np.ones(rows)),
        (row, np.full(rows, size - 2), np.ones(rows)),
        (row, np.full(rows, size - 1), rng.normal(size=rows)),
    ]
    if slopes:
        entries.append((row, 2 * keys[0] + 1, rng.normal(size=rows)))
    line, column, value = (np.concatenate(part) for part in zip(*entries, strict=True))
    x = sparse.csr_array((value, (line, column)), shape=(rows, size))
    prior = np.r_[np.full(width * users, 2.0), np.full(items, 3.0), 1e-2, 1e-2]
    weight = rng.gamma(3, 1, rows)
    found = x.T @ (weight[:, None] * x.toarray()) + np.diag(prior)
    if slopes:
        root = np.array([[1.0, 0.4], [0.4, 1.0]])
        found[: 2 * users, : 2 * users] += np.kron(np.eye(users), root)
    return sparse.csr_array(found), np.arange(width * users).reshape(users, width)


@pytest.mark.parametrize("slopes", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_solutions_match_a_dense_inverse(seed: int, slopes: bool) -> None:
    precision, users = crossed(seed, 60, 40, 600, slopes)
    system, truth = Reduced.of(precision, users), np.linalg.inv(precision.toarray())
    b = np.random.default_rng(seed).normal(size=(len(truth), 4))
    assert system.solve(b) == pytest.approx(truth @ b, rel=1e-7, abs=1e-9)
    assert system.solve(b[:, 0], b[:, 1]) == pytest.approx(truth @ b[:, 0], rel=1e-7, abs=1e-9)
    unit = np.eye(len(truth))[:, -2:]
    assert system.solve(unit) == pytest.approx(truth[:, -2:], rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("slopes", [False, True])
def test_a_basis_in_place_of_random_signs_is_exact(slopes: bool) -> None:
    precision, users = crossed(0, 30, 20, 300, slopes)
    system, dense = Reduced.of(precision, users), precision.toarray()
    weights = np.zeros((2, len(dense)))
    weights[0, : users.size], weights[1, users.size :] = 2.0, 1.0
    found = system.traces(weights, np.eye(len(dense)))
    diagonal = np.diag(np.linalg.inv(dense))
    assert [one.value for one in found] == pytest.approx(list(weights @ diagonal), rel=1e-8)
    exact = system.log_determinant(np.eye(len(system.stay)))
    assert exact.value == pytest.approx(np.linalg.slogdet(dense)[1], rel=1e-8)


def test_random_signs_are_within_their_errors() -> None:
    """Of 40 estimates few are further from the truth than three of their standard errors."""
    far = []
    for seed in range(20):
        precision, users = crossed(seed, 300, 200, 4000)
        system, dense = Reduced.of(precision, users), precision.toarray()
        weights = np.where(np.arange(len(dense)) < users.size, 1.0, 0.0)[None]
        truth = weights[0] @ np.diag(np.linalg.inv(dense)), np.linalg.slogdet(dense)[1]
        found = system.traces(weights)[0], system.log_determinant()
        far += [abs(one.value - t) / one.error for one, t in zip(found, truth, strict=True)]
        assert found[0].error < 0.1 * truth[0]
    assert np.mean(np.array(far) > 3) < 0.15  # t with 7 degrees of freedom: .02
    assert np.array_equal(signs(5), signs(5))


def test_what_cannot_be_solved_is_refused() -> None:
    precision, users = crossed(0, 10, 5, 50)
    with pytest.raises(np.linalg.LinAlgError):
        Reduced.of(-precision, users)
    with pytest.raises(ValueError, match="meet in rows"):
        Reduced.of(precision, np.arange(10, 15)[:, None] * 0 + np.arange(8, 13)[:, None])
    indefinite = precision.toarray()
    indefinite[-1, -2] = indefinite[-2, -1] = 1e4
    with pytest.raises(np.linalg.LinAlgError):
        Reduced.of(sparse.csr_array(indefinite), users).solve(np.ones(len(indefinite)))
