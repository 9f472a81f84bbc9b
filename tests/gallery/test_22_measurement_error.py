"""Measurement error: the moment estimator that corrects for attenuation, and the hidden x."""

from __future__ import annotations

import numpy as np
import pytest


def test_slope_agrees_with_the_corrected_one(script):
    """cov(w, y) / (var(w) - var(error)) is consistent for the slope; cov / var(w) is not."""
    w, y, x = script.data()
    fit = script.fitted(w, y, tol=1e-9)
    (var_w, cov), _ = np.cov(w, y)
    naive, corrected = cov / var_w, cov / (var_w - script.ERROR**2)
    assert fit.mean("b") == pytest.approx(corrected, rel=0.03)
    assert naive < 0.7 * corrected
    tau, spread, device = fit.mean("tau"), fit.mean("spread"), 1 / script.ERROR**2
    square = fit.mean("b") ** 2 + fit.var("b")
    precision = spread + device + tau * square
    linear = spread * fit.mean("centre") + device * w
    linear += tau * fit.mean("b") * (y - fit.mean("a"))
    np.testing.assert_allclose(fit["x"].tau, precision, rtol=1e-3)
    np.testing.assert_allclose(fit.mean("x"), linear / precision, rtol=1e-2, atol=1e-2)
    assert np.std(fit.mean("x") - x) < 0.5 * np.std(w - x)
