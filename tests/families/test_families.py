"""Properties of every exponential family, checked on all of them.

The truth is independent: sums over all values, quadrature, finite differences, SciPy, and draws
with their standard error where the values are vectors or matrices.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from svmp import factors, families
from svmp.families.family import Array, Family, dot
from tests.divergence import kl
from tests.examples import natural_of

from .inverses import from_moments

COUNT = 6
DRAWS = 50_000

SCIPY: dict[str, Callable[..., Any]] = {
    "Bernoulli": lambda p: stats.bernoulli(p),
    "Beta": lambda alpha, beta: stats.beta(alpha, beta),
    "Binomial": lambda n, p: stats.binom(n, p),
    "Categorical": lambda p: stats.rv_discrete(values=(np.arange(len(p)), p / p.sum())),
    "Dirichlet": lambda a: stats.dirichlet(a),
    "Exponential": lambda lam: stats.expon(scale=1 / lam),
    "Gamma": lambda alpha, beta: stats.gamma(alpha, scale=1 / beta),
    "Multinomial": lambda n, p: stats.multinomial(int(n), p / p.sum()),
    "MvNormal": lambda mu, tau: stats.multivariate_normal(mu, np.linalg.inv(tau)),
    "Normal": lambda mu, tau: stats.norm(mu, tau**-0.5),
    "Poisson": lambda mu: stats.poisson(mu),
    "Wishart": lambda nu, V: stats.wishart(nu, V),
}

IMPROPER: dict[str, list[list[float]]] = {
    "Beta": [[-1, 0], [0, -1], [-3, 2]],
    "Dirichlet": [[-1, 0, 0], [0, 0, -2]],
    "Exponential": [[0], [1]],
    "Gamma": [[0, 1], [1, 1], [-1, -1], [-1, -2]],
    "MvNormal": [
        [0, 0, 0, *np.diag([-1, -1, 0]).ravel()],
        [0, 0, 0, *np.diag([-1, 1, -1]).ravel()],
        [0, 0, 0, -1, -2, 0, -2, -1, 0, 0, 0, -1],
    ],
    "Normal": [[0, 0], [3, 0.5]],
    "Poisson": [[710]],
    "Wishart": [
        [*np.diag([-1, -1, -1]).ravel(), -1],
        [*np.diag([-1, 0, -1]).ravel(), 3],
        [*np.diag([-1, 2, -1]).ravel(), 3],
    ],
}


def example(family: Family) -> Array:
    return natural_of(family, np.random.default_rng(7), COUNT)


def log_density(family: Family, natural: Array, x: Array) -> Array:
    return dot(natural, family.statistics(x)) + family.log_base(x) - family.log_partition(natural)


def is_discrete(family: Family, natural: Array) -> bool:
    x = family.draw(natural, np.random.default_rng(0), 20)
    return bool(np.all(x == np.round(x)))


def grid(family: Family, natural: Array) -> tuple[Array, Array] | None:
    """Return points and weights of a sum or integral over all values; None for vectors."""
    if is_discrete(family, natural):
        if family.event_ndim == 0:
            x = np.arange(200.0)
        else:
            x = np.array(list(itertools.product(range(8), repeat=family.size)), dtype=float)
        x = x[family.in_support(x)]
        return x, np.ones(len(x))
    if family.event_ndim > 0:
        return None
    # The trapezoidal rule on the whole line, after a change of variable, is exact to rounding
    # for smooth densities. (Beyond 36, 1 - x would round to zero.)
    if family.in_support(-1.0):
        u = np.linspace(-40, 40, 8001)
        x, slope = u, np.ones_like(u)
    elif family.in_support(2.0):
        u = np.linspace(-700, 7, 70001)
        x = slope = np.exp(u)
    else:
        u = np.linspace(-700, 36, 70001)
        x = 1 / (1 + np.exp(-u))
        slope = x / (1 + np.exp(u))
    return x, slope * (u[1] - u[0])


def expect(
    family: Family, natural: Array, function: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """Return E[function(x)] and a tolerance: rounding, or five standard errors."""
    points = grid(family, natural)
    if points is not None:
        x, weights = points
        mass = weights * np.exp(log_density(family, natural, x))
        values = function(x)
        mean = np.tensordot(mass, values, axes=1)
        return mean, 1e-7 * (1 + np.tensordot(mass, np.abs(values), axes=1))
    values = function(family.draw(natural, np.random.default_rng(1), DRAWS))
    return values.mean(axis=0), 5 * values.std(axis=0) / np.sqrt(DRAWS) + 1e-12


def derivative(function: Callable[[Array], Array], at: Array) -> Array:
    """Return central differences of a function of one natural parameter, on a new first axis."""
    step = 1e-5 * np.maximum(1, np.abs(at))
    moves = np.diag(step)
    slopes = [
        (function(at + move) - function(at - move)) / (2 * h)
        for move, h in zip(moves, step, strict=True)
    ]
    return np.array(slopes)


def test_it_is_exported(family_class: type[Family]) -> None:
    assert family_class.__name__ in families.__all__
    assert getattr(families, family_class.__name__) is family_class


def test_plates_are_the_leading_axes(family: Family) -> None:
    natural, rng = example(family), np.random.default_rng(0)
    events = family.draw(natural, rng, 2).shape[2:]
    assert natural.shape == (COUNT, family.size)
    assert len(events) == family.event_ndim
    assert family.moments(natural).shape == (COUNT, family.size)
    assert family.start(natural, rng).shape == (COUNT, family.size)
    assert family.draw(natural, rng, 4).shape == (4, COUNT, *events)
    assert family.statistics(family.draw(natural, rng, 4)).shape == (4, COUNT, family.size)
    assert family.mean(natural).shape == family.var(natural).shape
    x = family.draw(natural, rng)[0]
    for numbers in (
        family.log_partition(natural),
        family.entropy(natural),
        kl(family, natural, natural),
        family.in_domain(natural),
        family.in_support(x),
        family.log_base(x),
    ):
        assert numbers.shape == (COUNT,)


def test_one_element_alone_gives_the_same_result(family: Family) -> None:
    natural = example(family)
    for i in range(COUNT):
        alone = family.at(i)
        for method in ("moments", "log_partition", "entropy", "mean", "var"):
            np.testing.assert_allclose(
                getattr(alone, method)(natural[i]), getattr(family, method)(natural)[i], rtol=1e-12
            )


def test_at_selects_elements_of_a_plate(family: Family) -> None:
    natural, elements = example(family), np.array([4, 1, 1])
    some = family.at(elements)
    np.testing.assert_array_equal(
        some.log_partition(natural[elements]), family.log_partition(natural)[elements]
    )


def test_moments_are_the_gradient_of_the_log_partition(family: Family) -> None:
    for i, natural in enumerate(example(family)):
        element = family.at(i)
        gradient = derivative(element.log_partition, natural)
        np.testing.assert_allclose(gradient, element.moments(natural), rtol=1e-6, atol=1e-7)


def test_the_hessian_of_the_log_partition_is_the_covariance(family: Family) -> None:
    for i, natural in enumerate(example(family)[:3]):
        element = family.at(i)
        moments = element.moments(natural)
        hessian = derivative(element.moments, natural)
        scale = np.abs(hessian).max()
        np.testing.assert_allclose(hessian, hessian.T, rtol=0, atol=1e-6 * scale)
        assert np.linalg.eigvalsh(hessian).min() > -1e-6 * scale

        def products(x: Array, element: Family = element, moments: Array = moments) -> Array:
            centred = element.statistics(x) - moments
            return centred[..., :, None] * centred[..., None, :]

        covariance, error = expect(element, natural, products)
        assert np.all(np.abs(covariance - hessian) <= error + 1e-6 * scale)


def test_fisher_information_is_the_derivative_of_the_moments(family: Family) -> None:
    for i, natural in enumerate(example(family)[:3]):
        element = family.at(i)
        hessian = derivative(element.moments, natural)
        scale = np.abs(hessian).max()
        vectors = np.random.default_rng(i).normal(size=(4, family.size))
        expected = vectors @ hessian
        for times in (element.fisher_times, partial(Family.fisher_times, element)):
            found = np.array([times(natural, vector) for vector in vectors])
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * scale)

        def flat_mean(natural: Array, element: Family = element) -> Array:
            return np.ravel(element.mean(natural))

        cross = derivative(flat_mean, natural).T
        found = element.cross_covariance(natural)
        np.testing.assert_allclose(found, cross, rtol=1e-5, atol=1e-6 * np.abs(cross).max())


def test_moments_determine_the_distribution(family: Family) -> None:
    """The only distribution with these moments is the one they were computed from."""
    naturals = example(family)
    for i, natural in enumerate(naturals):
        element = family.at(i)
        moments = element.moments(natural)
        again = from_moments(element, moments, start=naturals.mean(axis=0))
        assert element.in_domain(again).all()
        np.testing.assert_allclose(element.moments(again), moments, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(kl(element, again, natural), 0, atol=1e-10)


def test_standard_inverts_natural(family: Family) -> None:
    standard = family.standard(example(family))
    assert tuple(standard) == family.parameters
    again = family.standard(family.natural(**standard))
    for name, value in standard.items():
        np.testing.assert_allclose(again[name], value, rtol=1e-10, atol=1e-12)


def test_kl_is_the_expected_log_ratio(family: Family) -> None:
    natural = example(family)
    other = natural_of(family, np.random.default_rng(8), COUNT)
    assert np.all(kl(family, natural, other) > 0)
    np.testing.assert_allclose(kl(family, natural, natural), 0, atol=1e-12)
    for i in range(3):
        element = family.at(i)

        def log_ratio(x: Array, element: Family = element, i: int = i) -> Array:
            return log_density(element, natural[i], x) - log_density(element, other[i], x)

        expected, error = expect(element, natural[i], log_ratio)
        assert abs(expected - kl(element, natural[i], other[i])) <= error


def test_entropy_is_minus_the_expected_log_density(family: Family) -> None:
    for i, natural in enumerate(example(family)):
        element = family.at(i)

        def surprise(x: Array, element: Family = element, natural: Array = natural) -> Array:
            return -log_density(element, natural, x)

        entropy, error = expect(element, natural, surprise)
        assert abs(entropy - element.entropy(natural)) <= error


def test_known_moments_give_the_same_entropy(family: Family) -> None:
    natural = example(family)
    moments = family.moments(natural)
    expected = family.log_partition(natural) - dot(natural, moments)
    np.testing.assert_allclose(family.free_entropy(natural, moments), expected, rtol=1e-9)
    np.testing.assert_allclose(family.free_entropy(natural), expected, rtol=1e-9)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 20])
def test_log_partition_of_any_number_of_categories_is_that_of_scipy(size: int) -> None:
    natural = 300 * np.random.default_rng(size).normal(size=(50, size))
    natural[:, 1:2] = -np.inf  # a category without probability
    found = families.Categorical(size).log_partition(natural)
    np.testing.assert_allclose(found, logsumexp(natural, axis=-1), rtol=1e-14)


@pytest.mark.parametrize("size", [3, 20])
def test_log_partition_of_infinite_parameters_is_that_of_scipy(size: int) -> None:
    natural = np.zeros((4, size))
    natural[0] = -np.inf
    natural[1:3, 0] = np.inf
    natural[2, 1], natural[3, 0] = 1000, np.nan
    found = families.Categorical(size).log_partition(natural)
    np.testing.assert_array_equal(found, [-np.inf, np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(found, logsumexp(natural, axis=-1))


def test_the_density_integrates_to_one(family: Family) -> None:
    for i, natural in enumerate(example(family)):
        points = grid(family.at(i), natural)
        if points is None:
            pytest.skip("values of several dimensions: compared with SciPy and with draws")
        x, weights = points
        total = weights @ np.exp(log_density(family.at(i), natural, x))
        assert total == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize(
    ("member", "standard"),
    [
        (families.Gamma(), {"alpha": 0.08, "beta": 2.0}),
        (families.Gamma(), {"alpha": 1.0, "beta": 0.1}),
        (families.Beta(), {"alpha": 0.08, "beta": 1.5}),
        (families.Beta(), {"alpha": 40.0, "beta": 0.6}),
    ],
    ids=["Gamma-small-shape", "Gamma-shape-one", "Beta-near-0", "Beta-near-1"],
)
def test_the_density_integrates_to_one_near_the_boundary(
    member: Family, standard: dict[str, float]
) -> None:
    natural = member.natural(**standard)
    points = grid(member, natural)
    assert points is not None
    assert points[1] @ np.exp(log_density(member, natural, points[0])) == pytest.approx(1, abs=1e-8)


def test_log_density_and_entropy_are_those_of_scipy(family: Family) -> None:
    name = type(family).__name__
    if name not in SCIPY:
        pytest.skip(f"no distribution of SciPy is named for {name}")
    natural = example(family)
    x = family.draw(natural, np.random.default_rng(3), 5)
    ours = log_density(family, natural, x)
    for i in range(COUNT):
        theirs = SCIPY[name](**{k: v[i] for k, v in family.standard(natural).items()})
        log_p = theirs.logpdf if hasattr(theirs, "logpdf") else theirs.logpmf
        if name != "Bernoulli" and hasattr(theirs, "logpmf"):
            log_p = theirs.logpmf
        for j in range(5):
            assert ours[j, i] == pytest.approx(log_p(x[j, i]), rel=1e-9, abs=1e-9)
        assert family.entropy(natural)[i] == pytest.approx(theirs.entropy(), rel=1e-7, abs=1e-9)


def test_the_domain_excludes_improper_and_infinite_parameters(family: Family) -> None:
    natural = example(family)
    assert family.in_domain(natural).all()
    for entry, bad in itertools.product(range(family.size), (np.nan, np.inf, -np.inf)):
        broken = natural.copy()
        broken[2, entry] = bad
        assert family.in_domain(broken).tolist() == [i != 2 for i in range(COUNT)]
    for improper in IMPROPER.get(type(family).__name__, []):
        broken = natural.copy()
        broken[2] = improper
        assert family.in_domain(broken).tolist() == [i != 2 for i in range(COUNT)]


def test_the_domain_is_convex(family: Family) -> None:
    a, b = example(family), natural_of(family, np.random.default_rng(8), COUNT)
    for step in (0.01, 0.5, 0.99):
        assert family.in_domain((1 - step) * a + step * b).all()


def test_draws_have_the_moments(family: Family) -> None:
    natural = example(family)
    x = family.draw(natural, np.random.default_rng(4), DRAWS)
    assert family.in_support(x).all()
    statistics = family.statistics(x)
    error = 5 * statistics.std(axis=0) / np.sqrt(DRAWS) + 1e-9
    assert np.all(np.abs(statistics.mean(axis=0) - family.moments(natural)) <= error)

    mean, var = family.mean(natural), family.var(natural)
    if mean.shape != x.shape[1:]:  # a category's mean is that of its one-hot vector
        x = statistics
    error = 5 * x.std(axis=0) / np.sqrt(DRAWS) + 1e-9
    assert np.all(np.abs(x.mean(axis=0) - mean) <= error)
    squares = (x - mean) ** 2
    error = 5 * squares.std(axis=0) / np.sqrt(DRAWS) + 1e-9
    assert np.all(np.abs(squares.mean(axis=0) - var) <= error)


def test_nan_and_infinity_are_outside_the_support(family: Family) -> None:
    x = family.draw(example(family), np.random.default_rng(5))[0].astype(float)
    for bad in (np.nan, np.inf, -np.inf):
        broken = x.copy()
        broken[2] = bad
        assert family.in_support(broken).tolist() == [i != 2 for i in range(COUNT)]


def test_start_is_proper_and_breaks_symmetry(family: Family) -> None:
    prior = np.repeat(example(family)[:1], COUNT, axis=0)
    start = family.start(prior, np.random.default_rng(6))
    assert family.in_domain(start).all()
    assert len(np.unique(start, axis=0)) == COUNT
    again = family.start(prior, np.random.default_rng(6))
    np.testing.assert_array_equal(start, again)


def scalar_marginals(family: Family, natural: Array) -> list[Any] | None:
    """Return frozen SciPy distributions of the entries of each element; None if there are none."""
    name, standard = type(family).__name__, family.standard(natural)
    each = [{k: v[i] for k, v in standard.items()} for i in range(len(natural))]
    if name == "Dirichlet":
        return [[stats.beta(a, s["a"].sum() - a) for a in s["a"]] for s in each]
    if name == "Multinomial":
        return [[stats.binom(int(s["n"]), p) for p in s["p"]] for s in each]
    if name == "MvNormal":
        sd = [np.sqrt(np.diag(np.linalg.inv(s["tau"]))) for s in each]
        return [
            [stats.norm(m, d) for m, d in zip(s["mu"], w, strict=True)]
            for s, w in zip(each, sd, strict=True)
        ]
    if family.event_ndim or name not in SCIPY or name == "Categorical":
        return None
    return [SCIPY[name](**s) for s in each]


@pytest.mark.parametrize("p", [1e-6, 0.05, 0.5, 0.975])
def test_quantiles_are_those_of_scipy(family: Family, p: float) -> None:
    natural = example(family)
    truth = scalar_marginals(family, natural)
    if truth is None:
        pytest.skip("the entries have no distribution in SciPy")
    shape = (COUNT, *(1,) * family.event_ndim)
    found = family.quantile(natural, np.full(shape, p))
    expected = [[d.ppf(p) for d in row] if family.event_ndim else row.ppf(p) for row in truth]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_log_density_is_that_of_scipy_and_minus_infinity_outside(family: Family) -> None:
    natural = example(family)
    x = family.draw(natural, np.random.default_rng(3), 2)
    found = family.log_density(natural, x)
    assert found.shape == (2, COUNT)
    if type(family).__name__ in SCIPY:
        standard = family.standard(natural)
        for i in range(COUNT):
            truth = SCIPY[type(family).__name__](**{k: v[i] for k, v in standard.items()})
            log = truth.logpmf if is_discrete(family, natural) else truth.logpdf
            expected = [float(log(value)) for value in x[:, i]]
            np.testing.assert_allclose(found[:, i], expected, rtol=1e-9, atol=1e-12)
    if type(family).__name__ not in ("Normal", "MvNormal"):
        assert (family.log_density(natural, -1 - x) == -np.inf).all()


def test_covariances_are_those_of_draws(family: Family) -> None:
    natural = example(family)
    count = 8000
    x = family.draw(natural, np.random.default_rng(5), count)
    if type(family).__name__ == "Categorical":
        x = family.statistics(x)
    off = (x - x.mean(axis=0)).reshape(count, COUNT, -1)
    cross = off[..., :, None] * off[..., None, :]
    found = family.cov(natural).reshape(cross.shape[1:])
    error = 6 * cross.std(axis=0) / np.sqrt(count) + 1e-12
    assert (np.abs(found - cross.mean(axis=0)) <= error).all()


def test_quantiles_of_a_wishart_have_their_probability() -> None:
    family = families.Wishart(3)
    natural = example(family)
    x = family.draw(natural, np.random.default_rng(5), DRAWS)
    for p in (0.05, 0.5, 0.9):
        share = (x <= family.quantile(natural, p)).mean(axis=0)
        np.testing.assert_allclose(share, p, atol=6 * np.sqrt(p * (1 - p) / DRAWS))


def test_capabilities_are_those_of_the_distribution(family: Family) -> None:
    """A family declares what its draws, its statistics and SciPy's distribution function show."""
    natural, rng = example(family), np.random.default_rng(9)
    x = family.draw(natural, rng, 400)
    discrete = is_discrete(family, natural)

    vectors = x[..., None] if family.event_ndim == 0 else x
    products = vectors[..., :, None] * vectors[..., None, :]
    pairs = np.concatenate([vectors, products.reshape(*products.shape[:-2], -1)], axis=-1)
    statistics = family.statistics(x)
    is_normal = statistics.shape == pairs.shape and np.allclose(statistics, pairs)
    kind = {0: "number", 1: "vector"}.get(family.event_ndim)
    assert family.gaussian == (kind if is_normal else None)

    assert (family.counts or family.nominal) == discrete
    assert not (family.counts and family.nominal)
    if discrete:
        assert (x == np.floor(x)).all()
        assert (x >= 0).all()
    if family.nominal:
        assert (x < family.length).all()
        assert family.mean(natural).shape == (*x.shape[1:], family.length)  # a share of each

    adds_up = not discrete and family.event_ndim == 1 and np.allclose(x.sum(axis=-1), 1)
    assert family.simplex == adds_up
    if family.simplex:
        np.testing.assert_allclose(family.mean(natural).sum(axis=-1), 1, rtol=1e-12)
        assert family.log_mean(natural) == pytest.approx(np.log(family.mean(natural)), rel=1e-9)

    tau = {"number": factors.Normal.slots["tau"], "matrix": factors.MvNormal.slots["tau"]}
    assert family.precision == next((k for k, v in tau.items() if isinstance(family, v)), None)
    if family.precision == "number":
        assert (x > 0).all()
    if family.precision == "matrix":
        assert (np.linalg.eigvalsh(x) > 0).all()

    assert family.invertible == (family.event_ndim == 0 and not discrete)
    if family.invertible:
        assert len(np.unique(x)) == x.size
        p = rng.uniform(0.001, 0.999, (50, COUNT))
        truth = scalar_marginals(family, natural)
        assert truth is not None
        at = np.stack([family.quantile(natural, row) for row in p])
        cdf = np.stack([d.cdf(column) for d, column in zip(truth, at.T, strict=True)], axis=1)
        np.testing.assert_allclose(cdf, p, rtol=1e-9)


def test_length_is_that_of_sized(family: Family) -> None:
    """Numbers have the length 1; vectors, matrices and categories the length that is given."""
    several = family.event_ndim > 0 or family.nominal
    for length in (2, 5):
        assert type(family).sized(length).length == (length if several else 1)
    if family.event_ndim:
        x = family.draw(example(family), np.random.default_rng(0))
        assert x.shape[-1] == family.length


def test_possible_values_are_described_where_not_all_numbers_are_possible(family: Family) -> None:
    natural = example(family)
    x = family.draw(natural, np.random.default_rng(10))[0]
    everything = family.in_support(x - 1e3).all() and family.in_support(x + 0.3).all()
    assert bool(family.possible) != everything
    assert bool(family.at(0).why_impossible(-1 - x[0])) != everything
