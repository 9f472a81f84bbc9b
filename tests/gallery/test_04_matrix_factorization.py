"""Matrix factorization: the paper's equation (6) as plain loops, and the bound written out."""

from __future__ import annotations

import numpy as np
import pytest

import svmp

from .formulas import (
    assert_never_falls,
    gamma_mean,
    gamma_mean_log,
    gamma_term,
    mvnormal_entropy,
    normal_density,
    normal_entropy,
)

SWEEPS = 3


@pytest.fixture(scope="module")
def ratings(script):
    train, _ = script.data()
    return tuple(column[:500] for column in train)


@pytest.fixture(scope="module")
def begin(script):
    rng = np.random.default_rng(1)
    shape = {"u": (script.USERS, script.FACTORS), "v": (script.ITEMS, script.FACTORS)}
    return {name: 0.3 * rng.normal(size=size) for name, size in shape.items()}


def equation_6(rows, r, mean, other, other_second, tau=1.0, prior=1.0):
    """Update one user's (or item's) factors one after the other; return means and precisions.

    prec = prior + tau sum_n E[v_nk^2];  mean prec = tau sum_n E[v_nk] (r - sum_{k' != k} ...).
    """
    precisions = np.empty(len(mean))
    for k in range(len(mean)):
        precision, weighted = np.broadcast_to(prior, mean.shape)[k], 0.0
        for e in rows:
            others = sum(mean[j] * other[e, j] for j in range(len(mean)) if j != k)
            precision += tau * other_second[e, k]
            weighted += tau * other[e, k] * (r[e] - others)
        precisions[k] = precision
        mean[k] = weighted / precision
    return mean, precisions


def sweep(u, u_var, v, v_var, user, item, r, tau=1.0, alpha=1.0):
    for m in range(len(u)):
        rows = np.flatnonzero(user == m)
        second = (v**2 + v_var)[item]
        u[m], precision = equation_6(rows, r, u[m], v[item], second, tau)
        u_var[m] = 1 / precision
    for n in range(len(v)):
        rows = np.flatnonzero(item == n)
        second = (u**2 + u_var)[user]
        v[n], precision = equation_6(rows, r, v[n], u[user], second, tau, alpha)
        v_var[n] = 1 / precision


def residual_square(r, u, u_var, v, v_var, user, item):
    """E[(r - u . v)^2] of each rating."""
    square = (r - (u[user] * v[item]).sum(1)) ** 2
    spread = (u**2 + u_var)[user] * (v**2 + v_var)[item] - (u[user] * v[item]) ** 2
    return square + spread.sum(1)


@pytest.mark.parametrize("kernels", [True, False])
def test_paper(script, ratings, begin, kernels):
    user, item, r = ratings
    u, v = begin["u"].copy(), begin["v"].copy()
    u_var, v_var = np.ones_like(u), np.ones_like(v)
    for _ in range(SWEEPS):
        sweep(u, u_var, v, v_var, user, item, r)
    bound = normal_density(residual_square(r, u, u_var, v, v_var, user, item), 1.0)
    bound += normal_density(u**2 + u_var, 1.0) + normal_density(v**2 + v_var, 1.0)
    bound += normal_entropy(u_var) + normal_entropy(v_var)

    init = {name: {"mu": mean, "tau": 1.0} for name, mean in begin.items()}
    fit = svmp.fit(
        script.model(user, item, r),
        svmp.FullVB(order=["u", "v"]),
        init=init,
        max_sweeps=SWEEPS,
        tol=0,
        kernels=kernels,
    )
    np.testing.assert_allclose(fit.mean("u"), u, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(fit.mean("v"), v, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(fit["u"].tau, 1 / u_var, rtol=1e-10)
    np.testing.assert_allclose(fit["v"].tau, 1 / v_var, rtol=1e-10)
    assert fit.bound == pytest.approx(bound, rel=1e-11)


@pytest.mark.parametrize("kernels", [True, False])
def test_biases(script, ratings, begin, kernels):
    """The factors by equation (6) on the residuals of the biases; the rest by short updates.

    Users and items without ratings are left out.
    """
    user, item, r = ratings
    users, items, factors = script.USERS, script.ITEMS, script.FACTORS
    u, v = begin["u"].copy(), begin["v"].copy()
    u_var, v_var = np.ones_like(u), np.ones_like(v)
    m, a, b = 0.0, np.zeros(users), np.zeros(items)
    some, few = np.unique(user), np.unique(item)
    tau, of_user, of_item = (1.0, 1.0), (1.0, 0.5), (1.0, 0.5)
    alpha = (np.ones(factors), np.full(factors, 0.5))
    for _ in range(SWEEPS):
        t = gamma_mean(tau)
        rest = r - (u[user] * v[item]).sum(1)
        m_var = 1 / (0.1 + t * len(r))
        m = m_var * t * (rest - a[user] - b[item]).sum()
        a_var = 1 / (gamma_mean(of_user) + t * np.bincount(user, minlength=users))
        a = a_var * t * np.bincount(user, rest - m - b[item], users)
        b_var = 1 / (gamma_mean(of_item) + t * np.bincount(item, minlength=items))
        b = b_var * t * np.bincount(item, rest - m - a[user], items)
        left = r - m - a[user] - b[item]
        sweep(u, u_var, v, v_var, user, item, left, t, gamma_mean(alpha))
        squares = residual_square(left, u, u_var, v, v_var, user, item)
        squares += m_var + a_var[user] + b_var[item]
        tau = (1 + len(r) / 2, 1 + squares.sum() / 2)
        of_user = (1 + len(some) / 2, 0.1 + (a**2 + a_var)[some].sum() / 2)
        of_item = (1 + len(few) / 2, 0.1 + (b**2 + b_var)[few].sum() / 2)
        alpha = (np.full(factors, 1 + len(few) / 2), 0.1 + (v**2 + v_var)[few].sum(0) / 2)
    bound = normal_density(squares, gamma_mean(tau), gamma_mean_log(tau))
    bound += normal_density(m**2 + m_var, 0.1) + normal_entropy(m_var)
    bound += normal_density((a**2 + a_var)[some], gamma_mean(of_user), gamma_mean_log(of_user))
    bound += normal_density((b**2 + b_var)[few], gamma_mean(of_item), gamma_mean_log(of_item))
    bound += normal_density(u**2 + u_var, 1.0)
    bound += normal_density((v**2 + v_var)[few], gamma_mean(alpha), gamma_mean_log(alpha))
    bound += sum(
        normal_entropy(variance) for variance in (a_var[some], b_var[few], u_var, v_var[few])
    )
    bound += gamma_term(1, 1, tau)
    bound += sum(gamma_term(1, 0.1, q) for q in (of_user, of_item, alpha))

    init = {
        **{name: {"mu": mean, "tau": 1.0} for name, mean in begin.items()},
        **{name: {"mu": 0.0, "tau": 1.0} for name in ("mean", "a", "b")},
        **{name: {"alpha": 1.0, "beta": 0.5} for name in ("of_user", "of_item", "alpha")},
        "tau": {"alpha": 1.0, "beta": 1.0},
    }
    order = ["mean", "a", "b", "u", "v", "tau", "of_user", "of_item", "alpha"]
    fit = svmp.fit(
        script.model(user, item, r, "biases"),
        svmp.FullVB(order=order),
        init=init,
        max_sweeps=SWEEPS,
        tol=0,
        kernels=kernels,
    )
    for name, mean in {"mean": m, "a": a, "b": b, "u": u, "v": v}.items():
        np.testing.assert_allclose(fit.mean(name), mean, rtol=1e-9, atol=1e-12)
    for name, q in {"tau": tau, "of_user": of_user, "of_item": of_item, "alpha": alpha}.items():
        np.testing.assert_allclose(fit[name].alpha, q[0], rtol=1e-12)
        np.testing.assert_allclose(fit[name].beta, q[1], rtol=1e-10)
    assert fit.bound == pytest.approx(bound, rel=1e-10)


def test_vectors(script, ratings, begin):
    """Full covariances: prec = I + sum_n E[v v'], and every expectation with them."""
    user, item, r = ratings
    u, v = begin["u"].copy(), begin["v"].copy()
    one = np.eye(script.FACTORS)
    u_cov, v_cov = (np.broadcast_to(one, (len(x), *one.shape)).copy() for x in (u, v))
    for _ in range(SWEEPS):
        for key, mean, cov, other_key, other, other_cov in (
            (user, u, u_cov, item, v, v_cov),
            (item, v, v_cov, user, u, u_cov),
        ):
            for i in range(len(mean)):
                rows = np.flatnonzero(key == i)
                near = other[other_key[rows]]
                precision = one + near.T @ near + other_cov[other_key[rows]].sum(0)
                cov[i] = np.linalg.inv(precision)
                mean[i] = cov[i] @ (near.T @ r[rows])
    second = [np.einsum("ij,ik->ijk", mean, mean) + c for mean, c in ((u, u_cov), (v, v_cov))]
    squares = r**2 - 2 * r * (u[user] * v[item]).sum(1)
    squares += np.einsum("ijk,ijk->i", second[0][user], second[1][item])
    bound = normal_density(squares, 1.0) + mvnormal_entropy(u_cov) + mvnormal_entropy(v_cov)
    bound += sum(normal_density(np.einsum("ijj->ij", s), 1.0) for s in second)

    init = {name: {"mu": mean, "tau": one} for name, mean in begin.items()}
    fit = svmp.fit(
        script.model(user, item, r, "vectors"),
        svmp.FullVB(order=["u", "v"]),
        init=init,
        max_sweeps=SWEEPS,
        tol=0,
    )
    np.testing.assert_allclose(fit.mean("u"), u, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(fit.mean("v"), v, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(np.linalg.inv(fit["v"].tau), v_cov, rtol=1e-8, atol=1e-11)
    assert fit.bound == pytest.approx(bound, rel=1e-11)


@pytest.mark.parametrize("kind", ["paper", "biases", "vectors"])
def test_bound_never_falls(script, ratings, kind):
    fit = svmp.fit(script.model(*ratings, kind), svmp.FullVB(), max_sweeps=30, tol=0)
    assert_never_falls(fit.trace["bound"])


def test_a_richer_q_is_never_worse(script, ratings):
    """The family of full covariances contains the factorised optimum and improves on it."""
    ones = svmp.fit(script.model(*ratings), svmp.FullVB(), max_sweeps=40)
    one = np.eye(script.FACTORS)
    init = {n: {"mu": ones.mean(n), "tau": ones[n].tau[..., None] * one} for n in ("u", "v")}
    network = script.model(*ratings, "vectors")
    vectors = svmp.fit(network, svmp.FullVB(), init=init, max_sweeps=10)
    assert vectors.trace["bound"][0] > ones.bound
    assert_never_falls(vectors.trace["bound"])


def test_learned_biases_predict_better_than_none(script):
    train, (user, item, rating) = script.data()
    error = {}
    for kind in ("paper", "biases"):
        fit = svmp.fit(script.model(*train, kind), svmp.FullVB(), max_sweeps=20)
        error[kind] = np.sqrt(np.mean((script.predict(fit, user, item) - rating) ** 2))
    assert script.NOISE < error["biases"] < error["paper"] < rating.std()
