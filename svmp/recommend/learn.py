"""Fitting the network of ratings, for as long as it gets better on ratings that are held out.

A q that factorises makes too little of how factors hang together. Run to its end, the bound is best
either where weak factors have vanished or where strong ones follow the noise; on the way there
predictions are better. So the run goes on in stages, and ends when the next one helps no more.

How firmly the guess of the factors' precisions should hold depends on the data: where more factors
are asked for than there are, the others should vanish. One stage is run both ways.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.inference.fit import fit
from svmp.inference.result import Fit
from svmp.inference.selection import FullVB
from svmp.network.network import Network
from svmp.ratings import Ratings
from svmp.recommend.network import FIRM, LOOSE, Covariance, Noise, guesses, network, sides
from svmp.recommend.side import Side, score
from svmp.recommend.spread import Spread

FIRST, GROWTH = 3, 1.5
"""Sweeps of the first stage, and how many times as many the run has had after the next."""
PATIENT, CLEARLY = 10, 1.002
"""Before so many sweeps the run does not end: factors may need some to get away from 0. Where the
mean square of the errors is not so many times the least, it does not before twice as many."""
LAST = 3
"""Sweeps over all ratings, from where those without the held-out ones have ended."""
RARELY = 10**9
"""Iterations between exact bounds, of which none is needed but the last of a stage."""
NEAR, SURE = 0.5, 0.1
"""Factors start with such a share of the prior's standard deviation, and of its variance."""


class Learned(NamedTuple):
    """q in the units of the ratings.

    Attributes
    ----------
    users, items
        Of each user and item.
    any_user, any_item
        Of one of whom nothing is known.
    noise
        Variance of the noise, of all ratings or of each user's.
    spread
        How far the ratings that were held out fell from their predictions.
    fit, sweeps
        How the run ended, and after how many sweeps.
    """

    users: Side
    items: Side
    any_user: Side
    any_item: Side
    noise: Any
    spread: Spread
    fit: Fit
    sweeps: float


class Stage(NamedTuple):
    """Where a run has come to: its fit, what the guess weighed, and how good it is.

    Attributes
    ----------
    errors, std
        By how much the ratings that were held out differ from their predictions, and should.
    """

    fit: Fit
    weight: float
    errors: NDArray[Any]
    std: NDArray[Any]

    @property
    def error(self) -> float:
        """The mean square of the errors, or infinity where nothing is held out."""
        return float(np.mean(self.errors**2)) if len(self.errors) else np.inf


def learn(
    ratings: Ratings,
    held: NDArray[np.bool_],
    offset: float,
    factors: int,
    covariance: Covariance,
    noise: Noise,
    max_sweeps: float,
    seed: int,
    **options: Any,
) -> Learned:
    """Fit the network to ratings, of which the offset is subtracted, in units of their spread.

    Those that are held out say when to stop, and how far ratings fall from their predictions; a few
    sweeps over all ratings come last.
    """
    scale = float(ratings.rating.std(dtype=np.float64)) or 1.0
    unit = (ratings.rating - offset) / scale
    table = Ratings(ratings.user, ratings.item, unit, ratings.user_ids, ratings.item_ids)
    rest = table.take(np.flatnonzero(held))
    options |= {"bound_every": RARELY, "seed": seed}
    kept = table.take(np.flatnonzero(~held))

    def declare(rows: Ratings, weight: float) -> Network:
        return Network(network(rows, factors, covariance, noise, weight))

    def run(model: Network, weight: float, init: Any, sweeps: float) -> Stage:
        q = fit(model, FullVB(), init=init, max_sweeps=sweeps, **options)
        return Stage(q, weight, *_errors(q, rest))

    model, spent, tried = declare(kept, FIRM), 0.0, 0.0
    now, best = None, None
    while spent < max_sweeps:
        until = min(max(GROWTH * spent, FIRST), max_sweeps) if len(rest) else max_sweeps
        init = start(table, factors, covariance, seed) if now is None else now.fit
        now = run(model, FIRM if now is None else now.weight, init, until - spent)
        if factors and not tried and spent >= PATIENT:
            tried, other = until - spent, declare(kept, LOOSE)
            loose = run(other, LOOSE, init, tried)
            if loose.error < now.error:
                now, model = loose, other
        spent = until
        if best is None or now.error < best.error:
            best = now
        elif spent >= (PATIENT if now.error > CLEARLY * best.error else 2 * PATIENT):
            break
        if now.fit.status != "budget":
            break
    assert best is not None
    found, spread = best.fit, Spread.normal()
    if len(rest):
        last = run(declare(table, best.weight), best.weight, found, LAST)
        wider = float(best.std.mean() / last.std.mean())
        found, spread = last.fit, Spread.of(best.errors, best.std).wider(wider)
    return _learned(found, scale, covariance == "full", spread, spent + tried)


def start(ratings: Ratings, factors: int, covariance: Covariance, seed: int) -> dict[str, Any]:
    """Start factors near 0 and fairly sure of it: vague ones would pass for noise.

    Where all ratings are the same, factors have nothing to say, and start, and stay, at 0.
    """
    if not factors:
        return {}
    rng = np.random.default_rng([seed, 2])
    guess = guesses(factors)
    tau = np.diag(guess / SURE) if covariance == "full" else guess / SURE
    width = NEAR / np.sqrt(guess) if np.ptp(ratings.rating) else 0.0
    return {
        name: {"mu": width * rng.standard_normal((size, factors)), "tau": tau}
        for name, size in (("u", ratings.users), ("v", ratings.items))
    } | {name: {"alpha": guess, "beta": 1.0} for name in ("of_u", "of_v")}


def _errors(q: Fit, held: Ratings) -> tuple[Any, Any]:
    """Return by how much ratings differ from their predictions, and by how much they should."""
    users, items = sides(q)
    mean, var = score(users.at(held.user), items.at(held.item))
    noise = 1 / np.broadcast_to(q.mean("noise"), len(users))[held.user]
    return held.rating - mean, np.sqrt(var + noise)


def _learned(fit: Fit, scale: float, full: bool, spread: Spread, sweeps: float) -> Learned:
    users, items = (side.scaled(scale) for side in sides(fit))
    any_user, any_item = (
        _anyone(fit, bias, factors, full).scaled(scale)
        for bias, factors in (("a", "u"), ("b", "v"))
    )
    noise = scale**2 / fit.mean("noise")
    return Learned(users, items, any_user, any_item, noise, spread, fit, sweeps)


def _anyone(fit: Fit, bias: str, factors: str, full: bool) -> Side:
    """Return one of whom nothing is known."""
    of_bias = fit.mean(f"of_{bias}")
    if factors not in fit.posteriors:
        return Side.prior(of_bias, np.ones(0), full)
    return Side.prior(of_bias, fit.mean(f"of_{factors}"), full, fit.mean(f"mean_{factors}"))
