"""The loops of vectors with covariances, compiled in other processes while the first sweeps run.

One process compiles the update, and another one the loops that a fit with vectors needs after it,
which take about as long together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import typeof

from svmp.kernels.machine.ahead import compile_ahead
from svmp.kernels.machine.sorting import read_only
from svmp.kernels.machine.threads import threads_in_use
from svmp.kernels.multilinear.ahead import begin_to_compile, signature
from svmp.kernels.vectors import mean_steps, means, prior, terms
from svmp.kernels.vectors.means import SortedRows
from svmp.kernels.vectors.update import update

CODE = "from svmp.kernels.vectors.ahead import compile_others; compile_others()"


def signatures() -> list[tuple[Any, tuple[Any, ...]]]:
    """Return the loops besides the update, and their types for rows in single precision."""
    ints, floats, pairs = np.zeros(1, np.int64), np.zeros(1), np.zeros((1, 2))
    singles, lines = np.zeros(1, np.float32), np.zeros((1, 2), np.float32)
    keys, cubes = np.zeros(1, np.int32), np.zeros((1, 1, 1), np.float32)
    rows = SortedRows(ints, read_only(keys), read_only(singles), read_only(singles))
    system = lines, lines, lines, floats, floats, 1.0, lines

    def types(*arguments: Any) -> tuple[Any, ...]:
        return tuple(map(typeof, (ints, *arguments)))

    _, _, double_rows, mean, *_ = signature(np.float64)
    return [
        (mean_steps.move_means, types(rows, *system)),
        (means.sum_triangles, types(rows, lines, lines)),
        (terms.row_moments, (typeof(ints), double_rows, mean, typeof(pairs))),
        (means.write_standard, types(read_only(pairs), 1, lines, cubes)),
        (prior.log_dets, types(pairs, 1, floats)),
    ]


def compile_others() -> None:
    """Compile the loops besides the update."""
    for loop, types in signatures():
        loop.compile(types)


def begin_to_compile_vectors() -> None:
    """Compile the loops of vectors in other processes, where there are two cores."""
    if threads_in_use() > 1:
        begin_to_compile(update, np.float32)
        needed = [(loop, types) for loop, types in signatures() if types not in loop.overloads]
        paths = [loop._cache.path_of(t, loop.targetctx.codegen()) for loop, t in needed]
        compile_ahead(paths, CODE)
