"""The bits of a loop do not depend on where its arrays lie in memory.

LLVM compiles some loops twice, vectorised and plain, and takes the plain one if an array that is
written begins less than some hundred bytes after one that is read. A sum that may be added up in
any order then has other bits in each version. Arrays must be small to lie so close.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.inference.methods.draw import AllRows
from svmp.inference.program.program import Program
from svmp.inference.updaters.updater import SummingUpdater
from svmp.kernels.categorical import mixture_sums, topics, topics_sums
from svmp.kernels.machine import elements
from svmp.kernels.machine.threads import share, use_threads
from svmp.kernels.multilinear import loop_table, solve, update
from svmp.kernels.multilinear import updater as multilinear
from svmp.kernels.vectors import solve as vector_solve
from svmp.kernels.vectors import updater as vectors
from svmp.network.network import Network
from tests.inference.updaters.test_groups import topics as topics_model
from tests.kernels.test_sizes_of_one import NETWORKS as SMALL
from tests.network.tools import anywhere

MODULES = (mixture_sums, topics, topics_sums, elements, loop_table, solve, update)
MODULES += (multilinear, vectors, vector_solve)
PLACES = 40
CALLS = 6
"""Recorded calls of each loop in a fit."""


def arrays_in(value: Any) -> list[np.ndarray]:
    if isinstance(value, np.ndarray):
        return [value]
    return [a for v in value for a in arrays_in(v)] if isinstance(value, tuple) else []


def mapped(value: Any, moved: dict[int, np.ndarray]) -> Any:
    """Return the same arguments with other arrays."""
    if isinstance(value, np.ndarray):
        return moved[id(value)]
    if isinstance(value, tuple):
        parts = [mapped(v, moved) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def copied(value: Any) -> Any:
    return mapped(value, {id(a): a.copy() for a in arrays_in(value)})


def placed(value: Any, rng: np.random.Generator) -> Any:
    """Copy all arrays into one piece of memory, in any order, with small gaps or none."""
    arrays = {id(a): a for a in arrays_in(value)}
    room = sum(a.nbytes + 256 for a in arrays.values()) + 256
    memory = np.full(room, rng.integers(256), dtype=np.uint8)
    begin = -memory.ctypes.data % 64
    moved = {}
    for key in rng.permutation(list(arrays)):
        a = arrays[int(key)]
        begin += int(rng.integers(3)) * int(rng.integers(9)) * 8
        begin += -begin % 8
        moved[int(key)] = memory[begin : begin + a.nbytes].view(a.dtype).reshape(a.shape)
        moved[int(key)][...] = a
        begin += a.nbytes
    return mapped(value, moved)


def sum_and_solve(model: svmp.Model, method: Any) -> None:
    """Solve all variables that can be from sums over rows."""
    network = Network(model)
    program = Program.of(network, method, stored=list(network.hidden))
    q, rows = program.attach(anywhere(network, 1)), AllRows(network)
    for updater in program.updaters:
        if isinstance(updater, SummingUpdater):
            every = {n: np.arange(network.hidden[n].size) for n in updater.names}
            prior = {n: network.prior(q, n, every[n]) for n in updater.names}
            updater.solver.solve(updater.sums(q, rows), prior, q.natural)


METHODS = [svmp.FullVB(), svmp.Growing(0.5), svmp.Children(2), svmp.Batch(3, "b")]


@pytest.mark.parametrize("make", [*SMALL, topics_model], ids=lambda make: make.__name__)
def test_bits_do_not_depend_on_addresses(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: dict[Any, list[Any]] = {}

    def record(loop: Any, *arguments: Any) -> None:
        known = calls.setdefault(loop, [])
        if len(known) < CALLS:
            known.append(copied(arguments))
        share(loop, *arguments)

    for module in MODULES:
        monkeypatch.setattr(module, "share", record)
    monkeypatch.setattr(elements, "FEW", 0)
    with use_threads(1, tell=False):
        for method in METHODS:
            model = make() if make is topics_model else make(5, 3, 3)
            svmp.fit(model, method, max_sweeps=2, tol=0)
            sum_and_solve(model, method)
        if make is topics_model:
            svmp.fit(make(), svmp.Batch(2, over="doc"), max_sweeps=2, tol=0)
        assert calls
        rng = np.random.default_rng(0)
        for loop, known in calls.items():
            for arguments in known:
                expected = copied(arguments)
                share(loop, *expected)
                for _ in range(PLACES):
                    found = placed(arguments, rng)
                    share(loop, *found)
                    pairs = zip(arrays_in(found), arrays_in(expected), strict=True)
                    for number, (a, b) in enumerate(pairs):
                        same = a.tobytes() == np.ascontiguousarray(b).tobytes()
                        assert same, f"array {number} of {loop.__name__}"
