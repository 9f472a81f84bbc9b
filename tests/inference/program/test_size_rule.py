"""Small networks are fitted by plain code, by a rule of sizes only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.inference.program import default
from svmp.network.network import Network

pytestmark = pytest.mark.by_size


def regression(rows: int) -> svmp.Model:
    """A factorization with one factor: two accesses for each row in a sweep."""
    rng = np.random.default_rng(0)
    user, item = np.arange(rows) % 7, rng.integers(0, 5, rows)
    with svmp.Model(coords={"user": 7, "item": 5}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims="user")
        v = svmp.Normal("v", mu=0, tau=1, dims="item")
        svmp.Normal("r", mu=u[user] * v[item], tau=1, observed=rng.normal(size=rows))
    return model


def is_compiled(model: Any, **options: Any) -> bool:
    return "  compiled" in str(svmp.explain(model, svmp.FullVB(), **options))


def test_loops_are_used_from_a_number_of_accesses_on() -> None:
    rows = default.SMALL // 2
    assert Network(regression(rows)).sweep_accesses == default.SMALL
    assert is_compiled(regression(rows))
    assert not is_compiled(regression(rows - 1))


def test_the_choice_can_be_made_by_the_caller() -> None:
    assert is_compiled(regression(10), kernels=True)
    assert not is_compiled(regression(default.SMALL), kernels=False)


def test_the_summary_says_that_the_network_is_small() -> None:
    assert "the network is small; see kernels=" in str(svmp.explain(regression(10)))
    off = svmp.explain(regression(default.SMALL), kernels=False)
    assert "compiled loops are turned off" in str(off)


def declare(part: Any) -> svmp.Model:
    with svmp.Model(coords={"user": part.labels("user"), "item": range(5)}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims="user")
        v = svmp.Normal("v", mu=0, tau=1, dims="item")
        mean = u[part.keys("user")] * v[part.item]
        svmp.Normal("r", mu=mean, tau=1, dims="rating", observed=part.rating)
    return model


@pytest.mark.parametrize("rows", [default.SMALL // 2, default.SMALL // 2 - 1])
def test_parts_decide_by_the_rows_of_all_parts(rows: int) -> None:
    rng = np.random.default_rng(1)
    table = {
        "user": np.arange(rows) % 7,
        "item": rng.integers(0, 5, rows),
        "rating": rng.normal(size=rows),
    }
    parts = svmp.Parts(declare, svmp.split(table, by="user", parts=4))
    assert is_compiled(parts) == (rows * 2 >= default.SMALL)


def test_a_resumed_run_goes_on_as_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, path = regression(200), tmp_path / "run.svmp"
    options: dict[str, Any] = {"tol": 0, "progress": False}
    whole = svmp.fit(model, svmp.FullVB(), max_sweeps=8, **options)
    svmp.fit(model, svmp.FullVB(), max_sweeps=3, checkpoint=path, every=1, **options)
    monkeypatch.setattr(default, "SMALL", 0)
    resumed = svmp.fit(model, resume=path, max_sweeps=8, progress=False)
    assert "plain" in str(resumed.program)
    assert resumed.bound == whole.bound
    assert np.array_equal(resumed.mean("u"), whole.mean("u"))


def test_plain_code_and_loops_agree() -> None:
    options: dict[str, Any] = {"tol": 0, "max_sweeps": 30, "progress": False}
    plain = svmp.fit(regression(300), svmp.FullVB(), **options)
    loops = svmp.fit(regression(300), svmp.FullVB(), kernels=True, **options)
    assert plain.bound == pytest.approx(loops.bound, rel=1e-10)
