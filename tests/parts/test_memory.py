"""Amounts of memory."""

from __future__ import annotations

from typing import Any

import pytest

from svmp.errors import ModelError, naming
from svmp.parts.memory import parse_memory


@pytest.mark.parametrize(
    ("amount", "size"),
    [
        ("4GB", 4 * 10**9),
        ("4 gb", 4 * 10**9),
        ("4G", 4 * 10**9),
        ("1.5GiB", 3 * 2**29),
        ("512MB", 512 * 10**6),
        ("800", 800),
        ("2TB", 2 * 10**12),
        (1_000_000, 1_000_000),
        (1e9, 10**9),
    ],
)
def test_amounts_with_units(amount: Any, size: int) -> None:
    assert parse_memory(amount) == size


@pytest.mark.parametrize(
    "amount", ["", "GB", "-1GB", "4 apples", "0", "1e3GB", "4iB", None, True, 0, -5, float("nan")]
)
def test_other_amounts_are_refused(amount: Any) -> None:
    with pytest.raises(ModelError, match=r"^memory must be an amount of memory, as 4GB"):
        parse_memory(amount)
    with naming(flags=True), pytest.raises(ModelError, match=r"^--memory must be"):
        parse_memory(amount)
