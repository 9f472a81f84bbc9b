"""The loop of full sweeps compiled in another process: the largest that a first fit waits for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numba import typeof

from svmp.kernels.machine.ahead import compile_ahead
from svmp.kernels.machine.threads import threads_in_use
from svmp.kernels.multilinear.losses import Losses
from svmp.kernels.multilinear.table import Precision
from svmp.kernels.multilinear.terms import ALL, LoopRows, Mean, Receiver

CODE = """
import sys
from svmp.kernels.multilinear.ahead import compile_update
compile_update(*sys.argv[1:])
"""


def signature(dtype: Any) -> tuple[Any, ...]:
    """Return the types of the arguments of an update of all rows, read in a precision."""
    return _signature(np.dtype(dtype).name)


@cache
def _signature(dtype: str) -> tuple[Any, ...]:
    ints, floats, pairs = np.zeros(1, np.int64), np.zeros(1), np.zeros((1, 2))
    numbers, lines = np.zeros(1, dtype), np.zeros((1, 1), dtype)
    to = Receiver(0, 0, 1, ints, floats, floats, pairs, True, True)
    keys = np.zeros((1, 1), np.int32)
    rows = LoopRows(ints, ints, keys, numbers, lines, numbers, ALL, False)
    mean = Mean(numbers, ints, ints, ints, ints, ints, ints, numbers, 0.0, False)
    losses = Losses(floats, floats)
    return tuple(map(typeof, (ints, to, rows, mean, pairs, pairs, np.ones(1, bool), losses)))


def compile_update(module: str, name: str, dtype: str) -> None:
    """Compile a loop for rows in a precision."""
    vars(import_module(module))[name].compile(signature(dtype))


def begin_to_compile(loop: Any, dtype: Precision) -> None:
    """Compile an update of all rows in another process, where there are two cores."""
    if threads_in_use() > 1 and signature(dtype) not in loop.overloads:
        path = loop._cache.path_of(signature(dtype), loop.targetctx.codegen())
        compile_ahead([path], CODE, loop.__module__, loop.__name__, np.dtype(dtype).name)
