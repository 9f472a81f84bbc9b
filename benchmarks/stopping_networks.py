"""Networks for `stopping.py`: those of ../shared/data, of the gallery and of everyday_networks.py.

Each is a function from a seed, which draws the rows of large data sets, to a model.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA
from convergence import ratings_of
from everyday_networks import NETWORKS
from more_networks import MORE

import svmp
from svmp.ratings import Ratings
from svmp.study.netflix import matrix_factorization

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
Build = Callable[[int], svmp.Model]


def script(stem: str) -> Any:
    """Return a script of the gallery as a module."""
    if str(GALLERY) not in sys.path:
        sys.path.append(str(GALLERY))
    spec = importlib.util.spec_from_file_location(f"gallery_{stem}", GALLERY / f"{stem}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def some_ratings(name: str, most: int, seed: int) -> Ratings:
    """Return a random sample of the ratings of a data set."""
    found = ratings_of(name, False)
    assert found is not None
    if len(found.rating) <= most:
        return found
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(found.rating))[:most]
    (users, user), (items, item) = (
        np.unique(keys[rows], return_inverse=True) for keys in (found.user, found.item)
    )
    return Ratings.of_keys(user, item, found.rating[rows], len(users), len(items))


def factors(name: str, k: int, most: int, biases: bool = False) -> Build:
    """Return a factorization of ratings, the paper's or with biases and learned precisions."""

    def build(seed: int) -> svmp.Model:
        ratings = some_ratings(name, most, seed)
        if not biases:
            return matrix_factorization(ratings, k)
        sizes = {"user": int(ratings.user.max()) + 1, "item": int(ratings.item.max()) + 1}
        with svmp.Model(coords={**sizes, "factor": k}) as model:
            level = svmp.Normal("level", mu=0, tau=0.01)
            read: list[Any] = []
            for side, key in (("user", ratings.user), ("item", ratings.item)):
                spread = svmp.Gamma(f"tau_b_{side}", alpha=1, beta=1)
                b = svmp.Normal(f"b_{side}", mu=0, tau=spread, dims=side)
                own = svmp.Gamma(f"tau_{side}", alpha=1, beta=0.1, dims="factor")
                u = svmp.Normal(f"x_{side}", mu=0, tau=own, dims=(side, "factor"))
                read.append((b[key], u[key]))
            noise = svmp.Gamma("noise", alpha=1, beta=1)
            (b, u), (c, v) = read
            mu = level + b + c + svmp.dot(u, v)
            svmp.Normal("rating", mu=mu, tau=noise, observed=ratings.rating)
        return model

    return build


def table(name: str) -> dict[str, np.ndarray]:
    """Return the columns of a grouped data set; those that are not numbers as codes."""
    with gzip.open(DATA / "grouped" / f"{name}.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for column in rows[0]:
        texts = [row[column] for row in rows]
        try:
            found[column] = np.array(texts, dtype=float)
        except ValueError:
            found[column] = np.unique(texts, return_inverse=True)[1].astype(float)
    return found


def effects(name: str, y: str, fixed: list[str], groups: list[str], link: str = "") -> Build:
    """Return an intercept, slopes and crossed effects with learned precisions."""

    def build(seed: int) -> svmp.Model:
        columns = table(name)
        keys = {g: np.unique(columns[g], return_inverse=True)[1] for g in groups}
        with svmp.Model(coords={f"of_{g}": int(k.max()) + 1 for g, k in keys.items()}) as model:
            mu: Any = svmp.Normal("intercept", mu=0, tau=1e-4)
            for x in fixed:
                column = columns[x]
                slope = svmp.Normal(f"slope_{x}", mu=0, tau=1e-2)
                mu = mu + slope * ((column - column.mean()) / (column.std() or 1))
            for g, key in keys.items():
                spread = svmp.Gamma(f"tau_{g}", alpha=0.5, beta=0.5)
                mu = mu + svmp.Normal(f"b_{g}", mu=0, tau=spread, dims=f"of_{g}")[key]
            if link == "logit":
                svmp.Bernoulli("y", logit=mu, observed=(columns[y] > 0).astype(int))
            elif link:
                n = columns[link].astype(int)
                svmp.Binomial("y", n=n, logit=mu, observed=columns[y].astype(int))
            else:
                noise = svmp.Gamma("noise", alpha=1, beta=1)
                svmp.Normal("y", mu=mu, tau=noise, observed=columns[y])
        return model

    return build


def slopes(seed: int) -> svmp.Model:
    """Random intercepts and slopes of sleepstudy, with a Wishart prior, in hundreds."""
    columns = table("sleepstudy")
    key = np.unique(columns["Subject"], return_inverse=True)[1]
    x = np.stack([np.ones(len(key)), columns["Days"] / 5], axis=1)
    with svmp.Model(coords={"subject": int(key.max()) + 1, "effect": 2, "other": 2}) as model:
        mean = svmp.MvNormal("mean", mu=0, tau=0.01 * np.eye(2), dims="effect")
        spread = svmp.Wishart("spread", nu=3, V=np.eye(2), dims=("effect", "effect"))
        b = svmp.MvNormal("b", mu=mean, tau=spread, dims=("subject", "effect"))
        noise = svmp.Gamma("noise", alpha=1, beta=1)
        mu = svmp.dot(svmp.data(x, dims=("row", "effect")), b[key], dim="effect")
        svmp.Normal("y", mu=mu, tau=noise, dims="row", observed=columns["Reaction"] / 100)
    return model


def topics(name: str, documents: int, count: int) -> Build:
    """Return topics of a random sample of documents, with counts of words as tokens."""

    def build(seed: int) -> svmp.Model:
        file = "bow.npz" if name == "sotu" else "bow_train.npz"
        with np.load(DATA / name / file) as found:
            indptr, indices, counts = found["indptr"], found["indices"], found["counts"]
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.permutation(len(indptr) - 1)[:documents])
        where = np.concatenate([np.arange(indptr[d], indptr[d + 1]) for d in chosen])
        sizes = np.diff(indptr)[chosen]
        document = np.repeat(np.repeat(np.arange(len(chosen)), sizes), counts[where])
        word = np.unique(np.repeat(indices[where], counts[where]), return_inverse=True)[1]
        coords = {"document": len(chosen), "topic": count, "word": int(word.max()) + 1}
        with svmp.Model(coords={**coords, "token": len(word)}) as model:
            share = svmp.Dirichlet("share", a=0.1, dims=("document", "topic"))
            topic = svmp.Dirichlet("topic", a=0.05, dims=("topic", "word"))
            z = svmp.Categorical("z", p=share[document], dims="token")
            svmp.Mixture("w", z, svmp.Categorical.dist(p=topic), dims="token", observed=word)
        return model

    return build


def tensor(file: str, k: int) -> Build:
    """Return a factorization of a tensor, with learned noise."""

    def build(seed: int) -> svmp.Model:
        y = np.asarray(np.load(DATA / "tensors" / file), dtype=float)
        y = y / np.nanstd(y)
        rng = np.random.default_rng(seed)
        y = y[rng.permutation(len(y))[: min(len(y), 100)]]
        names = "abcd"[: y.ndim]
        coords = dict(zip(names, y.shape, strict=True))
        with svmp.Model(coords={**coords, "factor": k}) as model:
            read = [svmp.Normal(f"x_{n}", mu=0, tau=1, dims=(n, "factor")) for n in names]
            noise = svmp.Gamma("noise", alpha=1, beta=1)
            mu = svmp.dot(*read, dim="factor")
            svmp.Normal("y", mu=mu, tau=noise, dims=tuple(names), observed=y, missing=True)
        return model

    return build


def motion(chain: bool) -> Build:
    def build(seed: int) -> svmp.Model:
        capture = script("41_motion_capture")
        x, recording, _ = capture.data()
        return capture.model(x, recording, chain)

    return build


def old_faithful(seed: int) -> svmp.Model:
    mixture = script("05_gaussian_mixture")
    return mixture.model(mixture.standardised(mixture.data()))


def football(seed: int) -> svmp.Model:
    script_ = script("11_football")
    *rows, names = script_.data()
    return script_.model(*rows, teams=len(names))


def drawn(network: Any, rows: int) -> Build:
    return lambda seed: network.draw(np.random.default_rng(seed), rows)[1]


def everyday() -> dict[str, Build]:
    """Return the networks of everyday_networks.py and more_networks.py, with fewer rows."""
    return {f"{n.what} {i}": drawn(n, min(n.rows, 5000)) for i, n in enumerate((*NETWORKS, *MORE))}


def real(most: int = 100_000, documents: int = 1500) -> dict[str, Build]:
    """Return the networks of the shared data, with at most so many ratings or documents."""
    found: dict[str, Build] = {}
    for name in ("goodbooks", "MovieTweetings"):
        for k in (5, 10):
            found[f"{name}, {k} factors"] = factors(name, k, most)
        found[f"{name}, biases, 5 factors"] = factors(name, 5, most, True)
    found |= {
        "InstEval": effects("InstEval", "y", ["service"], ["s", "d", "dept"]),
        "Penicillin": effects("Penicillin", "diameter", [], ["plate", "sample"]),
        "sleepstudy": slopes,
        "Chem97": effects("Chem97", "score", ["gcsecnt"], ["lea", "school"]),
        "cbpp": effects("cbpp", "incidence", ["period"], ["herd"], "size"),
        "Contraception": effects("Contraception", "use", ["age"], ["district"], "logit"),
        "VerbAgg": effects("VerbAgg", "r2", ["Anger"], ["id", "item"], "logit"),
        "guImmun": effects("guImmun", "immun", ["kid2p", "rural"], ["mom", "comm"], "logit"),
        "football": football,
        "sotu, 10 topics": topics("sotu", documents, 10),
        "sotu, 500 documents, 10 topics": topics("sotu", documents // 3, 10),
        "twentynews, 10 topics": topics("twentynews", documents // 2, 10),
        "COVID-19 serology": tensor("COVID19_data.npy", 4),
        "IL-2 response": tensor("IL2_Response_Tensor.npy", 4),
        "mocap, chain": motion(True),
        "mocap, mixture": motion(False),
        "Old Faithful": old_faithful,
    }
    return found
