"""Undocumented features of Numba and LLVM that the loops use, one test each.

A new version of Numba that fails here has changed the feature that the test names. The upper bound
of Numba in pyproject.toml is raised when all of these pass.
"""

from __future__ import annotations

import threading
from inspect import signature
from typing import Any

import numba
import numpy as np
from numba.core import caching, event
from numba.core.dispatcher import Dispatcher

from svmp.kernels.machine.compiling import SETTINGS, bare, claim, fetch_add, jit
from svmp.kernels.machine.simd import load8, prefetch, store8

njit: Any = numba.njit


def llvm(loop: Any) -> str:
    (text,) = loop.inspect_llvm().values()
    return str(text)


def first(x):
    return x[1:][0]


def test_nrt_false_leaves_reference_counts_out() -> None:
    def swap(x, y, times):
        for _ in range(times):
            x, y = y, x
        return x[0]

    counted, uncounted = njit(swap), njit(_nrt=False)(swap)
    assert counted(np.zeros(1), np.ones(1), 3) == uncounted(np.zeros(1), np.ones(1), 3) == 1
    if numba.version_info.short >= (0, 61):  # 0.60 optimises the counts of this loop away
        assert "NRT_incref" in llvm(counted)
    assert "NRT_" not in llvm(uncounted)


def test_forceinline_leaves_no_call() -> None:
    def increment(x):
        return x + 1

    inner = njit(**SETTINGS, forceinline=True)(increment)
    inner(1)
    assert "alwaysinline" in llvm(inner)


def test_fastmath_takes_a_set_of_flags() -> None:
    @njit(**SETTINGS)
    def add(x, y):
        return x + y

    assert add(1.0, 2.0) == 3
    assert {"contract", "reassoc", "nsz"} < set(llvm(add).replace(",", " ").split())
    assert " nnan " not in llvm(add)
    assert " fast " not in llvm(add)


def test_atomic_rmw_counts_every_claim_once() -> None:
    @njit(nogil=True)
    def claim_all(counter, owner, own):
        place = claim(counter, 1)
        while place < len(owner):
            owner[place] += own
            place = claim(counter, 1)

    claim_all(np.zeros(1, np.int64), np.zeros(1, np.int64), 1)
    counter, owner = np.zeros(1, np.int64), np.zeros(200_000, np.int64)
    threads = [threading.Thread(target=claim_all, args=(counter, owner, n)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(np.unique(owner)) <= {1, 2}
    assert counter[0] == len(owner) + len(threads)


def test_atomic_rmw_is_one_instruction() -> None:
    @njit
    def add(counter):
        return fetch_add(counter, 3)

    counter = np.array([4])
    assert add(counter) == 4
    assert counter[0] == 7
    assert "atomicrmw add" in llvm(add)


def test_prefetch_is_an_intrinsic_of_llvm() -> None:
    @njit
    def ask(x):
        prefetch(x, np.uintp(1))

    ask(np.ones(3))
    assert "llvm.prefetch" in llvm(ask)


def test_eight_numbers_are_one_vector() -> None:
    @njit
    def copy(x, out):
        store8(out, np.uintp(0), load8(x, np.uintp(1)))

    out = np.zeros(8)
    copy(np.arange(10.0), out)
    assert out.tolist() == list(range(1, 9))
    assert "<8 x double>" in llvm(copy)


def test_a_dispatcher_asks_its_cache_before_it_compiles() -> None:
    calls = []

    class Recorder(caching.NullCache):
        def load_overload(self, sig, target_context):
            calls.append("load")

        def save_overload(self, sig, data):
            calls.append("save")

    loop = njit(first)
    assert isinstance(loop, Dispatcher)
    assert isinstance(loop._cache, caching.NullCache)
    loop._cache = Recorder()
    loop(np.ones(2))
    assert calls == ["load", "save"]


def test_the_interface_of_a_cache() -> None:
    abstract = caching._Cache.__abstractmethods__
    expected = {"cache_path", "load_overload", "save_overload", "enable", "disable", "flush"}
    assert abstract == expected
    assert list(signature(caching._Cache.load_overload).parameters)[1:] == ["sig", "target_context"]
    assert list(signature(caching._Cache.save_overload).parameters)[1:] == ["sig", "data"]


def test_where_and_how_machine_code_is_written() -> None:
    impl = caching.CompileResultCacheImpl(first)
    assert impl.filename_base.startswith("test_numba.first")
    assert impl.locator.get_cache_path()
    assert impl.locator.get_source_stamp()
    loop = njit(first)
    loop(np.ones(2))
    (result,) = loop.overloads.values()
    assert impl.check_cachable(result)
    triple, processor, features = result.codegen.magic_tuple()
    assert triple
    assert processor
    assert isinstance(features, str)
    again = impl.rebuild(loop.targetctx, impl.reduce(result))
    assert again.signature == result.signature


def test_types_of_arguments_have_names_that_tell_them_apart() -> None:
    """Files of the cache are named by them."""
    arrays = [
        np.ones(2),
        np.ones(2, np.float32),
        np.ones((2, 2)),
        np.ones((2, 2)).T,
        np.ones(4)[::2],
    ]
    frozen = np.ones(2)
    frozen.flags.writeable = False
    names = {repr(numba.typeof(a)) for a in [*arrays, frozen, 1, 1.0, True]}
    assert len(names) == 9


def test_compilation_is_an_event() -> None:
    """The notice of compilation and Ctrl-C depend on it."""
    heard = []

    class Listener(event.Listener):
        def on_start(self, event):
            heard.append("start")

        def on_end(self, event):
            heard.append("end")

    with event.install_listener("numba:compile", Listener()):
        njit(first)(np.ones(2))
    assert heard == ["start", "end"]


def test_decorated_functions_are_compiled_with_these() -> None:
    for decorate in (jit, bare):
        loop = decorate(first)
        assert loop(np.ones(2)) == 1
        assert loop.targetoptions["forceinline"]
    assert not loop.targetoptions["_nrt"]
