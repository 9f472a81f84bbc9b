"""Matrix factorization: one declaration for ratings and for events, with or without biases.

For observation r of user m and item n, with the linear predictor

    eta_r = a_m + b_n + u_m . v_n + offset,

an observation is Normal(eta_r, tau) with the precision tau ("normal"), or Bernoulli with the logit
eta_r ("logit"). Biases a, b and factors u, v have Normal priors; which of them there are, and
which of their means and precisions are learned, is up to the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Literal, NamedTuple, get_args

from numpy.typing import ArrayLike

from svmp.errors import ModelError
from svmp.network.distributions import Bernoulli, Gamma, MvNormal, Normal
from svmp.network.expressions import diag, dot
from svmp.network.model import Model
from svmp.network.variable import Variable

Covariance = Literal["diagonal", "full"]
Link = Literal["normal", "logit"]
DIMS = {"a": "user", "b": "item", "u": "user", "v": "item"}
"""Names of the biases and the factors, and whose they are."""
FACTORS = ("u", "v")


class UserItemPairs(NamedTuple):
    """User and item of each observation, as keys from 0, and the numbers of users and items."""

    user: ArrayLike
    item: ArrayLike
    users: int
    items: int


@dataclass(frozen=True, eq=False)
class GammaPrior:
    """A precision that is learned, with its prior Gamma(alpha, beta)."""

    alpha: Any = 1
    beta: Any = 1


@dataclass(frozen=True, eq=False)
class NormalPrior:
    """Normal prior of biases or factors.

    Attributes
    ----------
    mean
        Numbers that broadcast against the variable, or a `NormalPrior` of a mean that is learned
        and shared by all users or items; its name is `mean_` and that of the variable.
    precision
        Numbers, or a `GammaPrior` of a precision that is learned and shared by all users or items;
        its name is `of_` and that of the variable, and it is declared just before the mean and the
        variable. A string is the name of a precision that is already declared. For factors with a
        full covariance, numbers are a precision matrix.
    """

    mean: Any = 0
    precision: Any = 1


@dataclass(frozen=True, eq=False)
class UserNoise:
    """A noise precision for each user: Gamma(shape, shape * level), with level ~ Gamma(1, 1)."""

    shape: Any


def matrix_factorization(
    pairs: UserItemPairs,
    observed: ArrayLike,
    factors: int = 5,
    *,
    priors: Mapping[str, NormalPrior | GammaPrior] | None = None,
    covariance: Covariance = "diagonal",
    noise: Any = 1,
    link: Link = "normal",
    offset: float | None = None,
) -> Model:
    """Declare a factorization; by default that of the paper.

    Parameters
    ----------
    pairs
        Users and items of the observations.
    observed
        Their values: ratings, or 0 and 1 if the link is "logit".
    factors
        Number of factors K of each user and item.
    priors
        Prior of each variable to declare, in the order of their updates: the biases "a" of users
        and "b" of items, the factors "u" and "v". A `GammaPrior` declares a precision for each
        factor, to which later entries may refer. By default u and v are Normal(0, 1).
    covariance
        Whether q(u_m) and q(v_n) factorise over k ("diagonal"), or have a covariance ("full").
    noise
        Precision of a rating: numbers; a `GammaPrior` of one that is learned; or a `UserNoise`.
    link
        "normal" declares the observations "r", "logit" declares them "taken".
    offset
        A constant that is added to every linear predictor.

    >>> pairs = UserItemPairs([0, 0, 1], [0, 2, 1], users=2, items=3)
    >>> list(matrix_factorization(pairs, [4.0, 1.0, 3.0], 2).variables)
    ['u', 'v', 'r']
    >>> learned = NormalPrior(precision=GammaPrior())
    >>> model = matrix_factorization(
    ...     pairs, [1, 0, 1], 2, priors={"b": learned, "u": learned, "v": learned}, link="logit"
    ... )
    >>> list(model.variables)
    ['of_b', 'b', 'of_u', 'u', 'of_v', 'v', 'taken']
    """
    if priors is None:
        priors = {"u": NormalPrior(), "v": NormalPrior()}
    _check(priors, covariance, link)
    with Model(coords={"user": pairs.users, "item": pairs.items, "factor": factors}) as model:
        tau = _noise(noise, pairs.user) if link == "normal" else None
        keys = {"user": pairs.user, "item": pairs.item}
        rows = {}
        for name, prior in priors.items():
            if isinstance(prior, GammaPrior):
                Gamma(name, alpha=prior.alpha, beta=prior.beta, dims="factor")
            else:
                rows[name] = _declare(model, name, prior, covariance)[keys[DIMS[name]]]
        factors_of = [row for name, row in rows.items() if name in FACTORS]
        terms = [row for name, row in rows.items() if name not in FACTORS]
        if factors_of:
            terms.append(dot(*factors_of))
        predictor = reduce(add, terms if offset is None else [*terms, offset])
        if link == "normal":
            Normal("r", mu=predictor, tau=tau, observed=observed)
        else:
            Bernoulli("taken", logit=predictor, observed=observed)
    return model


def _check(priors: Mapping[str, NormalPrior | GammaPrior], covariance: str, link: str) -> None:
    """Raise if arguments of `matrix_factorization` are invalid."""
    names = {name for name, prior in priors.items() if isinstance(prior, NormalPrior)}
    if not names or names - DIMS.keys() or ("u" in names) != ("v" in names):
        raise ModelError(
            f"priors must have biases 'a' and 'b', or both factors 'u' and 'v', not {list(priors)}"
        )
    for name, value, kinds in (("covariance", covariance, Covariance), ("link", link, Link)):
        if value not in get_args(kinds):
            raise ModelError(f"{name} must be one of {get_args(kinds)}, not {value!r:.60}")


def _declare(model: Model, name: str, prior: NormalPrior, covariance: Covariance) -> Variable:
    """Declare biases or factors, after their precision and mean where these are learned."""
    shared = "factor" if name in ("u", "v") else ()
    full = bool(shared) and covariance == "full"
    kind = MvNormal if full else Normal
    mu, tau = prior.mean, prior.precision
    if isinstance(tau, GammaPrior):
        tau = Gamma(f"of_{name}", alpha=tau.alpha, beta=tau.beta, dims=shared)
    elif isinstance(tau, str):
        tau = model.variables[tau]
    if full and isinstance(tau, Variable):
        tau = diag(tau)
    if isinstance(mu, NormalPrior):
        mu = kind(f"mean_{name}", mu=mu.mean, tau=mu.precision, dims=shared)
    return kind(name, mu=mu, tau=tau, dims=(DIMS[name], "factor") if shared else DIMS[name])


def _noise(noise: Any, user: ArrayLike) -> Any:
    """Declare the precision of the noise, if it is learned, and return that of each observation."""
    if isinstance(noise, UserNoise):
        level = Gamma("level", alpha=1, beta=1)
        each = Gamma("noise", alpha=noise.shape, beta=noise.shape * level, dims="user")
        return each[user]
    if isinstance(noise, GammaPrior):
        return Gamma("noise", alpha=noise.alpha, beta=noise.beta)
    return noise
