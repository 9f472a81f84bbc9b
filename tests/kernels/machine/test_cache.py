"""Compiled loops on disk: never stale, reused where nothing changed, and bounded in size."""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import svmp
from svmp.kernels.machine import cache
from svmp.kernels.machine.compiling import bare, shared
from svmp.kernels.machine.inlined import Inlined

PACKAGE = Path(svmp.__file__).parent
ENTROPY = """
import numpy as np
from svmp.kernels.machine import elements
found = elements.normal_entropy(np.array([[0.0, -0.5]]))
stats = elements._normal_entropy.stats
print(found, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""
"""A loop of elements.py that inlines a function of special.py."""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package that nothing has been compiled for."""
    ignore = shutil.ignore_patterns("__pycache__", "study", "static")
    shutil.copytree(PACKAGE, tmp_path / "copy" / "svmp", ignore=ignore)
    return tmp_path / "copy"


def start(copy: Path, **more: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", **more}
    command = [sys.executable, "-c", ENTROPY]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=copy)


def finish(process: subprocess.Popen[str]) -> tuple[float, int, int]:
    """Return the entropy, and how many signatures were loaded and compiled."""
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    found, hits, misses = out.split()
    return float(found), int(hits), int(misses)


def folders(parent: Path) -> list[Path]:
    return sorted(parent.glob(f"**/{cache.PREFIX}*"))


def test_an_edit_of_an_inlined_function_is_seen(copy: Path) -> None:
    right = 0.5 * np.log(2 * np.pi * np.e)
    together = [start(copy), start(copy)]
    for process in together:
        assert finish(process)[0] == pytest.approx(right)
    assert finish(start(copy)) == (pytest.approx(right), 1, 0)
    (before,) = folders(copy)

    edited = copy / "svmp" / "kernels" / "machine" / "special.py"
    text, line = edited.read_text(), "    return n * 0.69314718036912381649 + ("
    assert text.count(line) == 1
    edited.write_text(text.replace(line, line.replace("(", "4 + (")))
    assert finish(start(copy)) == (pytest.approx(right - 2), 0, 1)
    assert len(folders(copy)) == 2

    edited.write_text(text)
    assert finish(start(copy)) == (pytest.approx(right), 1, 0)
    assert before in folders(copy)


def test_read_only_packages_are_cached_in_the_folder_of_the_user(copy: Path) -> None:
    home = copy.parent / "home"
    (copy / "svmp" / "kernels" / "machine" / "__pycache__").touch()  # no folder can be made there
    for hits in (0, 1):
        assert finish(start(copy, XDG_CACHE_HOME=str(home)))[1:] == (hits, 1 - hits)
    assert folders(home)
    assert not folders(copy)


def loops() -> dict[Path, list[Dispatcher]]:
    """All compiled functions of the package by the file that defines them."""
    found: dict[Path, list[Dispatcher]] = {}
    for name in cache.loop_sources():
        module = importlib.import_module("svmp." + name[:-3].replace(os.sep, "."))
        for value in vars(module).values():
            if isinstance(value, Dispatcher) and value.py_func.__module__ == module.__name__:
                found.setdefault(PACKAGE / name, []).append(value)
    return found


def test_every_loop_of_the_package_is_cached_by_all_sources() -> None:
    decorators = "@jit", "@bare", "@shared", "@exact", "@njit", "@numba"
    with_loops = {
        path for path in PACKAGE.glob("**/*.py")
        if any(line.startswith(decorators) for line in path.read_text().splitlines())
    }  # fmt: skip
    found = loops()
    assert set(found) == with_loops
    assert len(found) > 10
    for dispatchers in found.values():
        alone = [d.alone if isinstance(d, Inlined) else d for d in dispatchers]
        assert all(isinstance(d._cache, cache.LoopCache) for d in alone)


def test_all_that_loops_are_made_of_is_hashed() -> None:
    """Functions and numbers that compiled code takes from other files are from hashed ones."""
    hashed = {"svmp." + name[:-3].replace(os.sep, ".") for name in cache.loop_sources()}
    for path, dispatchers in loops().items():
        names = {name for d in dispatchers for name in d.py_func.__code__.co_names}
        for line in ast.walk(ast.parse(path.read_text())):
            if isinstance(line, ast.ImportFrom) and str(line.module).startswith("svmp"):
                used = names & {alias.asname or alias.name for alias in line.names}
                assert not used or line.module in hashed, (path.name, used)


def test_every_file_of_the_kernels_is_hashed() -> None:
    """The fields of a tuple that a loop takes are compiled in, wherever the tuple is defined."""
    files = {str(path.relative_to(cache.PACKAGE)) for path in cache.PACKAGE.glob("kernels/**/*.py")}
    assert files <= set(cache.loop_sources())


def test_a_loop_is_compiled_for_other_versions_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.fingerprint() == cache.FINGERPRINT
    for module in (cache.np, cache.numba, cache.llvmlite):
        with monkeypatch.context() as other:
            other.setattr(module, "__version__", "0.0")
            assert cache.fingerprint() != cache.FINGERPRINT


def test_only_the_folders_used_last_are_kept(tmp_path: Path) -> None:
    for age in range(6):
        folder = tmp_path / f"{cache.PREFIX}{age}"
        folder.mkdir()
        (folder / "loop.nbc").touch()
        os.utime(folder, (1000 - age, 1000 - age))
    (tmp_path / "another").mkdir()
    cache.remove_oldest(str(tmp_path))
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"another", *(f"{cache.PREFIX}{age}" for age in range(cache.KEPT))}


def double(x: float) -> float:
    return 2 * x


def test_damaged_files_are_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    assert shared(double)(1.5) == 3
    (path,) = tmp_path.glob("**/*.nbc")
    for content in (path.read_bytes()[:-1], b""):
        path.write_bytes(content)
        loop = shared(double)
        assert loop(1.5) == 3
        assert not loop.stats.cache_hits
    assert shared(double)(1.5) == 3


def test_no_folder_to_write_to_means_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(function: object) -> None:
        raise RuntimeError("no locator available")

    monkeypatch.setattr(cache, "CompileResultCacheImpl", nowhere)
    loop = bare(double).alone
    assert loop(1.5) == 3
    assert loop.stats.cache_path is None


def test_a_disk_that_cannot_be_written_does_not_stop_a_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache.os, "replace", full)
    assert shared(double)(1.5) == 3
    assert not [*tmp_path.glob("**/*.nbc*")]


def test_closures_are_not_cached() -> None:
    for factor in (2, 3):

        def times(x, factor=factor):
            return lambda: x * factor

        assert shared(times(1.5))() == 1.5 * factor
