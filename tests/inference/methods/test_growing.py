"""The schedule of a growing sample, against its definition."""

from __future__ import annotations

import pytest

from svmp.inference.methods.growing import RAMP, Growing


@pytest.mark.parametrize("first", [1e-3, 1 / 32, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("pace", [0.05, 0.2, 1.0, 7.0])
def test_the_sample_doubles_with_the_accesses_spent_until_all_rows_cost_no_more(
    first: float, pace: float
) -> None:
    method, share, spent, whole = Growing(first=first, pace=pace), first, 0.0, 0
    for iteration in range(1, 200):
        whole += share >= 1
        assert method.share(iteration) == share
        assert method.reads_all(iteration) == (share >= 1)
        assert method.whole_sweeps(iteration) == min(whole, RAMP)
        spent += share
        share = first * 2.0 ** int(spent / pace) if share < 1 else 1.0
        share = 1.0 if spent + share > 1 else share
