"""Held-out ratings: the RMSE and the time of RatingModel and of other recommenders, 90/10.

RatingModel has its default settings, except the number of factors. Its time is that of `fit`,
including the ratings that it holds out for its intervals; a peer's is that of its fit, without
reading its data.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import mean
from typing import Any

import numpy as np
from common import THREADS, Curve, Row, Unavailable, ask, first_at
from recommend_data import Settings, as_file, parts, table
from runs import Runs, average, cases, grid

from svmp.recommend import RatingModel
from svmp.recommend.metrics import by_spread, coverage, rmse
from svmp.recommend.split import Split, random

PEERS = {
    "SMURFF": ("smurff", "smurff_gibbs", {"burnin": 20, "samples": 80}),
    "myFM variational": ("myfm", "myfm_machine", {"solver": "variational", "iterations": 60}),
    "myFM Gibbs": ("myfm", "myfm_machine", {"solver": "gibbs", "burnin": 10, "iterations": 100}),
    "cmfrec": ("cmfrec", "cmfrec_als", {"lambda": 10.0}),
    "LIBMF": ("libmf", "libmf_sgd", {"lambda": 0.1, "iterations": 20}),
    "Cornac MF": ("cornac", "cornac_mf", {"lambda": 0.02, "rate": 0.01, "iterations": 20}),
    "Surprise SVD": ("surprise", "surprise_svd", {"lambda": 0.1, "rate": 0.005, "iterations": 20}),
}
OWN = ("svmp", "svmp, sweep by sweep", "svmp, updated")
SWEEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
LEVELS = (0.5, 0.9, 0.95)
SLOW, FAST = ("SMURFF", "myFM variational", "myFM Gibbs"), tuple(PEERS)[3:]
"""Peers whose RMSE is a goal, and peers whose time is a budget."""
NEAR = 0.0005
"""A peer has reached its final RMSE within this difference."""
QUIET = THREADS + 1
"""Largest load average at which times are compared."""
COVERED = 0.02
"""Largest acceptable error of the coverage of intervals."""
Found = dict[str, Any]


def fit(data: Split, factors: int, seed: int, **options: Any) -> tuple[RatingModel, float]:
    """Fit to the training ratings; return the model and the seconds."""
    model = RatingModel(factors, seed=seed, progress=False, **options)
    began = time.perf_counter()
    model.fit(data.train)
    return model, time.perf_counter() - began


def error(model: RatingModel, data: Split) -> float:
    guess, _ = model.predict_keys(data.test.user, data.test.item)
    return rmse(data.test.rating, guess)


def default(data: Split, factors: int, seed: int) -> Found:
    """Measure a model with default settings."""
    model, seconds = fit(data, factors, seed)
    test = data.test
    guess, std = model.predict_keys(test.user, test.item)
    held = {
        level: coverage(test.rating, *model.interval_of_keys(test.user, test.item, level))
        for level in LEVELS
    }
    fifths = [e for _, e in by_spread(test.rating, guess, std)]
    found = {"rmse": rmse(test.rating, guess), "seconds": seconds, "sweeps": model.sweeps_}
    return {**found, "held": list(held.values()), "fifths": fifths}


def by_sweeps(data: Split, factors: int, seed: int) -> Found:
    """Measure the error against time, in runs with more and more sweeps."""
    curve: Curve = []
    for sweeps in SWEEPS:
        model, seconds = fit(data, factors, seed, max_sweeps=sweeps)
        curve.append((seconds, error(model, data)))
    return {"curve": curve, "rmse": curve[-1][1], "seconds": curve[-1][0]}


def updated(data: Split, factors: int, seed: int) -> Found:
    """Measure a model that receives the last tenth of its ratings by `update`."""
    first, rest = random(data.train, 0.1, seed + 1)
    model, _ = fit(Split(first, data.test), factors, seed)
    began = time.perf_counter()
    model.update(rest)
    seconds = time.perf_counter() - began
    return {"rmse": error(model, data), "seconds": seconds}


def theirs(name: str, request: Found) -> Found:
    """Measure a peer."""
    peer, script, options = PEERS[name]
    found = ask(peer, {**request, **options}, script)
    curve = [(s, e) for s, e in found["curve"] if np.isfinite(e)]
    if not curve:
        raise Unavailable("its predictions are not finite")
    whole = {"curve": curve} if len(curve) > 1 else {}
    return {"rmse": curve[-1][1], "seconds": curve[-1][0], "version": found["version"], **whole}


def measure(settings: Settings) -> Iterator[tuple[Found, Found]]:
    own = dict(zip(OWN, (default, by_sweeps, updated), strict=True))
    fit(parts(table("Netflix-shaped", 0.01), 0), 2, 0)  # compiles
    for name, factors, seed in settings.each():
        key = {"data": name, "factors": factors, "seed": seed}
        data = parts(table(name, 0.1 if settings.quick else 1.0), seed)
        with as_file(data) as request:
            request |= {"factors": factors, "seed": seed, "threads": THREADS}
            for model in settings.chosen([*PEERS, *own]):
                try:
                    mine = own.get(model)
                    found = mine(data, factors, seed) if mine else theirs(model, request)
                except Unavailable as reason:
                    found = {"failed": str(reason)}
                yield {**key, "model": model}, found


def grids(runs: Runs) -> Iterator[Found]:
    """Yield RMSE and seconds of all models, averaged over seeds."""
    yield grid(runs, "rmse", "RMSE", without=OWN[1])


def rows(runs: Runs) -> Iterator[Row]:
    for name, factors in cases(runs):
        what = f"{name}, K = {factors}"
        by_model = {
            model: runs.of(data=name, factors=factors, model=model) for model in runs.names("model")
        }
        mine = by_model.get("svmp", [])
        if not mine:
            continue
        others = {m: on_the_same(mine, by_model[m]) for m in PEERS if by_model.get(m)}
        if others:
            best = max(others, key=lambda m: others[m][0] / others[m][1])
            yield Row(f"RMSE, {what}", *others[best][:2], best, "RMSE", 1.0, others[best][2])
        quiet = {m: [r for r in found if r["load"] <= QUIET] for m, found in by_model.items()}
        yield from to_equal(quiet, what)
        yield from in_time(quiet, what)
        yield from honest(mine, what)
        again = by_model.get(OWN[2], [])
        if again:
            yield Row(
                f"RMSE after update, {what}",
                average(again, "rmse"),
                average(mine, "rmse"),
                "a refit",
                "RMSE",
                1.005,
            )
            yield Row(
                f"update, {what}",
                average(again, "seconds"),
                average(mine, "seconds"),
                "a refit",
                wanted=0.1,
            )


def on_the_same(mine: list[Found], theirs: list[Found]) -> tuple[float, float, str]:
    """Return the RMSE of both on their common splits, and the number of these in words."""
    seeds = {run["seed"] for run in mine} & {run["seed"] for run in theirs}
    own, its = ([r for r in runs if r["seed"] in seeds] for runs in (mine, theirs))
    many = f"{len(seeds)} splits" if len(seeds) > 1 else "one split"
    return average(own, "rmse"), average(its, "rmse"), many


def curves(by_model: dict[str, list[Found]]) -> dict[int, Curve]:
    """Return svmp's curves of error against time, by seed."""
    return {run["seed"]: run["curve"] for run in by_model.get(OWN[1], [])}


def to_equal(by_model: dict[str, list[Found]], what: str) -> Iterator[Row]:
    """Yield the time to the final RMSE of slow peers."""
    mine = curves(by_model)
    for peer in SLOW:
        times, notes = [], []
        for run in (r for r in by_model.get(peer, []) if r["seed"] in mine):
            goal = run["rmse"] + NEAR
            own = run.get("curve", [(run["seconds"], run["rmse"])])
            times.append((first_at(mine[run["seed"]], goal), first_at(own, goal)))
            notes.append(f"{goal:.4f}")
        if times:
            reached = all(own is not None for own, _ in times)
            own = mean(t for t, _ in times) if reached else None  # type: ignore[misc]
            note = f"RMSE {', '.join(notes)}" + ("" if reached else ": not reached")
            its = mean(t for _, t in times)  # type: ignore[misc]
            yield Row(f"time to its RMSE, {what}", own, its, peer, wanted=1 / 3, note=note)


def in_time(by_model: dict[str, list[Found]], what: str) -> Iterator[Row]:
    """Yield the RMSE in the time of fast peers."""
    mine = curves(by_model)
    for peer in FAST:
        runs = [r for r in by_model.get(peer, []) if r["seed"] in mine]
        if not runs:
            continue
        best = [
            min((e for s, e in mine[r["seed"]] if s <= r["seconds"]), default=None) for r in runs
        ]
        took = f"{average(runs, 'seconds'):.3g} s"
        if None in best:
            first = mean(mine[r["seed"]][0][0] for r in runs)
            took += f"; svmp's first sweep has ended after {first:.3g} s"
        own = None if None in best else mean(best)  # type: ignore[type-var]
        yield Row(f"RMSE in its time, {what}", own, average(runs, "rmse"), peer, "RMSE", 1.0, took)


def honest(mine: list[Found], what: str) -> Iterator[Row]:
    """Yield the coverage of intervals, and the rise of errors with the predicted spread."""
    shares = np.mean([run["held"] for run in mine], axis=0)
    worst = float(max(np.abs(shares - LEVELS)))
    note = ", ".join(f"{100 * p:g}%: {100 * x:.1f}%" for p, x in zip(LEVELS, shares, strict=True))
    yield Row(
        f"intervals hold, {what}", 100 * worst, 100 * COVERED, "the limit", "points", 1.0, note
    )
    fifths = np.mean([run["fifths"] for run in mine], axis=0)
    rise = float(np.diff(fifths).min())
    note = "RMSE by fifths: " + ", ".join(f"{x:.3f}" for x in fifths)
    yield Row(f"least rise with predicted spread, {what}", rise, unit="", note=note)
