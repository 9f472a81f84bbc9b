"""The argument `joint` of fit: which blocks there are, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.inference.updaters import joint_block

Y = np.array([28, 8, -3, 7, -1, 1, 18, 12.0])
SD = np.array([15, 10, 16, 11, 9, 11, 10, 18.0])


def schools(alpha: float = 1, beta: float = 10, top: float = 0.01) -> svmp.Model:
    with svmp.Model(coords={"school": 8}) as model:
        mu = svmp.Normal("mu", mu=0, tau=top)
        tau = svmp.Gamma("tau", alpha=alpha, beta=beta)
        school = svmp.Normal("school", mu=mu, tau=tau, dims="school")
        svmp.Normal("y", mu=school, tau=SD**-2.0, observed=Y, dims="school")
    return model


def exact_sd(alpha: float, beta: float, top: float) -> float:
    """Posterior sd of mu, with the schools integrated out and tau on a grid."""
    log_tau = np.linspace(-12, 8, 4001)
    tau = np.exp(log_tau)
    spread = SD**2 + 1 / tau[:, None]
    precision, linear = (1 / spread).sum(axis=1) + top, (Y / spread).sum(axis=1)
    log_p = alpha * log_tau - beta * tau - 0.5 * np.log(spread).sum(axis=1)
    log_p += 0.5 * linear**2 / precision - 0.5 * np.log(precision) - 0.5 * (Y**2 / spread).sum(1)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = linear / precision
    return float(np.sqrt(p @ (1 / precision + mean**2) - (p @ mean) ** 2))


@pytest.mark.parametrize(
    ("alpha", "beta", "top"),
    [(1, 10, 0.01), (1, 1, 0.01), (0.01, 0.01, 0.01), (2, 50, 1e-4), (1, 25, 0.04)],
)
def test_sd_of_the_hyper_mean_of_eight_schools(alpha: float, beta: float, top: float) -> None:
    model, truth = schools(alpha, beta, top), exact_sd(alpha, beta, top)
    fit = svmp.fit(model, joint=[("mu", "school")])
    assert fit.posteriors["mu"].std == pytest.approx(truth, rel=0.1)
    assert svmp.fit(model).posteriors["mu"].std < 0.6 * truth


@pytest.mark.parametrize("joint", ["auto", ("mu", "school"), [["school", "mu"]]])
def test_blocks_may_be_given_in_three_ways(joint: Any) -> None:
    fit = svmp.fit(schools(), joint=joint)
    assert [block.names for block in fit.joint] == [("mu", "school")]
    assert fit.bound > svmp.fit(schools()).bound


@pytest.mark.parametrize("joint", [None, False])
def test_none_and_false_mean_no_blocks(joint: Any) -> None:
    fit = svmp.fit(schools(), joint=joint)
    assert fit.joint == ()
    assert fit.bound == svmp.fit(schools()).bound
    with pytest.raises(svmp.ModelError, match='"auto" or False, not True'):
        svmp.fit(schools(), joint=True)


def test_explain_names_the_block_and_the_loops_that_are_off() -> None:
    with svmp.Model(coords={"g": 3, "k": 2}) as model:
        a = svmp.Normal("a", mu=0, tau=1)
        u = svmp.Normal("u", mu=0, tau=1, dims="g")
        w = svmp.Normal("w", mu=0, tau=1, dims=("g", "k"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("g", "k"))
        mean = a + u[[0, 1, 2, 0]] + svmp.dot(w[[0, 1, 2, 0]], v[[2, 1, 0, 1]], dim="k")
        svmp.Normal("y", mu=mean, tau=1, observed=[1, 2, 3, 4])
    told = str(svmp.explain(model, joint="auto", kernels=True))
    assert "a  jointly Normal: a, u (not compiled: joint blocks are computed in NumPy)" in told
    assert re.search("w .*no loops for the rows of 'y', which read a joint block", told)
    assert "compiled (multilinear, joint)" in str(svmp.explain(model, kernels=True))
    fits = [svmp.fit(model, joint="auto", tol=1e-10, kernels=k) for k in (True, False)]
    assert fits[0].bound == pytest.approx(fits[1].bound, rel=1e-9)


def products() -> svmp.Model:
    with svmp.Model(coords={"k": 2}) as model:
        a = svmp.Normal("a", mu=0, tau=1)
        b = svmp.Normal("b", mu=a, tau=1)
        z = svmp.Categorical("z", p=svmp.data([0.5, 0.5], dims="k"))
        c = svmp.Normal("c", mu=0, tau=1, dims="k")
        d = svmp.Mixture("d", z, svmp.Normal.dist(mu=c, tau=1))
        svmp.Normal("y", mu=a * b + d, tau=1, observed=[1, 2])
    return model


@pytest.mark.parametrize(
    ("joint", "said"),
    [
        ("mu", "joint must be blocks of names"),
        ([], "joint must be blocks of names"),
        (3, "joint must be blocks of names"),
        ([("a", 3)], "joint must be blocks of names"),
        ([("a", "e")], "'e', which is no variable of the model; the hidden variables are 'a'"),
        ([("a", "y")], "'y', which is observed"),
        ([("a", "c"), ("c", "d")], "'c' twice"),
        ([("a", "a")], "'a' twice"),
        ([("a", "b")], "cannot have 'a': the mean of 'y' multiplies it by 'b', which is hidden"),
        ([("c", "d")], "cannot have 'd': its prior is a mixture"),
        ([("c", "z")], "cannot have 'z': it is a Categorical"),
    ],
)
def test_bad_blocks_are_refused(joint: Any, said: str) -> None:
    with pytest.raises(svmp.ModelError, match=said):
        svmp.fit(products(), joint=joint)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": svmp.Children(1)}, "needs all rows in every iteration, and Children draws"),
        ({"method": svmp.Growing(0.5)}, "Growing draws some"),
        ({"method": svmp.Memoized(over="school")}, "Memoized draws some"),
        ({"steps": svmp.RobbinsMonro(1, 1)}, "steps of unit length"),
    ],
)
def test_methods_that_draw_rows_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(svmp.ModelError, match=said):
        svmp.fit(schools(), joint="auto", **options)


def test_blocks_that_are_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_block, "LARGEST", 5)
    with pytest.raises(svmp.ModelError, match="9 unknowns that rows connect with each other"):
        svmp.fit(schools(), joint=[("mu", "school")])
    with pytest.warns(UserWarning, match="leaves q a product: .* without 'school', which rows"):
        assert not svmp.fit(schools(), joint="auto").joint  # mu alone is in no block


def test_auto_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(joint_block, "LARGEST", 100)
    rng = np.random.default_rng(0)
    g, h, x = rng.integers(0, 90, 3000), rng.integers(0, 80, 3000), rng.normal(size=3000)
    with svmp.Model(coords={"g": 90, "h": 80}) as model:
        a = svmp.Normal("a", mu=0, tau=0.01)
        b = svmp.Normal("b", mu=0, tau=0.01)
        u = svmp.Normal("u", mu=0, tau=1, dims="g")
        v = svmp.Normal("v", mu=0, tau=1, dims="h")
        svmp.Normal("y", mu=a + b * x + u[g] + v[h], tau=1, observed=rng.normal(size=3000))
    fit = svmp.fit(model, joint="auto")
    assert [block.names for block in fit.joint] == [("a", "b", "u")]
    fit.save(tmp_path / "fit.svmp")
    said = "q: one Normal of a, b and 90 u; left out of it: v, which rows connect with so many"
    again = svmp.load(tmp_path / "fit.svmp")
    shown = (str(fit), fit.summary(), again, again.joint, svmp.explain(model, joint="auto"))
    assert all(said in str(text) for text in shown)
    with pytest.raises(svmp.ModelError, match="leave 'v' out of joint="):
        svmp.fit(model, joint=[("a", "b", "u", "v")])


def test_parts_and_updates_are_refused() -> None:
    parts = svmp.Parts(lambda rows: schools(), [1])
    with pytest.raises(svmp.ModelError, match="joint= needs all rows in one table"):
        svmp.fit(parts, joint="auto")
    fit = svmp.fit(schools(), joint="auto")
    with pytest.raises(svmp.ModelError, match="which a joint q is not"):
        fit.update(schools())
    with pytest.raises(svmp.ModelError, match="which a joint q is not"):
        svmp.fit(schools()).update(schools(), joint="auto")


def test_auto_finds_nothing_where_rows_read_one_element() -> None:
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        svmp.Normal("y", mu=mu, tau=1, observed=[1.0, 2.0])
    assert svmp.fit(model, joint="auto").joint == ()
