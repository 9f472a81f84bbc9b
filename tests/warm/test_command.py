"""`svmp warm`: loops are compiled in other processes, and fits then load them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from svmp.kernels.machine.durations import NAME
from svmp.warm.recipes import RECIPES

COUNT = """
import sys
from numba.core import event
from svmp.warm.recipes import RECIPES
with event.install_recorder("numba:compile") as seen:
    RECIPES[sys.argv[1]]()
print(len(seen.buffer))
"""
FACTORS = """
from svmp.kernels.vectors import more_rows
from svmp.warm.recipes import RECIPES
RECIPES["recommendations from ratings"]()
print(len(more_rows.update_vectors.signatures), len(more_rows.update_entries.signatures))
"""
BOUND = """
import svmp
from svmp.warm.recipes import OPTIONS, factorization
print(repr(svmp.fit(factorization("float32"), **OPTIONS | {"max_sweeps": 20}).bound))
"""


def run(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)


def test_a_recipe_is_compiled_once(tmp_path: Path) -> None:
    name = "mixtures"
    first = run(tmp_path, "-m", "svmp", "warm", "--only", name)
    assert first.returncode == 0, first.stderr
    assert f"compiling {name}\ncompiled {name} in " in first.stderr
    assert first.stdout.startswith("1 of 1 groups of loops are compiled")
    assert [*tmp_path.glob("**/" + NAME)]
    assert run(tmp_path, "-c", COUNT, name).stdout.split()[-1] == "0"
    again = run(tmp_path, "-m", "svmp", "warm", "--only", name)
    assert "s last time)" in again.stderr


GAUSSIAN = """
from svmp.kernels.gaussian import elimination, equations, factor
from svmp.warm.recipes import RECIPES
RECIPES["joint blocks"]()
loops = [elimination.eliminate, elimination.sort_rows, equations.add_products]
loops += [equations.add_covariances, factor.factorise, factor.invert, factor.forward]
loops += [factor.backward, factor.inverse_entries]
print(*(len(loop.signatures) for loop in loops))
"""


def test_every_loop_of_joint_blocks_is_compiled() -> None:
    found = subprocess.run([sys.executable, "-c", GAUSSIAN], capture_output=True, text=True)
    assert found.stdout.split() == ["1"] * 9, found.stderr


def test_the_recommender_is_compiled_with_its_factors() -> None:
    found = subprocess.run([sys.executable, "-c", FACTORS], capture_output=True, text=True)
    assert found.stdout.split() == ["1", "1"], found.stderr


def test_unknown_recipes_are_refused_with_those_that_there_are(tmp_path: Path) -> None:
    found = run(tmp_path, "-m", "svmp", "warm", "--only", "everything")
    assert found.returncode == 2
    assert "--only everything: there is no such recipe; use sweeps, " in found.stderr


@pytest.mark.slow
def test_everything_is_compiled_ahead(tmp_path: Path) -> None:
    found = run(tmp_path, "-m", "svmp", "warm")
    assert found.returncode == 0, found.stderr
    for name in RECIPES:
        assert run(tmp_path, "-c", COUNT, name).stdout.split()[-1] == "0"


@pytest.mark.slow
def test_bits_are_the_same_with_an_empty_and_a_warm_cache(tmp_path: Path) -> None:
    bounds = {run(tmp_path, "-c", BOUND).stdout for _ in range(3)}
    assert len(bounds) == 1
    assert bounds != {""}
