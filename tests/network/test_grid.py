"""Values and elements of rows against indexing by the coordinates of each cell."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.network.grid import Grid, Labelled, Scope, is_range, take_rows
from svmp.network.network import Network

ROWS = Grid(("a", "b"), (4, 3))
INNER = Grid(("k",), (2,))
SCOPE = Scope(ROWS, INNER)
RNG = np.random.default_rng(0)
SOME = {
    "a range": np.arange(3, 9),
    "all rows": np.arange(12),
    "one row": np.array([5]),
    "no rows": np.zeros(0, dtype=np.int64),
    "with gaps": np.array([0, 2, 3, 7]),
    "descending": np.array([4, 3, 2]),
    "ends like a range": np.array([2, 2, 3, 5]),
    "repeated": np.repeat(np.arange(3), 2),
}


@pytest.mark.parametrize("name", SOME)
def test_ranges(name: str) -> None:
    rows = SOME[name]
    assert is_range(rows) == (len(rows) > 0 and bool((np.diff(rows) == 1).all()))
    values = RNG.normal(size=(12, 2))
    found = take_rows(values, rows)
    assert len(found) == len(rows)
    assert all((one == values[row]).all() for one, row in zip(found, rows, strict=True))


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("axes", [("a", "b"), ("b",), ("b", "a"), ("k",), ("a", "k")])
@pytest.mark.parametrize("events", [(), (2,)])
def test_values_of_rows(name: str, axes: tuple[str, ...], events: tuple[int, ...]) -> None:
    rows = SOME[name]
    inner = RNG.integers(2, size=len(rows))
    values = RNG.normal(size=(*({"a": 4, "b": 3, "k": 2}[x] for x in axes), *events))
    found = SCOPE.look_up(Labelled(values, axes), rows, inner)
    assert found.shape == (len(rows), *events)
    for row, k, value in zip(rows, inner, found, strict=True):
        place = {"a": row // 3, "b": row % 3, "k": k}
        np.testing.assert_array_equal(value, values[tuple(place[x] for x in axes)])


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("name", SOME)
def test_elements_that_rows_read(name: str, dtype: type) -> None:
    """A key, two keys, a key and a number, and one element for all rows."""
    rows, i, j = SOME[name], *RNG.integers(3, size=(2, 4, 3)).astype(dtype)
    with svmp.Model(coords={"a": 4, "b": 3, "i": 100, "j": 3}) as model:
        one = svmp.Gamma("one", alpha=1, beta=1, dims="i")
        two = svmp.Gamma("two", alpha=1, beta=1, dims=("i", "j"))
        cells = {
            "key": (one[i], i),
            "keys": (two[i, j], 3 * i.astype(int) + j),
            "key and number": (two[i, 2], 3 * i.astype(int) + 2),
            "numbers": (two[1, 2], np.full((4, 3), 5)),
        }
        for title, (rate, _) in cells.items():
            svmp.Poisson(title.replace(" ", "_"), rate, dims=("a", "b"), observed=np.ones((4, 3)))
    network = Network(model)
    for title, (_, elements) in cells.items():
        slot = network.observed[title.replace(" ", "_")].conditional.slots["mu"]
        found = slot.reader.element(rows, rows)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, elements.ravel()[rows])
