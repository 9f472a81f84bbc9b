"""The Netflix-shaped ratings: their size, distinct pairs, and the same bits for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.datasets import netflix_shaped


@pytest.mark.parametrize("scale", [0.002, 0.01, 0.1])
def test_size_pairs_and_stars(scale):
    ratings = netflix_shaped(scale)
    assert len(ratings) == 1_000_000 * scale
    assert ratings.users == round(4805 * scale**0.5)
    assert ratings.items == round(16015 * scale**0.5)
    pairs = ratings.user.astype(np.int64) * ratings.items + ratings.item
    assert len(np.unique(pairs)) == len(ratings)
    assert set(np.unique(ratings.rating)) == {1, 2, 3, 4, 5}


def test_the_same_seed_gives_the_same_bits():
    one, two, other = netflix_shaped(0.01, 3), netflix_shaped(0.01, 3), netflix_shaped(0.01, 4)
    for column in ("user", "item", "rating"):
        assert getattr(one, column).tobytes() == getattr(two, column).tobytes()
        assert getattr(one, column).tobytes() != getattr(other, column).tobytes()


@pytest.mark.parametrize("scale", [0, -1, 1.5])
def test_invalid_scales_are_refused(scale):
    with pytest.raises(svmp.ModelError, match="scale must be in"):
        netflix_shaped(scale)
