"""Fit the network of ratings, with early stopping on held-out ratings.

A factorised q underestimates the dependence between factors. At convergence of the bound, weak
factors have vanished or strong ones overfit the noise; predictions are better before that. So the
run proceeds in stages, and ends when the next stage no longer reduces the held-out error.

Biases are fitted first, without factors, which is cheap. Factors start from there, and are kept if
they improve the predictions of the held-out ratings.

How informative the prior of the factors' precisions should be depends on the data: if there are
more factors than the data support, the others should vanish. One stage is run with both weights.

To limit the influence of outliers, from the second stage on residuals are clipped at CUT standard
deviations, which is Huber's loss instead of a square.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

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
from svmp.recommend.network import FIRM, LOOSE, Noise, guesses, network, sides
from svmp.recommend.side import Side, expected, score
from svmp.recommend.spread import Spread
from svmp.recommend.top import shown

FIRST, GROWTH = 3, 1.5
"""Sweeps of the first stage, and growth of the total number of sweeps with each stage."""
PATIENT, CLEARLY = 10, 1.004
"""Minimum number of sweeps, since factors may need some to move away from 0; twice as many unless
the mean squared error exceeds CLEARLY times the least so far."""
BIASES = 40
"""Minimum number of sweeps without factors, which are cheap."""
FOR_BIASES = 0.4
"""Share of the sweeps that may be spent on biases alone, if there are factors."""
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


class Stage(NamedTuple):
    """The state of a run after a stage, and its held-out errors.

    Attributes
    ----------
    run
        The run.
    factors, weight
        Number of factors, and weight of the prior of their precisions.
    errors, std
        Errors of the held-out ratings, and their standard deviations under q.
    """

    run: Online
    factors: int
    weight: float
    errors: NDArray[Any]
    std: NDArray[Any]

    @property
    def error(self) -> float:
        """Mean squared error."""
        return float(np.mean(self.errors**2))

    def surely_better_than(self, other: Stage) -> bool:
        """Whether the mean squared error is lower by more than two standard errors."""
        less = other.errors**2 - self.errors**2
        return bool(less.mean() > 2 * less.std() / np.sqrt(len(less)))


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
    init: Any = start(table, factors, covariance, seed)
    most = math.ceil(max_sweeps)
    last, weight, sweeps, best, rows = most, FIRM, 0, None, table

    def declare(rows: Ratings, factors: int, weight: float) -> Network:
        return Network(network(rows, factors, covariance, noise, weight))

    if held.any() and most > 1:
        last = min(LAST, most // 2)
        parts = table.take(np.flatnonzero(~held)), table.take(np.flatnonzero(held))
        search = Search(declare, *parts, tol, progress)
        with catch_interrupt() as interrupt:
            run = Online(Constant(1.0), seed, {}, threads, tell=progress is not False)
            share = FOR_BIASES if factors else 1.0
            few = max(1, int(share * (most - last)))
            best, sweeps = stages(search, run, 0, few, None, interrupt)
            left = most - last - sweeps
            if factors and left > 0 and not interrupt.pressed:
                run = replace(run, init={**init, **best.run.posteriors}, state=None)
                best, more = stages(search, run, factors, left, best, interrupt)
                sweeps += more
        init, weight, factors = best.run.posteriors, best.weight, best.factors
        rows = cut(table, init)
    options: Any = {"bound_every": RARELY, "tol": tol, "seed": seed, "threads": threads}
    model = declare(rows, factors, weight)
    found = fit(model, FullVB(), init=init, max_sweeps=last, progress=progress, **options)
    spread = Spread.normal()
    if best is not None:
        _, std = _errors(found.posteriors, parts[1])
        spread = Spread.of(best.errors, best.std).wider(float(best.std.mean() / std.mean()))
    return _learned(found, scale, covariance == "full", spread, sweeps + found.iterations)


class Search(NamedTuple):
    """Early stopping: how to declare the network, training and held-out rows, and tolerance."""

    declare: Callable[[Ratings, int, float], Network]
    kept: Ratings
    rest: Ratings
    tol: float
    progress: bool | None


def stages(
    search: Search,
    run: Online,
    factors: int,
    most: int,
    best: Stage | None,
    interrupt: Interrupt,
) -> tuple[Stage, int]:
    """Sweep over the training rows until the held-out error stops falling.

    Returns the best stage and the number of sweeps. A stage replaces the best one if its error is
    lower; with factors, early stages do not count, because factors have hardly moved by then and
    look better by chance. There are at most `most` sweeps, including both variants of the stage
    that is run twice. Ctrl-C also ends the run; its state is then valid.
    """

    def sweep(run: Online, weight: float, sweeps: int) -> Stage:
        rows = search.kept if run.state is None else cut(search.kept, run.posteriors)
        model = search.declare(rows, factors, weight)
        for _ in range(sweeps):
            run.advance(model)
            if interrupt.pressed:
                break
        model.derived.clear()  # sorted rows are not left to the garbage collector
        return Stage(run, factors, weight, *_errors(run.posteriors, search.rest))

    weight = FIRM
    spent = tried = 0
    for end in shown(ends(most), search.progress, "sweeping", few=1):
        until = min(end, most - tried)
        if until == spent:
            break
        other = None
        if factors and not tried and spent >= PATIENT and spent + 2 <= most:
            other, until = run.copy(), min(until, spent + (most - spent) // 2)
        now = sweep(run, weight, until - spent)
        if other is not None:
            tried = until - spent
            found = sweep(other, LOOSE, tried)
            if found.surely_better_than(now):
                now, run, weight = found, other, LOOSE
        spent, before = until, np.inf if best is None else best.error
        early = factors and until < min(PATIENT, most)
        if best is None or (now.error < before and not early):
            best = now._replace(run=run.copy())
        patience = PATIENT if now.error > CLEARLY * before else 2 * PATIENT
        patience = patience if factors else BIASES
        if (now.error >= (1 - search.tol) * before and spent >= patience) or interrupt.pressed:
            break
    assert best is not None
    return best, run.iteration + tried


def cut(rows: Ratings, q: Mapping[str, Posterior]) -> Ratings:
    """Return ratings with residuals clipped at CUT standard deviations of the noise.

    The mean of q then minimises Huber's loss instead of the squared error.
    """
    users, items = sides(q)
    residual = rows.rating - expected(users, items, rows.user, rows.item)
    reach = CUT / np.sqrt(np.broadcast_to(q["noise"].mean, len(users)))[rows.user]
    far = residual - np.clip(residual, -reach, reach)
    return replace(rows, rating=rows.rating - far.astype(np.float32))


def ends(max_sweeps: float) -> list[int]:
    """Return the total number of sweeps at the end of each stage.

    >>> ends(30)
    [3, 5, 8, 12, 18, 27, 30]
    """
    found, most = [FIRST], math.ceil(max_sweeps)
    while found[-1] < most:
        found.append(math.ceil(GROWTH * found[-1]))
    return [*found[:-1], most]


def start(ratings: Ratings, factors: int, covariance: Covariance, seed: int) -> dict[str, Any]:
    """Return a start of the factors near 0 with small variances: large ones would act as noise.

    If all ratings are equal, factors start, and stay, at 0.
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


def _errors(q: Mapping[str, Posterior], held: Ratings) -> tuple[Any, Any]:
    """Return the errors of the predictions, and their standard deviations under q."""
    users, items = sides(q)
    mean, var = score(users.at(held.user), items.at(held.item))
    noise = 1 / np.broadcast_to(q["noise"].mean, len(users))[held.user]
    return held.rating - mean, np.sqrt(var + noise)


def _learned(fit: Fit, scale: float, full: bool, spread: Spread, sweeps: float) -> Learned:
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
