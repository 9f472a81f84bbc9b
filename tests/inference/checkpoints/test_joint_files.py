"""Joint blocks in saved fits and checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import svmp
from svmp.inference.gaussian import analysis
from svmp.posterior.uncertainty.covariance_of_q import covariance_of

RNG = np.random.default_rng(0)
KEYS = RNG.integers(0, 6, 40)
ROWS = RNG.normal(size=40) + RNG.normal(size=6)[KEYS]


def model() -> svmp.Model:
    with svmp.Model(coords={"g": 6}) as declared:
        a = svmp.Normal("a", mu=0, tau=0.01)
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        u = svmp.Normal("u", mu=0, tau=tau, dims="g")
        ty = svmp.Gamma("ty", alpha=1, beta=1)
        svmp.Normal("y", mu=a + u[KEYS], tau=ty, observed=ROWS)
    return declared


@pytest.fixture(autouse=True)
def eliminated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "SMALL", 0)
    monkeypatch.setattr(analysis, "FEW", 0)


def test_saved_fits_keep_covariances(tmp_path: Path) -> None:
    fit = svmp.fit(model(), joint="auto")
    fit.save(tmp_path / "fit.svmp")
    again = svmp.load(tmp_path / "fit.svmp")
    first, second = (covariance_of(f.joint, f.posteriors, ["a", "u", "tau"]) for f in (fit, again))
    assert np.array_equal(first, second)
    gap = np.full(40, np.nan)
    assert abs(first[0, 1]) > 0 == abs(first[0, -1])
    del gap


def test_resumed_runs_have_the_same_bits(tmp_path: Path) -> None:
    order = svmp.FullVB(order=["ty", "tau", "a", "u"])  # precisions first: they read covariances
    whole = svmp.fit(model(), order, joint="auto", tol=0, max_sweeps=9)
    path = tmp_path / "run"
    svmp.fit(model(), order, joint="auto", tol=0, max_sweeps=4, checkpoint=path)
    with pytest.raises(svmp.FileError, match="made with joint="):
        svmp.fit(model(), joint=[("a",)], resume=path, max_sweeps=9)
    resumed = svmp.fit(model(), resume=path, max_sweeps=9)
    assert resumed.bound == whole.bound
    assert np.array_equal(resumed["u"].natural, whole["u"].natural)
    assert np.array_equal(resumed.trace["bound"], whole.trace["bound"])


def rewritten(path: Path, change: Callable[[dict, dict], object]) -> None:
    with safe_open(path, framework="numpy") as file:
        (key, text), *_ = file.metadata().items()
    about, tensors = json.loads(text), load_file(path)
    change(about, tensors)
    save_file(tensors, path, metadata={key: json.dumps(about)})


DAMAGES: dict[str, Callable[[dict, dict], object]] = {
    "an unknown variable": lambda about, t: about["blocks"][0].update(names=["a", "v"]),
    "a variable that is not Normal": lambda about, t: about["blocks"][0].update(names=["a", "tau"]),
    "one variable twice": lambda about, t: about["blocks"][0].update(names=["a", "a"]),
    "another size": lambda about, t: about["blocks"][0].update(names=["a"]),
    "entries outside": lambda about, t: t["block0/columns"].__setitem__(0, 99),
    "negative entries": lambda about, t: t["block0/columns"].__setitem__(0, -1),
    "starts that fall": lambda about, t: t["block0/starts"].__setitem__(1, 30),
    "unknown groups": lambda about, t: t["block0/groups"].__setitem__(0, 99),
    "one group": lambda about, t: t["block0/groups"].__setitem__(slice(None), 0),
    "no groups": lambda about, t: t["block0/groups"].__setitem__(slice(None), -1),
    "not definite": lambda about, t: t["block0/values"].__setitem__(slice(None), 1.0),
    "not symmetric": lambda about, t: t["block0/values"].__setitem__(1, 9.0),
    "other covariances": lambda about, t: t["block0/values"].__imul__(2),
    "NaN": lambda about, t: t["block0/values"].__setitem__(1, np.nan),
    "no array": lambda about, t: t.pop("block0/groups"),
    "an infinite number": lambda about, t: about["blocks"][0].update(barren=1e999),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["fit", "run"])
def test_damaged_files_are_refused(damage: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / kind
    fit = svmp.fit(model(), joint="auto", max_sweeps=3, checkpoint=tmp_path / "run")
    fit.save(tmp_path / "fit")
    rewritten(path, DAMAGES[damage])
    if damage in ("one group", "no groups"):  # other ways to compute the same
        again = svmp.load(path) if kind == "fit" else svmp.fit(model(), resume=path, max_sweeps=3)
        assert again["u"].var == pytest.approx(fit["u"].var)
        return
    with pytest.raises(svmp.FileError, match="damaged"):
        svmp.load(path) if kind == "fit" else svmp.fit(model(), resume=path, max_sweeps=9)
