"""The order in which results of groups are added does not depend on where some are added first."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from svmp.parts.tree import added_up, halves, single_nodes


def text(count: int) -> str:
    """The tree of some groups, written down by doubling: pairs, then pairs of pairs."""
    level = [str(i) for i in range(count)]
    while len(level) > 1:
        pairs = [f"({a}+{b})" for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[2 * len(pairs) :]
    return level[0]


@pytest.mark.parametrize("count", range(1, 20))
def test_groups_are_added_in_pairs_of_pairs(count: int) -> None:
    found = added_up(map(str, range(count)), single_nodes(count), "({}+{})".format)
    assert found == text(count)


@pytest.mark.parametrize("count", [2, 3, 5, 8, 13])
def test_halves_that_are_added_elsewhere_change_no_bit(count: int) -> None:
    values = np.random.default_rng(0).normal(size=count) * 10.0 ** np.arange(count)
    whole = added_up(iter(values), single_nodes(count), np.add)
    nodes = halves(range(count))
    parts = [added_up(iter(values[list(n)]), single_nodes(len(n)), np.add) for n in nodes]
    assert added_up(iter(parts), nodes, np.add) == whole


def test_halves_cover_all_groups_in_order() -> None:
    for count in range(2, 40):
        first, second = halves(range(count))
        assert [*first, *second] == list(range(count))
        assert all(b == a + 1 for a, b in pairwise([*first, *second]))
        assert len(second) > 0
