"""The network of ratings: r = a_user + b_item + u_user . v_item + noise.

All terms are Normal, the biases with mean 0. Learned hyperparameters are the precisions of the
users' and of the items' biases, the mean and the precision of each factor of users and of items,
and the precision of the noise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from svmp import families
from svmp.inference.posteriors.posterior import Posterior
from svmp.inference.run_record import RunRecord
from svmp.inference.trace import Trace
from svmp.kernels.vectors.means import mean_and_covariance
from svmp.models import GammaPrior, NormalPrior, UserItemPairs, UserNoise, matrix_factorization
from svmp.models.factorization import DIMS, Covariance
from svmp.network.model import Model
from svmp.ratings import Ratings
from svmp.recommend.side import Side

Form = Literal["auto", "diagonal", "full"]
"""The form of q of the factors: "auto" is the one that suits the number of ratings."""
Noise = Literal["shared", "user"]
SHAPE, SHARE = 8.0, 0.5
"""The prior of a user's noise precision has the weight of SHAPE pairs of ratings, plus SHARE times
that of the user's own."""
GUESS, ALIKE = 3.0, 4
"""Prior mean of the precision of factor k, GUESS sqrt(k + ALIKE), for ratings with variance 1."""
FIRM, LOOSE, LEAST = 0.3, 0.01, 30.0
"""Weight of the prior of the factors' precisions: a share of the number of users or items (FIRM or
LOOSE), and at least LEAST."""


def network(
    ratings: Ratings,
    factors: int,
    covariance: Covariance,
    noise: Noise,
    weight: float = FIRM,
    users: int | None = None,
) -> Model:
    """Declare the network of ratings whose mean is 0 and whose variance is 1.

    If these are the ratings of one part of the users, `users` is the number of all.
    """
    learned = GammaPrior(alpha=1, beta=1)
    priors = {"a": NormalPrior(0, learned), "b": NormalPrior(0, learned)}
    if factors:
        priors |= {
            name: _prior(size, factors, covariance, weight)
            for name, size in (("u", users or ratings.users), ("v", ratings.items))
        }
    return matrix_factorization(
        pairs_of(ratings),
        ratings.rating,
        factors,
        priors=priors,
        covariance=covariance,
        noise=UserNoise(noise_shape(ratings)) if noise == "user" else learned,
    )


def pairs_of(ratings: Ratings) -> UserItemPairs:
    """Return the users and items of ratings."""
    return UserItemPairs(ratings.user, ratings.item, ratings.users, ratings.items)


def noise_shape(ratings: Ratings) -> NDArray[Any]:
    """Return the prior shape of each user's noise precision, which grows with their ratings.

    With n ratings of mean squared residual s^2 and the level l, the variance of the noise is about
    (SHAPE l + n / 2 (SHARE l + s^2)) / (SHAPE + n / 2 (SHARE + 1)), which is at least
    SHARE / (1 + SHARE) of the level. Without this limit, the biases of items with a single rating
    would fit the ratings of their user exactly, and that user's noise would vanish.
    """
    return SHAPE + SHARE / 2 * np.bincount(ratings.user, minlength=ratings.users)


def guesses(factors: int) -> NDArray[np.float64]:
    """Return the prior means of the precisions of the factors.

    The precisions increase, so that the prior variance of u . v, sum 1 / (GUESS^2 (k + ALIKE)),
    grows slowly with the number of factors.
    """
    return GUESS * np.sqrt(np.arange(1, factors + 1) + ALIKE)


def prior_weight(share: float, size: int) -> float:
    """Return the weight of the prior of the factors' precisions, in users or items."""
    return max(share * size, LEAST)


def _prior(size: int, factors: int, covariance: Covariance, share: float) -> NormalPrior:
    """Return the prior of factors: their mean is learned, and so is a precision for each factor.

    The prior of the precisions is informative: otherwise those of weak factors grow without bound.
    """
    weight, guess = prior_weight(share, size), guesses(factors)
    mean = NormalPrior(0, np.diag(guess) if covariance == "full" else guess)
    return NormalPrior(mean, GammaPrior(weight, weight / guess))


def continued(ratings: Ratings, users: Side, items: Side, precision: Any) -> Model:
    """Declare the network of more ratings, with a prior for each user and each item.

    The precision of the noise is given, for all ratings or for each.
    """
    return matrix_factorization(
        pairs_of(ratings),
        ratings.rating,
        users.factors,
        priors=priors_of(users, items),
        covariance="full" if users.full else "diagonal",
        noise=precision,
    )


def priors_of(users: Side, items: Side) -> dict[str, NormalPrior]:
    """Return q of users and items as priors."""
    priors = {"a": users.bias_prior(), "b": items.bias_prior()}
    if users.factors:
        priors |= {"u": users.factor_prior(), "v": items.factor_prior()}
    return priors


def earlier_run(users: Side, items: Side, but: Collection[str] = ()) -> RunRecord:
    """Return q of users and items as an earlier run, which is matched by position.

    An element whose q is its prior has learned nothing. Variables of `but` are left out.
    """
    found = {}
    for name, q in priors_of(users, items).items():
        if name in but:
            continue
        mean, precision = (np.asarray(x, np.float64) for x in (q.mean, q.precision))
        full = precision.ndim > mean.ndim
        family = families.MvNormal(mean.shape[1]) if full else families.Normal()
        natural = family.natural(mu=mean, tau=precision).reshape(-1, family.size)
        dims = (DIMS[name], "factor") if mean.ndim > 1 else (DIMS[name],)
        plate = mean.shape[: mean.ndim - family.event_ndim]
        found[name] = Posterior(name, dims, plate, family, natural)
    return RunRecord("converged", {}, Trace(), found, 0, 0, 0.0)


def sides(q: Mapping[str, Posterior]) -> tuple[Side, Side]:
    """Return the posteriors of users and of items."""
    return _side(q, "a", "u"), _side(q, "b", "v")


def _side(q: Mapping[str, Posterior], bias: str, factors: str) -> Side:
    of_bias = q[bias]
    if factors in q:
        arrays = of_bias.mean, of_bias.var, *_standard(q[factors])
    else:
        empty = np.zeros((len(of_bias.mean), 0))
        arrays = of_bias.mean, of_bias.var, empty, empty
    return Side(*(np.ascontiguousarray(array, np.float32) for array in arrays))


def _standard(q: Posterior) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the means of factors, and their variances or covariances."""
    if isinstance(q.family, families.MvNormal):
        return mean_and_covariance(q.natural, q.family.dimension)
    return q.mean, q.var
