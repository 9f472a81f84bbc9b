"""Leading singular vectors of residuals, against a dense singular value decomposition."""

from __future__ import annotations

import numpy as np
import pytest

from svmp.ratings import Ratings
from svmp.recommend import spectral
from svmp.recommend.spectral import WIDEST, leading_directions, weights
from tests.recommend.test_residuals import posteriors


def low_rank(users: int, items: int, rank: int, noise: float) -> Ratings:
    """Return ratings of two thirds of all pairs, of a given rank and with noise."""
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((users, items)) < 2 / 3)
    u, v = rng.standard_normal((users, rank)), rng.standard_normal((items, rank))
    score = np.einsum("rk,rk->r", u[user], v[item]) + noise * rng.standard_normal(len(user))
    return Ratings.of_keys(user, item, score, users, items)


def biases_of_zero(rows: Ratings) -> dict[str, object]:
    return posteriors(np.zeros(rows.users), np.zeros(rows.items))


def test_directions_span_the_leading_singular_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectral, "POWERS", 6)
    rows = low_rank(80, 60, rank=3, noise=0.1)
    dense = np.zeros((80, 60))
    of_user, of_item = weights(rows.user, 80), weights(rows.item, 60)
    dense[rows.user, rows.item] = rows.rating * of_user[rows.user] * of_item[rows.item]
    left, _, right = np.linalg.svd(dense)
    found = leading_directions(rows, biases_of_zero(rows), 3, seed=1)
    for ours, exact in zip(found, (left[:, :3], right[:3].T), strict=True):
        unit = ours / np.linalg.norm(ours, axis=0)
        np.testing.assert_allclose(np.abs(np.sum(unit * exact, axis=0)), 1, atol=5e-3)


def test_directions_are_scaled_and_clipped() -> None:
    rows = low_rank(200, 50, rank=2, noise=1.0)
    for lines in leading_directions(rows, biases_of_zero(rows), 12, seed=0):
        assert lines.shape[1] == spectral.LEADING
        assert np.abs(lines).max() <= WIDEST
        square = np.mean(lines**2, axis=0)
        assert np.all((square > 0.5) & (square < 1 + 1e-4))


def test_there_are_no_more_directions_than_users_or_items() -> None:
    rows = Ratings.of_keys([0, 1, 2], [0, 1, 0], [1, -1, 0.5], 3, 2)
    users, items = leading_directions(rows, biases_of_zero(rows), 5, seed=0)
    assert users.shape == (3, 2)
    assert items.shape == (2, 2)


def test_residuals_of_zero_give_finite_directions() -> None:
    rows = Ratings.of_keys([0, 1, 2, 2], [0, 1, 0, 1], [0, 0, 0, 0], 3, 2)
    for lines in leading_directions(rows, biases_of_zero(rows), 2, seed=0):
        assert np.isfinite(lines).all()
