"""Normal-Gamma and Normal-Wishart blocks against closed forms: q is the exact posterior."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from scipy.special import multigammaln
from scipy.stats import multivariate_t

import svmp
from svmp.inference.gaussian.analysis import Analysis
from svmp.inference.gaussian.factor import Factor
from svmp.posterior.checks.psis import importance

RNG = np.random.default_rng(2)
N, G, A0, B0 = 30, 5, 3.0, 2.0
x = np.c_[np.ones(N), RNG.normal(1, 1, (N, 2))]
g = RNG.integers(0, G, N)
weight = RNG.gamma(3, 0.4, N)
y = x @ [1.0, -0.5, 2.0] + RNG.normal(size=G)[g] + RNG.normal(size=N)


def regression() -> tuple[svmp.Model, list[str], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a model, its names, P_0 of the prior, its mean, X and the weights of rows."""
    with svmp.Model(coords={"d": 2}) as model:
        tau = svmp.Gamma("tau", alpha=A0, beta=B0)
        a = svmp.Normal("a", mu=1, tau=0.1 * tau)
        w = svmp.MvNormal("w", mu=0, tau=tau * np.array([[2.0, 0.5], [0.5, 1.0]]), dims="d")
        mean = a + svmp.dot(x[:, 1:], w)
        svmp.Normal("y", mu=mean, tau=tau * weight, observed=y)
    prior = np.zeros((3, 3))
    prior[0, 0], prior[1:, 1:] = 0.1, [[2.0, 0.5], [0.5, 1.0]]
    return model, ["a", "w"], prior, np.array([1.0, 0, 0]), x, weight


def hierarchy() -> tuple[svmp.Model, list[str], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    with svmp.Model(coords={"g": G}) as model:
        tau = svmp.Gamma("tau", alpha=A0, beta=B0)
        m = svmp.Normal("m", mu=0, tau=tau * 0.1)
        u = svmp.Normal("u", mu=m, tau=tau, dims="g")
        svmp.Normal("y", mu=u[g], tau=2 * tau, observed=y)
    links = np.eye(1 + G)
    links[1:, 0] = -1
    prior = links.T @ np.diag(np.r_[0.1, np.ones(G)]) @ links
    X = np.c_[np.zeros(N), np.eye(G)[g]]
    return model, ["m", "u"], prior, np.zeros(1 + G), X, np.full(N, 2.0)


@pytest.mark.parametrize("declare", [regression, hierarchy])
@pytest.mark.parametrize("auto", [False, True])
def test_normal_gamma_is_the_exact_posterior(declare: Callable, auto: bool) -> None:
    model, names, prior, centre, X, w = declare()
    fit = svmp.fit(model, svmp.FullVB(), joint="auto" if auto else [(*names, "tau")])
    assert fit.iterations <= 3
    assert fit.joint[0].names == (*names, "tau")
    P = prior + X.T @ (w[:, None] * X)
    mean = np.linalg.solve(P, prior @ centre + X.T @ (w * y))
    r = y - X @ mean
    beta = B0 + 0.5 * (r @ (w * r) + (mean - centre) @ prior @ (mean - centre))
    assert fit["tau"].alpha == pytest.approx(A0 + N / 2)
    assert fit["tau"].beta == pytest.approx(beta)
    assert np.hstack([fit.mean(n).ravel() for n in names]) == pytest.approx(mean)
    spread = np.linalg.inv(P) * beta / (A0 + N / 2 - 1)  # of a multivariate t
    assert fit.covariance(names).matrix == pytest.approx(spread)
    assert np.hstack([fit.var(n).ravel() for n in names]) == pytest.approx(np.diag(spread))
    scale = (np.diag(1 / w) + X @ np.linalg.inv(prior) @ X.T) * B0 / A0
    evidence = multivariate_t(X @ centre, scale, df=2 * A0).logpdf(y)
    assert fit.bound == pytest.approx(evidence, rel=1e-10)
    ratios = importance(fit, model, 100).log_ratios  # constant where q is the posterior
    assert ratios == pytest.approx(np.full(100, evidence))


def test_draws_of_a_block_and_its_precision_are_joint(tmp_path: Path) -> None:
    model, names, *_ = regression()
    fit = svmp.fit(model, joint="auto")
    fit.save(tmp_path / "fit")
    draws = svmp.load(tmp_path / "fit").draw([*names, "tau"], 40_000, seed=3)
    flat = np.c_[draws["a"], draws["w"]]
    truth = fit.covariance(names).matrix
    assert np.cov(flat.T) == pytest.approx(truth, abs=0.03 * np.abs(truth).max())
    scaled = (draws["a"] - fit.mean("a")) * np.sqrt(draws["tau"])  # independent of tau
    square = scaled**2
    assert np.corrcoef(square, draws["tau"])[0, 1] == pytest.approx(0, abs=0.02)
    away = (draws["a"] - fit.mean("a")) ** 2
    assert np.corrcoef(away, 1 / draws["tau"])[0, 1] > 0.1


def damaged_classes(path: Path, values: list[int]) -> None:
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    save_file({**load_file(path), "block0/classes": np.array(values)}, path, metadata=metadata)


@pytest.mark.parametrize("classes", [[0, 0, 1], [0, 0, -1]])
def test_damaged_classes_are_refused(classes: list[int], tmp_path: Path) -> None:
    svmp.fit(regression()[0], joint="auto").save(tmp_path / "fit")
    damaged_classes(tmp_path / "fit", classes)
    with pytest.raises(svmp.FileError, match="damaged: a joint block has precisions outside of it"):
        svmp.load(tmp_path / "fit")


def test_held_out_score_after_the_fit_is_that_of_the_trace() -> None:
    gap, values = y.copy(), np.full(N, np.nan)
    gap[3], values[3] = np.nan, y[3]
    with svmp.Model() as model:
        tau = svmp.Gamma("tau", alpha=A0, beta=B0)
        a = svmp.Normal("a", mu=1, tau=0.1 * tau)
        b = svmp.Normal("b", mu=1, tau=0.1 * tau)
        svmp.Normal("y", mu=a + b * x[:, 1], tau=tau, observed=gap, missing=True)
    fit = svmp.fit(model, joint="auto", held_out={"y": values})
    assert fit.held_out(model, {"y": values}) == pytest.approx(fit.trace["held_out"][-1])


def test_normal_wishart_is_the_exact_posterior() -> None:
    rows, nu, V = RNG.normal(size=(12, 2)) @ [[1.0, 0.4], [0, 0.7]] + [1, 2], 5.0, 0.3 * np.eye(2)
    with svmp.Model(coords={"d": 2, "e": 2}) as model:
        tau = svmp.Wishart("tau", nu=nu, V=V, dims=("d", "e"))
        m = svmp.MvNormal("m", mu=[1, 0], tau=0.5 * tau, dims="d")
        svmp.MvNormal("y", mu=m, tau=tau, dims=("row", "d"), observed=rows)
    fit = svmp.fit(model, svmp.FullVB(), joint=[("m", "tau")])
    n, kappa, m0 = len(rows), 0.5, np.array([1.0, 0])
    mean = rows.mean(axis=0)
    away = (mean - m0)[:, None]
    S = np.linalg.inv(V) + (rows - mean).T @ (rows - mean)
    S = S + kappa * n / (kappa + n) * away @ away.T
    assert fit["m"].mean == pytest.approx((kappa * m0 + n * mean) / (kappa + n))
    assert fit["tau"].nu == pytest.approx(nu + n)
    assert np.linalg.inv(fit["tau"].V) == pytest.approx(S)
    assert fit.covariance("m").matrix == pytest.approx(S / (kappa + n) / (nu + n - 3))
    evidence = multigammaln((nu + n) / 2, 2) - multigammaln(nu / 2, 2) + np.log(kappa / (kappa + n))
    evidence -= n * np.log(np.pi)
    evidence -= 0.5 * nu * np.linalg.slogdet(V)[1] + 0.5 * (nu + n) * np.linalg.slogdet(S)[1]
    assert fit.bound == pytest.approx(evidence, rel=1e-10)
    ratios = importance(fit, model, 100).log_ratios  # constant where q is the posterior
    assert ratios == pytest.approx(np.full(100, evidence))
    draws = fit.draw(["m", "tau"], 40_000, seed=0)
    truth = fit.covariance("m").matrix
    assert np.cov(draws["m"].T) == pytest.approx(truth, abs=0.03 * truth.max())


def test_components_of_a_mixture_in_pairs() -> None:
    """Each component has a Normal-Gamma of its own, with the rows weighted by its probability."""
    values = np.r_[RNG.normal(-4, 1, 20), RNG.normal(4, 0.5, 30)]
    with svmp.Model(coords={"k": 2, "row": 50}) as model:
        tau = svmp.Gamma("tau", alpha=A0, beta=B0, dims="k")
        c = svmp.Normal("c", mu=0, tau=0.2 * tau, dims="k")
        z = svmp.Categorical("z", p=svmp.data([0.5, 0.5], dims="k"), dims="row")
        svmp.Mixture("v", z, svmp.Normal.dist(mu=c, tau=tau), dims="row", observed=values)
    fit = svmp.fit(model, svmp.FullVB(), joint=[("c", "tau")], tol=1e-13, seed=1)
    assert (np.diff(fit.trace["bound"]) > -1e-10).all()
    p = fit.mean("z")
    count = p.sum(axis=0)
    mean = values @ p / (0.2 + count)
    assert fit.mean("c") == pytest.approx(mean, abs=1e-6)
    assert fit["tau"].alpha == pytest.approx(A0 + count / 2, abs=1e-6)
    squares = (p * (values[:, None] - mean) ** 2).sum(axis=0) + 0.2 * mean**2
    assert fit["tau"].beta == pytest.approx(B0 + squares / 2, rel=1e-6)
    assert svmp.fit(model, svmp.FullVB(), tol=1e-13, seed=1).bound < fit.bound


def test_resumed_pairs_have_the_same_bits(tmp_path: Path) -> None:
    def model() -> svmp.Model:
        with svmp.Model(coords={"g": G}) as declared:
            tau = svmp.Gamma("tau", alpha=A0, beta=B0)
            a = svmp.Normal("a", mu=0, tau=tau)
            tu = svmp.Gamma("tu", alpha=1, beta=1)
            u = svmp.Normal("u", mu=0, tau=tu, dims="g")
            svmp.Normal("y", mu=a + u[g], tau=tau, observed=y)
        return declared

    options = {"joint": [("a", "tau")], "tol": 0}
    whole = svmp.fit(model(), svmp.FullVB(), max_sweeps=7, **options)
    assert (np.diff(whole.trace["bound"]) > -1e-9).all()
    path = tmp_path / "run"
    svmp.fit(model(), svmp.FullVB(), max_sweeps=3, checkpoint=path, **options)
    resumed = svmp.fit(model(), resume=path, max_sweeps=7)
    assert np.array_equal(resumed.trace["bound"], whole.trace["bound"])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("a", "other"), "the precision of 'a' is not a known multiple of 'other'"),
        (("a", "b", "tau"), "the precision of 'b' is not a known multiple of 'tau'"),
        (("a", "tau", "other"), "with one Gamma or Wishart at most"),
        (("tau",), "has a block of 'tau', and a block has Normals or MvNormals"),
    ],
)
def test_other_pairs_are_refused(names: tuple[str, ...], said: str) -> None:
    with svmp.Model() as model:
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        other = svmp.Gamma("other", alpha=1, beta=1)
        a = svmp.Normal("a", mu=0, tau=tau)
        b = svmp.Normal("b", mu=0, tau=other)
        svmp.Normal("y", mu=a + b, tau=tau, observed=[1.0, 2.0])
    with pytest.raises(svmp.ModelError, match=said):
        svmp.fit(model, joint=[names])


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list with an entry for each factor that is made."""
    found, factorise = [], Factor.of

    def counted(analysis: Analysis, values: np.ndarray) -> Factor:
        found.append(1)
        return factorise(analysis, values)

    monkeypatch.setattr(Factor, "of", counted)
    return found


def test_a_factor_is_kept_while_its_matrix_is_the_same(made: list[int]) -> None:
    """With a Wishart the posterior is reached at once: one factor before, and one after that."""
    values = RNG.normal(size=(30, 2)) @ [[1, 0.5], [0, 1]]
    with svmp.Model(coords={"row": 30, "d": 2, "e": 2}) as model:
        tau = svmp.Wishart("tau", nu=4, V=np.eye(2), dims=("d", "e"))
        m = svmp.MvNormal("m", mu=0, tau=0.1 * tau, dims="d")
        svmp.MvNormal("y", mu=m, tau=tau, dims=("row", "d"), observed=values)
    svmp.fit(model, svmp.FullVB(), joint=[("m", "tau")], tol=0, max_sweeps=5)
    assert len(made) == 2


def test_a_sweep_with_a_pair_factorises_once(made: list[int]) -> None:
    """The covariances scale with the precision of all rows."""
    with svmp.Model(coords={"g": G}) as model:
        tau = svmp.Gamma("tau", alpha=A0, beta=B0)
        a = svmp.Normal("a", mu=0, tau=0.1 * tau)
        u = svmp.Normal("u", mu=0, tau=2 * tau, dims="g")
        svmp.Normal("y", mu=a + u[g], tau=tau, observed=y)
    fit = svmp.fit(model, svmp.FullVB(), joint=[("a", "u", "tau")], tol=0, max_sweeps=5)
    assert len(made) == 5
    (block,) = fit.joint
    scale = np.r_[0.1, np.full(G, 2.0)]
    x = np.c_[np.ones(len(y)), np.eye(G)[g]]
    exact = np.linalg.inv(x.T @ x + np.diag(scale)) / fit.mean("tau")
    assert block.covariance.dense(np.arange(G + 1)) == pytest.approx(exact)
