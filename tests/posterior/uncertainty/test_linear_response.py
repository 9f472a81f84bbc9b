"""Linear response: exact posteriors, quadrature, refits of tilted models, and bad input."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import svmp
from svmp.fitting.fit import fit as fit_model
from svmp.network.network import Network
from svmp.posterior.uncertainty import linear_response, sparse_response

pytestmark = pytest.mark.by_size
RNG = np.random.default_rng(3)
GROUP, SIDE = RNG.integers(0, 4, 30), RNG.integers(0, 3, 30)
X, Y = RNG.normal(size=(30, 2)), RNG.normal(size=30) + 1.0
BIMODAL = np.concatenate([RNG.normal(-2, 0.7, 14), RNG.normal(2, 0.7, 16)])


def crossed() -> svmp.Model:
    with svmp.Model(coords={"group": 4, "side": 3, "k": 2}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.1)
        a = svmp.Normal("a", mu=mu, tau=2, dims="group")
        b = svmp.Normal("b", mu=0, tau=3, dims="side")
        w = svmp.MvNormal("w", mu=np.zeros(2), tau=np.eye(2), dims="k")
        svmp.Normal("y", mu=a[GROUP] + b[SIDE] + svmp.dot(X, w), tau=1.5, observed=Y)
    return model


def schools() -> svmp.Model:
    with svmp.Model(coords={"school": 8}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1 / 25)
        tau = svmp.Gamma("tau", alpha=2, beta=40)
        theta = svmp.Normal("theta", mu=mu, tau=tau, dims="school")
        svmp.Normal("y", mu=theta, tau=1 / SD**2, dims="school", observed=EFFECT)
    return model


EFFECT = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
SD = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])


def mixture() -> svmp.Model:
    with svmp.Model(coords={"k": 2, "row": 30}) as model:
        p = svmp.Dirichlet("p", a=np.ones(2), dims="k")
        mu = svmp.Normal("mu", mu=0, tau=0.1, dims="k")
        tau = svmp.Gamma("tau", alpha=2, beta=1)
        z = svmp.Categorical("z", p=p, dims="row")
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=tau), dims="row", observed=BIMODAL)
    return model


def logistic() -> svmp.Model:
    with svmp.Model(coords={"k": 2}) as model:
        level = svmp.Gamma("level", alpha=2, beta=2)
        w = svmp.Normal("w", mu=0, tau=level, dims="k")
        svmp.Bernoulli("y", logit=svmp.dot(X, w), observed=(Y > 1).astype(float))
    return model


def factors() -> svmp.Model:
    with svmp.Model(coords={"group": 4, "side": 3}) as model:
        u = svmp.Normal("u", mu=1, tau=4, dims="group")
        v = svmp.Normal("v", mu=1, tau=4, dims="side")
        tau = svmp.Gamma("tau", alpha=2, beta=1)
        svmp.Normal("y", mu=u[GROUP] * v[SIDE], tau=tau, observed=Y)
    return model


def vectors() -> svmp.Model:
    with svmp.Model(coords={"k": 2}) as model:
        mu = svmp.MvNormal("mu", mu=np.zeros(2), tau=0.1 * np.eye(2), dims="k")
        tau = svmp.Wishart("tau", nu=4, V=np.eye(2), dims=("k", "k"))
        svmp.MvNormal("y", mu=mu, tau=tau, dims=("row", "k"), observed=X)
    return model


def tight(model: svmp.Model) -> svmp.Fit:
    return svmp.fit(model, svmp.FullVB(), tol=1e-15, max_sweeps=5000, kernels=False)


def test_it_is_exact_where_the_posterior_is_normal() -> None:
    model = crossed()
    found = tight(model).covariance(["mu", "a", "b", "w"], model=model)
    precision = np.diag([0.1, *np.zeros(4), *np.full(3, 3.0), 1.0, 1.0])
    for group in range(4):
        tie = np.eye(10)[1 + group] - np.eye(10)[0]
        precision += 2 * np.outer(tie, tie)
    design = np.concatenate([np.zeros((30, 1)), np.eye(4)[GROUP], np.eye(3)[SIDE], X], axis=1)
    exact = np.linalg.inv(precision + 1.5 * design.T @ design)
    np.testing.assert_allclose(found.matrix, exact, rtol=0, atol=1e-8 * exact.max())
    np.testing.assert_allclose(found.std("a"), np.sqrt(np.diag(exact)[1:5]), rtol=1e-7)
    np.testing.assert_allclose(found.between("mu", "w"), exact[:1, 8:], atol=1e-8)
    np.testing.assert_allclose(np.diag(found.correlation), 1)


def test_sd_of_a_hyper_mean_is_near_that_of_quadrature() -> None:
    """Eight schools: given tau, y and mu are Normal, so that one integral remains."""
    model = schools()
    fit = tight(model)
    tau = np.exp(np.linspace(-9, 1, 4001))
    precision = 1 / (SD**2 + 1 / tau[:, None])
    total = precision.sum(axis=1) + 1 / 25
    mean = precision @ EFFECT / total
    log_weight = 0.5 * (np.log(precision).sum(axis=1) - np.log(total) + total * mean**2)
    log_weight += -0.5 * precision @ EFFECT**2 + 2 * np.log(tau) - 40 * tau
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    sd = np.sqrt(weight @ (1 / total + mean**2) - (weight @ mean) ** 2)
    found = fit.covariance("mu", model=model)
    assert fit.std("mu", corrected=False) < 0.6 * sd
    assert found.std("mu") == pytest.approx(sd, rel=0.05)


@pytest.mark.parametrize(
    ("declare", "tilted", "read"),
    [
        (schools, "tau", ("mu", "theta")),
        (mixture, "tau", ("p", "mu")),
        (logistic, "level", ("w",)),
        (factors, "tau", ("u", "v")),
        (vectors, "mu", ("tau",)),
    ],
)
def test_it_is_the_response_of_a_fit_to_a_tilt(
    declare: Callable[[], svmp.Model], tilted: str, read: tuple[str, ...]
) -> None:
    """Tilt the log joint by t times x, and fit again: the means move by their covariance with x."""
    model = declare()
    start = tight(model)
    found = start.covariance([tilted, *read], model=model, method="linear_response")
    step = 5e-3 / found.std(tilted).ravel()[0]
    moved = []
    for t in (step, -step):
        size = start[tilted].natural.shape
        learned = np.zeros(size)
        learned[0, 0] = t
        network = Network(model, {tilted: learned})
        again = fit_model(
            network, svmp.FullVB(), init=start, tol=1e-15, max_sweeps=5000, kernels=False
        )
        moved.append(np.concatenate([again.mean(name).ravel() for name in read]))
    response = (moved[0] - moved[1]) / (2 * step)
    column = np.concatenate([found.between(name, tilted)[:, 0] for name in read])
    np.testing.assert_allclose(column, response, rtol=1e-3, atol=1e-4 * np.abs(response).max())


def test_choices_that_are_not_stored_are_included() -> None:
    model = mixture()
    plain, compiled = tight(model), svmp.fit(model, svmp.FullVB(), tol=1e-15, kernels=True)
    expected = plain.covariance(["mu", "p"], model=model).matrix
    found = compiled.covariance(["mu", "p"], model=model).matrix
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_mean_field_is_q_itself() -> None:
    model = mixture()
    fit = tight(model)
    found = fit.covariance(["p", "tau"], model=model, method="mean_field")
    np.testing.assert_allclose(found.var("p"), fit.var("p", corrected=False))
    np.testing.assert_allclose(found.var("tau"), fit.var("tau", corrected=False))
    assert np.all(found.between("p", "tau") == 0)


def test_bad_input_is_refused() -> None:
    model = schools()
    fit = svmp.fit(model)
    for names in ("nothing", [], 3, ["mu", "mu"], ["mu", 3]):
        with pytest.raises(svmp.ModelError, match=r"hidden variable|twice"):
            fit.covariance(names, model=model)  # type: ignore[arg-type]
    with pytest.raises(svmp.ModelError, match="method must be one of"):
        fit.covariance("mu", model=model, method="laplace")
    with pytest.raises(svmp.ModelError, match="give the model that was fitted"):
        fit.covariance("mu", model=mixture())
    early = svmp.fit(model, svmp.FullVB(), max_sweeps=1)
    with pytest.raises(svmp.ModelError, match=r"not at a fixed point.*fit on with init=fit"):
        early.covariance("mu", model=model)


def test_saddle_points_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two components that start alike stay alike, which is no maximum of the bound."""
    model = mixture()
    init = {"mu": {"mu": np.zeros(2), "tau": np.ones(2)}, "z": np.full((30, 2), 0.5)}
    with np.errstate(all="ignore"):
        fit = svmp.fit(
            model, svmp.FullVB(order=["p", "mu", "tau", "z"]), init=init, tol=1e-12, kernels=False
        )
    assert np.ptp(fit.mean("mu")) < 1e-6
    with pytest.raises(svmp.ModelError, match="saddle point"):
        fit.covariance("mu", model=model)
    for module in (linear_response, sparse_response):
        monkeypatch.setattr(module, "LARGEST", 0)
        with pytest.raises(svmp.ModelError, match="saddle point"):
            fit.covariance("mu", model=model)


@pytest.mark.slow
def test_crossed_effects_are_near_a_long_gibbs_run() -> None:
    """sds of the grand mean and of three precisions, of 40 and 30 crossed effects."""
    rng = np.random.default_rng(1)
    sizes, count = (40, 30), 1500
    left, right = (rng.integers(0, size, count) for size in sizes)
    effects = rng.normal(0, 1.0, sizes[0])[left] + rng.normal(0, 0.8, sizes[1])[right]
    y = 2 + effects + rng.normal(size=count)
    with svmp.Model(coords={"left": sizes[0], "right": sizes[1]}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.01)
        levels = [svmp.Gamma(name, alpha=1, beta=1) for name in ("tau_a", "tau_b", "tau")]
        a = svmp.Normal("a", mu=0, tau=levels[0], dims="left")
        b = svmp.Normal("b", mu=0, tau=levels[1], dims="right")
        svmp.Normal("y", mu=mu + a[left] + b[right], tau=levels[2], observed=y)
    fit = svmp.fit(model, tol=1e-9, kernels=False)
    names = ["mu", "tau_a", "tau_b", "tau"]
    found = fit.covariance(names, model=model)
    design = np.concatenate([np.ones((count, 1)), np.eye(40)[left], np.eye(30)[right]], axis=1)
    gram, moment = design.T @ design, design.T @ y
    tau, draws = np.ones(3), []
    for _ in range(6000):
        prior = np.repeat([0.01, tau[0], tau[1]], [1, *sizes])
        root = np.linalg.cholesky(tau[2] * gram + np.diag(prior))
        mean = np.linalg.solve(root.T, np.linalg.solve(root, tau[2] * moment))
        x = mean + np.linalg.solve(root.T, rng.normal(size=71))
        squares = [x[1:41] @ x[1:41], x[41:] @ x[41:], ((y - design @ x) ** 2).sum()]
        tau = rng.gamma(1 + np.array([*sizes, count]) / 2, 1 / (1 + 0.5 * np.array(squares)))
        draws.append([x[0], *tau])
    exact = np.std(draws[200:], axis=0)
    assert fit.std("mu", corrected=False) < 0.2 * exact[0]
    np.testing.assert_allclose([found.std(name) for name in names], exact, rtol=0.1)


def test_parents_that_are_observed_in_part_count() -> None:
    x = np.array([1.0, np.nan, 0.5, np.nan, 2.0])
    y = np.array([2.0, 1.0, 0.0, 3.0, 2.5])
    with svmp.Model(coords={"row": 5}) as model:
        m, a = svmp.Normal("m", mu=0, tau=0.5), svmp.Normal("a", mu=0, tau=0.5)
        z = svmp.Normal("x", mu=m, tau=2, dims="row", observed=x, missing=True)
        svmp.Normal("y", mu=z + a, tau=3, dims="row", observed=y)
    fit = svmp.fit(model, svmp.FullVB(), tol=1e-14)
    found = fit.covariance(["m", "a"], model=model, method="linear_response").matrix
    precision = np.diag([0.5, 0.5, 0.0, 0.0])  # of m, a and the two values that are missing
    for row in range(5):
        value = {1: 2, 3: 3}.get(row)
        above, below = np.zeros(4), np.zeros(4)
        above[0], below[1] = -1, 1
        if value is not None:
            above[value] = below[value] = 1
        precision += 2 * np.outer(above, above) + 3 * np.outer(below, below)
    np.testing.assert_allclose(found, np.linalg.inv(precision)[:2, :2], rtol=1e-5)
    with pytest.raises(svmp.ModelError, match="'x' is observed in part"):
        fit.covariance(["x"], model=model)
    with pytest.raises(svmp.ModelError, match="'x' is a parent that is observed in part"):
        fit.khat(model)
