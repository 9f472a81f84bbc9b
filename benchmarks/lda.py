"""Topics against scikit-learn's online LDA and gensim: time to the same held-out perplexity.

twentynews has its own test documents; of sotu every tenth document is held out. The topic shares of
a held-out document are estimated from every other token, by the same code for all programs, and the
perplexity is that of the remaining tokens. The goal is the final perplexity of a peer. All programs
read batches of the same size, with scikit-learn's default steps: with gensim's own, whose first
step forgets the start, most words are lost.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, Row, Unavailable, ask, first_at, ladder, main
from scipy import sparse

import svmp

ALPHA, ETA, BATCH, PASSES = 0.1, 0.01, 1024, 10
KAPPA, TAU = 0.7, 10
NEAR = 1.005
"""A perplexity within half a percent of the goal counts as equal."""


def load(name: str, share: float) -> tuple[Any, Any]:
    """Return the counts of training and of held-out documents, rows of words."""

    def matrix(file: str) -> Any:
        with np.load(DATA / name / file) as t:
            return sparse.csr_array((t["counts"], t["indices"], t["indptr"]), shape=t["shape"])

    if name == "twentynews":
        train, held = matrix("bow_train.npz"), matrix("bow_test.npz")
    else:
        every, tenth = matrix("bow.npz"), np.arange(matrix("bow.npz").shape[0]) % 10 == 0
        train, held = every[~tenth], every[tenth]
    return train[: round(share * train.shape[0])], held[: round(share * min(held.shape[0], 1000))]


def tokens(counts: Any) -> tuple[Any, Any]:
    """Return the document and the word of every token."""
    document = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    many = counts.data.astype(np.int64)
    return np.repeat(document, many), np.repeat(counts.indices, many)


def perplexity(topics: Any, held: Any, rounds: int = 30) -> float:
    """Return the perplexity of every other held-out token, given the rest of its document."""
    document, word = tokens(held)
    topics = topics + 1e-12
    shape, seen = held.shape, np.arange(len(word)) % 2 == 0
    theta = np.full((shape[0], len(topics)), 1.0 / len(topics))
    d, likely = document[seen], topics[:, word[seen]].T
    sums = sparse.csr_array((np.ones(len(d)), (d, np.arange(len(d)))), shape=(shape[0], len(d)))
    for _ in range(rounds):
        share = theta[d] * likely
        theta = ALPHA + sums @ (share / share.sum(axis=1, keepdims=True))
        theta /= theta.sum(axis=1, keepdims=True)
    rest = np.einsum("tk,kt->t", theta[document[~seen]], topics[:, word[~seen]])
    return float(np.exp(-np.log(rest).mean()))


def network(counts: Any, topics: int) -> svmp.Model:
    document, word = tokens(counts)
    documents, words = counts.shape
    coords = {"document": documents, "topic": topics, "word": words, "token": len(word)}
    with svmp.Model(coords=coords) as model:
        theta = svmp.Dirichlet("theta", a=ALPHA, dims=("document", "topic"))
        phi = svmp.Dirichlet("phi", a=ETA, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[document], dims="token")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=word)
    return model


def fit(counts: Any, topics: int, path: Path, sweeps: int) -> svmp.Fit:
    """Fit for a number of sweeps' worth of accesses, resuming from the file if there is one."""
    documents, steps = svmp.Batch(BATCH, over="document"), svmp.RobbinsMonro(kappa=KAPPA, tau=TAU)
    how = {"resume": path} if path.exists() else {"method": documents, "steps": steps}
    limits = {"max_sweeps": sweeps, "checkpoint": path, "every": "1h", "progress": False}
    return svmp.fit(network(counts, topics), **how, **limits)


def compare(name: str, topics: int, share: float, folder: Path) -> Iterator[Row]:
    train, held = load(name, share)
    path, topics_to = folder / "words.npz", folder / "topics.npy"
    csr = {"counts": train.data, "indices": train.indices, "indptr": train.indptr}
    np.savez(path, **csr, shape=train.shape)
    request = {"data": str(path), "topics_to": str(topics_to), "topics": topics, "seed": 0}
    request |= {"alpha": ALPHA, "eta": ETA, "batch": BATCH, "passes": PASSES}
    request |= {"kappa": KAPPA, "tau": TAU}
    what = f"time to equal held-out perplexity, {name}, K = {topics}"
    curves = {}
    for against, peer in (("scikit-learn online LDA", "sklearn"), ("gensim LdaModel", "gensim")):
        try:
            seconds = ask(peer, request, f"{peer}_lda")["seconds"]
        except Unavailable as reason:
            yield Row(what, against=against, note=str(reason))
            continue
        found = [perplexity(phi, held) for phi in np.load(topics_to)]
        curves[against] = list(zip(seconds, found, strict=True))
    if not curves:
        return
    goal = min(curve[-1][1] for curve in curves.values()) * NEAR
    enough = 2 * max(curve[-1][0] for curve in curves.values())
    run = partial(fit, train, topics, folder / f"{name}{topics}.run")
    mine = ladder(run, lambda found: perplexity(found.mean("phi"), held), enough, goal)
    for against, curve in curves.items():
        goal = curve[-1][1] * NEAR
        note = f"perplexity {goal:,.0f}"
        if first_at(mine, goal) is None:
            least = min(p for _, p in mine)
            note += f"; svmp's least is {least:,.0f}, in {mine[-1][0]:.0f} s"
        yield Row(what, first_at(mine, goal), first_at(curve, goal), against, "s", 1 / 3, note)


def measure(quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        fit(load("sotu", 0.01)[0], 2, Path(folder) / "warm.run", 1)  # compiles the loops
        for name in ("sotu",) if quick else ("sotu", "twentynews"):
            for topics in (5,) if quick else (20, 100):
                yield from compare(name, topics, 0.05 if quick else 1.0, Path(folder))


if __name__ == "__main__":
    main(measure, __doc__)
