"""`Fit.update` is Bayes' rule where q is exact, and close to a fit to all rows elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import svmp

RNG = np.random.default_rng(3)
COUNTS = RNG.poisson(4.0, 30)
CHOICES = RNG.integers(3, size=30)
FLIPS = RNG.integers(2, size=30)
NUMBERS = RNG.normal(2.0, 1.5, 30)
VECTORS = RNG.normal(size=(30, 2)) @ np.array([[1.0, 0.4], [0.0, 0.8]]) + 1.0
TALLIES = RNG.multinomial(5, [0.2, 0.3, 0.5], size=30)
TAU = np.array([[2.0, 0.3], [0.3, 1.0]])


def bernoulli(rows):
    p = svmp.Beta("x", alpha=2, beta=3)
    svmp.Bernoulli("y", p=p, observed=FLIPS[rows])


def binomial(rows):
    p = svmp.Beta("x", alpha=2, beta=3)
    svmp.Binomial("y", n=20, p=p, observed=COUNTS[rows])


def categorical(rows):
    p = svmp.Dirichlet("x", a=[0.5, 1.0, 2.0], dims="k")
    svmp.Categorical("y", p=p, observed=CHOICES[rows])


def multinomial(rows):
    p = svmp.Dirichlet("x", a=[0.5, 1.0, 2.0], dims="k")
    svmp.Multinomial("y", n=5, p=p, dims=("row", "k"), observed=TALLIES[rows])


def poisson(rows):
    rate = svmp.Gamma("x", alpha=2, beta=1)
    svmp.Poisson("y", mu=rate, observed=COUNTS[rows])


def exponential(rows):
    rate = svmp.Gamma("x", alpha=2, beta=1)
    svmp.Exponential("y", lam=rate, observed=np.abs(NUMBERS[rows]))


def precision(rows):
    tau = svmp.Gamma("x", alpha=2, beta=1)
    svmp.Normal("y", mu=1.0, tau=tau, observed=NUMBERS[rows])


def mean(rows):
    mu = svmp.Normal("x", mu=-1, tau=0.5)
    svmp.Normal("y", mu=mu, tau=2, observed=NUMBERS[rows])


def mean_vector(rows):
    mu = svmp.MvNormal("x", mu=[0, 1], tau=TAU, dims="d")
    svmp.MvNormal("y", mu=mu, tau=TAU, dims=("row", "d"), observed=VECTORS[rows])


def precision_matrix(rows):
    tau = svmp.Wishart("x", nu=4, V=TAU, dims=("d", "d"))
    svmp.MvNormal("y", mu=[0.0, 1.0], tau=tau, dims=("row", "d"), observed=VECTORS[rows])


ONE_HIDDEN = [
    bernoulli,
    binomial,
    categorical,
    multinomial,
    poisson,
    exponential,
    precision,
    mean,
    mean_vector,
    precision_matrix,
]


def declared(network, rows):
    with svmp.Model(coords={"k": 3, "d": 2}) as model:
        network(rows)
    return model


PARTS = [np.arange(0, 12), np.arange(12, 13), np.arange(13, 30)]


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("network", ONE_HIDDEN, ids=lambda f: f.__name__)
def test_updates_equal_one_fit_to_all_rows(network, kernels):
    whole = svmp.fit(declared(network, np.arange(30)), kernels=kernels)
    fit = svmp.fit(declared(network, PARTS[0]), kernels=kernels)
    bound = fit.bound
    for rows in PARTS[1:]:
        fit = fit.update(declared(network, rows), kernels=kernels)
        bound += fit.bound
    np.testing.assert_allclose(fit["x"].natural, whole["x"].natural, rtol=1e-10)
    assert bound == pytest.approx(whole.bound, rel=1e-10), (
        "log p(all) is the sum of log p(new | old)"
    )


@pytest.mark.parametrize("network", ONE_HIDDEN, ids=lambda f: f.__name__)
def test_a_share_is_forgotten(network):
    """What was learned is lambda - eta, of which the share stays."""
    nothing = svmp.fit(declared(network, PARTS[0]))["x"].natural
    new = svmp.fit(declared(network, PARTS[2]))["x"].natural
    with svmp.Model(coords={"k": 3, "d": 2}) as model:
        network(PARTS[0])
    eta = model["x"].conditional.to_child(None, np.arange(1))
    fit = svmp.fit(declared(network, PARTS[0])).update(declared(network, PARTS[2]), forget=0.25)
    np.testing.assert_allclose(fit["x"].natural, new + 0.75 * (nothing - eta), rtol=1e-10)


@pytest.mark.parametrize("kernels", [True, False])
def test_labelled_elements_are_matched_and_added(kernels):
    """Rates by shop: known ones go on, new ones are added, absent ones stay."""

    def shops(names, key, counts):
        with svmp.Model(coords={"shop": names}) as model:
            rate = svmp.Gamma("rate", alpha=2, beta=1, dims="shop")
            svmp.Poisson("count", mu=rate[key], observed=counts)
        return model

    first = svmp.fit(shops(["b", "a"], [0, 1, 1], [5, 2, 3]), kernels=kernels)
    fit = first.update(shops(["c", "a"], [0, 1], [7, 1]), kernels=kernels)
    assert fit.coords["shop"] == ["b", "a", "c"]
    np.testing.assert_allclose(fit["rate"].alpha, [2 + 5, 2 + 2 + 3 + 1, 2 + 7], rtol=1e-12)
    np.testing.assert_allclose(fit["rate"].beta, [2, 4, 2], rtol=1e-12)
    again = fit.update(shops(["a", "b", "c"], [2, 2], [1, 1]), kernels=kernels)
    np.testing.assert_allclose(again["rate"].alpha, [7, 8, 11], rtol=1e-12)


def test_labels_of_another_type_are_refused():
    def counts(shops):
        with svmp.Model(coords={"shop": shops}) as model:
            rate = svmp.Gamma("rate", alpha=1, beta=1, dims="shop")
            svmp.Poisson("count", mu=rate, dims="shop", observed=[3] * len(shops))
        return model

    fit = svmp.fit(counts([1, 2]))
    with pytest.raises(svmp.ModelError, match="'shop' are strings, but were numbers earlier"):
        fit.update(counts(["1", "2"]))
    assert fit.update(counts([2.0, 3])).coords["shop"] == [1, 2, 3]


def words(names, topics, topic, word):
    with svmp.Model(coords={"topic": topics, "word": names}) as model:
        phi = svmp.Dirichlet("phi", a=0.5, dims=("topic", "word"))
        svmp.Categorical("w", p=phi[topic], observed=word)
    return model


def test_a_vocabulary_grows():
    first = svmp.fit(words(["x", "y"], 2, [0, 0, 1], [0, 1, 1]))
    fit = first.update(words(["z", "y"], 2, [0, 1, 1], [0, 0, 1]))
    assert fit.coords["word"] == ["x", "y", "z"]
    counts = [[1, 1, 1], [0, 2, 1]]
    np.testing.assert_allclose(fit["phi"].a, 0.5 + np.array(counts), rtol=1e-12)


def test_components_with_labels_are_added():
    first = svmp.fit(words(["x", "y"], ["old"], [0, 0], [0, 1]))
    fit = first.update(words(["x", "y"], ["new", "old"], [0, 1], [1, 1]))
    np.testing.assert_allclose(fit["phi"].a, [[1.5, 2.5], [0.5, 1.5]], rtol=1e-12)


def schools(names, key, scores, tau=0.5, levels=None):
    with svmp.Model(coords={"school": names}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.01)
        spread = svmp.Gamma("spread", alpha=3, beta=2) if levels is None else levels
        school = svmp.Normal("school", mu=mu, tau=spread, dims="school")
        svmp.Normal("score", mu=school[key], tau=tau, observed=scores)
    return model


def draw_schools(count=12, pupils=200, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.normal(3, 1.5, count)
    key = rng.integers(count, size=pupils)
    return key, true[key] + np.sqrt(2) * rng.normal(size=pupils)


@pytest.mark.parametrize("kernels", [True, False])
def test_a_hierarchy_with_known_noise_equals_one_fit_to_all_rows(kernels):
    """All schools are declared again, so what their parents learn is computed from all of them.

    Some have rows in one of the parts only.
    """
    key, scores = draw_schools()
    names = [f"s{i}" for i in range(12)]
    first = (key < 8) | (np.arange(200) < 60)
    exact = {"method": svmp.FullVB(), "tol": 1e-14, "max_sweeps": 5000, "kernels": kernels}
    whole = svmp.fit(schools(names, key, scores), **exact)
    part = svmp.fit(schools(names, key[first], scores[first]), **exact)
    fit = part.update(schools(names, key[~first], scores[~first]), **exact)
    for name in ("mu", "spread", "school"):
        np.testing.assert_allclose(
            fit.posteriors[name].natural, whole.posteriors[name].natural, rtol=2e-6
        )


def test_absent_schools_stay_in_what_their_parents_learned():
    key, scores = draw_schools()
    names = np.arange(12)
    whole = svmp.fit(schools(names, key, scores), svmp.FullVB(), tol=1e-12)
    fit = None
    for rows in (key < 6, (key >= 6) & (key < 9), key >= 9):
        here, place = np.unique(key[rows], return_inverse=True)
        model = schools(names[here], place, scores[rows])
        fit = svmp.fit(model, svmp.FullVB(), tol=1e-12) if fit is None else fit.update(model)
    assert fit.coords["school"] == names.tolist()
    assert abs(fit.mean("mu") - whole.mean("mu")) < 0.2 * np.sqrt(whole.var("mu"))
    assert fit.mean("spread") == pytest.approx(whole.mean("spread"), rel=0.15)
    error = (fit.mean("school") - whole.mean("school")) / np.sqrt(whole.var("school"))
    assert np.abs(error).max() < 0.5


def test_linear_blocks_keep_what_was_learned():
    """Intercept and slope are solved jointly: the means of all rows follow."""
    rng = np.random.default_rng(4)
    x = rng.normal(3, 1, 40)
    y = 1.5 - 0.7 * x + rng.normal(size=40)

    def line(rows):
        with svmp.Model() as model:
            a = svmp.Normal("a", mu=0, tau=0.1)
            b = svmp.Normal("b", mu=0, tau=0.1)
            svmp.Normal("y", mu=a + b * x[rows], tau=1.0, observed=y[rows])
        return model

    whole = svmp.fit(line(np.arange(40)), tol=1e-14)
    fit = svmp.fit(line(np.arange(25)), tol=1e-14).update(line(np.arange(25, 40)), tol=1e-14)
    for name in ("a", "b"):
        assert fit.posteriors[name].tau == pytest.approx(whole.posteriors[name].tau, rel=1e-12)
    assert np.isfinite(fit.bound)
    slow = svmp.fit(line(np.arange(25)), svmp.FullVB(), tol=1e-15, max_sweeps=9000)
    slow = slow.update(line(np.arange(25, 40)), svmp.FullVB(), tol=1e-15, max_sweeps=9000)
    for name in ("a", "b"):
        assert fit.mean(name, corrected=False) == pytest.approx(
            slow.mean(name, corrected=False), rel=1e-4
        )


@pytest.mark.parametrize("method", [svmp.Children(3), svmp.Batch(50), svmp.Growing(0.2)])
def test_other_methods_reach_the_same_posterior(method):
    key, scores = draw_schools()
    names = list(range(12))
    part = svmp.fit(schools(names, key[:120], scores[:120]), tol=1e-9)
    more = schools(names, key[120:], scores[120:])
    exact, fit = part.update(more, tol=1e-9), part.update(more, method, tol=1e-7, max_sweeps=400)
    apart = (fit.mean("school") - exact.mean("school")) / np.sqrt(exact.var("school"))
    assert np.abs(apart).max() < 0.5


def test_the_evidence_of_new_rows_is_that_of_the_predictive_distribution():
    fit = svmp.fit(declared(poisson, PARTS[0]))
    alpha, beta = float(fit["x"].alpha), float(fit["x"].beta)
    new = COUNTS[PARTS[1]]
    expected = stats.nbinom(alpha, beta / (beta + 1)).logpmf(new).sum()
    assert fit.update(declared(poisson, PARTS[1])).bound == pytest.approx(expected, rel=1e-12)


def test_posterior_is_the_prior_though_the_declared_one_is_narrower() -> None:
    """A learned precision may have risen since q was computed: what was learned is kept."""

    def declare(tau: float, observed: list[float]) -> svmp.Model:
        with svmp.Model() as model:
            mu = svmp.Normal("mu", mu=0, tau=tau)
            svmp.Normal("y", mu=mu, tau=1, observed=observed)
        return model

    fit = svmp.fit(declare(0.5, [2.0, 3.0]))  # precision 2.5, mean 2
    after = fit.update(declare(4.0, [9.0]))
    assert after["mu"].tau == pytest.approx(3.5)
    assert after["mu"].mu == pytest.approx((5 + 9) / 3.5)


def test_all_labels_of_an_update_may_be_new() -> None:
    """A stream in which every day has shops of its own is the fit to all rows too."""

    def shops(names: list[str], counts: list[int]) -> svmp.Model:
        with svmp.Model(coords={"shop": names}) as model:
            rate = svmp.Gamma("rate", alpha=2, beta=1, dims="shop")
            svmp.Poisson("count", mu=rate[names], observed=counts)
        return model

    fit = svmp.fit(shops(["a"], [3])).update(shops(["b", "c"], [5, 1])).update(shops(["a"], [4]))
    assert fit.coords["shop"] == ["a", "b", "c"]
    np.testing.assert_allclose(fit["rate"].alpha, [9, 7, 3])
    np.testing.assert_allclose(fit["rate"].beta, [3, 2, 2])
