"""Principal components against the singular value decomposition, and with missing cells."""

from __future__ import annotations

import numpy as np
import pytest

from svmp.inference.starts.principal_components import principal_components, scores


@pytest.mark.parametrize("shape", [(40, 6), (6, 40)])
def test_components_are_singular_vectors(shape: tuple[int, int]) -> None:
    table = np.random.default_rng(0).normal(size=shape) @ np.diag(np.linspace(3, 1, shape[1]))
    found = principal_components(table, 3)
    _, size, right = np.linalg.svd(table, full_matrices=False)
    np.testing.assert_allclose(found.variance, size[:3] ** 2 / len(table))
    np.testing.assert_allclose(np.abs(found.loadings.T @ right[:3].T), np.eye(3), atol=1e-9)


def test_missing_cells_of_a_table_of_low_rank_are_recovered() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 8)) + rng.normal(0, 0.01, (200, 8))
    seen = np.where(rng.random(table.shape) < 0.2, np.nan, table)
    found = principal_components(seen, 2)
    np.testing.assert_allclose(scores(seen, found) @ found.loadings.T, table, atol=0.15)


def test_empty_tables_have_components() -> None:
    found = principal_components(np.zeros((5, 3)), 2)
    assert np.isfinite(found.loadings).all()
    assert (found.variance > 0).all()
    assert found.spread > 0
