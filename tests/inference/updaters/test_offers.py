"""Which variables compiled loops are offered for: not local Normals that are a mean alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import svmp
from svmp.inference.program.program import Program
from svmp.inference.updaters import offers
from svmp.network.network import Network

RNG = np.random.default_rng(0)
ROWS = 30
Y, TAU = RNG.normal(size=ROWS), RNG.uniform(1, 3, ROWS)


def model(mean: Any = lambda u, b: u, logit: bool = False) -> svmp.Model:
    """Declare rows with a mean of local Normals of precision 2 around 0.5, and a Normal."""
    with svmp.Model(coords={"r": ROWS}) as declared:
        u = svmp.Normal("u", mu=0.5, tau=2.0, dims="r")
        b = svmp.Normal("b", mu=0, tau=1)
        if logit:
            svmp.Bernoulli("y", logit=mean(u, b), dims="r", observed=Y > 0)
        else:
            svmp.Normal("y", mu=mean(u, b), tau=TAU, dims="r", observed=Y)
    return declared


def updater(declared: svmp.Model, method: Any) -> str:
    program = Program.of(Network(declared), method, True)
    return next(s.updater for s in program.explain().variables if s.variable == "u")


def test_posterior_and_evidence_are_exact() -> None:
    fit = svmp.fit(model(), svmp.FullVB(), kernels=True)
    assert not updater(model(), svmp.FullVB()).startswith("compiled")
    np.testing.assert_allclose(fit["u"].mean, (2 * 0.5 + TAU * Y) / (2 + TAU))
    np.testing.assert_allclose(fit["u"].var, 1 / (2 + TAU))
    evidence = stats.norm.logpdf(Y, 0.5, np.sqrt(1 / 2 + 1 / TAU)).sum()
    assert fit.bound == pytest.approx(evidence)


@pytest.mark.parametrize(
    ("declared", "method"),
    [
        (model(lambda u, b: u + b), svmp.FullVB()),
        (model(lambda u, b: u * b), svmp.FullVB()),
        (model(logit=True), svmp.FullVB()),
        (model(), svmp.Batch(10)),
    ],
    ids=["a sum", "a product", "a logit", "batches"],
)
def test_other_means_and_methods_are_compiled(declared: svmp.Model, method: Any) -> None:
    assert updater(declared, method).startswith("compiled")


def test_long_tables_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "FEW_ROWS", ROWS - 1)
    assert updater(model(), svmp.FullVB()).startswith("compiled")
