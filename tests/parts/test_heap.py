"""The memory of parts that are released."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np

import svmp
from svmp.inference.methods import FullVB
from svmp.inference.steps import Constant
from svmp.network.network import Network
from svmp.parts.cache import load_part
from svmp.parts.heap import return_unused


def hierarchy(part: Any) -> svmp.Model:
    with svmp.Model(coords={"school": 3}) as model:
        mean = svmp.Normal("mean", mu=0, tau=1)
        each = svmp.Normal("each", mu=mean, tau=1, dims="school")
        svmp.Normal("score", mu=each[[0, 1, 2]], tau=1, observed=part)
    return model


def test_network_of_a_released_part_is_freed_at_once() -> None:
    parts = svmp.Parts(hierarchy, [np.arange(3.0), np.ones(3)], own=["each"])
    problem = parts.problem(None)
    program: Any = problem.program(FullVB(), Constant(1.0), True, 0, ())
    part = load_part(program.space.context, 1)
    assert part.network.groups["each"]  # refers to the network
    network = weakref.ref(part.network)
    gc.disable()
    try:
        parts.close()
        del part
        assert network() is None
    finally:
        gc.enable()


def test_released_network_computes_its_groups_again() -> None:
    network = Network(hierarchy(np.arange(3.0)))
    before = [group.tolist() for group in network.groups["each"]]
    network.release()
    assert [group.tolist() for group in network.groups["each"]] == before
    return_unused()
