"""Fit the network of ratings, with early stopping on held-out ratings (stages.py).

To limit the influence of outliers, from the second stage on residuals are clipped at CUT standard
deviations, which is Huber's loss instead of a square.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.inference.fit import fit
from svmp.inference.methods import FullVB
from svmp.inference.online import Online
from svmp.inference.posterior import Posterior
from svmp.inference.result import Fit
from svmp.inference.steps import Constant
from svmp.inference.stopping import Interrupt, catch_interrupt
from svmp.models.factorization import Covariance
from svmp.network.network import Network
from svmp.ratings import Ratings
from svmp.recommend.network import FIRM, Noise, guesses, network, sides
from svmp.recommend.side import Side, expected, score
from svmp.recommend.spread import Spread
from svmp.recommend.stages import Search, Stage, search_best

BIASES = 40
"""Minimum number of sweeps without factors, which are cheap."""
CUT = 2.5
"""Residuals are clipped at this number of standard deviations of their user's noise."""
LAST = 4
"""Sweeps over all ratings, after those without the held-out ratings; at most half of all."""
RARELY = 10**9
"""Iterations between exact bounds: only the last is needed."""
NEAR, SURE = 0.5, 0.1
"""Standard deviation of the starting means, and starting variance, relative to the prior's."""


class Learned(NamedTuple):
    """q in the units of the ratings.

    Attributes
    ----------
    users, items
        q of each user and item.
    any_user, any_item
        q of an unknown user or item.
    noise
        Variance of the noise, one for all or one per user.
    spread
        Distribution of the errors of the held-out ratings.
    fit, sweeps
        The final fit, and the total number of sweeps.
    """

    users: Side
    items: Side
    any_user: Side
    any_item: Side
    noise: Any
    spread: Spread
    fit: Fit
    sweeps: float


class LearnSettings(NamedTuple):
    """Parameters of `RatingModel` that `learn` needs, by the same names."""

    factors: int
    covariance: Covariance
    noise: Noise
    max_sweeps: float
    tol: float
    seed: int
    threads: int | None
    progress: bool | None


def learn(
    ratings: Ratings, held: NDArray[np.bool_], offset: float, settings: LearnSettings
) -> Learned:
    """Fit the network to ratings, minus the offset and in units of their standard deviation.

    The ratings at `held` are held out to decide when to stop, and to learn how far ratings are from
    their predictions; a few sweeps over all ratings come last.
    """
    factors, covariance, noise, max_sweeps, tol, seed, threads, progress = settings
    scale = float(ratings.rating.std(dtype=np.float64)) or 1.0
    unit = (ratings.rating - offset) / scale
    table = Ratings(ratings.user, ratings.item, unit, ratings.user_ids, ratings.item_ids)
    differ = bool(np.ptp(unit))
    init: Any = start(table.users, table.items, differ, factors, covariance, seed)
    most = math.ceil(max_sweeps)
    last, weight, sweeps, best, rows = most, FIRM, 0, None, table

    def declare(rows: Ratings, factors: int, weight: float) -> Network:
        return Network(network(rows, factors, covariance, noise, weight))

    if held.any() and most > 1:
        last = min(LAST, most // 2)
        parts = table.take(np.flatnonzero(~held)), table.take(np.flatnonzero(held))
        search = TableSearch(declare, *parts, settings)
        with catch_interrupt() as interrupt:
            best, sweeps = search_best(search, factors, init, most - last, interrupt)
        init, weight, factors = best.posteriors, best.weight, best.factors
        rows = cut(table, init)
    options: Any = {"bound_every": RARELY, "tol": tol, "seed": seed, "threads": threads}
    model = declare(rows, factors, weight)
    found = fit(model, FullVB(), init=init, max_sweeps=last, progress=progress, **options)
    spread = Spread.normal() if best is None else spread_of(best, found.posteriors, parts[1])
    return learned(found, scale, covariance == "full", spread, sweeps + found.iterations)


@dataclass
class TableSearch(Search[Online]):
    """Early stopping with all rows in memory.

    Attributes
    ----------
    declare
        Declares the network of rows, given the number of factors and the weight of their prior.
    rows, rest
        Training rows and held-out rows.
    settings
        How to fit.
    """

    declare: Callable[[Ratings, int, float], Network]
    rows: Ratings
    rest: Ratings
    settings: LearnSettings
    biases: ClassVar[int] = BIASES

    def __post_init__(self) -> None:
        self.tol, self.progress = self.settings.tol, self.settings.progress

    def begin(self, factors: int, init: Mapping[str, Any]) -> Online:
        tell = self.progress is not False
        return Online(Constant(1.0), self.settings.seed, init, self.settings.threads, tell=tell)

    def sweep(
        self, run: Online, factors: int, weight: float, sweeps: int, interrupt: Interrupt
    ) -> Stage:
        rows = self.rows if run.state is None else cut(self.rows, run.posteriors)
        model = self.declare(rows, factors, weight)
        for _ in range(sweeps):
            run.advance(model)
            if interrupt.pressed:
                break
        model.derived.clear()  # sorted rows are not left to the garbage collector
        return Stage(run.posteriors, factors, weight, *errors_of(run.posteriors, self.rest))

    def kept(self, stage: Stage) -> Stage:
        q = {n: replace(p, natural=p.natural.copy()) for n, p in stage.posteriors.items()}
        return stage._replace(posteriors=q)


def cut(rows: Ratings, q: Mapping[str, Posterior]) -> Ratings:
    """Return ratings with residuals clipped at CUT standard deviations of the noise.

    The mean of q then minimises Huber's loss instead of the squared error.
    """
    users, items = sides(q)
    residual = rows.rating - expected(users, items, rows.user, rows.item)
    reach = CUT / np.sqrt(np.broadcast_to(q["noise"].mean, len(users)))[rows.user]
    far = residual - np.clip(residual, -reach, reach)
    return replace(rows, rating=rows.rating - far.astype(np.float32))


def start(
    users: int, items: int, differ: bool, factors: int, covariance: Covariance, seed: int
) -> dict[str, Any]:
    """Return a start of the factors near 0 with small variances: large ones would act as noise.

    If ratings do not differ, factors start, and stay, at 0.
    """
    if not factors:
        return {}
    rng = np.random.default_rng([seed, 2])
    guess = guesses(factors)
    tau = np.diag(guess / SURE) if covariance == "full" else guess / SURE
    width = NEAR / np.sqrt(guess) if differ else 0.0
    return {
        name: {"mu": width * rng.standard_normal((size, factors)), "tau": tau}
        for name, size in (("u", users), ("v", items))
    } | {name: {"alpha": guess, "beta": 1.0} for name in ("of_u", "of_v")}


def errors_of(q: Mapping[str, Posterior], held: Ratings) -> tuple[Any, Any]:
    """Return the errors of the predictions, and their standard deviations under q."""
    users, items = sides(q)
    mean, var = score(users.at(held.user), items.at(held.item))
    noise = 1 / np.broadcast_to(q["noise"].mean, len(users))[held.user]
    return held.rating - mean, np.sqrt(var + noise)


def spread_of(best: Stage, q: Mapping[str, Posterior], held: Ratings) -> Spread:
    """Return the distribution of the held-out errors, for a q that has seen all ratings."""
    _, std = errors_of(q, held)
    return Spread.of(best.errors, best.std).wider(float(best.std.mean() / std.mean()))


def learned(fit: Fit, scale: float, full: bool, spread: Spread, sweeps: float) -> Learned:
    """Return q of a fit in the units of the ratings."""
    users, items = (side.scaled(scale) for side in sides(fit.posteriors))
    any_user, any_item = (
        _anyone(fit, bias, factors, full).scaled(scale)
        for bias, factors in (("a", "u"), ("b", "v"))
    )
    noise = scale**2 / fit.mean("noise")
    return Learned(users, items, any_user, any_item, noise, spread, fit, sweeps)


def _anyone(fit: Fit, bias: str, factors: str, full: bool) -> Side:
    """Return q of an unknown user or item."""
    of_bias = fit.mean(f"of_{bias}")
    if factors not in fit.posteriors:
        return Side.prior(of_bias, np.ones(0), full=False)
    return Side.prior(of_bias, fit.mean(f"of_{factors}"), full, fit.mean(f"mean_{factors}"))
