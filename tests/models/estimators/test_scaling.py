"""Standard units and orthogonal columns: what they are, and what they leave out."""

from __future__ import annotations

import numpy as np
import pytest

from svmp.models.estimators.scaling import Basis, Standard, coefficients_in_units

RNG = np.random.default_rng(5)
X = RNG.normal(size=(50, 4))


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1.0, 1e6, 1e200])
def test_columns_have_mean_0_and_sd_1(scale: float) -> None:
    rows = (X + 1000) * scale
    standard = Standard.of(rows)
    np.testing.assert_allclose(standard.apply(rows).mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(standard.apply(rows).std(axis=0), 1, rtol=1e-9)
    np.testing.assert_allclose(standard.scale, X.std(axis=0) * scale, rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 + 0.1, -1e-200])
def test_a_constant_column_keeps_its_scale(value: float) -> None:
    standard = Standard.of(np.full((7, 1), value))
    assert standard.scale == 1
    np.testing.assert_allclose(standard.apply(np.full((7, 1), value)), 0, atol=1e-6)


def test_coefficients_of_standard_columns_have_the_same_predictions() -> None:
    standard, w = Standard.of(3 * X + 5), RNG.normal(size=5)
    raw = coefficients_in_units(standard, True) @ w
    np.testing.assert_allclose(
        raw[0] + (3 * X + 5) @ raw[1:], w[0] + standard.apply(3 * X + 5) @ w[1:]
    )


def test_a_basis_is_orthogonal_and_spans_the_columns() -> None:
    design = np.column_stack([np.ones(50), 1e6 + X[:, 0], 1e-9 * X[:, 1] * X[:, 0]])
    basis = Basis.of(design)
    Z = design @ basis.inverse
    np.testing.assert_allclose(Z.T @ Z / 50, np.eye(3), atol=1e-8)
    np.testing.assert_array_equal(basis.inverse, np.triu(basis.inverse))
    assert (basis.inverse.diagonal() > 0).all()


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_columns_that_others_explain_are_left_out(scale: float) -> None:
    extra = X[:, 0] * 2 - 3 * X[:, 1] + 1
    design = np.column_stack([np.ones(50), X[:, :2], scale * extra, X[:, 2], np.zeros(50)])
    basis = Basis.of(design)
    np.testing.assert_array_equal(basis.kept, [0, 1, 2, 4])
    assert (basis.inverse[[3, 5]] == 0).all()
