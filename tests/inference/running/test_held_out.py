"""The score of held-out values: closed forms and refusals; it does not change the run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, gammaln, logsumexp

import svmp
from tests.inference.checkpoints.test_checkpoint import same_bits
from tests.inference.running.test_estimate import Stops, estimate

NAN = np.nan


def coin(observed: Any = (1, 0, 1, NAN, NAN, NAN)) -> svmp.Model:
    with svmp.Model() as model:
        p = svmp.Beta("p", alpha=1, beta=2)
        svmp.Bernoulli("x", p=p, observed=np.array(observed, dtype=float), missing=True)
    return model


HELD = {"x": [NAN, NAN, NAN, 1, 0, NAN]}


def test_score_of_a_coin() -> None:
    """After 2 of 3: q is Beta(3, 3), and E[log p] = E[log (1 - p)] = psi(3) - psi(6)."""
    fit = svmp.fit(coin(), held_out=HELD)
    expected = digamma(3) - digamma(6)
    assert fit.trace["held_out"][-1] == pytest.approx(expected, rel=1e-12)
    one = fit.held_out(coin(), {"x": [NAN, NAN, NAN, 1, NAN, NAN]})
    assert one == pytest.approx(expected, rel=1e-12)
    assert one < np.log(0.5)  # Jensen: the predictive probability is 3 / 6


def test_score_includes_the_base_measure() -> None:
    """Counts with a Gamma rate: E[log p(y)] = y E[log rate] - E[rate] - log y!."""
    counts = np.ma.masked_array([3, 4, 8, 0], mask=[0, 0, 0, 1])
    with svmp.Model() as model:
        rate = svmp.Gamma("rate", alpha=2, beta=1)
        svmp.Poisson("y", mu=rate, observed=counts)
    held = np.ma.masked_array([0, 0, 0, 6], mask=[1, 1, 1, 0])
    fit = svmp.fit(model, held_out={"y": held})  # q is Gamma(17, 4)
    expected = 6 * (digamma(17) - np.log(4)) - 17 / 4 - gammaln(7)
    assert fit.trace["held_out"][-1] == pytest.approx(expected, rel=1e-12)
    predictive = stats.nbinom(17, 4 / 5).logpmf(6)
    assert expected < predictive


def test_score_of_a_normal_with_keys() -> None:
    """E[log N(y; mu, 1)] = log N(y; m, 1) - s^2 / 2, over the groups of the held-out rows."""
    group, y = np.array([0, 0, 1, 1, 1, 0]), np.array([1.0, 2.0, NAN, -1.0, NAN, NAN])
    truth = np.array([NAN, NAN, 0.3, NAN, -2.0, 1.4])
    with svmp.Model(coords={"group": 2}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.5, dims="group")
        svmp.Normal("y", mu=mu[group], tau=1, observed=y, missing=True)
    fit = svmp.fit(model, held_out={"y": truth})
    mean, variance = np.array([3 / 2.5, -1 / 1.5]), np.array([1 / 2.5, 1 / 1.5])
    held = [2, 4, 5]
    each = stats.norm.logpdf(truth[held], mean[group[held]]) - variance[group[held]] / 2
    assert fit.trace["held_out"][-1] == pytest.approx(each.mean(), rel=1e-9)


@pytest.mark.parametrize("kernels", [True, False])
def test_score_of_ratings(kernels: bool) -> None:
    """E[log N(r; u . v, 1)] has the variance of u . v, factor by factor."""
    rng = np.random.default_rng(5)
    user, item, rating = rng.integers(9, size=90), rng.integers(7, size=90), rng.normal(size=90)
    out = rng.random(90) < 0.3
    with svmp.Model(coords={"user": 9, "item": 7, "factor": 2}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        mean = svmp.dot(u[user], v[item])
        svmp.Normal("r", mu=mean, tau=1, observed=rating, missing=out)
    truth = {"r": np.where(out, rating, NAN)}
    fit = svmp.fit(model, svmp.FullVB(), max_sweeps=5, held_out=truth, kernels=kernels)
    a, b = fit.posteriors["u"].mean[user[out]], fit.posteriors["v"].mean[item[out]]
    s, t = fit.posteriors["u"].var[user[out]], fit.posteriors["v"].var[item[out]]
    variance = (a**2 * t + s * b**2 + s * t).sum(axis=1)
    each = stats.norm.logpdf(rating[out], (a * b).sum(axis=1)) - variance / 2
    assert fit.trace["held_out"][-1] == pytest.approx(each.mean(), rel=1e-6)
    assert fit.held_out(model, truth) == pytest.approx(each.mean(), rel=1e-10)


def mixture() -> tuple[svmp.Model, np.ndarray]:
    rng = np.random.default_rng(0)
    whole = np.concatenate([rng.normal(-2, 1, 40), rng.normal(2, 1, 40)])
    out = rng.random(80) < 0.2
    with svmp.Model(coords={"k": 2, "row": 80}) as model:
        w = svmp.Dirichlet("w", a=1, dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        m = svmp.Normal("m", mu=0, tau=0.1, dims="k")
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="k")
        x = np.where(out, NAN, whole)
        component = svmp.Normal.dist(mu=m, tau=tau)
        svmp.Mixture("x", z, component, dims="row", observed=x, missing=True)
    return model, np.where(out, whole, NAN)


def mixture_score(fit: svmp.Fit, held: np.ndarray) -> float:
    """The mean of log sum_z exp(E[log w_z] + E[log N(y; m_z, 1 / tau_z)]), by hand."""
    y = held[np.isfinite(held), None]
    a, m, tau = fit.posteriors["w"].a, fit.posteriors["m"], fit.posteriors["tau"]
    log_w = digamma(a) - digamma(a.sum())
    log_tau, mean_tau = digamma(tau.alpha) - np.log(tau.beta), tau.alpha / tau.beta
    square = (y - m.mu) ** 2 + 1 / m.tau
    log_density = 0.5 * (log_tau - np.log(2 * np.pi) - mean_tau * square)
    return float(logsumexp(log_w + log_density, axis=1).mean())


@pytest.mark.parametrize("method", [svmp.FullVB(), svmp.Batch(10), svmp.Children(5)])
def test_score_of_a_mixture(method: Any) -> None:
    model, held = mixture()
    fit = svmp.fit(model, method, held_out={"x": held}, max_sweeps=20)
    expected = mixture_score(fit, held)
    assert fit.trace["held_out"][-1] == pytest.approx(expected, rel=1e-10)
    assert fit.held_out(model, {"x": held}) == pytest.approx(expected, rel=1e-10)


def test_score_of_words() -> None:
    """The mean of log sum_k exp(E[log theta_dk] + E[log phi_kw])."""
    rng = np.random.default_rng(1)
    doc, word = rng.integers(0, 5, 200), rng.integers(0, 9, 200)
    out = rng.random(200) < 0.2
    with svmp.Model(coords={"doc": 5, "topic": 2, "word": 9, "token": 200}) as model:
        theta = svmp.Dirichlet("theta", a=0.5, dims=("doc", "topic"))
        phi = svmp.Dirichlet("phi", a=0.5, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[doc], dims="token")
        component = svmp.Categorical.dist(p=phi)
        svmp.Mixture("w", z, component, dims="token", observed=word, missing=out)
    fit = svmp.fit(model, max_sweeps=5, held_out={"w": np.where(out, word, NAN)})

    def log_p(name: str) -> np.ndarray:
        a = fit[name].a
        return digamma(a) - digamma(a.sum(axis=1, keepdims=True))

    each = logsumexp(log_p("theta")[doc] + log_p("phi")[:, word].T, axis=1)[out]
    assert fit.trace["held_out"][-1] == pytest.approx(each.mean(), rel=1e-10)


def test_locals_that_share_a_row_are_optimised_together() -> None:
    """y = s . w with s of the row: the best factorised q(s), by its normal equations."""
    rng = np.random.default_rng(2)
    y = rng.normal(size=12)
    out = np.arange(12) < 3
    with svmp.Model(coords={"row": 12, "d": 2}) as model:
        w = svmp.Normal("w", mu=1, tau=1, dims="d")
        s = svmp.Normal("s", mu=0, tau=1, dims=("row", "d"))
        svmp.Normal("y", mu=svmp.dot(s, w), tau=2, dims="row", observed=y, missing=out)
    fit = svmp.fit(model, max_sweeps=4, held_out={"y": np.where(out, y, NAN)})
    m, v = fit.mean("w"), fit.var("w")
    precision = np.eye(2) + 2 * (np.outer(m, m) + np.diag(v))
    scores = []
    for value in y[out]:
        mean, variance = np.linalg.solve(precision, 2 * m * value), 1 / np.diag(precision)
        square = value**2 - 2 * value * m @ mean
        square += mean @ (precision - np.eye(2)) @ mean / 2 + variance @ (m**2 + v)
        prior = stats.norm.logpdf(mean).sum() - variance.sum() / 2
        entropy = np.sum(0.5 * np.log(2 * np.pi * np.e * variance))
        scores.append(0.5 * np.log(2 / (2 * np.pi)) - square + prior + entropy)
    assert fit.trace["held_out"][-1] == pytest.approx(np.mean(scores), rel=1e-8)


def test_local_variable_with_a_row_in_training_is_not_changed() -> None:
    """Two observations of one Categorical: the second is scored under its q given the first."""
    x, y = np.array([-2.0, 2.5, 1.0, -1.5]), np.array([NAN, NAN, NAN, NAN])
    with svmp.Model(coords={"k": 2, "row": 4}) as model:
        w = svmp.Dirichlet("w", a=1, dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        m = svmp.Normal("m", mu=[-2, 2], tau=1, dims="k")
        component = svmp.Normal.dist(mu=m, tau=1)
        svmp.Mixture("x", z, component, dims="row", observed=x)
        y[0] = -3.0
        out = np.array([False, True, True, True])
        svmp.Mixture("y", z[[3, 0, 1, 2]], component, dims="row", observed=y, missing=out)
    with pytest.raises(svmp.ModelError, match="observed in training"):
        svmp.fit(model, held_out={"y": [-3.0, -1.0, NAN, NAN]})
    fit = svmp.fit(model, held_out={"y": [NAN, -1.0, 3.0, NAN]})
    m, v, z = (
        fit.mean("m", corrected=False),
        fit.var("m", corrected=False),
        fit.mean("z", corrected=False),
    )
    each = [z[i] @ (stats.norm.logpdf(value, m) - v / 2) for i, value in ((0, -1.0), (1, 3.0))]
    assert fit.trace["held_out"][-1] == pytest.approx(np.mean(each), rel=1e-9)


def test_score_does_not_change_the_run() -> None:
    model, held = mixture()
    for method in (svmp.FullVB(), svmp.Batch(10)):
        plain = svmp.fit(model, method, max_sweeps=10)
        scored = svmp.fit(model, method, max_sweeps=10, held_out={"x": held})
        assert same_bits(plain, scored)
        assert "held_out" not in plain.trace.columns
        assert scored.trace.columns == [*plain.trace.columns, "held_out"]
        np.testing.assert_array_equal(plain.trace["bound"], scored.trace["bound"])
        assert len(scored.trace["held_out"]) == len(scored.trace)


def test_estimates_have_a_score_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "LARGE", 0)
    monkeypatch.setattr(estimate, "FEWEST", 10)
    monkeypatch.setattr(estimate, "PART", 5)
    model, held = mixture()
    trace = svmp.fit(model, svmp.Batch(5), max_sweeps=10, tol=0, held_out={"x": held}).trace
    assert (trace["bound_se"] > 0).any()
    assert np.isfinite(list(trace.to_dict().values())).all()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1, 0], "held_out must be values by variable"),
        ({}, "held_out must be values by variable"),
        ({"p": 0.5}, "not an observed variable; there are"),
        ({3: [1.0]}, "not an observed variable"),
        ({"x": [1, 0]}, r"held_out: .* shape \(2,\) instead of \(6,\)"),
        ({"x": None}, "held_out: "),
        ({"x": ["a"] * 6}, "held_out: .* are not numbers"),
        ({"x": [NAN] * 6}, "held_out: every value of 'x' is missing"),
        ({"x": [NAN, NAN, NAN, 2, NAN, NAN]}, r"held_out: 'x' holds 2.0 at \(3,\)"),
        ({"x": [NAN, 0, NAN, 1, NAN, NAN]}, r"'x' at \(1,\), which is observed in training"),
        ({"x": [1, 0, 1, 1, 1, 1]}, r"'x' at \(0,\), which is observed in training"),
    ],
)
def test_refusals(values: Any, reason: str) -> None:
    fit = svmp.fit(coin())
    with pytest.raises(svmp.ModelError, match=reason):
        svmp.fit(coin(), held_out=values)
    with pytest.raises(svmp.ModelError, match=reason):
        fit.held_out(coin(), values)


def test_few_values_far_from_zero_can_be_held_out() -> None:
    """In training such values are refused, as their variance would be lost in rounding."""
    y = np.array([1e6 - 50, 1e6 + 50, NAN, NAN])
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=1e6, tau=1)
        svmp.Normal("y", mu=mu, tau=1, observed=y, missing=True)
    held = np.array([NAN, NAN, 1e6 + 0.1, 1e6 + 0.2])
    fit = svmp.fit(model, held_out={"y": held})
    each = stats.norm.logpdf(held[2:], 1e6) - 1 / 6
    assert fit.trace["held_out"][-1] == pytest.approx(each.mean(), abs=1e-3)


def test_model_must_be_that_of_the_fit() -> None:
    fit = svmp.fit(coin())
    model, held = mixture()
    with pytest.raises(svmp.ModelError, match="the fit has q of"):
        fit.held_out(model, {"x": held})
    with pytest.raises(svmp.ModelError, match=r"model must be a svmp\.Model"):
        fit.held_out(HELD, HELD)


def test_resumed_run_has_the_same_column(tmp_path: Any) -> None:
    model, held = mixture()
    path, method = tmp_path / "run", svmp.Batch(10)
    options: dict[str, Any] = {"tol": 0, "held_out": {"x": held}}
    whole = svmp.fit(model, method, steps=Stops(), max_sweeps=15, **options)
    with pytest.raises(ZeroDivisionError):
        svmp.fit(model, method, steps=Stops(60), checkpoint=path, every=7, **options)
    with pytest.raises(svmp.FileError, match="other values in held_out; give the same again"):
        svmp.fit(model, steps=Stops(), resume=path)
    with pytest.raises(svmp.FileError, match="other values in held_out; give the same again"):
        svmp.fit(model, steps=Stops(), resume=path, held_out={"x": held + 1})
    masked = np.ma.masked_invalid(held)
    resumed = svmp.fit(model, steps=Stops(), max_sweeps=15, resume=path, held_out={"x": masked})
    assert same_bits(whole, resumed)
    assert len(whole.trace) > 2
    for column in set(whole.trace.columns) - {"seconds"}:
        np.testing.assert_array_equal(whole.trace[column], resumed.trace[column])


def test_adding_held_out_values_on_resume_is_refused(tmp_path: Any) -> None:
    model, held = mixture()
    path = tmp_path / "run"
    svmp.fit(model, max_sweeps=2, checkpoint=path)
    with pytest.raises(svmp.FileError, match="made without held_out; resume without"):
        svmp.fit(model, resume=path, held_out={"x": held})


def test_score_is_saved_with_the_fit(tmp_path: Any) -> None:
    fit = svmp.fit(coin(), held_out=HELD)
    fit.save(tmp_path / "fit")
    again = svmp.load(tmp_path / "fit")
    np.testing.assert_array_equal(again.trace["held_out"], fit.trace["held_out"])
    assert again.held_out(coin(), HELD) == pytest.approx(fit.trace["held_out"][-1])
