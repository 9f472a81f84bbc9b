"""Seeds of recommenders: whole numbers, generators, and none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.recommend import EventModel, RatingModel, load, metrics, split
from tests.recommend.tools import drawn

KINDS: list[Any] = [RatingModel, EventModel]


def fitted(kind: Any, seed: Any) -> Any:
    fast = {"max_sweeps": 3, "calibrate": 0} if kind is RatingModel else {"iterations": 2}
    return kind(2, seed=seed, progress=False, threads=1, **fast).fit(drawn(0))


@pytest.mark.parametrize("kind", KINDS)
def test_generator_is_equivalent_to_the_seed_that_it_draws(kind: Any, tmp_path: Path) -> None:
    model = fitted(kind, np.random.default_rng(5))
    same = fitted(kind, model.seed_)
    assert np.array_equal(model.users_.side.mean, same.users_.side.mean)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").seed == model.seed_


@pytest.mark.parametrize("kind", KINDS)
def test_fits_without_a_seed_differ(kind: Any) -> None:
    first, second = fitted(kind, None), fitted(kind, None)
    assert first.seed_ != second.seed_
    assert not np.array_equal(first.users_.side.mean, second.users_.side.mean)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [-1, 1.5, True, "1"])
def test_invalid_seeds_are_refused(kind: Any, seed: Any) -> None:
    with pytest.raises(svmp.ModelError, match="seed must be a whole number"):
        fitted(kind, seed)


def test_splits_and_intervals_take_a_generator() -> None:
    ratings = drawn(0)
    for way in (split.random, split.cold_users, split.cold_items):
        found = [
            way(ratings, 0.2, seed).test
            for seed in (np.random.default_rng(1), np.random.default_rng(1), 2)
        ]
        users = [part.user.tolist() for part in found]
        assert users[0] == users[1] != users[2]
    rng = np.random.default_rng(1)
    assert metrics.bootstrap(ratings.rating, rng) != metrics.bootstrap(ratings.rating, rng)
    with pytest.raises(svmp.ModelError, match="seed must be"):
        split.random(ratings, 0.1, seed=-1)
