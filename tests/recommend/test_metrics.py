"""Scores, compared with scikit-learn, SciPy and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sklearn

from svmp.recommend import metrics

RNG = np.random.default_rng(0)
RATING, MEAN = RNG.normal(3, 1, 200), RNG.normal(3, 1, 200)
STD = RNG.uniform(0.5, 2, 200)


def test_errors_and_densities() -> None:
    assert metrics.rmse(RATING, MEAN) == pytest.approx(
        sklearn.root_mean_squared_error(RATING, MEAN)
    )
    assert metrics.mae(RATING, MEAN) == pytest.approx(sklearn.mean_absolute_error(RATING, MEAN))
    density = stats.norm(MEAN, STD).logpdf(RATING).mean()
    assert metrics.log_likelihood(RATING, MEAN, STD) == pytest.approx(density)
    held = [lo <= r <= hi for r, lo, hi in zip(RATING, MEAN - STD, MEAN + STD, strict=True)]
    assert metrics.coverage(RATING, MEAN - STD, MEAN + STD) == pytest.approx(np.mean(held))


def test_error_by_spread_is_the_error_of_each_fifth() -> None:
    found = metrics.by_spread(RATING, MEAN, STD)
    order = sorted(range(200), key=lambda r: STD[r])
    for part, (spread, error) in enumerate(found):
        some = order[40 * part : 40 * (part + 1)]
        assert spread == pytest.approx(np.mean(STD[some]))
        assert error == pytest.approx(np.sqrt(np.mean((RATING[some] - MEAN[some]) ** 2)))


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_rankings_against_plain_lists(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    users, items = 4, 12
    scores = rng.permutation(users * items).reshape(users, items).astype(float)
    relevant = [rng.choice(items, rng.integers(1, 6), replace=False) for _ in range(users)]
    user = np.concatenate([np.full(len(r), u) for u, r in enumerate(relevant)])
    item = np.concatenate(relevant)
    order = np.argsort(-scores, axis=1)
    rank = np.argsort(order, axis=1)[user, item] + 1
    shuffled = rng.permutation(len(user))
    ranks = metrics.Ranks(user[shuffled], rank[shuffled], np.full(users, items))
    for u in range(users):
        shown, wanted = order[u, :n].tolist(), set(relevant[u].tolist())
        hits = [i in wanted for i in shown]
        assert ranks.recall(n)[u] == pytest.approx(sum(hits) / len(wanted))
        assert ranks.precision(n)[u] == pytest.approx(sum(hits) / n)
        precisions = [sum(hits[: k + 1]) / (k + 1) for k in range(len(hits)) if hits[k]]
        assert ranks.average_precision(n)[u] == pytest.approx(sum(precisions) / min(len(wanted), n))
        truth = np.isin(np.arange(items), relevant[u]).astype(float)
        assert ranks.ndcg(n)[u] == pytest.approx(sklearn.ndcg_score([truth], [scores[u]], k=n))
        places = [order[u].tolist().index(i) / (items - 1) for i in wanted]
        assert ranks.percentile()[u] == pytest.approx(np.mean(places))


def test_average_precision_at_full_length_equals_scikit_learn() -> None:
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    truth = np.array([0, 1, 0, 1, 1])
    ranks = metrics.Ranks([0, 0, 0], np.flatnonzero(truth) + 1, [5])
    wanted = sklearn.average_precision_score(truth, scores)
    assert ranks.average_precision(5)[0] == pytest.approx(wanted)


def test_bootstrap_equals_scipy() -> None:
    low, high = metrics.bootstrap(RATING, seed=1, draws=4000)
    mine = stats.bootstrap((RATING,), np.mean, n_resamples=4000, method="percentile", rng=2)
    assert low == pytest.approx(mine.confidence_interval.low, abs=0.02)
    assert high == pytest.approx(mine.confidence_interval.high, abs=0.02)
