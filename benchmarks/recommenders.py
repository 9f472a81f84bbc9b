"""Held-out ratings against Bayesian and other recommenders, on goodbooks, 90/10 split.

Against those that sample or are variational: the time at which each comes within 0.0005 of the
held-out RMSE it ends at, and when svmp gets there. Against the others: svmp's held-out RMSE after
the time that each takes. svmp's curve is of runs of their own with more and more sweeps, each timed
from the declaration of the model to its end; a peer's is of one fit, without reading its data.

svmp's network: r = mean + a_user + b_item + u_user . v_item + noise, with learned precisions of the
noise, of both kinds of biases and, by factor, of u and v (ARD).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, THREADS, Curve, Row, Unavailable, ask, first_at, ladder, main

import svmp

BAYESIAN = {
    "SMURFF": ("smurff", "smurff_gibbs", {"burnin": 20, "samples": 80}),
    "myFM variational": ("myfm", "myfm_machine", {"solver": "variational", "iterations": 60}),
    "myFM Gibbs": ("myfm", "myfm_machine", {"solver": "gibbs", "burnin": 10, "iterations": 100}),
}
OTHERS = {
    "cmfrec": ("cmfrec", "cmfrec_als", {"lambda": 10.0}),
    "LIBMF": ("libmf", "libmf_sgd", {"lambda": 0.1, "iterations": 20}),
    "Cornac MF": ("cornac", "cornac_mf", {"lambda": 0.02, "rate": 0.01, "iterations": 20}),
    "Surprise SVD": ("surprise", "surprise_svd", {"lambda": 0.1, "rate": 0.005, "iterations": 20}),
}
SAME = {"threads": THREADS, "seed": 0}
NEAR = 0.0005
PATIENCE = 2.0
"""svmp's curve goes on for at most so many times the slowest peer's time."""


def split(share: float, seed: int = 0) -> dict[str, Any]:
    """Hold out every tenth rating at random; `share` keeps a part of all ratings."""
    with np.load(DATA / "goodbooks" / "ratings.npz") as table:
        columns = {"u": table["user"], "i": table["item"], "r": table["rating"]}
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(columns["r"]))[: round(share * len(columns["r"]))]
    parts = {"held": np.sort(rows[: len(rows) // 10]), "train": np.sort(rows[len(rows) // 10 :])}
    return {f"{part}_{x}": columns[x][chosen] for part, chosen in parts.items() for x in "uir"}


def sizes(data: Mapping[str, Any]) -> tuple[int, int]:
    """How many users and items there are."""
    users, items = (max(data[f"train_{x}"].max(), data[f"held_{x}"].max()) + 1 for x in "ui")
    return int(users), int(items)


def network(data: Mapping[str, Any], factors: int) -> svmp.Model:
    user, item, rating = (data[f"train_{x}"] for x in "uir")
    users, items = sizes(data)
    with svmp.Model(coords={"user": users, "item": items, "factor": factors}) as model:
        noise = svmp.Gamma("noise", alpha=1, beta=1)
        of_a = svmp.Gamma("of_a", alpha=1, beta=1)
        of_b = svmp.Gamma("of_b", alpha=1, beta=1)
        of_u = svmp.Gamma("of_u", alpha=1, beta=1, dims="factor")
        of_v = svmp.Gamma("of_v", alpha=1, beta=1, dims="factor")
        a = svmp.Normal("a", mu=0, tau=of_a, dims="user")
        b = svmp.Normal("b", mu=0, tau=of_b, dims="item")
        u = svmp.Normal("u", mu=0, tau=of_u, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=of_v, dims=("item", "factor"))
        mean = float(rating.mean()) + a[user] + b[item] + svmp.dot(u[user], v[item])
        svmp.Normal("r", mu=mean, tau=noise, observed=rating)
    return model


def held_out(fit: svmp.Fit, data: Mapping[str, Any]) -> float:
    """Root mean squared error of E[r] on the ratings held out, kept in their range."""
    user, item, rating = (data[f"held_{x}"] for x in "uir")
    guess = data["train_r"].mean() + fit.mean("a")[user] + fit.mean("b")[item]
    guess += np.einsum("rk,rk->r", fit.mean("u")[user], fit.mean("v")[item])
    return float(np.sqrt(np.mean((np.clip(guess, rating.min(), rating.max()) - rating) ** 2)))


def theirs(peers: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Curve | str]:
    """Return every peer's curve, or why it has none."""
    found: dict[str, Curve | str] = {}
    for name, (peer, script, options) in peers.items():
        try:
            curve = ask(peer, {**request, **options}, script)["curve"]
            found[name] = [(s, error) for s, error in curve if np.isfinite(error)]
        except Unavailable as reason:
            found[name] = str(reason)
        print(f"  {name}: {found[name] if isinstance(found[name], str) else found[name][-1]}")
    return found


def compare(curve: Curve, peers: Mapping[str, Curve | str], factors: int) -> Iterator[Row]:
    for name, other in peers.items():
        kind = "time to equal held-out RMSE" if name in BAYESIAN else "held-out RMSE at equal time"
        what = f"{kind}, K = {factors}"
        if isinstance(other, str):
            yield Row(what, against=name, note=other)
        elif name in BAYESIAN:
            target = other[-1][1] + NEAR
            mine, its = first_at(curve, target), first_at(other, target)
            note = f"RMSE {target:.4f}"
            if mine is None:
                note += f"; svmp's least is {min(e for _, e in curve):.4f}, in {curve[-1][0]:.0f} s"
            yield Row(what, mine, its, name, wanted=1 / 3, note=note)
        else:
            limit, error = other[-1]
            best = min((e for s, e in curve if s <= limit), default=None)
            note = f"after {limit:.1f} s"
            if best is None:
                note += f"; svmp's first, after {curve[0][0]:.1f} s, is {curve[0][1]:.4f}"
            yield Row(what, best, error, name, "RMSE", 1.0, note)


def measure(quick: bool) -> Iterator[Row]:
    data = split(0.05 if quick else 1.0)
    svmp.fit(network(split(0.01), 2), max_sweeps=2, progress=False)  # compiles
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.npz"
        np.savez(path, **data)
        for factors in (5,) if quick else (5, 32):
            request = {"data": str(path), "sizes": sizes(data), "factors": factors, **SAME}
            peers = theirs({**BAYESIAN, **OTHERS}, request)
            curves = [c for c in peers.values() if not isinstance(c, str)]
            enough = PATIENCE * max((c[-1][0] for c in curves), default=1.0)
            target = min((c[-1][1] for c in curves), default=0.0)

            def run(sweeps: int, factors: int = factors) -> svmp.Fit:
                return svmp.fit(network(data, factors), max_sweeps=sweeps, progress=False)

            curve = ladder(run, lambda fit: held_out(fit, data), enough, target)
            yield from compare(curve, peers, factors)


if __name__ == "__main__":
    main(measure, __doc__)
