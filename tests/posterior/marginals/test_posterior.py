"""Posteriors: arrays with the model's dims, and parameters by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import svmp
from tests.inference.models import every_family

SHAPES = {
    "normal": (2, 3),
    "vector": (2, 2),
    "gamma": (2,),
    "wishart": (2, 2, 2),
    "beta": (2,),
    "dirichlet": (2, 3),
    "bernoulli": (2,),
    "binomial": (2,),
    "categorical": (2, 3),
    "multinomial": (2, 3),
    "poisson": (2,),
    "exponential": (2,),
    "scalar": (),
}
"""Shapes of the mean; that of a Categorical has one more axis, its probabilities."""

PARAMETERS = {
    "normal": {"mu": (2, 3), "tau": (2, 3)},
    "vector": {"mu": (2, 2), "tau": (2, 2, 2)},
    "gamma": {"alpha": (2,), "beta": (2,)},
    "wishart": {"nu": (2,), "V": (2, 2, 2)},
    "beta": {"alpha": (2,), "beta": (2,)},
    "dirichlet": {"a": (2, 3)},
    "bernoulli": {"p": (2,)},
    "binomial": {"n": (2,), "p": (2,)},
    "categorical": {"p": (2, 3)},
    "multinomial": {"n": (2,), "p": (2, 3)},
    "poisson": {"mu": (2,)},
    "exponential": {"lam": (2,)},
    "scalar": {"mu": (), "tau": ()},
}


@pytest.fixture(scope="module")
def fit() -> svmp.Fit:
    return svmp.fit(every_family(), svmp.FullVB())


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(fit: svmp.Fit, name: str) -> None:
    q = fit[name]
    for array in (q.mean, q.var, q.std, fit.mean(name), fit.var(name)):
        assert array.shape == SHAPES[name]
        assert array.dtype == np.float64
    assert {k: v.shape for k, v in q.parameters.items()} == PARAMETERS[name]
    for parameter, value in q.parameters.items():
        np.testing.assert_array_equal(getattr(q, parameter), value)
    plate = q.moments.shape[:-1]
    assert plate == q.plate
    assert q.entropy().shape == plate


@pytest.mark.parametrize("name", SHAPES)
def test_draws_have_the_mean_and_variance(fit: svmp.Fit, name: str) -> None:
    q = fit[name]
    draws = q.draw(20_000, seed=1)
    if name == "categorical":
        assert draws.shape == (20_000, 2)
        draws = draws[..., None] == np.arange(3)
    assert draws.shape == (20_000, *SHAPES[name])
    scatter = 6 * q.std / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - q.mean) <= scatter + 1e-12).all()
    np.testing.assert_allclose(draws.var(axis=0), q.var, rtol=0.2, atol=1e-12)
    np.testing.assert_array_equal(q.draw(3, seed=5), q.draw(3, seed=5))
    assert not np.array_equal(q.draw(30, seed=5), q.draw(30, seed=6))


def two_normals() -> svmp.Fit:
    """Return a fit in which q of two variables differs in the name alone."""
    with svmp.Model() as model:
        for name in ("a", "b"):
            svmp.Normal(f"{name}_data", mu=svmp.Normal(name, mu=0, tau=1), tau=1, observed=[1.0])
    return svmp.fit(model)


@pytest.mark.parametrize("seed", [None, 0, 7])
def test_draws_of_two_variables_are_independent(seed: int | None) -> None:
    fit = two_normals()
    a, b = (fit[name].draw(20_000, seed=seed) for name in ("a", "b"))
    # The standard error of a correlation of independent numbers is 1 / sqrt(20,000).
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(20_000)
    spread = np.sqrt(fit["a"].var + fit["b"].var)
    assert np.std(a - b) == pytest.approx(spread, rel=5 / np.sqrt(2 * 20_000))


def test_draws_without_a_seed_differ_each_time() -> None:
    q = two_normals()["a"]
    assert not np.array_equal(q.draw(10), q.draw(10))


def test_generator_is_used_as_it_is() -> None:
    fit, rng = two_normals(), np.random.default_rng(3)
    draws = [fit["a"].draw(5, seed=rng), fit["a"].draw(5, seed=rng)]
    assert not np.array_equal(*draws)
    again = np.random.default_rng(3)
    np.testing.assert_array_equal(
        np.concatenate(draws), [*fit["a"].draw(5, again), *fit["a"].draw(5, again)]
    )


@pytest.mark.parametrize("size", [-1, 2.5, "many", True, None])
def test_invalid_sizes_are_refused(size: Any) -> None:
    with pytest.raises(svmp.ModelError, match="size must be a whole number"):
        two_normals()["a"].draw(size)


def test_seed_of_a_fit_can_be_a_generator() -> None:
    x = np.random.default_rng(2).normal(size=200)
    with svmp.Model(coords={"k": 2, "row": 200}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.01, dims="k")
        z = svmp.Categorical("z", p=svmp.data([0.5, 0.5], dims="k"), dims="row")
        svmp.Mixture("x", z, svmp.Normal.dist(mu=mu, tau=1), dims="row", observed=x)
    one, two = (svmp.fit(model, seed=np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(one["mu"].natural, two["mu"].natural)


@pytest.mark.parametrize("kernels", [True, False])
def test_seeds_beyond_64_bits(kernels: bool) -> None:
    with svmp.Model() as model:
        svmp.Normal("x", mu=svmp.Normal("a", mu=0, tau=1), tau=1, observed=np.arange(9.0))
    fit = svmp.fit(model, svmp.Children(2), seed=2**80, max_sweeps=3, kernels=kernels)
    assert np.isfinite(fit.bound)


def test_parameters_are_those_of_conjugate_updates() -> None:
    """Closed forms, with rows assigned to elements by a key."""
    key = np.array([0, 1, 1, 0, 1])
    x = np.array([0.5, 1.0, 2.0, -1.0, 0.3])
    with svmp.Model(coords={"a": 2}) as model:
        m = svmp.Normal("m", mu=[1.0, 2.0], tau=[1.0, 3.0], dims="a")
        svmp.Normal("x", mu=m[key], tau=2, observed=x)
        g = svmp.Gamma("g", alpha=2, beta=[1.0, 4.0], dims="a")
        svmp.Poisson("n", mu=g[key], observed=[1, 2, 3, 4, 5])
        p = svmp.Beta("p", alpha=1, beta=2, dims="a")
        svmp.Bernoulli("b", p=p[key], observed=[1, 1, 0, 1, 0])
        d = svmp.Dirichlet("d", a=0.5, dims="a")
        svmp.Categorical("c", p=d, observed=key)
    fit = svmp.fit(model, svmp.FullVB())
    np.testing.assert_allclose(fit["m"].tau, [5, 9])
    np.testing.assert_allclose(fit["m"].mu, [(1 + 2 * -0.5) / 5, (6 + 2 * 3.3) / 9], atol=1e-15)
    np.testing.assert_allclose(fit["m"].var, [1 / 5, 1 / 9])
    np.testing.assert_allclose(fit["g"].alpha, [7, 12])
    np.testing.assert_allclose(fit["g"].beta, [3, 7])
    np.testing.assert_allclose(fit["g"].mean, [7 / 3, 12 / 7])
    np.testing.assert_allclose(fit["p"].alpha, [3, 2])
    np.testing.assert_allclose(fit["p"].beta, [2, 4])
    np.testing.assert_allclose(fit["d"].a, [2.5, 3.5])


def test_entropy_is_scipys(fit: svmp.Fit) -> None:
    normal, gamma, beta = fit["normal"], fit["gamma"], fit["beta"]
    np.testing.assert_allclose(normal.entropy(), stats.norm(0, normal.std).entropy())
    expected = stats.gamma(gamma.alpha, scale=1 / gamma.beta).entropy()
    np.testing.assert_allclose(gamma.entropy(), expected)
    np.testing.assert_allclose(beta.entropy(), stats.beta(beta.alpha, beta.beta).entropy())
    vector, wishart = (zip(*fit[n].parameters.values(), strict=True) for n in ("vector", "wishart"))
    for name, frozen in {
        "dirichlet": [stats.dirichlet(a) for a in fit["dirichlet"].a],
        "wishart": [stats.wishart(nu, V) for nu, V in wishart],
        "vector": [stats.multivariate_normal(mu, np.linalg.inv(tau)) for mu, tau in vector],
    }.items():
        np.testing.assert_allclose(fit[name].entropy(), [f.entropy() for f in frozen])


def test_unknown_variable(fit: svmp.Fit) -> None:
    for wrong in ("nope", "x"):
        for ask in (fit.__getitem__, fit.mean, fit.var):
            with pytest.raises(KeyError) as caught:
                ask(wrong)
            assert f"'{wrong}'" in str(caught.value)
            assert "gamma" in str(caught.value)


def test_unknown_attribute(fit: svmp.Fit) -> None:
    with pytest.raises(AttributeError, match="alpha"):
        _ = fit["normal"].alpha
    assert not hasattr(fit["normal"], "_private")


def test_reprs(fit: svmp.Fit) -> None:
    assert repr(fit.posteriors["normal"]).splitlines()[0] == "<q(normal): Normal, dims ('a', 'b')>"
    assert repr(fit).startswith("<Fit: converged within")


def test_bound_is_the_sum_of_its_terms(fit: svmp.Fit) -> None:
    assert set(fit.bound_terms) == set(SHAPES) | {"x"}
    assert fit.bound == sum(fit.bound_terms.values())


@pytest.mark.parametrize("name", SHAPES)
def test_changing_returned_arrays_does_not_change_the_fit(fit: svmp.Fit, name: str) -> None:
    q = fit[name]

    def read() -> list[np.ndarray]:
        return [q.mean, q.var, q.std, q.moments, q.entropy(), *q.parameters.values()]

    before = read()
    for array in read():
        array[...] = 99
    for array, same in zip(read(), before, strict=True):
        np.testing.assert_array_equal(array, same)
    with pytest.raises(ValueError, match="read-only"):
        q.natural[...] = 99


def test_fit_does_not_share_arrays_with_the_user() -> None:
    x, key = np.array([1.0, 2.0, 3.0]), np.array([0, 1, 0])
    with svmp.Model(coords={"a": 2}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims="a")
        svmp.Normal("x", mu=u[key], tau=1, observed=x)
    one = svmp.fit(model, svmp.FullVB())
    x[:], key[:] = -50.0, 1
    other = svmp.fit(model, svmp.FullVB())
    assert other.bound == one.bound
    np.testing.assert_array_equal(other.mean("u"), one.mean("u"))


@pytest.mark.parametrize("name", SHAPES)
def test_quantiles_intervals_and_log_densities_have_the_dims(fit: svmp.Fit, name: str) -> None:
    q = fit[name]
    draws = q.draw(5, seed=2)
    assert np.isfinite(q.logpdf(draws)).all()
    assert q.logpdf(draws).shape == (5, *q.plate)
    assert q.cov.shape == (*q.mean.shape, *q.mean.shape[len(q.plate) :])
    if name == "categorical":
        with pytest.raises(svmp.ModelError, match="quantiles of the Categorical 'categorical'"):
            q.quantile(0.5)
        return
    assert q.quantile(0.5).shape == SHAPES[name]
    assert q.quantile([[0.1], [0.9]]).shape == (2, 1, *SHAPES[name])
    lower, upper = q.interval(0.8)
    np.testing.assert_allclose(lower, q.quantile(0.1), rtol=1e-12)
    share = ((q.draw(4000, seed=1) >= lower) & (q.draw(4000, seed=1) <= upper)).mean(axis=0)
    assert (share > 0.76).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda q: q.quantile(1.5), "probabilities between 0 and 1, not 1.5"),
        (lambda q: q.quantile("a"), "probabilities between 0 and 1"),
        (lambda q: q.interval(0), "a probability between 0 and 1, not 0"),
        (lambda q: q.logpdf([1.0, 2.0, 3.0]), r"logpdf of 'vector' needs"),
        (lambda q: q.logpdf("a"), r"logpdf of 'vector' needs numbers"),
    ],
)
def test_bad_arguments_of_posteriors(fit: svmp.Fit, call: Any, message: str) -> None:
    with pytest.raises(svmp.ModelError, match=message):
        call(fit["vector"])
