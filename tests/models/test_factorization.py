"""`svmp.models.matrix_factorization` against the same networks written out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.models import GammaPrior, NormalPrior, UserItemPairs, UserNoise, matrix_factorization

RNG = np.random.default_rng(0)
USER, ITEM = RNG.integers(7, size=60), RNG.integers(5, size=60)
PAIRS = UserItemPairs(USER, ITEM, 7, 5)
RATING, TAKEN = RNG.normal(size=60), RNG.integers(2, size=60)
SIZES = {"user": 7, "item": 5, "factor": 2}
GUESS = np.array([2.0, 3.0])


def paper() -> tuple[svmp.Model, svmp.Model]:
    with svmp.Model(coords=SIZES) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        svmp.Normal("r", mu=svmp.dot(u[USER], v[ITEM]), tau=1, observed=RATING)
    return model, matrix_factorization(PAIRS, RATING, 2)


def biases_and_full_covariances() -> tuple[svmp.Model, svmp.Model]:
    shape = 4 + np.arange(7.0)
    with svmp.Model(coords=SIZES) as model:
        level = svmp.Gamma("level", alpha=1, beta=1)
        noise = svmp.Gamma("noise", alpha=shape, beta=shape * level, dims="user")
        a = svmp.Normal("a", mu=0, tau=svmp.Gamma("of_a", alpha=1, beta=2), dims="user")
        b = svmp.Normal("b", mu=0.5, tau=3, dims="item")
        of_u = svmp.Gamma("of_u", alpha=5, beta=5 / GUESS, dims="factor")
        mean_u = svmp.MvNormal("mean_u", mu=0, tau=np.diag(GUESS), dims="factor")
        u = svmp.MvNormal("u", mu=mean_u, tau=svmp.diag(of_u), dims=("user", "factor"))
        v = svmp.MvNormal("v", mu=0, tau=np.diag(GUESS), dims=("item", "factor"))
        mu = a[USER] + b[ITEM] + svmp.dot(u[USER], v[ITEM])
        svmp.Normal("r", mu=mu, tau=noise[USER], observed=RATING)
    ready = matrix_factorization(
        PAIRS,
        RATING,
        2,
        priors={
            "a": NormalPrior(0, GammaPrior(1, 2)),
            "b": NormalPrior(0.5, 3),
            "u": NormalPrior(NormalPrior(0, np.diag(GUESS)), GammaPrior(5, 5 / GUESS)),
            "v": NormalPrior(0, np.diag(GUESS)),
        },
        covariance="full",
        noise=UserNoise(shape),
    )
    return model, ready


def logit_with_an_offset() -> tuple[svmp.Model, svmp.Model]:
    with svmp.Model(coords=SIZES) as model:
        of_u = svmp.Gamma("of_u", alpha=1, beta=1, dims="factor")
        of_v = svmp.Gamma("of_v", alpha=2, beta=1, dims="factor")
        u = svmp.Normal("u", mu=0, tau=of_u, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=of_v, dims=("item", "factor"))
        b = svmp.Normal("b", mu=0, tau=1, dims="item")
        logit = svmp.dot(u[USER], v[ITEM]) + b[ITEM] - 1.5
        svmp.Bernoulli("taken", logit=logit, observed=TAKEN)
    priors = {"of_u": GammaPrior(), "of_v": GammaPrior(2, 1), "u": NormalPrior(0, "of_u")}
    priors |= {"v": NormalPrior(0, "of_v"), "b": NormalPrior()}
    return model, matrix_factorization(PAIRS, TAKEN, 2, priors=priors, link="logit", offset=-1.5)


def biases_and_shared_noise() -> tuple[svmp.Model, svmp.Model]:
    with svmp.Model(coords=SIZES) as model:
        tau = svmp.Gamma("noise", alpha=2, beta=1)
        a = svmp.Normal("a", mu=0, tau=1, dims="user")
        b = svmp.Normal("b", mu=0, tau=1, dims="item")
        svmp.Normal("r", mu=a[USER] + b[ITEM], tau=tau, observed=RATING)
    priors = {"a": NormalPrior(), "b": NormalPrior()}
    return model, matrix_factorization(PAIRS, RATING, 0, priors=priors, noise=GammaPrior(2, 1))


@pytest.mark.parametrize(
    "make",
    [paper, biases_and_full_covariances, logit_with_an_offset, biases_and_shared_noise],
)
def test_equals_the_network_written_out(make) -> None:
    by_hand, ready = make()
    assert list(ready.variables) == list(by_hand.variables)
    fits = [
        svmp.fit(model, svmp.FullVB(), max_sweeps=3, tol=0, progress=False)
        for model in (by_hand, ready)
    ]
    assert fits[0].bound == fits[1].bound
    for name, q in fits[0].posteriors.items():
        np.testing.assert_array_equal(q.natural, fits[1].posteriors[name].natural)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"priors": {}}, "priors must have"),
        ({"priors": {"u": NormalPrior()}}, "both factors 'u' and 'v'"),
        ({"priors": {"c": NormalPrior()}}, r"not \['c'\]"),
        ({"covariance": "round"}, "covariance must be one of"),
        ({"link": "probit"}, "link must be one of"),
    ],
)
def test_invalid_arguments_are_refused(options, says) -> None:
    with pytest.raises(svmp.ModelError, match=says):
        matrix_factorization(PAIRS, RATING, 2, **options)
