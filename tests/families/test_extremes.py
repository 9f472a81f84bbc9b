"""Extreme parameters: vague priors, tiny and huge values, means far from zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from svmp import families
from svmp.families import quantiles
from svmp.families.family import Family
from tests.divergence import kl
from tests.examples import natural_of

from .inverses import concentrations, degrees, gamma_shape


@pytest.mark.parametrize(
    ("member", "vague"),
    [
        (families.Normal(), {"mu": 0.0, "tau": 1e-8}),
        (families.MvNormal(2), {"mu": np.zeros(2), "tau": 1e-8 * np.eye(2)}),
        (families.Gamma(), {"alpha": 1e-6, "beta": 1e-6}),
        (families.Wishart(2), {"nu": 2.0, "V": 1e6 * np.eye(2)}),
        (families.Beta(), {"alpha": 1e-6, "beta": 1e-6}),
        (families.Dirichlet(3), {"a": np.full(3, 1e-6)}),
        (families.Dirichlet(3), {"a": np.full(3, 1e8)}),
    ],
    ids=lambda value: "" if isinstance(value, dict) else repr(value),
)
def test_starts_of_extreme_priors_are_proper_and_distinct(
    member: Family, vague: dict[str, Any]
) -> None:
    prior = np.broadcast_to(member.natural(**vague), (50, member.size))
    start = member.start(prior, np.random.default_rng(6))
    assert member.in_domain(start).all()
    assert np.isfinite(member.moments(start)).all()
    if isinstance(member, families.Normal | families.MvNormal):
        assert np.abs(member.mean(start)).max() < 2  # although the prior has width 1e4
    if isinstance(member, families.Beta | families.Dirichlet):
        assert member.mean(start).std(axis=0).min() > 1e-5  # visibly different


D2 = np.eye(2)
EXTREMES: list[tuple[Family, dict[str, Any]]] = [
    *((families.Gamma(), {"alpha": a, "beta": b}) for a in (1e-8, 1e8) for b in (1e-8, 1e8)),
    *((families.Beta(), {"alpha": a, "beta": b}) for a in (1e-8, 1, 1e8) for b in (1e-8, 1e8)),
    (families.Dirichlet(3), {"a": [1e-8, 1e-8, 1e-8]}),
    (families.Dirichlet(3), {"a": [1e-8, 1, 1e8]}),
    (families.Dirichlet(3), {"a": [1e8, 1e8, 1e8]}),
    (families.Normal(), {"mu": 1e8, "tau": 1e-8}),
    (families.Normal(), {"mu": 1e8, "tau": 1e8}),
    (families.MvNormal(2), {"mu": [1e8, -1e8], "tau": np.diag([1e-8, 1e8])}),
    (families.MvNormal(2), {"mu": [0, 1], "tau": [[1, 1 - 1e-8], [1 - 1e-8, 1]]}),
    (families.Wishart(2), {"nu": 1 + 1e-8, "V": 1e-8 * D2}),
    (families.Wishart(2), {"nu": 1e8, "V": 1e8 * D2}),
    (families.Wishart(2), {"nu": 3.0, "V": np.diag([1e-8, 1e8])}),
    (families.Exponential(), {"lam": 1e-8}),
    (families.Exponential(), {"lam": 1e8}),
]
EXTREME_NATURALS: list[tuple[Family, list[float]]] = [
    (families.Bernoulli(), [700]),
    (families.Bernoulli(), [-700]),
    (families.Binomial(9), [700]),
    (families.Binomial(100_000_000), [-700]),
    (families.Binomial(100_000_000), [0.1]),
    (families.Binomial(0), [0.1]),
    (families.Categorical(3), [700, -700, 0]),
    (families.Categorical(3), [-700, -700, -700]),
    (families.Categorical(2), [700, 700]),
    (families.Multinomial(3, 9), [700, -700, 0]),
    (families.Multinomial(3, 1_000_000), [0, -1, -2]),
    (families.Multinomial(3, 0), [0, -1, -2]),
    (families.Poisson(), [700]),
    (families.Poisson(), [-700]),
    *((family, list(family.natural(**standard))) for family, standard in EXTREMES),
]


@pytest.mark.parametrize(
    ("member", "natural"), EXTREME_NATURALS, ids=[f"{f}-{n}" for f, n in EXTREME_NATURALS]
)
def test_extremes_stay_finite(member: Family, natural: list[float]) -> None:
    lam = np.array(natural, dtype=float)
    assert member.in_domain(lam)
    for method in ("moments", "log_partition", "entropy", "mean", "var"):
        assert np.isfinite(getattr(member, method)(lam)).all(), method
    assert kl(member, lam, lam) == 0


SHAPES = st.floats(-6, 6).map(lambda e: 10.0**e)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(SHAPES, min_size=2, max_size=6))
def test_moments_of_dirichlets_and_betas_of_any_size_determine_them(shapes: list[float]) -> None:
    pairs: list[tuple[Family, list[float]]] = [
        (families.Dirichlet(len(shapes)), shapes),
        (families.Beta(), shapes[:2]),
    ]
    for family, a in pairs:
        moments = family.moments(np.array(a) - 1)
        again = concentrations(moments) - 1
        assert family.in_domain(again)
        np.testing.assert_allclose(family.moments(again), moments, rtol=1e-8, atol=1e-10)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(SHAPES, SHAPES)
def test_moments_of_gammas_of_any_size_determine_them(alpha: float, beta: float) -> None:
    family = families.Gamma()
    mean, mean_log = family.moments(family.natural(alpha, beta))
    shape = gamma_shape(np.log(mean) - mean_log)
    # log(alpha) - psi(alpha), about 1 / (2 alpha), is a difference of numbers of size log(alpha).
    assert shape == pytest.approx(alpha, rel=1e-10 + 1e-14 * alpha)
    assert shape / mean == pytest.approx(beta, rel=1e-10 + 1e-14 * alpha)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(1, 30), SHAPES)
def test_moments_of_wisharts_of_any_size_determine_nu(dimension: int, excess: float) -> None:
    family = families.Wishart(dimension)
    nu = dimension - 1 + excess
    natural = family.natural(nu, np.eye(dimension) + 0.5)
    moments = family.moments(natural)
    _, log_det = np.linalg.slogdet(moments[:-1].reshape(dimension, dimension))
    again = degrees(log_det - moments[-1], dimension)
    assert again == pytest.approx(nu, rel=1e-9 + 1e-13 * nu)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seeds=st.tuples(st.integers(0, 2**32), st.integers(0, 2**32)), step=st.floats(0, 1))
def test_kl_grows_along_a_blend(seeds: tuple[int, int], step: float) -> None:
    """Each family's blend (1 - rho) lam + rho lam' is proper, and its KL from lam is at most that
    of lam'."""
    for name in families.__all__:
        family = getattr(families, name).sized(2)
        a, b = (natural_of(family, np.random.default_rng(seed), 3) for seed in seeds)
        blend = (1 - step) * a + step * b
        assert family.in_domain(blend).all()
        assert np.all(kl(family, a, blend) >= -1e-9)
        assert np.all(kl(family, a, blend) <= kl(family, a, b) * (1 + 1e-9) + 1e-9)


@pytest.mark.parametrize(
    "member", [families.Normal(), families.MvNormal(1)], ids=["Normal", "MvNormal"]
)
def test_kl_is_accurate_for_large_means(member: Family) -> None:
    """KL between two Normals one standard deviation apart is 1/2, wherever they are."""
    ones = np.ones(member.event_ndim)
    tau = np.ones((1,) * (2 * member.event_ndim)) * 2.0**20
    q, p = (
        member.natural(mu=np.full(ones.shape, mu), tau=tau) for mu in (2.0**14, 2.0**14 + 2.0**-10)
    )
    assert kl(member, q, p) == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("var", [9_999.0, 10_001.0])
def test_count_entropies_agree_where_sum_and_series_meet(var: float) -> None:
    poisson, binomial = families.Poisson(), families.Binomial(60_000)
    limit = 0.5 * np.log(2 * np.pi * np.e * var) - 1 / (12 * var)
    assert poisson.entropy(poisson.natural(var)) == pytest.approx(limit, abs=1e-8)
    p = 0.5 - np.sqrt(0.25 - var / 60_000)
    theirs = stats.binom(60_000, p).entropy()
    assert binomial.entropy(binomial.natural(p)) == pytest.approx(theirs, abs=1e-8)


@pytest.mark.parametrize("n", [3, 39_000, 41_000, 10**7])
def test_multinomial_of_two_has_the_entropy_of_a_binomial(n: int) -> None:
    two, binomial = families.Multinomial(2, n), families.Binomial(n)
    theirs = binomial.entropy(binomial.natural(0.5))
    assert two.entropy(two.natural([0.5, 0.5])) == pytest.approx(theirs, abs=1e-8)


def test_multinomial_of_many_trials_has_the_entropy_of_a_normal() -> None:
    n, p = 2**53, np.array([0.2, 0.3, 0.5])
    limit = 0.5 * np.log((2 * np.pi * np.e * n) ** 2 * p.prod())
    family = families.Multinomial(3, n)
    assert family.entropy(family.natural(p)) == pytest.approx(limit, abs=1e-9)


@pytest.mark.parametrize("rate", [1e-300, 1e-160, 1e-80, 1e80, 1e160, 1e300])
@pytest.mark.parametrize("kind", [families.Gamma, families.Exponential])
def test_sds_are_numbers_where_variances_overflow(kind: Any, rate: float) -> None:
    member = kind()
    given = {"alpha": 4.0, "beta": rate} if kind is families.Gamma else {"lam": rate}
    one = {"alpha": 4.0, "beta": 1.0} if kind is families.Gamma else {"lam": 1.0}
    natural = member.natural(**given)
    with np.errstate(all="raise"):
        sd, var = member.std(natural), member.var(natural)
    np.testing.assert_allclose(sd * rate, member.std(member.natural(**one)), rtol=1e-12)
    if 1e-150 < rate < 1e150:
        np.testing.assert_allclose(np.sqrt(var), sd, rtol=1e-12)


BIG = 10.0 ** np.arange(6, 301, 7)


def test_quantiles_of_large_betas_are_those_of_their_limits() -> None:
    p = np.array([0.05, 0.5, 0.95])
    for b in BIG[BIG > 1e9]:
        for a in (0.5, 3.0, 1e3):
            found = quantiles.beta_quantile(a, b, p)
            np.testing.assert_allclose(found * b, stats.gamma(a).ppf(p), rtol=1e-5)
            # The other entry is as far from 1, as far as numbers near 1 can say.
            other = quantiles.beta_quantile(b, a, 1 - p)
            np.testing.assert_allclose(1 - other, found, rtol=1e-9, atol=2e-16)
    for a in BIG[(BIG > 1e12) & (BIG < 1e28)]:
        z = (quantiles.beta_quantile(a, a, p) - 0.5) * np.sqrt(8 * a)
        np.testing.assert_allclose(z, stats.norm.ppf(p), atol=1e-4 + 2e-16 * np.sqrt(8 * a))


def test_entries_of_large_dirichlets_have_ordered_quantiles_and_variances() -> None:
    for first in (*BIG, 1e-6):
        for other in (1e-6, 1.0, 1e3, *BIG):
            a = np.array([first, other, other])
            member = families.Dirichlet(3)
            natural = member.natural(a)
            low, high = (member.quantile(natural, p) for p in (0.05, 0.95))
            assert np.isfinite(low).all()
            assert (low <= high).all()
            assert (high <= 1).all()
            var = member.var(natural)
            # The variance is E[p] (1 - E[p]) / (sum of a + 1), with 1 - E[p] from the others.
            total = first + 2 * other
            exact = first / total * (2 * other / total) / (total + 1)
            np.testing.assert_allclose(var[0], exact, rtol=1e-9)
