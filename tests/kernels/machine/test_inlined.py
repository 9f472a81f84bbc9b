"""Inlined functions: no machine code of their own, and callable from Python all the same."""

from __future__ import annotations

import numpy as np

from svmp.kernels.machine.compiling import bare, jit, shared
from svmp.kernels.machine.inlined import Inlined


@bare
def square(x: float) -> float:
    return x * x


@jit
def first_plus_square(x: np.ndarray, y: float) -> float:
    return x[0] + square(y)


@shared
def loop(x: np.ndarray) -> float:
    total = 0.0
    for y in x:
        total += first_plus_square(x, y)
    return total


def test_a_loop_of_inlined_functions_gives_what_python_gives() -> None:
    x = np.array([1.0, 2.0, 3.0])
    assert loop(x) == loop.py_func(x) == 17
    assert isinstance(square, Inlined)


def test_no_machine_code_is_made_for_inlined_functions() -> None:
    loop(np.ones(2))
    overloads = [*square.overloads.values(), *first_plus_square.overloads.values()]
    if overloads:  # the loop was not loaded from the cache
        for compiled in overloads:
            functions = list(compiled.library.get_defined_functions())
            assert not any("cpython" in f.name or "cfunc" in f.name for f in functions)
            engine = compiled.library.codegen._engine
            assert not engine.is_symbol_defined(compiled.fndesc.llvm_func_name)


def test_nothing_is_called_in_the_machine_code_of_a_loop() -> None:
    two = 2.0

    def alone(x):  # a closure is not cached, and Numba shows the code only of what it compiled
        return first_plus_square(x, two)

    compiled = shared(alone)
    assert compiled(np.ones(1)) == 5
    (text,) = compiled.inspect_llvm().values()
    calls = [line for line in text.splitlines() if " call " in line]
    assert not any("square" in line for line in calls)


def test_inlined_functions_can_be_called_from_python() -> None:
    assert square(1.5) == 2.25
    assert first_plus_square(np.ones(1), y=3.0) == 10
