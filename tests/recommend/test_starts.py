"""Where biases start, against dense ridge regression."""

from __future__ import annotations

import numpy as np
import pytest

from svmp.ratings import Ratings
from svmp.recommend import starts
from svmp.recommend.starts import LEAST, SHRUNK, bias_start
from tests.recommend.tools import drawn


def test_biases_start_at_ridge_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "ROUNDS", 300)
    rows = drawn(0, 600)
    columns = np.zeros((len(rows), rows.users + rows.items))
    line = np.arange(len(rows))
    columns[line, rows.user] = columns[line, rows.users + rows.item] = 1
    system = columns.T @ columns + SHRUNK * np.eye(columns.shape[1])
    ridge = np.linalg.solve(system, columns.T @ rows.rating)
    found = bias_start(rows, sweeps=1)
    np.testing.assert_allclose(found["b"]["mu"], ridge[rows.users :], atol=1e-6)
    squares = np.mean((rows.rating - columns @ ridge) ** 2)
    assert found["noise"]["alpha"] == pytest.approx(1 / squares, rel=1e-6)
    spread = 1 / (found["noise"]["alpha"] * np.diag(system))
    for name, some in (("of_a", slice(rows.users)), ("of_b", slice(rows.users, None))):
        seen = columns[:, some].any(axis=0)
        second = (ridge[some] ** 2 + spread[some])[seen].mean()
        assert found[name]["alpha"] == pytest.approx(1 / second, rel=1e-6)


def test_ratings_that_do_not_differ_have_a_proper_start() -> None:
    rows = Ratings.of_keys([0, 1, 1], [0, 0, 1], [0, 0, 0], 3, 2)
    found = bias_start(rows, sweeps=1)
    assert found["noise"]["alpha"] == 1 / LEAST
    assert np.all(found["b"]["mu"] == 0)
    for name in ("of_a", "of_b"):
        assert 0 < found[name]["alpha"] < np.inf
