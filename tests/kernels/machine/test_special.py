"""exp, log and psi as the loops compute them, against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import psi

from svmp.kernels.machine import special

ANYWHERE = 10.0 ** np.random.default_rng(0).uniform(-3, 12, 2000)


def each(function, x):
    return np.array([function(value) for value in x])


def test_exp():
    x = np.concatenate([[0.0, -1e-300, -707.9], -ANYWHERE[ANYWHERE < 700]])
    np.testing.assert_allclose(each(special.exp, x), np.exp(x), rtol=1e-15)


@pytest.mark.parametrize("x", [-709.0, -1e6, -np.inf])
def test_exp_of_lower_numbers_is_nearly_zero(x):
    assert 0 < special.exp(x) < 1e-307


def test_log():
    x = np.concatenate([[1.0, 2.0, 0.5, 1e-300, 1e300, 1 + 1e-12], ANYWHERE])
    np.testing.assert_allclose(each(special.log, x), np.log(x), rtol=1e-15, atol=1e-16)


def test_digamma():
    x = np.concatenate([[1.0, 1e-5, 1.4616321449683622], ANYWHERE])
    np.testing.assert_allclose(each(special.digamma, x), psi(x), rtol=1e-13, atol=1e-14)


def test_exp_digamma():
    x = ANYWHERE[ANYWHERE > 0.01]
    np.testing.assert_allclose(each(special.exp_digamma, x), np.exp(psi(x)), rtol=1e-12)
