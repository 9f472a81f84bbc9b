"""The network of ratings: r = a_user + b_item + u_user . v_item + noise.

All are Normal, biases around 0 and factors around a mean. What is learned of them: the precision of
all users' biases and that of all items', the mean and the precision of each factor of users and of
items, and the precision of the noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from svmp import families
from svmp.inference.posterior import Posterior
from svmp.network.distributions import Gamma, MvNormal, Normal
from svmp.network.expressions import diag, dot
from svmp.network.model import Model
from svmp.ratings import Ratings
from svmp.recommend.side import Side

Covariance = Literal["diagonal", "full"]
Noise = Literal["shared", "user"]
SHAPE, SHARE = 8.0, 0.5
"""The prior of a user's noise precision counts as eight pairs of ratings and half their own."""
GUESS, ALIKE = 3.0, 4
"""Factor k has a precision of about GUESS sqrt(k + ALIKE), where ratings have variance 1."""
FIRM, LOOSE, LEAST = 0.3, 0.01, 30.0
"""What the guess may weigh, as a share of what all users or items together say, and at least."""


def network(
    ratings: Ratings, factors: int, covariance: Covariance, noise: Noise, weight: float = FIRM
) -> Model:
    """Declare the network of ratings whose mean is 0 and whose variance is 1."""
    sizes = {"user": ratings.users, "item": ratings.items, "factor": factors}
    with Model(coords=sizes) as model:
        if noise == "user":
            level = Gamma("level", alpha=1, beta=1)
            shape = noise_shape(ratings)
            tau: Any = Gamma("noise", alpha=shape, beta=shape * level, dims="user")[ratings.user]
        else:
            tau = Gamma("noise", alpha=1, beta=1)
        mean = (
            Normal("a", mu=0, tau=Gamma("of_a", alpha=1, beta=1), dims="user")[ratings.user]
            + Normal("b", mu=0, tau=Gamma("of_b", alpha=1, beta=1), dims="item")[ratings.item]
        )
        if factors:
            u = _factors("u", "user", ratings.users, factors, covariance, weight)
            v = _factors("v", "item", ratings.items, factors, covariance, weight)
            mean = mean + dot(u[ratings.user], v[ratings.item])
        Normal("r", mu=mean, tau=tau, observed=ratings.rating)
    return model


def noise_shape(ratings: Ratings) -> NDArray[Any]:
    """Return the prior shape of each user's noise precision, which grows with their ratings.

    With n ratings of mean squared residual s^2 and the level l, the variance of the noise is about
    (SHAPE l + n / 2 (SHARE l + s^2)) / (SHAPE + n / 2 (SHARE + 1)), never below SHARE / (1 + SHARE)
    of the level. Without that limit the biases of items that one user alone has rated explain that
    user's ratings exactly, however few they are, and his noise vanishes.
    """
    return SHAPE + SHARE / 2 * np.bincount(ratings.user, minlength=ratings.users)


def guesses(factors: int) -> NDArray[np.float64]:
    """Return what the precisions of factors are before any rating is seen.

    Each factor is weaker than the one before, so that many factors together expect little more of
    the ratings than a few: u . v has the variance sum 1 / (GUESS^2 (k + ALIKE)).
    """
    return GUESS * np.sqrt(np.arange(1, factors + 1) + ALIKE)


def _factors(
    name: str, dim: str, size: int, factors: int, covariance: Covariance, share: float
) -> Any:
    """Declare factors around a mean, with a guess of their precisions.

    A precision that is learned without a guess grows without end where factors are weak.
    """
    weight, guess = max(share * size, LEAST), guesses(factors)
    tau: Any = Gamma(f"of_{name}", alpha=weight, beta=weight / guess, dims="factor")
    mean = f"mean_{name}"
    if covariance == "full":
        mu: Any = MvNormal(mean, mu=0, tau=np.diag(guess), dims="factor")
        return MvNormal(name, mu=mu, tau=diag(tau), dims=(dim, "factor"))
    mu = Normal(mean, mu=0, tau=guess, dims="factor")
    return Normal(name, mu=mu, tau=tau, dims=(dim, "factor"))


def continued(ratings: Ratings, users: Side, items: Side, precision: Any) -> Model:
    """Declare the network in which the q of before is the prior of what comes.

    The precision of the noise is given, for all ratings or for each.
    """
    sizes = {"user": ratings.users, "item": ratings.items, "factor": users.factors}
    with Model(coords=sizes) as model:
        mean = (
            Normal("a", mu=users.bias, tau=1 / users.bias_var, dims="user")[ratings.user]
            + Normal("b", mu=items.bias, tau=1 / items.bias_var, dims="item")[ratings.item]
        )
        if users.factors:
            kind: Any = MvNormal if users.full else Normal
            u, v = (
                kind(name, mu=side.mean, tau=side.precision(), dims=(dim, "factor"))
                for name, side, dim in (("u", users, "user"), ("v", items, "item"))
            )
            mean = mean + dot(u[ratings.user], v[ratings.item])
        Normal("r", mu=mean, tau=precision, observed=ratings.rating)
    return model


def sides(q: Mapping[str, Posterior]) -> tuple[Side, Side]:
    """Return users and items under q."""
    return _side(q, "a", "u"), _side(q, "b", "v")


def _side(q: Mapping[str, Posterior], bias: str, factors: str) -> Side:
    of_bias = q[bias]
    if factors in q:
        full = isinstance(q[factors].family, families.MvNormal)
        cov = np.linalg.inv(q[factors].tau) if full else q[factors].var
        arrays = of_bias.mean, of_bias.var, q[factors].mean, cov
    else:
        nothing = np.zeros((len(of_bias.mean), 0))
        arrays = of_bias.mean, of_bias.var, nothing, nothing
    return Side(*(np.ascontiguousarray(array, np.float32) for array in arrays))
