"""Lists with quotas and diversity: compared with a plain greedy loop, and with the best of all."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svmp.kernels.machine.threads import use_threads
from svmp.recommend.picking import Picker, Quotas


def greedy(
    scores: list[float],
    codes: np.ndarray,
    limits: list[int],
    sims: np.ndarray,
    weight: float,
    n: int,
) -> list[int]:
    """The definition, step by step."""
    found: list[int] = []
    used = [0] * len(limits)
    while len(found) < n:
        best, spot = -np.inf, -1
        for item, score in enumerate(scores):
            own = [code for code in codes[item] if code >= 0]
            if item in found or any(used[code] >= limits[code] for code in own):
                continue
            value = score - weight * max([0.0, *(sims[item, other] for other in found)])
            if value > best + 1e-6:
                best, spot = value, item
        if spot < 0:
            break
        found.append(spot)
        for code in codes[spot]:
            if code >= 0:
                used[code] += 1
    return found


def picked(
    scores: np.ndarray, seen: list[int], picker: Picker, n: int, rows: int = 1
) -> list[list[int]]:
    places = np.full((rows, n), -1)
    begin = np.arange(rows + 1) * len(seen)
    table = np.tile(scores.astype(np.float32), (rows, 1))
    picker.pick(table, n, begin, np.tile(np.array(seen, np.int64), rows), places)
    return places.tolist()


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 8), st.sampled_from([0, 0.4, 3]))
def test_lists_equal_a_plain_loop(seed: int, items: int, n: int, weight: float) -> None:
    rng = np.random.default_rng(seed)
    n, values = min(n, items), 4
    scores = rng.normal(size=items)
    codes = rng.integers(-1, values, (items, 2)).astype(np.int32)
    codes[codes[:, 0] == codes[:, 1], 1] = -1
    limits = rng.integers(0, 4, values)
    unit = rng.normal(size=(items, 3))
    unit = (unit / np.linalg.norm(unit, axis=1)[:, None]).astype(np.float32)
    seen = rng.choice(items, rng.integers(0, items), replace=False).tolist()
    left = np.where(np.isin(np.arange(items), seen), -np.inf, scores).tolist()
    wanted = greedy(left, codes, limits.tolist(), unit @ unit.T, weight, n)
    picker = Picker(Quotas(codes, limits), unit, weight)
    with use_threads(2, tell=False):
        found = picked(scores, seen, picker, n, rows=3)
    assert found == [wanted + [-1] * (n - len(wanted))] * 3


@pytest.mark.parametrize("seed", range(10))
def test_no_other_list_within_the_quotas_has_a_higher_score(seed: int) -> None:
    rng = np.random.default_rng(seed)
    items, n = 11, 5
    scores, codes = rng.uniform(1, 2, items), rng.integers(0, 3, (items, 1)).astype(np.int32)
    limits = np.array([1, 2, 2])
    picker = Picker(Quotas(codes, limits), np.zeros((items, 0), np.float32), 0.0)
    (found,) = picked(scores, [], picker, n)
    allowed = [
        sum(scores[list(some)])
        for k in range(n + 1)
        for some in combinations(range(items), k)
        if (np.bincount(codes[list(some), 0], minlength=3) <= limits).all()
    ]
    assert sum(scores[[x for x in found if x >= 0]]) == pytest.approx(max(allowed))


def test_copies_are_moved_down_by_the_diversity() -> None:
    unit = np.array([[1, 0], [1, 0], [0, 1], [-1, 0]], np.float32)
    scores = np.array([4.0, 3.9, 3.5, 3.0])
    none = Quotas(np.full((4, 1), -1, np.int32), np.zeros(1, np.int64))
    orders = {w: picked(scores, [], Picker(none, unit, w), 4)[0] for w in (0.0, 0.3, 0.5, 1.0)}
    assert orders == {
        0.0: [0, 1, 2, 3],
        0.3: [0, 1, 2, 3],  # 3.6 is still above 3.5
        0.5: [0, 2, 1, 3],
        1.0: [0, 2, 3, 1],  # an opposite loses nothing
    }
