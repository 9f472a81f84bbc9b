"""Coverage of predictive intervals over simulated data, for twenty networks.

All variables of a network are drawn from the prior, a part of the rows is fitted, and the others
are predicted, in turn for many draws. If predictions are right, 50, 90 and 95% intervals contain
that share of the values. Counts have no intervals with exactly these probabilities, so that the
probability integral transform is used, with a uniform number between the probabilities of less than
the value and of at most the value. The factors are predicted a second time with the covariances of
q alone, `corrected=False`; the default is those of linear response.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from common import Row, main

import svmp

LEVELS = (0.5, 0.9, 0.95)
Rows = np.ndarray[Any, Any]
Declare = Callable[[Rows, Any], svmp.Model]
"""Declares a network on some of the rows 0, 1, ..., with observed values or without."""
TRAIN, TEST, RUNS, DRAWS = 40, 40, 200, 400


def covariates(rows: Rows, count: int, seed: int = 0) -> Any:
    """Return fixed covariates of rows, (rows, count)."""
    return np.random.default_rng(seed).normal(size=(TRAIN + TEST, count))[rows]


def keys(rows: Rows, count: int, seed: int = 1) -> Any:
    """Return the group of each row."""
    return np.random.default_rng(seed).integers(count, size=TRAIN + TEST)[rows]


def model(rows: Rows, **coords: Any) -> svmp.Model:
    return svmp.Model(coords={"row": len(rows), **coords})


def mean_and_precision(rows: Rows, y: Any) -> svmp.Model:
    with model(rows) as m:
        mu = svmp.Normal("mu", mu=0, tau=0.5)
        tau = svmp.Gamma("tau", alpha=3, beta=2)
        svmp.Normal("y", mu=mu, tau=tau, dims="row", observed=y)
    return m


def line(rows: Rows, y: Any) -> svmp.Model:
    with model(rows) as m:
        a, b = svmp.Normal("a", mu=0, tau=0.5), svmp.Normal("b", mu=0, tau=0.5)
        tau = svmp.Gamma("tau", alpha=3, beta=2)
        svmp.Normal("y", mu=a + b * covariates(rows, 1)[:, 0], tau=tau, dims="row", observed=y)
    return m


def ard_regression(rows: Rows, y: Any) -> svmp.Model:
    with model(rows, f=8) as m:
        alpha = svmp.Gamma("alpha", alpha=2, beta=2, dims="f")
        w = svmp.Normal("w", mu=0, tau=alpha, dims="f")
        tau = svmp.Gamma("tau", alpha=3, beta=2)
        mean = svmp.dot(covariates(rows, 8), w)
        svmp.Normal("y", mu=mean, tau=tau, dims="row", observed=y)
    return m


def groups(rows: Rows, y: Any) -> svmp.Model:
    with model(rows, group=range(12)) as m:
        mu = svmp.Normal("mu", mu=0, tau=0.5)
        spread = svmp.Gamma("spread", alpha=3, beta=2)
        u = svmp.Normal("u", mu=mu, tau=spread, dims="group")
        tau = svmp.Gamma("tau", alpha=3, beta=2)
        svmp.Normal("y", mu=u.iloc[keys(rows, 12)], tau=tau, dims="row", observed=y)
    return m


def new_groups(rows: Rows, y: Any) -> svmp.Model:
    """Every group has two rows; those of the rows to predict are all new."""
    labels, key = np.unique(rows // 2, return_inverse=True)
    with model(rows, group=labels.tolist()) as m:
        mu = svmp.Normal("mu", mu=0, tau=0.5)
        spread = svmp.Gamma("spread", alpha=3, beta=2)
        u = svmp.Normal("u", mu=mu, tau=spread, dims="group")
        tau = svmp.Gamma("tau", alpha=3, beta=2)
        svmp.Normal("y", mu=u.iloc[key], tau=tau, dims="row", observed=y)
    return m


def random_slopes(rows: Rows, y: Any) -> svmp.Model:
    with model(rows, group=range(8), d=2) as m:
        mean = svmp.MvNormal("mean", mu=[0, 0], tau=np.eye(2), dims="d")
        spread = svmp.Wishart("spread", nu=5, V=np.eye(2) / 5, dims=("d", "d"))
        u = svmp.MvNormal("u", mu=mean, tau=spread, dims=("group", "d"))
        tau = svmp.Gamma("tau", alpha=3, beta=2)
        x = np.stack([np.ones(len(rows)), covariates(rows, 1)[:, 0]], axis=1)
        mu = svmp.dot(svmp.data(x, dims=("row", "d")), u.iloc[keys(rows, 8)])
        svmp.Normal("y", mu=mu, tau=tau, dims="row", observed=y)
    return m


def crossed(rows: Rows, y: Any) -> svmp.Model:
    with model(rows, a=range(8), b=range(6)) as m:
        c = svmp.Normal("c", mu=0, tau=0.5)
        u = svmp.Normal("u", mu=0, tau=svmp.Gamma("su", alpha=3, beta=2), dims="a")
        v = svmp.Normal("v", mu=0, tau=svmp.Gamma("sv", alpha=3, beta=2), dims="b")
        mu = c + u.iloc[keys(rows, 8)] + v.iloc[keys(rows, 6, 2)]
        tau = svmp.Gamma("tau", alpha=3, beta=2)
        svmp.Normal("y", mu=mu, tau=tau, dims="row", observed=y)
    return m


def nested(rows: Rows, y: Any) -> svmp.Model:
    with model(rows, school=range(12), town=range(4)) as m:
        c = svmp.Normal("c", mu=0, tau=0.5)
        t = svmp.Normal("t", mu=c, tau=svmp.Gamma("st", alpha=3, beta=2), dims="town")
        s = svmp.Gamma("ss", alpha=3, beta=2)
        u = svmp.Normal("u", mu=t.iloc[np.arange(12) % 4], tau=s, dims="school")
        tau = svmp.Gamma("tau", alpha=3, beta=2)
        svmp.Normal("y", mu=u.iloc[keys(rows, 12)], tau=tau, dims="row", observed=y)
    return m


def noise_by_group(rows: Rows, y: Any) -> svmp.Model:
    with model(rows, group=range(5)) as m:
        top = svmp.Gamma("top", alpha=4, beta=3)
        tau = svmp.Gamma("tau", alpha=3, beta=2 * top, dims="group")
        mu = svmp.Normal("mu", mu=0, tau=0.5)
        svmp.Normal("y", mu=mu, tau=tau.iloc[keys(rows, 5)], dims="row", observed=y)
    return m


def vectors(rows: Rows, y: Any) -> svmp.Model:
    with model(rows, d=2) as m:
        mu = svmp.MvNormal("mu", mu=[0, 0], tau=0.5 * np.eye(2), dims="d")
        tau = svmp.Wishart("tau", nu=5, V=np.eye(2) / 5, dims=("d", "d"))
        svmp.MvNormal("y", mu=mu, tau=tau, dims=("row", "d"), observed=y)
    return m


def rates(rows: Rows, y: Any) -> svmp.Model:
    with model(rows, group=range(8)) as m:
        top = svmp.Gamma("top", alpha=4, beta=2)
        g = svmp.Gamma("g", alpha=3, beta=top, dims="group")
        exposure = 1 + np.abs(covariates(rows, 1)[:, 0])
        svmp.Poisson("y", mu=g.iloc[keys(rows, 8)] * exposure, dims="row", observed=y)
    return m


def products(rows: Rows, y: Any) -> svmp.Model:
    with model(rows, a=range(6), b=range(5)) as m:
        g = svmp.Gamma("g", alpha=3, beta=1.5, dims="a")
        h = svmp.Gamma("h", alpha=3, beta=1.5, dims="b")
        rate = g.iloc[keys(rows, 6)] * h.iloc[keys(rows, 5, 2)]
        svmp.Poisson("y", mu=rate, dims="row", observed=y)
    return m


def waiting(rows: Rows, y: Any) -> svmp.Model:
    with model(rows, group=range(6)) as m:
        g = svmp.Gamma("g", alpha=3, beta=2, dims="group")
        svmp.Exponential("y", lam=g.iloc[keys(rows, 6)], dims="row", observed=y)
    return m


def durations(rows: Rows, y: Any) -> svmp.Model:
    with model(rows) as m:
        g = svmp.Gamma("g", alpha=2, beta=2)
        svmp.Gamma("y", alpha=2.5, beta=g, dims="row", observed=y)
    return m


def trials(rows: Rows, y: Any) -> svmp.Model:
    with model(rows, group=range(8)) as m:
        p = svmp.Beta("p", alpha=2, beta=3, dims="group")
        svmp.Binomial("y", n=12, p=p.iloc[keys(rows, 8)], dims="row", observed=y)
    return m


def logistic(rows: Rows, y: Any) -> svmp.Model:
    with model(rows, f=3, group=range(6)) as m:
        w = svmp.Normal("w", mu=0, tau=1, dims="f")
        u = svmp.Normal("u", mu=0, tau=svmp.Gamma("s", alpha=3, beta=2), dims="group")
        z = svmp.dot(covariates(rows, 3), w) + u.iloc[keys(rows, 6)]
        svmp.Bernoulli("y", logit=z, dims="row", observed=y)
    return m


def mixture(rows: Rows, y: Any) -> svmp.Model:
    with model(rows, k=2) as m:
        w = svmp.Dirichlet("w", a=4, dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        mu = svmp.Normal("mu", mu=[-3, 3], tau=1, dims="k")
        tau = svmp.Gamma("tau", alpha=4, beta=3, dims="k")
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=tau), dims="row", observed=y)
    return m


def counts_mixture(rows: Rows, y: Any) -> svmp.Model:
    with model(rows, k=2) as m:
        z = svmp.Categorical("z", p=svmp.Dirichlet("w", a=4, dims="k"), dims="row")
        g = svmp.Gamma("g", alpha=[8, 30], beta=[4, 2], dims="k")
        svmp.Mixture("y", z, svmp.Poisson.dist(mu=g), dims="row", observed=y)
    return m


def words(rows: Rows, y: Any) -> svmp.Model:
    with model(rows, group=range(4), word=5) as m:
        p = svmp.Dirichlet("p", a=0.8, dims=("group", "word"))
        svmp.Multinomial("y", n=15, p=p.iloc[keys(rows, 4)], dims=("row", "word"), observed=y)
    return m


def factors(rows: Rows, y: Any) -> svmp.Model:
    """Users by items with two factors; the rows are ratings."""
    with model(rows, user=range(8), item=range(5), k=2) as m:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "k"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "k"))
        mu = svmp.dot(u.iloc[keys(rows, 8)], v.iloc[keys(rows, 5, 2)])
        svmp.Normal("y", mu=mu, tau=svmp.Gamma("tau", alpha=6, beta=2), dims="row", observed=y)
    return m


NETWORKS: Sequence[Declare] = (
    mean_and_precision, line, ard_regression, groups, new_groups, random_slopes, crossed, nested,
    noise_by_group, vectors, rates, products, waiting, durations, trials, logistic, mixture,
    counts_mixture, words, factors,
)  # fmt: skip


def transforms(declare: Declare, seed: int, draws: int, corrected: bool | None = None) -> Any:
    """Return the probability integral transform of the rows that were left out.

    Parameters
    ----------
    declare, seed, draws
        The network, the seed of its data, and the draws of a prediction.
    corrected
        As for `Fit.predict`.
    """
    every = np.arange(TRAIN + TEST)
    train, test = every[:TRAIN], every[TRAIN:]
    y = svmp.prior_predictive(declare(every, None), 1, seed=seed)["y"][0]
    fit = svmp.fit(declare(train, y[train]), kernels=False)
    found = fit.predict(declare(test, None), "y", draws=draws, corrected=corrected)
    upto = found.cdf(y[test])
    whole = (y == np.round(y)).all()
    below = np.where(y[test] > 0, found.cdf(np.maximum(y[test] - 1, 0)), 0.0) if whole else upto
    uniform = np.random.default_rng([seed, 1]).random(upto.shape)
    return (below + uniform * (upto - below)).ravel()


def measure(quick: bool) -> Iterator[Row]:
    warnings.simplefilter("ignore", svmp.ConvergenceWarning)
    runs = 5 if quick else RUNS
    for declare, corrected in [*((declare, None) for declare in NETWORKS), (factors, False)]:
        u = np.stack([transforms(declare, seed, DRAWS, corrected) for seed in range(runs)])
        inside = [np.abs(u - 0.5) <= level / 2 for level in LEVELS]
        shares = 100 * np.mean(inside, axis=(1, 2))
        errors = 100 * np.mean(inside, axis=2).std(axis=1) / runs**0.5
        off = float(np.abs(shares - 100 * np.array(LEVELS)).max())
        each = zip(LEVELS, shares, errors, strict=True)
        note = ", ".join(f"{level:.0%}: {share:.1f} (se {se:.1f})" for level, share, se in each)
        what = f"intervals hold, {declare.__name__.replace('_', ' ')}"
        what += ", by q alone" if corrected is False else ""
        yield Row(what, off, 2.0, "the limit", "points", 1.0, note)


if __name__ == "__main__":
    main(measure, __doc__)
