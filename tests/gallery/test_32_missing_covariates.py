"""Missing covariates: q of the missing entries by hand, and what it repairs."""

from __future__ import annotations

import numpy as np
import pytest

import svmp


def test_missing_covariates_are_at_their_fixed_point(script):
    x, gap, y, *_ = script.data(count=60)
    s, t = 1.2, 0.5
    fit = svmp.fit(script.regression(x, gap, y, (s, t)), svmp.FullVB(), tol=1e-14)
    b, square = (
        fit.mean("b", corrected=False),
        fit.mean("b", corrected=False) ** 2 + fit.var("b", corrected=False),
    )
    mean = (s * fit.mean("m", corrected=False) + t * b * (y - fit.mean("a", corrected=False))) / (
        s + t * square
    )
    np.testing.assert_allclose(fit.mean("x", corrected=False), np.where(gap, mean, x), atol=1e-4)
    np.testing.assert_allclose(
        fit.var("x", corrected=False), np.where(gap, 1 / (s + t * square), 0.0), rtol=1e-6
    )
    assert fit.posteriors["m"].mu == pytest.approx(
        s * fit.mean("x", corrected=False).sum() / (0.01 + s * len(x)), abs=1e-4
    )


def test_the_slope_is_not_biased(script):
    x, gap, y, *_ = script.data()
    fit = svmp.fit(script.regression(x, gap, y), svmp.FullVB())
    complete = np.polyfit(x[~gap], y[~gap], 1)[0]
    assert abs(fit.mean("b") - script.SLOPE) < 0.15 < abs(complete - script.SLOPE)


def test_labels_name_the_components(script):
    *_, label, unlabelled, value = script.data()
    fit = svmp.fit(script.classes(label, unlabelled, value), svmp.FullVB())
    np.testing.assert_allclose(fit.mean("mu"), [-2, 0, 2], atol=0.3)
    assert np.array_equal(fit.mean("z")[~unlabelled], np.eye(3)[label[~unlabelled]])
