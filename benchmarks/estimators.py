"""Time of the estimators of svmp.models beside those of scikit-learn, on ordinary sizes.

Times are processor seconds of each `fit`, the best of three after one that compiles. The notes have
how well both predict or explain the rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from common import Row, main
from sklearn import datasets, decomposition, linear_model, mixture

from svmp import models

REPEATS = 3


def best(fit: Callable[[], Any]) -> tuple[float, Any]:
    """Return the shortest time of some fits, and the last of them."""
    found = fit()
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        found = fit()
        times.append(time.process_time() - start)
    return min(times), found


def regression(rows: int, columns: int) -> tuple[Any, Any, tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    y = X @ rng.normal(size=columns) + 3 + rng.normal(size=rows)
    return models.BayesianRegression(), linear_model.BayesianRidge(), (X, y)


def logistic(rows: int, columns: int) -> tuple[Any, Any, tuple[Any, ...]]:
    X, y = datasets.make_classification(rows, columns, n_informative=columns // 2, random_state=0)
    return models.LogisticRegression(), linear_model.LogisticRegression(), (X, y)


def gaussians(rows: int, columns: int) -> tuple[Any, Any, tuple[Any, ...]]:
    X, _ = datasets.make_blobs(rows, columns, centers=5, cluster_std=1.5, random_state=0)
    theirs = mixture.BayesianGaussianMixture(
        n_components=5,
        weight_concentration_prior_type="dirichlet_distribution",
        max_iter=1000,
        random_state=0,
    )
    return models.GaussianMixture(5), theirs, (X,)


def topics(rows: int, columns: int) -> tuple[Any, Any, tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    phi = rng.dirichlet(np.full(columns, 0.05), 10)
    shares = rng.dirichlet(np.full(10, 0.2), rows) @ phi
    counts = np.array([rng.multinomial(100, p / p.sum()) for p in shares])
    theirs = decomposition.LatentDirichletAllocation(10, max_iter=20, random_state=0)
    return models.TopicModel(10, max_iter=20), theirs, (counts,)


def factors(rows: int, columns: int) -> tuple[Any, Any, tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3)) @ rng.normal(size=(3, columns)) + rng.normal(
        size=(rows, columns)
    ) * rng.uniform(0.5, 1.5, columns)
    return models.FactorAnalysis(3), decomposition.FactorAnalysis(3), (X,)


CASES: list[tuple[Callable[[int, int], Any], int, int]] = [
    (regression, 1_000, 10),
    (regression, 100_000, 50),
    (logistic, 1_000, 10),
    (logistic, 20_000, 30),
    (gaussians, 2_000, 2),
    (gaussians, 20_000, 5),
    (topics, 500, 1_000),
    (topics, 2_000, 2_000),
    (factors, 500, 10),
    (factors, 2_000, 30),
]


def measure(quick: bool) -> Iterator[Row]:
    warnings.simplefilter("ignore")
    for case, rows, columns in CASES[::2] if quick else CASES:
        ours, theirs, given = case(rows, columns)
        mine, a = best(lambda ours=ours, given=given: ours.fit(*given))
        other, b = best(lambda theirs=theirs, given=given: theirs.fit(*given))
        what = f"{type(ours).__name__}, {rows:,} rows, {columns:,} columns"
        note = f"score {a.score(*given):.4f} beside {b.score(*given):.4f}"
        yield Row(what, mine, other, f"scikit-learn {type(theirs).__name__}", "s", None, note)


if __name__ == "__main__":
    main(measure, __doc__)
