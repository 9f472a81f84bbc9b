"""Passes over all elements against the formulas of the families."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from svmp.families import Gamma, MvNormal, Normal
from svmp.kernels.machine.elements import (
    BLOCK,
    move_normals,
    moved_kl,
    normal_bound,
    normal_change,
    normal_entropy,
)
from tests.divergence import kl
from tests.examples import natural_of

SIZES = st.sampled_from([0, 1, 7, BLOCK - 1, BLOCK, 2 * BLOCK + 5])


@given(SIZES, st.integers(0, 2**16))
def test_moved_kl_is_the_symmetrised_kl_divergence(size, seed):
    rng = np.random.default_rng(seed)
    for family in (Normal(), Gamma(), MvNormal(2)):
        new, old = (natural_of(family, rng, size) for _ in range(2))
        moments, last, last_moments = family.moments(new), old.copy(), family.moments(old)
        moved = moved_kl(new, moments, last, last_moments)
        expected = kl(family, new, old).sum() + kl(family, old, new).sum()
        np.testing.assert_allclose(moved, expected, rtol=1e-9, atol=1e-9)
        assert np.array_equal(last, new)
        assert np.array_equal(last_moments, moments)


@given(SIZES, st.integers(0, 2**16))
def test_the_bound_of_a_prior_is_minus_kl(size, seed):
    """With a known mean and precision E[log p] - E[log q] is -KL(q || p)."""
    rng, family = np.random.default_rng(seed), Normal()
    q = natural_of(family, rng, size)
    mu, tau = rng.normal(size=size), rng.gamma(3.0, size=size)
    given = np.stack([mu, mu**2], axis=-1), np.stack([tau, np.log(tau)], axis=-1)
    found = normal_bound(q, family.moments(q), *given)
    expected = -kl(family, q, family.natural(mu, tau)).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@given(SIZES, st.integers(0, 2**16))
def test_the_entropy_of_normals_is_scipys(size, seed):
    q = natural_of(Normal(), np.random.default_rng(seed), size)
    sd = np.sqrt(-0.5 / q[:, 1])
    np.testing.assert_allclose(normal_entropy(q), stats.norm(0, sd).entropy().sum(), rtol=1e-9)


@given(SIZES, st.integers(0, 2**16))
def test_the_change_of_means_is_in_units_of_precisions(size, seed):
    rng, family = np.random.default_rng(seed), Normal()
    mu, old, tau = rng.normal(size=size), rng.normal(size=(size, 1)), rng.gamma(3.0, size=size)
    q = family.natural(mu, tau)
    found = normal_change(q, family.moments(q), old)
    np.testing.assert_allclose(found, (tau * (mu - old[:, 0]) ** 2).sum(), rtol=1e-9)


@given(SIZES, st.integers(0, 2**16), st.floats(-1, 1))
def test_normals_move_beyond_their_means_at_the_same_precision(size, seed, beyond):
    rng, family = np.random.default_rng(seed), Normal()
    mu, old, tau = rng.normal(size=size), rng.normal(size=(size, 1)), rng.gamma(3.0, size=size)
    q = family.natural(mu, tau)
    moments = family.moments(q)
    move_normals(q, moments, old, beyond)
    expected = family.natural(mu + beyond * (mu - old[:, 0]), tau)
    np.testing.assert_allclose(q, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moments, family.moments(expected), rtol=1e-9, atol=1e-9)
