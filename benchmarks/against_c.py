"""Matrix factorization against plain C, on the Netflix-shaped million.

A full VB sweep, the exact bound, an iteration of Algorithm 1, and two threads against one. Both
programs start from the same q and are checked to reach the same q and the same bound. The time of
svmp's bound is the difference between sweeps with and without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from alone import alone
from common import THREADS, Row, in_turn, iteration_seconds, main, seconds
from plain import Plain, compiled

import svmp
from svmp.datasets import netflix_shaped
from svmp.ratings import Ratings
from svmp.study.netflix import matrix_factorization

UNIT = svmp.Constant(1.0)
SCHEDULE = svmp.RobbinsMonro(kappa=0.6, tau=32767)
AGREE = 1e-3


def start(ratings: Ratings, factors: int) -> tuple[Any, Any]:
    """Return means to start from; the variances are 1."""
    rng = np.random.default_rng(factors)
    u, v = (0.3 * rng.standard_normal((n, factors)) for n in (ratings.users, ratings.items))
    return u.astype(np.float32), v.astype(np.float32)


def init(u: Any, v: Any) -> dict[str, Any]:
    return {"u": {"mu": u, "tau": 1.0}, "v": {"mu": v, "tau": 1.0}}


def apart(fit: svmp.Fit, plain: Plain) -> float:
    """Return the largest relative difference of the means and of the bound."""
    mine = (fit.mean("u"), fit.mean("v"), np.array(fit.bound))
    theirs = (*plain.means, np.array(plain.bound()))
    pairs = zip(mine, theirs, strict=True)
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in pairs)


def full_vb(c: Any, ratings: Ratings, factors: int, rounds: int) -> list[Row]:
    """Time a sweep and the bound."""
    u, v = start(ratings, factors)
    model, plain = matrix_factorization(ratings, factors), Plain(c, ratings, u, v)
    for _ in range(3):
        plain.sweep()
    fit = svmp.fit(model, svmp.FullVB(), init=init(u, v), max_sweeps=3, tol=0, progress=False)
    difference = apart(fit, plain)
    assert difference < AGREE, f"C and svmp are {difference:.1e} apart"
    least = in_turn(
        {
            "sweep in C": lambda: seconds(plain.sweep, 10),
            "sweep": lambda: iteration_seconds(model, svmp.FullVB(), UNIT),
            "bound in C": lambda: seconds(plain.bound, 10),
            "both": lambda: iteration_seconds(model, svmp.FullVB(), UNIT, bound=True),
        },
        rounds,
    )
    bound = max(least["both"] - least["sweep"], 0.0)
    in_c = least["sweep in C"] + least["bound in C"]
    where = f"K = {factors}"
    mine, theirs = least["sweep"], least["sweep in C"]
    return [
        Row(f"full VB sweep, {where}", mine, theirs, "plain C", wanted=1.3),
        Row(f"sweep and bound, {where}", least["both"], in_c, "plain C"),
        Row(f"exact bound, {where}", bound, least["bound in C"], "plain C"),
    ]


def algorithm_1(c: Any, ratings: Ratings, C: int, rounds: int, factors: int = 5) -> Row:
    """Time an iteration in which every scalar draws C children."""
    u, v = start(ratings, factors)
    model, plain = matrix_factorization(ratings, factors), Plain(c, ratings, u, v)
    counts = np.concatenate([np.bincount(ratings.user), np.bincount(ratings.item)])
    accesses = factors * int(np.minimum(counts, C).sum())
    iterations, told = 40, []

    def plain_steps() -> float:
        def one() -> None:
            told.append(0)
            rho = (len(told) + SCHEDULE.tau) ** -SCHEDULE.kappa
            plain.iterate(C, rho, 0, len(told))

        return seconds(one, iterations)

    def steps() -> float:
        limits = {"max_sweeps": None, "max_accesses": iterations * accesses}
        return iteration_seconds(model, svmp.Children(C), SCHEDULE, init=init(u, v), **limits)

    plain_steps()
    fit = svmp.fit(
        model,
        svmp.Children(C),
        steps=SCHEDULE,
        init=init(u, v),
        tol=0,
        max_sweeps=None,
        max_accesses=iterations * accesses,
        bound_every=10**9,
        progress=False,
    )
    note = "" if apart(fit, plain) < AGREE else "the draws are not the same"
    least = in_turn({"C": plain_steps, "svmp": steps}, rounds)
    what = f"iteration of Algorithm 1, C = {C}, K = {factors}"
    return Row(what, least["svmp"], least["C"], "plain C", wanted=1.5, note=note)


def measure(quick: bool) -> Iterator[Row]:
    scale, rounds = (0.05, 2) if quick else (1.0, 5)
    c, ratings = compiled(), netflix_shaped(scale)
    c.set_threads(THREADS)
    for factors in (5, 32, 64):
        yield from full_vb(c, ratings, factors, rounds)
    for C in (1, 5, 20):
        yield algorithm_1(c, ratings, C, rounds)
    ways = {str(n): lambda n=n: alone(scale, sweeps=20, threads=n)["seconds"] for n in (2, 1)}
    least = in_turn(ways, 3)
    what = "full VB sweep, K = 32, two threads"
    yield Row(what, least["2"], least["1"], "svmp, one thread", wanted=0.6)


if __name__ == "__main__":
    main(measure, __doc__)
