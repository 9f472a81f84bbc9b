"""Over-relaxation over parts has the bounds of the undivided table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import svmp

USERS, ITEMS, K = 24, 10, 3


def rows() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    pairs = rng.permutation(USERS * ITEMS)[:150]
    user = np.sort(pairs // ITEMS)
    return {"user": user, "item": pairs % ITEMS, "r": rng.normal(1, 1, 150)}


def declare(part: dict[str, np.ndarray]) -> svmp.Model:
    users, user = np.unique(part["user"], return_inverse=True)
    scales = np.array([1.0, 2.0, 0.5])  # which are not rotated
    with svmp.Model(coords={"user": users.tolist(), "item": ITEMS, "k": K}) as model:
        u = svmp.Normal("u", mu=0, tau=scales, dims=("user", "k"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "k"))
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        svmp.Normal("r", mu=svmp.dot(u[user], v[part["item"]]), tau=tau, observed=part["r"])
    return model


def options() -> dict[str, object]:
    v = 0.5 * np.random.default_rng(9).normal(size=(ITEMS, K))
    return {
        "method": svmp.Growing(1.0, order=["u", "v", "tau"]),
        "init": {"v": {"mu": v, "tau": 1.0}, "tau": {"alpha": 1.0, "beta": 1.0}},
        "tol": 0,
        "progress": False,
    }


@pytest.mark.parametrize("kernels", [False, True], ids=["plain", "compiled"])
def test_bounds_are_those_of_the_undivided_table(kernels: bool) -> None:
    table = rows()
    parts = svmp.Parts(declare, svmp.split(table, by="user", parts=3), own=("u",))
    divided = svmp.fit(parts, **options(), kernels=kernels, max_sweeps=9)
    whole = svmp.fit(declare(table), **options(), kernels=kernels, max_sweeps=9)
    np.testing.assert_allclose(divided.trace["bound"], whole.trace["bound"], rtol=1e-9)
    slow = svmp.fit(parts, **options() | {"method": svmp.Growing(1.0, relax=False)}, max_sweeps=9)
    assert not np.allclose(slow.trace["bound"], divided.trace["bound"], rtol=1e-9)


def test_resumed_run_over_parts_has_the_same_bits(tmp_path: Path) -> None:
    parts = svmp.Parts(declare, svmp.split(rows(), by="user", parts=3), own=("u",))
    given, file = options() | {"kernels": False}, tmp_path / "run"
    whole = svmp.fit(parts, **given, max_sweeps=8)
    svmp.fit(parts, **given, max_sweeps=5, checkpoint=file)
    resumed = svmp.fit(parts, resume=file, tol=0, max_sweeps=8, progress=False)
    for name in ("u", "v", "tau"):
        assert (resumed[name].natural == whole[name].natural).all()
