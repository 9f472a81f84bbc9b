"""Properties of every conditional density, checked on all of them.

Messages are derivatives of the expected log density, which is linear in each set of moments: its
finite differences are exact, so the tolerances are those of rounding.

Where a factor is a convex bound, it lies below its chords and above its tangents, which are its
messages to a slot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from svmp import factors
from svmp.factors.factor import Factor
from svmp.families.family import Array, Family, dot
from tests.examples import constants_of, natural_of

COUNT = 5
LENGTH = 3

LOG_DENSITY: dict[str, Callable[..., Any]] = {
    "Bernoulli": lambda x, p: stats.bernoulli.logpmf(x, p),
    "BernoulliLogit": lambda x, logit: stats.bernoulli.logpmf(x, expit(logit)),
    "Beta": lambda x, alpha, beta: stats.beta.logpdf(x, alpha, beta),
    "Binomial": lambda x, n, p: stats.binom.logpmf(x, n, p),
    "BinomialLogit": lambda x, n, logit: stats.binom.logpmf(x, n, expit(logit)),
    "Categorical": lambda x, p: np.log(p[int(x)]),
    "Dirichlet": lambda x, a: stats.dirichlet.logpdf(x, a),
    "Exponential": lambda x, lam: stats.expon.logpdf(x, scale=1 / lam),
    "Gamma": lambda x, alpha, beta: stats.gamma.logpdf(x, alpha, scale=1 / beta),
    "Multinomial": lambda x, n, p: stats.multinomial.logpmf(x, n, p),
    "MvNormal": lambda x, mu, tau: stats.multivariate_normal.logpdf(x, mu, np.linalg.inv(tau)),
    "Normal": lambda x, mu, tau: stats.norm.logpdf(x, mu, tau**-0.5),
    "Poisson": lambda x, mu: stats.poisson.logpmf(x, mu),
    "Wishart": lambda x, nu, V: stats.wishart.logpdf(x, nu, V),
    "WishartRate": lambda x, nu, rate: stats.wishart.logpdf(x, nu, np.linalg.inv(rate)),
}

REFUSED: list[tuple[Factor, Mapping[str, Any], str]] = [
    (factors.Gamma(), {"alpha": [1.0, 0.0]}, "alpha must be positive"),
    (factors.Gamma(), {"alpha": np.inf}, "alpha must be positive"),
    (factors.Beta(), {"alpha": -1.0, "beta": 1.0}, "alpha must be positive"),
    (factors.Beta(), {"alpha": 0.0, "beta": 0.0}, "alpha and beta must be positive"),
    (factors.Dirichlet(), {"a": [1.0, 0.0]}, "a must be positive"),
    (factors.Binomial(), {"n": -1}, "n must be whole numbers, zero or more"),
    (factors.Binomial(), {"n": [3.0, 2.5]}, "n must be whole numbers, zero or more"),
    (factors.Multinomial(), {"n": 0.5}, "n must be whole numbers, zero or more"),
    (factors.Wishart(), {"nu": 1.0, "V": np.eye(2)}, "nu must be greater than 1"),
    (factors.Wishart(), {"nu": 3.0, "V": -np.eye(2)}, "V must be symmetric"),
    (factors.Wishart(), {"nu": 3.0, "V": [[1.0, 0.5], [0.0, 1.0]]}, "V must be symmetric"),
    (factors.WishartRate(), {"nu": 0.0}, "nu must be positive"),
]


class Case:
    """Rows of one factor: random moments for its child and slots, and constants."""

    def __init__(self, factor: Factor, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.factor = factor
        self.constants = constants_of(factor, self.rng, LENGTH, COUNT)
        self.child = factor.family(LENGTH, self.constants)
        self.slots = {name: family.sized(LENGTH) for name, family in factor.slots.items()}

    def moments(self, family: Family) -> Array:
        return family.moments(natural_of(family, self.rng, COUNT))

    def given(self) -> dict[str, Array]:
        slots = {name: self.moments(family) for name, family in self.slots.items()}
        return {**self.constants, **slots}

    def values(self) -> tuple[Array, dict[str, Array], dict[str, Array]]:
        """Return known values of the child and of every parameter, and the latter as moments."""
        values = dict(self.constants)
        given = dict(self.constants)
        for name, family in self.slots.items():
            values[name] = family.draw(natural_of(family, self.rng, COUNT), self.rng)[0]
            given[name] = family.statistics(values[name])
        natural = np.broadcast_to(self.factor.to_child(given), (COUNT, self.child.size))
        return self.child.draw(natural, self.rng)[0], values, given


def test_it_is_exported(factor: Factor) -> None:
    assert type(factor).__name__ in factors.__all__
    assert getattr(factors, type(factor).__name__) is type(factor)


def test_shapes(factor: Factor) -> None:
    case = Case(factor)
    given, child = case.given(), case.moments(case.child)
    assert isinstance(case.child, factor.child)
    assert set(case.constants) == set(factor.constants)
    assert factor.to_child(given).shape == (COUNT, case.child.size)
    assert factor.log_normaliser(given).shape == (COUNT,)
    for name, family in case.slots.items():
        message = factor.to_parent(name, child, given)
        assert np.broadcast_shapes(message.shape, (COUNT, family.size)) == (COUNT, family.size)


def test_the_message_to_the_child_is_a_derivative(factor: Factor) -> None:
    case = Case(factor)
    given, here, there = case.given(), case.moments(case.child), case.moments(case.child)
    rise = factor.log_density(there, given) - factor.log_density(here, given)
    np.testing.assert_allclose(dot(factor.to_child(given), there - here), rise, atol=1e-10)


def test_a_message_to_a_parent_is_a_derivative(factor_and_slot: tuple[Factor, str]) -> None:
    factor, slot = factor_and_slot
    case = Case(factor)
    child, here = case.moments(case.child), case.given()
    there = {**here, slot: case.moments(case.slots[slot])}
    others = {name: moments for name, moments in here.items() if name != slot or factor.convex}
    message = factor.to_parent(slot, child, others)  # a tangent needs the slot's own moments
    rise = factor.log_density(child, there) - factor.log_density(child, here)
    along = dot(message, there[slot] - here[slot])
    if not factor.convex:
        np.testing.assert_allclose(along, rise, atol=1e-10)
        return
    assert np.all(rise >= along)
    ahead, behind = (
        factor.log_density(child, {**here, slot: here[slot] + t * (there[slot] - here[slot])})
        for t in (1e-5, -1e-5)
    )
    np.testing.assert_allclose((ahead - behind) / 2e-5, along, rtol=1e-7, atol=1e-7)


def test_the_expected_log_density_is_linear_in_a_slot(factor_and_slot: tuple[Factor, str]) -> None:
    factor, slot = factor_and_slot
    case = Case(factor)
    child, here = case.moments(case.child), case.given()
    there = {**here, slot: case.moments(case.slots[slot])}
    between = {**here, slot: 0.3 * here[slot] + 0.7 * there[slot]}
    ends = [factor.log_density(child, given) for given in (here, there)]
    middle = factor.log_density(child, between)
    line = 0.3 * ends[0] + 0.7 * ends[1]
    if factor.convex:
        assert np.all(middle < line)
    else:
        np.testing.assert_allclose(middle, line, atol=1e-10)


def test_a_convex_bound_lies_below_the_expected_log_density(factor: Factor) -> None:
    """By quadrature over a Normal slot; for a known value it is the density itself."""
    if not factor.convex:
        return
    case = Case(factor)
    ((slot, family),) = case.slots.items()
    n = case.constants
    x, _, _ = case.values()
    child, natural = case.child.statistics(x), natural_of(family, case.rng, COUNT)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    mean, sd = family.mean(natural), np.sqrt(family.var(natural))
    exact = sum(
        w * factor.log_density(child, {**n, slot: family.statistics(mean + sd * node)})
        for node, w in zip(nodes, weights / weights.sum(), strict=True)
    )
    bound = factor.log_density(child, {**n, slot: family.moments(natural)})
    trials = n.get("n", np.ones(COUNT))
    assert np.all(np.where(trials > 0, bound < exact, bound == exact))
    assert np.all(bound >= exact - trials * family.var(natural) / 8)  # Taylor: w is at most 1/4


def test_the_expected_log_density_is_linear_in_the_child(factor: Factor) -> None:
    case = Case(factor)
    given, here, there = case.given(), case.moments(case.child), case.moments(case.child)
    ends = [factor.log_density(child, given) for child in (here, there)]
    middle = factor.log_density(0.3 * here + 0.7 * there, given)
    np.testing.assert_allclose(middle, 0.3 * ends[0] + 0.7 * ends[1], atol=1e-10)


def test_given_its_parents_the_child_is_in_its_family(factor: Factor) -> None:
    case = Case(factor)
    _, _, given = case.values()
    natural = factor.to_child(given)
    assert case.child.in_domain(natural).all()
    np.testing.assert_allclose(
        factor.log_normaliser(given), case.child.log_partition(natural), atol=1e-10
    )


def test_with_known_values_it_is_the_log_density_of_scipy(factor: Factor) -> None:
    name = type(factor).__name__
    if name not in LOG_DENSITY:
        pytest.skip(f"no log density is named for {name}")
    for seed in range(3):
        case = Case(factor, seed)
        x, values, given = case.values()
        ours = factor.log_density(case.child.statistics(x), given)
        ours = ours + case.child.log_base(x)
        for i in range(COUNT):
            theirs = LOG_DENSITY[name](x[i], **{k: v[i] for k, v in values.items()})
            assert ours[i] == pytest.approx(theirs, rel=1e-9, abs=1e-9)


def test_posterior_is_prior_times_likelihood(factor_and_slot: tuple[Factor, str]) -> None:
    """log prior + log likelihood - log posterior is constant in the parent.

    With a tangent in place of a convex likelihood, it is smallest where the tangent touches.
    """
    factor, slot = factor_and_slot
    case = Case(factor)
    x, _, given = case.values()
    child, family = case.child.statistics(x), case.slots[slot]
    prior = natural_of(family, case.rng, COUNT)
    posterior = prior + factor.to_parent(slot, child, given)
    assert family.in_domain(posterior).all()
    parents = [given[slot], *(family.statistics(p) for p in family.draw(prior, case.rng, 3))]
    least, *others = (
        dot(prior - posterior, parent) + factor.log_density(child, {**given, slot: parent})
        for parent in parents
    )
    for other in others:
        if factor.convex:
            assert np.all(other > least)
        else:
            np.testing.assert_allclose(other, least, atol=1e-9)


@pytest.mark.parametrize("rows", [0, 1], ids=["no-row-axis", "row-axis-of-one"])
def test_one_row_of_constants_is_broadcast(factor: Factor, rows: int) -> None:
    case = Case(factor)
    if not case.constants:
        return
    given = case.given()
    narrow = {**given, **{k: given[k][:1] if rows else given[k][0] for k in case.constants}}
    wide = {
        **given,
        **{k: np.repeat(given[k][:1], COUNT, axis=0) for k in case.constants},
    }
    child = factor.family(LENGTH, {k: narrow[k] for k in case.constants})
    moments = case.moments(child)
    np.testing.assert_allclose(
        factor.log_density(moments, narrow),
        factor.log_density(moments, wide),
        rtol=1e-12,
    )
    for slot in case.slots:
        np.testing.assert_allclose(
            factor.to_parent(slot, moments, narrow),
            factor.to_parent(slot, moments, wide),
            rtol=1e-12,
        )


def test_constants_are_checked(factor: Factor) -> None:
    constants = Case(factor).constants
    assert factor.check(constants) is None
    for name, value in constants.items():
        broken = value.copy()
        broken[2] = np.nan
        trouble = factor.check({**constants, name: broken})
        assert trouble is not None
        assert name in trouble


@pytest.mark.parametrize(
    ("refusing", "constants", "reason"),
    REFUSED,
    ids=[
        f"{type(f).__name__}-{reason.split(' must')[0]}-{i}"
        for i, (f, _, reason) in enumerate(REFUSED)
    ],
)
def test_constants_outside_their_domain_are_refused(
    refusing: Factor, constants: Mapping[str, Any], reason: str
) -> None:
    trouble = refusing.check({name: np.asarray(value) for name, value in constants.items()})
    assert trouble is not None
    assert trouble.startswith(reason)
