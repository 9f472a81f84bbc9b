"""Damaged files give a result or an error of svmp's, in bounded time and memory.

Each batch is read in a separate process, whose memory is limited and which compiled readers might
crash.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from svmp.recommend import EventModel
from tests.recommend.tools import fitted

ROOT = Path(__file__).parents[2]
FORMS = (
    "csv", "words", "tsv", "semicolons", "movielens", "prize", "gzip", "prize, gzipped", "zip",
    "prize, zipped", "npz", "npz of keys", "parquet", "parquet of words",
)  # fmt: skip
MODELS = ("rating", "full", "events", "chance")
FEW, MANY = 300, 2500
"""Mutants in the quick suite, of all forms together, and of each kind in the long one."""


def read_in_a_process(kinds: str, seed: int, count: int, *models: Path) -> None:
    """Read mutants of some forms, or of models, and see that nothing is wrong."""
    command = [sys.executable, "-m", "tests.fuzz.reader_child", kinds, str(seed), str(count)]
    limits = ("POLARS_MAX_THREADS", "SVMP_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    done = subprocess.run(
        [*command, *map(str, models)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **dict.fromkeys(limits, "1")},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.strip().splitlines()[-1:]
    assert done.returncode == 0, f"it ended at number {last} of {kinds}:\n{done.stderr[-3000:]}"
    found = json.loads(last[0])
    assert not found["faults"], found["faults"][:3]
    assert found["read"] > 0  # some are harmless: else nothing would be tested but refusals


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    fitted().save(folder / "rating")
    fitted("full", words=True).save(folder / "full")
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 40, 600), rng.integers(0, 30, 600)
    plain = {"iterations": 2, "hold": 1, "progress": False, "threads": 1}
    words = [f"it{i:02}" for i in item]
    EventModel(2, counts=True, **plain).fit((user, words)).save(folder / "events")
    chance = EventModel(2, score="probability", precision=None, **plain)
    chance.fit((user, item)).save(folder / "chance")
    return folder


def test_damaged_files_of_ratings() -> None:
    read_in_a_process("|".join(FORMS), 0, FEW)


def test_damaged_models(models: Path) -> None:
    read_in_a_process("models", 0, FEW // 2, *(models / kind for kind in MODELS))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_many_damaged_files_of_ratings(form: str) -> None:
    read_in_a_process(form, 1, MANY)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_many_damaged_models(kind: str, models: Path) -> None:
    read_in_a_process(kind, 1, MANY, models / kind)
