"""Joint blocks against exact posteriors: dense solutions, evidence, and dense fixed points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.special import digamma, gammaln
from scipy.stats import multivariate_normal

import svmp
from svmp.inference.gaussian import analysis
from svmp.inference.updaters import joint_rows
from svmp.posterior.uncertainty.covariance_of_q import covariance_of

RNG = np.random.default_rng(3)
N, G, H = 60, 9, 5
g, h = RNG.integers(0, G - 1, N), RNG.integers(0, H, N)  # the last group has no rows
x, z = RNG.normal(2, 1, N), RNG.normal(size=(N, 30))
y = 1 + RNG.normal(size=G)[g] + RNG.normal(size=H)[h] + 0.5 * x + RNG.normal(size=N)
ONE, Z = np.ones((N, 1)), np.zeros
AT_G, AT_H = np.eye(G)[g], np.eye(H)[h]


@dataclass
class Exact:
    """theta = A theta + b + e, y = X theta + f: the posterior and the evidence, by dense matrices.

    Attributes
    ----------
    names, A, b, prior, X, noise
        Variables in the order of theta; precisions of e and f on the diagonal or as a matrix.
    """

    names: list[str]
    A: np.ndarray
    b: np.ndarray
    prior: np.ndarray
    X: np.ndarray
    noise: np.ndarray

    def solve(self) -> tuple[np.ndarray, np.ndarray, float]:
        own = np.eye(len(self.b)) - self.A
        tau = self.prior if self.prior.ndim == 2 else np.diag(self.prior)
        before = own.T @ tau @ own
        mean = np.linalg.solve(own, self.b)
        after = before + self.X.T @ (self.noise[:, None] * self.X)
        covariance = np.linalg.inv(after)
        linear = before @ mean + self.X.T @ (self.noise * y)
        spread = self.X @ np.linalg.inv(before) @ self.X.T + np.diag(1 / self.noise)
        evidence = multivariate_normal(self.X @ mean, spread).logpdf(y)
        return covariance @ linear, covariance, float(evidence)


def nested() -> tuple[svmp.Model, Exact]:
    with svmp.Model(coords={"g": G}) as model:
        mu = svmp.Normal("mu", mu=1.5, tau=0.01)
        u = svmp.Normal("u", mu=2 * mu - 1, tau=0.5, dims="g")
        svmp.Normal("y", mu=u[g], tau=2, observed=y)
    A = Z((1 + G, 1 + G))
    A[1:, 0] = 2
    b, prior = np.r_[1.5, -np.ones(G)], np.r_[0.01, np.full(G, 0.5)]
    return model, Exact(["mu", "u"], A, b, prior, np.c_[0 * ONE, AT_G], np.full(N, 2.0))


def crossed() -> tuple[svmp.Model, Exact]:
    weight = RNG.gamma(2, 1, N)
    with svmp.Model(coords={"g": G, "h": H}) as model:
        a = svmp.Normal("a", mu=0, tau=0.01)
        u = svmp.Normal("u", mu=0, tau=0.5, dims="g")
        v = svmp.Normal("v", mu=0, tau=2, dims="h")
        svmp.Normal("y", mu=a + u[g] + v[h], tau=weight, observed=y)
    size = 1 + G + H
    prior = np.r_[0.01, np.full(G, 0.5), np.full(H, 2.0)]
    X = np.c_[ONE, AT_G, AT_H]
    return model, Exact(["a", "u", "v"], Z((size, size)), Z(size), prior, X, weight)


def slopes() -> tuple[svmp.Model, Exact]:
    with svmp.Model(coords={"g": G}) as model:
        a = svmp.Normal("a", mu=0, tau=0.01)
        b = svmp.Normal("b", mu=1, tau=0.1)
        u = svmp.Normal("u", mu=a, tau=0.5, dims="g")
        s = svmp.Normal("s", mu=b, tau=4, dims="g")
        svmp.Normal("y", mu=u[g] + s[g] * x, tau=2, observed=y)
    A = Z((2 + 2 * G, 2 + 2 * G))
    A[2 : 2 + G, 0] = A[2 + G :, 1] = 1
    b0 = np.r_[0, 1, Z(2 * G)]
    prior = np.r_[0.01, 0.1, np.full(G, 0.5), np.full(G, 4.0)]
    X = np.c_[0 * ONE, 0 * ONE, AT_G, AT_G * x[:, None]]
    return model, Exact(["a", "b", "u", "s"], A, b0, prior, X, np.full(N, 2.0))


def regression() -> tuple[svmp.Model, Exact]:
    """Coefficients declared one by one, and many of them in one variable and in a vector."""
    with svmp.Model(coords={"k": 30, "d": 2}) as model:
        a = svmp.Normal("a", mu=0, tau=0.01)
        b = svmp.Normal("b", mu=0, tau=0.1)
        w = svmp.Normal("w", mu=0, tau=3, dims="k")
        c = svmp.MvNormal("c", mu=0, tau=[[2, 1], [1, 2]], dims="d")
        mean = a + b * x + svmp.dot(z, w) + svmp.dot(z[:, :2] ** 2, c)
        svmp.Normal("y", mu=mean, tau=2, observed=y)
    prior = block_diag(0.01, 0.1, 3 * np.eye(30), [[2, 1], [1, 2]])
    X = np.c_[ONE, x, z, z[:, :2] ** 2]
    exact = Exact(["a", "b", "w", "c"], Z((34, 34)), Z(34), prior, X, np.full(N, 2.0))
    return model, exact


def vectors() -> tuple[svmp.Model, Exact]:
    tau, top = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[0.3, 0.1], [0.1, 0.2]])
    with svmp.Model(coords={"g": G, "d": 2}) as model:
        m = svmp.MvNormal("m", mu=[1, 0], tau=top, dims="d")
        w = svmp.MvNormal("w", mu=m, tau=tau, dims=("g", "d"))
        svmp.Normal(
            "y", mu=svmp.dot(svmp.data(np.c_[ONE, x], ("y_dim_0", "d")), w[g]), tau=2, observed=y
        )
    A = Z((2 + 2 * G, 2 + 2 * G))
    A[2:, :2] = np.tile(np.eye(2), (G, 1))
    prior = block_diag(top, *[tau] * G)
    X = Z((N, 2 + 2 * G))
    X[np.arange(N), 2 + 2 * g], X[np.arange(N), 3 + 2 * g] = 1, x
    b = np.r_[1, Z(1 + 2 * G)]
    return model, Exact(["m", "w"], A, b, prior, X, np.full(N, 2.0))


def mean_vectors() -> tuple[svmp.Model, Exact]:
    """Vectors whose mean is a sum of terms; each is then seen through its first entry."""
    tau = np.array([[2.0, 0.5], [0.5, 1.0]])
    with svmp.Model(coords={"g": G, "d": 2}) as model:
        m = svmp.Normal("m", mu=1, tau=0.1, dims="d")
        s = svmp.Normal("s", mu=0, tau=1, dims="d")
        level = svmp.data(np.arange(G) / G, "g")
        w = svmp.MvNormal("w", mu=m + s * level, tau=tau, dims=("g", "d"))
        mean = svmp.dot(svmp.data(np.c_[ONE, x], ("y_dim_0", "d")), w[g])
        svmp.Normal("y", mu=mean, tau=2, observed=y)
    A = Z((4 + 2 * G, 4 + 2 * G))
    A[4:, :2] = np.tile(np.eye(2), (G, 1))
    A[4:, 2:4] = np.kron(np.arange(G)[:, None] / G, np.eye(2))
    prior = block_diag(0.1 * np.eye(2), np.eye(2), *[tau] * G)
    X = Z((N, 4 + 2 * G))
    X[np.arange(N), 4 + 2 * g], X[np.arange(N), 5 + 2 * g] = 1, x
    b = np.r_[1, 1, Z(2 + 2 * G)]
    return model, Exact(["m", "s", "w"], A, b, prior, X, np.full(N, 2.0))


NETWORKS = [nested, crossed, slopes, regression, vectors, mean_vectors]


@pytest.fixture(params=[False, True], ids=["dense", "eliminated"])
def eliminated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        monkeypatch.setattr(analysis, "SMALL", 0)
        monkeypatch.setattr(analysis, "FEW", 0)
        monkeypatch.setattr(joint_rows, "CHUNK", 64)
    else:
        monkeypatch.setattr(joint_rows, "MOST_PAIRS", 100)


@pytest.mark.usefixtures("eliminated")
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("kernels", [False, True])
def test_fixed_precisions_give_the_posterior_and_the_evidence(
    network: Callable[[], tuple[svmp.Model, Exact]], kernels: bool
) -> None:
    model, exact = network()
    mean, covariance, evidence = exact.solve()
    fit = svmp.fit(model, svmp.FullVB(), joint=[tuple(exact.names)], kernels=kernels)
    assert fit.bound == pytest.approx(evidence, rel=1e-11)
    found = np.concatenate([fit.mean(name).ravel() for name in exact.names])
    assert found == pytest.approx(mean, abs=1e-9)
    matrix = covariance_of(fit.joint, fit.posteriors, exact.names)
    assert matrix == pytest.approx(covariance, abs=1e-10)
    spread = np.concatenate([fit.var(name).ravel() for name in exact.names])
    assert spread == pytest.approx(np.diag(covariance))


@dataclass
class Dense:
    """Coordinate ascent of a nested and crossed model with random precisions, by dense matrices."""

    X: np.ndarray
    alpha: float = 1.0
    beta: float = 2.0

    def run(self) -> tuple[np.ndarray, np.ndarray, dict[str, tuple[float, float]], float]:
        size, tau = 2 + G + H, {"tu": 0.5, "tv": 0.5, "ty": 0.5}
        links = np.eye(size)
        links[2 : 2 + G, 1] = -1  # u around m
        real = np.r_[True, True, np.arange(G) < G - 1, np.ones(H, bool)]  # one group has no rows
        rows = {"tu": links[2 : 2 + G][: G - 1], "tv": links[2 + G :]}
        for _ in range(300):
            own = np.r_[0.01, 0.1, np.full(G, tau["tu"]), np.full(H, tau["tv"])]
            P = links.T @ (own[:, None] * links) + tau["ty"] * self.X.T @ self.X
            S = np.linalg.inv(P)
            m = S @ (tau["ty"] * self.X.T @ y)
            squares = {k: np.trace(r @ (S + np.outer(m, m)) @ r.T) for k, r in rows.items()}
            r = y - self.X @ m
            squares["ty"] = r @ r + np.trace(self.X @ S @ self.X.T)
            counts = {"tu": G - 1, "tv": H, "ty": N}
            q = {k: (self.alpha + counts[k] / 2, self.beta + squares[k] / 2) for k in squares}
            tau = {k: a / b for k, (a, b) in q.items()}
        log = {k: digamma(a) - np.log(b) for k, (a, b) in q.items()}
        bound = 0.5 * sum(
            counts[k] * (log[k] - np.log(2 * np.pi)) - tau[k] * squares[k] for k in squares
        )
        top = np.diag([0.01, 0.1])
        bound += 0.5 * np.log(0.001) - np.log(2 * np.pi)
        bound -= 0.5 * np.trace(top @ (S + np.outer(m, m))[:2, :2])
        for k, (a, b) in q.items():
            prior = self.alpha * np.log(self.beta) - gammaln(self.alpha)
            prior += (self.alpha - 1) * log[k] - self.beta * tau[k]
            bound += prior + a - np.log(b) + gammaln(a) + (1 - a) * digamma(a)
        inner = S[np.ix_(real, real)]  # without the element that has no rows
        bound += 0.5 * (np.linalg.slogdet(inner)[1] + len(inner) * (1 + np.log(2 * np.pi)))
        return m, S, q, bound


def random_precisions() -> svmp.Model:
    with svmp.Model(coords={"g": G, "h": H}) as model:
        a = svmp.Normal("a", mu=0, tau=0.01)
        m = svmp.Normal("m", mu=0, tau=0.1)
        tu = svmp.Gamma("tu", alpha=1, beta=2)
        tv = svmp.Gamma("tv", alpha=1, beta=2)
        ty = svmp.Gamma("ty", alpha=1, beta=2)
        u = svmp.Normal("u", mu=m, tau=tu, dims="g")
        v = svmp.Normal("v", mu=0, tau=tv, dims="h")
        svmp.Normal("y", mu=a + u[g] + v[h], tau=ty, observed=y)
    return model


def in_the_run(fit: svmp.Fit, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return means and covariances before the precisions are integrated over."""
    (block,) = fit.joint
    found = np.concatenate([fit.mean(name).ravel() for name in names]) - block.shift
    return found, block.covariance.dense(np.arange(block.layout.size))


@pytest.mark.usefixtures("eliminated")
@pytest.mark.parametrize("method", [svmp.FullVB(), svmp.Growing(1.0)])
def test_random_precisions_reach_the_dense_fixed_point(method: svmp.FullVB) -> None:
    fit = svmp.fit(random_precisions(), method, joint="auto", tol=1e-13, max_sweeps=400)
    assert fit.joint[0].names == ("a", "m", "u", "v")
    X = np.c_[ONE, 0 * ONE, AT_G, AT_H]
    mean, covariance, q, bound = Dense(X).run()
    assert fit.bound == pytest.approx(bound, rel=1e-10)
    assert (np.diff(fit.trace["bound"]) > -1e-9).all()
    found, matrix = in_the_run(fit, ["a", "m", "u", "v"])
    assert found == pytest.approx(mean, abs=1e-5)
    assert matrix == pytest.approx(covariance, rel=1e-5, abs=1e-6)
    for name, (alpha, beta) in q.items():
        assert fit.posteriors[name].alpha == pytest.approx(alpha)
        assert fit.posteriors[name].beta == pytest.approx(beta, rel=1e-5)


def test_wishart_and_group_vectors_raise_the_bound() -> None:
    """The message to a Wishart has the covariances of vectors and their common mean."""
    with svmp.Model(coords={"g": G, "d": 2, "e": 2}) as model:
        m = svmp.MvNormal("m", mu=0, tau=0.1 * np.eye(2), dims="d")
        tau = svmp.Wishart("tau", nu=4, V=np.eye(2), dims=("d", "e"))
        w = svmp.MvNormal("w", mu=m, tau=tau, dims=("g", "d"))
        ty = svmp.Gamma("ty", alpha=1, beta=1)
        svmp.Normal(
            "y", mu=svmp.dot(svmp.data(np.c_[ONE, x], ("y_dim_0", "d")), w[g]), tau=ty, observed=y
        )
    fit = svmp.fit(model, svmp.FullVB(), joint=[("m", "w")], tol=1e-12)
    assert (np.diff(fit.trace["bound"]) > -1e-9).all()
    mean, S = in_the_run(fit, ["m", "w"])
    second, scale = S + np.outer(mean, mean), np.eye(2)
    for k in range(G - 1):
        r = np.c_[-np.eye(2), Z((2, 2 * k)), np.eye(2), Z((2, 2 * (G - 1 - k)))]
        scale = scale + r @ second @ r.T
    assert fit["tau"].nu == pytest.approx(4 + G - 1)
    assert np.linalg.inv(fit["tau"].V) == pytest.approx(scale, rel=1e-5)


def test_logits_reach_the_dense_fixed_point() -> None:
    """Jaakkola and Jordan's bound, by dense matrices."""
    success = (y > np.median(y)).astype(float)
    with svmp.Model(coords={"g": G}) as model:
        a = svmp.Normal("a", mu=0, tau=0.1)
        b = svmp.Normal("b", mu=0, tau=0.1)
        u = svmp.Normal("u", mu=0, tau=2, dims="g")
        svmp.Bernoulli("s", logit=a + b * x + u[g], observed=success)
    fit = svmp.fit(model, svmp.FullVB(), joint="auto", tol=1e-13)
    assert (np.diff(fit.trace["bound"]) > -1e-10).all()
    X, own = np.c_[ONE, x, AT_G], np.diag(np.r_[0.1, 0.1, np.full(G, 2.0)])
    xi = np.ones(N)
    for _ in range(500):
        S = np.linalg.inv(own + X.T * (np.tanh(xi / 2) / (2 * xi)) @ X)
        m = S @ X.T @ (success - 0.5)
        xi = np.sqrt(np.einsum("ri,ij,rj->r", X, S + np.outer(m, m), X))
    names = ["a", "b", "u"]
    assert np.hstack([fit.mean(n).ravel() for n in names]) == pytest.approx(m, abs=1e-5)
    assert covariance_of(fit.joint, fit.posteriors, names) == pytest.approx(S, abs=1e-5)
    bound = np.sum((success - 0.5) * (X @ m) - np.log(2 * np.cosh(xi / 2)))
    bound += 0.5 * (np.linalg.slogdet(own @ S)[1] + len(m) - np.trace(own @ (S + np.outer(m, m))))
    assert fit.bound == pytest.approx(bound, rel=1e-9)


def test_mixture_components_around_a_common_mean() -> None:
    """Rows of a mixture weigh by their probabilities: the means of q are a dense solution."""
    values = np.r_[RNG.normal(-3, 1, 30), RNG.normal(3, 1, 30)]
    with svmp.Model(coords={"k": 2, "row": 60}) as model:
        top = svmp.Normal("top", mu=0, tau=0.01)
        c = svmp.Normal("c", mu=top, tau=0.2, dims="k")
        pick = svmp.Categorical("pick", p=svmp.data([0.5, 0.5], dims="k"), dims="row")
        svmp.Mixture("v", pick, svmp.Normal.dist(mu=c, tau=1), dims="row", observed=values)
    fit = svmp.fit(model, svmp.FullVB(), joint=[("top", "c")], tol=1e-13, seed=1)
    assert (np.diff(fit.trace["bound"]) > -1e-10).all()
    p = fit.mean("pick")
    P = np.diag(np.r_[0.01 + 0.4, 0.2 + p.sum(axis=0)])
    P[0, 1:] = P[1:, 0] = -0.2
    assert covariance_of(fit.joint, fit.posteriors, ["top", "c"]) == pytest.approx(
        np.linalg.inv(P), rel=1e-6
    )
    linear = np.r_[0, (p * values[:, None]).sum(axis=0)]
    found = np.hstack([fit.mean("top"), fit.mean("c")])
    assert found == pytest.approx(np.linalg.solve(P, linear), abs=1e-6)


def test_held_out_score_has_covariances() -> None:
    """E[log p(y)] of a held-out row, with the variance of its mean from a dense solution."""
    with_gap = y.copy()
    with_gap[7] = np.nan
    values = np.full(N, np.nan)
    values[7] = y[7]
    with svmp.Model(coords={"g": G, "h": H}) as model:
        a = svmp.Normal("a", mu=0, tau=0.01)
        u = svmp.Normal("u", mu=0, tau=0.5, dims="g")
        v = svmp.Normal("v", mu=0, tau=2, dims="h")
        svmp.Normal("y", mu=a + u[g] + v[h], tau=2, observed=with_gap, missing=True)
    fit = svmp.fit(model, joint="auto", held_out={"y": values})
    X = np.c_[ONE, AT_G, AT_H]
    rest = np.arange(N) != 7
    own = np.diag(np.r_[0.01, np.full(G, 0.5), np.full(H, 2.0)])
    S = np.linalg.inv(own + 2 * X[rest].T @ X[rest])
    m = S @ (2 * X[rest].T @ y[rest])
    score = 0.5 * np.log(2 / (2 * np.pi)) - ((y[7] - X[7] @ m) ** 2 + X[7] @ S @ X[7])
    assert fit.trace["held_out"][-1] == pytest.approx(score)
    assert fit.held_out(model, {"y": values}) == pytest.approx(score)
