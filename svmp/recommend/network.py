"""The network of ratings: r = a_user + b_item + u_user . v_item + noise.

All terms are Normal, the biases with mean 0. Learned hyperparameters are the precisions of the
users' and of the items' biases, the mean and the precision of each factor of users and of items,
and the precision of the noise.

Biases are entries of the vectors of factors, each multiplied by a slope of the other side:

    r = u~_user . v~_item + noise,    u~ = (u, a, s),  v~ = (v, t, b).

Slopes have the prior mean 1; if they were all 1, this would be the sum above. So a user follows
what everybody thinks of an item more or less closely, and where q has covariances, those between
biases and factors are among them. Without factors there are no slopes either.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp import families
from svmp.inference.trace import Trace
from svmp.kernels.vectors.means import mean_and_covariance
from svmp.models import GammaPrior, NormalPrior, UserItemPairs, UserNoise, matrix_factorization
from svmp.models.factorization import DIMS, Covariance
from svmp.network.model import Model
from svmp.posterior.marginals.posterior import Posterior
from svmp.posterior.record.run_record import RunRecord
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
SLOPE = 25.0
"""Prior mean of the precision of slopes, and precision of their prior mean."""
BIAS_AND_SLOPE = 2
"""Number of entries of a vector after its factors."""


class VectorPrior(NamedTuple):
    """Prior of vectors (u, a, s) or (v, t, b): x ~ Normal(m, diag(tau)), with m and tau learned.

    Attributes
    ----------
    mean, of_mean
        Mean and precision of m.
    alpha, beta
        tau ~ Gamma(alpha, beta), for each entry.
    """

    mean: NDArray[np.float64]
    of_mean: NDArray[np.float64]
    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]

    @classmethod
    def of(cls, name: str, size: int, factors: int, share: float) -> VectorPrior:
        """Return the prior of the users, "u", or the items, "v", of which there are `size`."""
        weight, guess = prior_weight(share, size), guesses(factors)

        def entries(of_factors: Any, bias: float, slope: float) -> NDArray[np.float64]:
            last = (bias, slope) if name == "u" else (slope, bias)
            return np.append(np.broadcast_to(of_factors, factors), last).astype(np.float64)

        alpha, beta = entries(weight, 1, 1), entries(weight / guess, 1, 1 / SLOPE)
        return cls(entries(0, 0, 1), entries(guess, 1, SLOPE), alpha, beta)


def bias_at(name: str, factors: int) -> int:
    """Return the place of the bias in the vectors of users, "u", or of items, "v"."""
    return factors if name == "u" else factors + 1


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
    # users last: their update gives the sums of squares that the noise of users needs
    sizes = {"v": ratings.items, "u": users or ratings.users}
    if factors:
        priors = {
            name: _prior(VectorPrior.of(name, size, factors, weight), covariance)
            for name, size in sizes.items()
        }
    else:
        priors = {name: NormalPrior(0, learned) for name in ("a", "b")}
    return matrix_factorization(
        pairs_of(ratings),
        ratings.rating,
        factors + BIAS_AND_SLOPE if factors else 0,
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


def _prior(vectors: VectorPrior, covariance: Covariance) -> NormalPrior:
    """Return the prior of factors, bias and slope, as the declaration needs it.

    The prior of the factors' precisions is informative: otherwise those of weak ones grow without
    bound.
    """
    mean, of_mean, alpha, beta = vectors
    around = NormalPrior(mean, np.diag(of_mean) if covariance == "full" else of_mean)
    return NormalPrior(around, GammaPrior(alpha, beta))


def priors_of(users: Side, items: Side) -> dict[str, NormalPrior]:
    """Return q of users and items as priors."""
    priors = {} if users.joined else {"a": users.bias_prior(), "b": items.bias_prior()}
    if users.width:
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
    mean, cov = _standard(q[factors]) if factors in q else (None, None)
    size = len(q[bias if bias in q else factors].mean) if mean is None else len(mean)
    nothing = np.zeros((size, 0))
    of_bias = (q[bias].mean, q[bias].var) if bias in q else np.zeros((2, size))
    of_factors = (nothing, nothing) if mean is None else (mean, cov)
    return Side(*(np.ascontiguousarray(array, np.float32) for array in (*of_bias, *of_factors)))


def _standard(q: Posterior) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the means of factors, and their variances or covariances."""
    if q.family.gaussian == "vector":
        return mean_and_covariance(q.natural, q.family.length)
    return q.mean, q.var
