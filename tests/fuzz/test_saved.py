"""Damaged saved fits and checkpoints give a result or an error of svmp's, and nothing else."""

from __future__ import annotations

import pytest

from .mutants import findings

WORKERS = "tests.fuzz.saved_files"


@pytest.mark.parametrize("worker", ["quick_checkpoint", "fit"])
def test_damaged_files_are_refused_or_used(worker: str) -> None:
    assert findings(f"{WORKERS}:{worker}", range(200)) == []


@pytest.mark.slow
@pytest.mark.parametrize("worker", ["checkpoint", "fit"])
@pytest.mark.parametrize("first", [1_000, 2_000, 3_000])
def test_many_damaged_files_are_refused_or_used(worker: str, first: int) -> None:
    assert findings(f"{WORKERS}:{worker}", range(first, first + 1_000)) == []
