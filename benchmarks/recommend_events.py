"""Events, ratings of 4 and more: NDCG@20 and the time of EventModel and of others, 90/10.

Test users have events in both parts; at most 20,000 are drawn. NDCG is computed by the same code
from the first 20 items of each program, without those of training. Times are those of the fit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import THREADS, Row, Unavailable, ask
from recommend_data import Settings, as_file, compact, parts, table
from runs import Runs, average, cases, grid

from svmp.ratings import Ratings
from svmp.recommend import EventModel
from svmp.recommend.metrics import Ranks
from svmp.recommend.split import Split

PEERS = {
    "implicit ALS, alpha 10": ("implicit", "implicit_als", {"alpha": 10.0}),
    "implicit ALS, alpha 40": ("implicit", "implicit_als", {"alpha": 40.0}),
    "LightFM WARP": ("lightfm", "lightfm_warp", {"rate": 0.05, "epochs": 20}),
    "HPF": ("hpfrec", "hpf", {"most": 1800}),
}
TUNED = {"iterations": 15, "lambda": 0.01}
FIRST, USERS = 20, 20_000
EVENT = 4.0
"""Least rating that counts as an event."""
Found = dict[str, Any]


def tested(data: Split) -> Any:
    """Return the users to test, by key."""
    both = np.intersect1d(data.train.user, data.test.user)
    rng = np.random.default_rng(0)
    return both if len(both) <= USERS else np.sort(rng.choice(both, USERS, replace=False))


def score(top: Any, users: Any, data: Split) -> Found:
    """Return NDCG and recall of the first items of users, by keys."""
    items, test = data.train.items, data.test
    top = np.asarray(top)
    shown = np.repeat(users, top.shape[1]) * items + np.where(top < 0, items, top).ravel()
    places = np.tile(np.arange(1, top.shape[1] + 1), len(users))
    order = np.argsort(shown, kind="stable")
    some = np.isin(test.user, users)
    wanted = test.user[some].astype(np.int64) * items + test.item[some]
    at = order[np.minimum(np.searchsorted(shown[order], wanted), len(order) - 1)]
    rank = np.where(shown[at] == wanted, places[at], items)
    found = Ranks(np.searchsorted(users, test.user[some]), rank, np.full(len(users), items))
    return {"ndcg": float(found.ndcg(FIRST).mean()), "recall": float(found.recall(FIRST).mean())}


def own(data: Split, users: Any, factors: int, seed: int) -> Found:
    model = EventModel(factors, seed=seed, progress=False)
    began = time.perf_counter()
    model.fit(data.train)
    seconds = time.perf_counter() - began
    top = model.recommend(users, FIRST, progress=False)
    return {**score(np.where(np.isnan(top.scores), -1, top.items), users, data), "seconds": seconds}


def theirs(name: str, request: Found, users: Any, data: Split) -> Found:
    peer, script, options = PEERS[name]
    found = ask(peer, {**request, **TUNED, **options}, script)
    about = {"seconds": found["seconds"], "version": found["version"]}
    return {**score(found["top"], users, data), **about}


def measure(settings: Settings) -> Iterator[tuple[Found, Found]]:
    small = parts(table("Netflix-shaped", 0.01), 0)
    own(small, tested(small), 2, 0)  # compiles
    for name, factors, seed in settings.each():
        ratings = table(name, 0.1 if settings.quick else 1.0)
        every = compact(ratings, ratings.rating >= EVENT)
        ones, sizes = np.ones(len(every)), (every.users, every.items)
        data = parts(Ratings.of_keys(every.user, every.item, ones, *sizes), seed)
        users = tested(data)
        key = {"data": name, "factors": factors, "seed": seed}
        with as_file(data, users=users) as request:
            request |= {"factors": factors, "seed": seed, "threads": THREADS, "first": FIRST}
            for model in settings.chosen([*PEERS, "svmp"]):
                try:
                    found = (
                        own(data, users, factors, seed)
                        if model == "svmp"
                        else theirs(model, request, users, data)
                    )
                except Unavailable as reason:
                    found = {"failed": str(reason)}
                yield {**key, "model": model}, found


def grids(runs: Runs) -> Iterator[Found]:
    """Yield NDCG and seconds of all models, averaged over seeds."""
    yield grid(runs, "ndcg", f"NDCG@{FIRST}")


def rows(runs: Runs) -> Iterator[Row]:
    for name, factors in cases(runs):
        what = f"{name}, K = {factors}"
        found = {m: runs.of(data=name, factors=factors, model=m) for m in runs.names("model")}
        mine, others = found.pop("svmp", []), {m: some for m, some in found.items() if some}
        if mine and others:
            best = max(others, key=lambda m: average(others[m], "ndcg"))
            figures = average(mine, "ndcg"), average(others[best], "ndcg")
            yield Row(f"NDCG@{FIRST}, {what}", *figures, best, "NDCG", note="wanted: at least 1")
        als = [m for m in others if m.startswith("implicit")]
        if mine and als:
            quick = min(als, key=lambda m: average(others[m], "seconds"))
            times = average(mine, "seconds"), average(others[quick], "seconds")
            yield Row(f"fit to events, {what}", *times, quick, wanted=2.0)
