"""Groups of parts are of nearly the same size, and every group has a part."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.parts.groups import default_groups, group_numbers, part_sizes
from svmp.parts.sources import InMemory, Source


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 10, 16, 33])
@pytest.mark.parametrize("seed", range(3))
def test_groups_follow_each_other_and_have_parts(parts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 50, parts).tolist() if seed else [None] * parts
    for count in range(1, parts + 1):
        found = group_numbers(sizes, count)
        assert found[0] == 0
        assert found[-1] == count - 1
        assert set(np.diff(found)) <= {0, 1}


def test_both_halves_of_the_groups_have_as_many_rows() -> None:
    rng = np.random.default_rng(0)
    for sizes in ([1000] * 10, [1000] * 6, rng.integers(500, 1500, 50).tolist()):
        found = group_numbers(sizes, 4)
        rows = np.bincount(found, sizes)
        assert abs(rows[:2].sum() - rows[2:].sum()) <= max(sizes)
    equal = np.bincount(group_numbers([1000] * 10, 4), [1000] * 10)
    assert equal[:2].sum() == equal[2:].sum()


def test_a_large_part_has_a_group_of_its_own() -> None:
    assert group_numbers([100, 100, 1000, 100, 100], 3).tolist() == [0, 0, 1, 2, 2]


class Files(Source):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def load(self, part: int) -> None:
        raise AssertionError("nothing is loaded to choose groups")

    def fingerprint(self, part: int) -> str:
        return ""


@pytest.mark.parametrize(("parts", "groups"), [(1, 4), (100, 4), (128, 8), (300, 16), (5000, 16)])
def test_default_number_for_files_depends_on_their_number(parts: int, groups: int) -> None:
    assert default_groups(Files(parts)) == groups


def test_default_number_in_memory_depends_on_parts_and_rows() -> None:
    large = np.broadcast_to(0.0, 3_000_000)
    assert default_groups(InMemory((np.zeros(3),) * 7)) == 1
    assert default_groups(InMemory((np.zeros(3),) * 33)) == 4
    assert default_groups(InMemory(({"y": large, "x": 3},) * 3)) == 2
    assert default_groups(InMemory(((large, large),) * 30)) == 8


def test_sizes_of_parts_in_memory_are_found_in_their_arrays() -> None:
    frames = svmp.split({"user": np.array([0, 0, 1])}, by="user", parts=2)
    assert sum(size or 0 for size in part_sizes(frames)) == 3
    assert part_sizes(InMemory((np.zeros(4), {"a": np.zeros(2)}, [1.0], "x"))) == [4, 2, None, None]
