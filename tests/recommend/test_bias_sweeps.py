"""Sweeps over biases are iterations of the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svmp.fitting.online import Online
from svmp.inference.steps import Constant
from svmp.inference.updaters.setup import replace_observed
from svmp.network.network import Network
from svmp.recommend.bias_sweeps import BiasSweeps
from svmp.recommend.mean_sweeps import SortedPairs
from svmp.recommend.network import network
from svmp.recommend.starts import bias_start
from tests.recommend.tools import drawn


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("noise", ["user", "shared"])
def test_sweeps_are_those_of_the_engine(noise: Any, kernels: bool) -> None:
    """With other ratings after two sweeps, and elements without ratings."""
    rows = drawn(3, 600)
    rows = rows.take(np.flatnonzero((rows.user != 4) & (rows.item != 7)))
    model = Network(network(rows, 0, "full", noise))
    options: Any = {"init": bias_start(rows, sweeps=100), "threads": 1, "tell": False}
    engine = Online(Constant(1.0), 0, **options, kernels=kernels)
    run = BiasSweeps(Constant(1.0), 0, **options, pairs=SortedPairs.of(rows))
    for sweep in range(4):
        if sweep == 2:
            replace_observed(model, "r", rows.rating * np.float32(0.5))
        for each in (engine, run):
            each.advance(model)
        assert run.iteration == engine.iteration == sweep + 1
        assert run.posteriors.keys() == engine.posteriors.keys()
        for name, q in engine.posteriors.items():
            found = run.posteriors[name].natural
            np.testing.assert_allclose(found, q.natural, rtol=1e-6, atol=1e-6, err_msg=name)


def test_a_copy_goes_on_by_itself() -> None:
    rows = drawn(3, 600)
    model = Network(network(rows, 0, "full", "user"))
    pairs = SortedPairs.of(rows)
    run = BiasSweeps(Constant(1.0), 0, bias_start(rows, sweeps=100), 1, tell=False, pairs=pairs)
    run.advance(model)
    other, before = run.copy(), run.posteriors["a"].mean.copy()
    other.advance(model)
    assert np.array_equal(run.posteriors["a"].mean, before)
    run.advance(model)
    assert np.array_equal(run.posteriors["a"].mean, other.posteriors["a"].mean)
    alone = run.copy()
    alone.advance(model)
    third = rows.take(np.arange(len(rows)))
    replaced = Network(network(third, 0, "full", "user"))
    replace_observed(replaced, "r", third.rating * np.float32(3))
    other.advance(replaced)
    run.advance(model)
    assert np.array_equal(run.posteriors["b"].mean, alone.posteriors["b"].mean)
