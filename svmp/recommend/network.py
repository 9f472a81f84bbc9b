"""The network of ratings: r = a_user + b_item + u_user . v_item + noise.

Biases and factors are Normal around 0. Their precisions are learned, one for all users' biases, one
for all items', and one for each factor of users and of items; so is that of the noise.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from svmp.network.distributions import Gamma, MvNormal, Normal
from svmp.network.expressions import diag, dot
from svmp.network.model import Model
from svmp.ratings import Ratings
from svmp.recommend.side import Side

Covariance = Literal["diagonal", "full"]
Noise = Literal["shared", "user"]
SHAPE = 4.0
"""Of the precision of each user's noise: as if four pairs of ratings had been seen."""


def network(ratings: Ratings, factors: int, covariance: Covariance, noise: Noise) -> Model:
    """Declare the network of ratings whose mean is 0 and whose variance is 1."""
    sizes = {"user": ratings.users, "item": ratings.items, "factor": factors}
    with Model(coords=sizes) as model:
        if noise == "user":
            level = Gamma("level", alpha=1, beta=1)
            tau: Any = Gamma("noise", alpha=SHAPE, beta=SHAPE * level, dims="user")[ratings.user]
        else:
            tau = Gamma("noise", alpha=1, beta=1)
        a = Normal("a", mu=0, tau=Gamma("of_a", alpha=1, beta=1), dims="user")
        b = Normal("b", mu=0, tau=Gamma("of_b", alpha=1, beta=1), dims="item")
        of_u = Gamma("of_u", alpha=1, beta=1, dims="factor")
        of_v = Gamma("of_v", alpha=1, beta=1, dims="factor")
        if covariance == "full":
            u: Any = MvNormal("u", mu=0, tau=diag(of_u), dims=("user", "factor"))
            v: Any = MvNormal("v", mu=0, tau=diag(of_v), dims=("item", "factor"))
        else:
            u = Normal("u", mu=0, tau=of_u, dims=("user", "factor"))
            v = Normal("v", mu=0, tau=of_v, dims=("item", "factor"))
        user, item = ratings.user, ratings.item
        mean = a[user] + b[item] + dot(u[user], v[item])
        Normal("r", mu=mean, tau=tau, observed=ratings.rating)
    return model


def continued(ratings: Ratings, users: Side, items: Side, precision: Any) -> Model:
    """Declare the network in which the q of before is the prior of what comes.

    The precision of the noise is given, for all ratings or for each.
    """
    sizes = {"user": ratings.users, "item": ratings.items, "factor": users.factors}
    with Model(coords=sizes) as model:
        a = Normal("a", mu=users.bias, tau=1 / users.bias_var, dims="user")
        b = Normal("b", mu=items.bias, tau=1 / items.bias_var, dims="item")
        kind: Any = MvNormal if users.full else Normal
        u, v = (
            kind(name, mu=side.mean, tau=side.precision(), dims=(what, "factor"))
            for name, side, what in (("u", users, "user"), ("v", items, "item"))
        )
        user, item = ratings.user, ratings.item
        mean = a[user] + b[item] + dot(u[user], v[item])
        Normal("r", mu=mean, tau=precision, observed=ratings.rating)
    return model


def sides(fit: Any) -> tuple[Side, Side]:
    """Return users and items under the q of a fit."""
    return _side(fit["a"], fit["u"]), _side(fit["b"], fit["v"])


def _side(bias: Any, factors: Any) -> Side:
    full = "tau" in factors.parameters and factors.parameters["tau"].ndim == 3
    cov = np.linalg.inv(factors.tau) if full else factors.var
    arrays = bias.mean, bias.var, factors.mean, cov
    return Side(*(np.ascontiguousarray(array, np.float32) for array in arrays))
