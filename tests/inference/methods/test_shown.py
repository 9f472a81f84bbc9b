"""What a method prints is the call that makes it."""

from __future__ import annotations

import pytest

import svmp

METHODS = [
    svmp.FullVB(),
    svmp.Growing(0.1, joint=False),
    svmp.Batch(10, option="b", over="doc"),
    svmp.Memoized("doc", parts=3),
    svmp.Children(3, option="b"),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_what_is_shown_can_be_written(method: object) -> None:
    assert eval(repr(method), vars(svmp)) == method
