"""Own variables on disk: the same bits as in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.parts.scratch import zeros_on_disk
from tests.parts.networks import CASES, Case

OPTIONS: dict[str, Any] = {"tol": 0, "max_sweeps": 6, "bound_every": 1}


def fit(case: Case, keep: str, **options: Any) -> svmp.Fit:
    return svmp.fit(case.divided(keep=keep), svmp.FullVB(), **{**OPTIONS, **options})


@pytest.mark.parametrize("name", ["factorization with biases", "topics", "mixture"])
def test_own_variables_on_disk_have_the_same_bits(name: str) -> None:
    case = CASES[name]()
    memory, disk = (fit(case, keep, init=case.init) for keep in ("memory", "disk"))
    assert memory.bound_terms == disk.bound_terms
    for variable in case.own:
        assert np.array_equal(memory[variable].natural, disk[variable].natural)


def test_a_fit_with_own_variables_on_disk_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    case, checkpoint = CASES["factorization"](), tmp_path / "run.svmp"
    fit(case, "disk", max_sweeps=3, checkpoint=checkpoint)
    resumed = svmp.fit(case.divided(keep="disk"), resume=checkpoint, max_sweeps=6)
    whole = fit(case, "disk")
    assert np.array_equal(whole["u"].natural, resumed["u"].natural)


def test_no_file_is_left_in_the_folder(tmp_path: Path) -> None:
    case = CASES["factorization"]()
    svmp.fit(case.divided(keep="disk", scratch=tmp_path), max_sweeps=2)
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    case = CASES["factorization"]()
    with pytest.raises(svmp.FileError, match=r"nowhere: cannot keep own variables there \(No such"):
        svmp.fit(case.divided(keep="disk", scratch=tmp_path / "nowhere"))


def test_more_than_the_disk_holds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(svmp.FileError, match=r"cannot keep own variables there"):
        zeros_on_disk((2**45, 4), tmp_path)


def test_arrays_without_elements_need_no_file() -> None:
    assert zeros_on_disk((0, 3), None).shape == (0, 3)
