"""Parents that are observed in part, against enumeration, dense solves and equal networks.

The theorems about messages and bounds hold for them too: see "partly observed" in networks.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import svmp

from .tools import fitted

X = np.array([0.5, -1.0, 2.0, 0.3, 1.5])
Y = np.array([1.2, -0.4, 2.9, 0.1, 2.2])
GAPS = np.array([False, True, False, True, False])


def test_missing_entries_of_a_gaussian_parent() -> None:
    """With everything else fixed, the missing entries have a closed form, and the bound too."""
    with svmp.Model(coords={"row": 5}) as model:
        x = svmp.Normal("x", mu=0.2, tau=1.5, dims="row", observed=X, missing=GAPS)
        svmp.Normal("y", mu=2 * x - 1, tau=3, dims="row", observed=Y)
    fit = fitted(model)
    precision = 1.5 + 4 * 3
    mean = np.where(GAPS, (1.5 * 0.2 + 2 * 3 * (Y + 1)) / precision, X)
    np.testing.assert_allclose(fit.mean("x"), mean, atol=1e-12)
    np.testing.assert_allclose(fit.var("x"), np.where(GAPS, 1 / precision, 0.0), atol=1e-12)
    known = stats.norm(0.2, 1.5**-0.5).logpdf(X) + stats.norm(2 * X - 1, 3**-0.5).logpdf(Y)
    alone = stats.norm(2 * 0.2 - 1, np.sqrt(4 / 1.5 + 1 / 3)).logpdf(Y)
    assert fit.bound == pytest.approx(np.where(GAPS, alone, known).sum(), abs=1e-10)


def test_it_is_the_network_of_two_variables() -> None:
    """One variable for what is known and one for what is not, declared by hand."""
    with svmp.Model(coords={"row": 5}) as model:
        m = svmp.Normal("m", mu=0, tau=0.1)
        g = svmp.Gamma("g", alpha=2, beta=1)
        x = svmp.Normal("x", mu=m, tau=g, dims="row", observed=X, missing=GAPS)
        b = svmp.Normal("b", mu=0, tau=0.1)
        svmp.Normal("y", mu=b * x, tau=2, dims="row", observed=Y)
    with svmp.Model(coords={"gap": 2, "full": 3}) as apart:
        m = svmp.Normal("m", mu=0, tau=0.1)
        g = svmp.Gamma("g", alpha=2, beta=1)
        full = svmp.Normal("full", mu=m, tau=g, dims="full", observed=X[~GAPS])
        gap = svmp.Normal("gap", mu=m, tau=g, dims="gap")
        b = svmp.Normal("b", mu=0, tau=0.1)
        svmp.Normal("y_full", mu=b * full, tau=2, dims="full", observed=Y[~GAPS])
        svmp.Normal("y_gap", mu=b * gap, tau=2, dims="gap", observed=Y[GAPS])
    one, two = fitted(model, init={"b": 1.0}), fitted(apart, init={"b": 1.0})
    assert one.bound == pytest.approx(two.bound, abs=1e-8)
    np.testing.assert_allclose(one.mean("x")[GAPS], two.mean("gap"), atol=1e-5)
    for name in ("m", "g", "b"):
        assert one.mean(name) == pytest.approx(two.mean(name), abs=1e-5)


def test_classes_of_some_rows() -> None:
    """With known components and weights the bound is the log evidence, by enumeration."""
    weight, centre = np.array([0.3, 0.7]), np.array([-1.0, 1.0])
    label, values = np.array([0, 1, 0, 1, 1]), Y
    with svmp.Model(coords={"row": 5, "k": 2}) as model:
        p = svmp.data(weight, dims="k")
        z = svmp.Categorical("z", p=p, dims="row", observed=label, missing=GAPS)
        m = svmp.Normal("m", mu=0, tau=1, dims="k", observed=centre)
        svmp.Mixture("y", z, svmp.Normal.dist(mu=m, tau=2), dims="row", observed=values)
    fit = fitted(model)
    log = np.log(weight) + stats.norm(centre, 2**-0.5).logpdf(values[:, None])
    share = np.exp(log - logsumexp(log, axis=1, keepdims=True))
    expected = np.where(GAPS[:, None], share, np.eye(2)[label])
    np.testing.assert_allclose(fit.mean("z"), expected, atol=1e-10)
    rows = np.where(GAPS, logsumexp(log, axis=1), log[np.arange(5), label])
    evidence = rows.sum() + stats.norm().logpdf(centre).sum()
    assert fit.bound == pytest.approx(evidence, abs=1e-10)


def test_components_start_at_the_rows_that_are_labelled() -> None:
    rng = np.random.default_rng(3)
    z = rng.integers(0, 3, 150)
    y = rng.normal(np.array([-4.0, 0.0, 4.0])[z], 0.5)
    with svmp.Model(coords={"row": 150, "k": 3}) as model:
        p = svmp.Dirichlet("p", a=1, dims="k")
        some = svmp.Categorical("z", p=p, dims="row", observed=z, missing=np.arange(150) >= 9)
        m = svmp.Normal("m", mu=0, tau=0.1, dims="k")
        svmp.Mixture("y", some, svmp.Normal.dist(mu=m, tau=4), dims="row", observed=y)
    for seed in range(3):
        fit = svmp.fit(model, svmp.FullVB(), seed=seed)
        np.testing.assert_allclose(fit.mean("m"), [-4, 0, 4], atol=0.3)
        assert (fit.mean("z").argmax(axis=1) == z).mean() > 0.99


def declared(rows: int, seed: int, gaps: float = 0.3) -> svmp.Model:
    rng = np.random.default_rng(seed)
    x = rng.normal(1, 1, rows)
    y = 2 * x + rng.normal(size=rows)
    with svmp.Model() as model:
        m = svmp.Normal("m", mu=0, tau=0.1)
        x = svmp.Normal("x", m, 1, dims="row", observed=x, missing=rng.random(rows) < gaps)
        b = svmp.Normal("b", mu=0, tau=0.1)
        last = np.arange(rows) == rows - 1
        svmp.Normal("y", mu=b * x, tau=1, dims="row", observed=y, missing=last)
    return model


@pytest.mark.parametrize("method", [svmp.Children(10), svmp.Batch(30), svmp.Growing()])
@pytest.mark.parametrize("kernels", [True, False])
def test_known_elements_stay_as_they_are(method: svmp.Method, kernels: bool) -> None:
    model = declared(60, 1)
    fit = svmp.fit(model, method, kernels=kernels, max_sweeps=30)
    family = model["x"].family
    known = family.known
    assert 0 < known.sum() < 60
    q = fit["x"]
    assert np.array_equal(q.mean[known], family.values[known])
    assert not q.var[known].any()
    assert (q.var[~known] > 0).all()
    assert np.array_equal(q.draw(2, seed=1)[0][known], family.values[known])
    assert np.isfinite(q.interval(0.9)).all()
    assert np.isfinite(q.entropy()).all()


def test_saving_updating_and_held_out_values(tmp_path: Path) -> None:
    model = declared(60, 1)
    fit = svmp.fit(model)
    fit.save(tmp_path / "fit.svmp")
    loaded = svmp.load(tmp_path / "fit.svmp")
    assert np.array_equal(loaded.mean("x"), fit.mean("x"))
    assert np.array_equal(loaded.var("x"), fit.var("x"))
    later = fit.update(declared(40, 2))
    assert later.mean("x").shape == (40,)
    assert later.mean("b") == pytest.approx(2, abs=0.3)
    assert np.isfinite(fit.held_out(model, {"y": np.where(np.arange(60) < 59, np.nan, 1.0)}))
    resumed = svmp.fit(model, checkpoint=tmp_path / "run", max_sweeps=3)
    assert svmp.fit(model, resume=tmp_path / "run", max_sweeps=60).bound > resumed.bound - 1e-9


def test_print_shows_how_many_are_observed() -> None:
    model = declared(60, 1)
    known = int(model["x"].family.known.sum())
    assert f"hidden, {known} observed" in str(model)  # y of the last row is missing
    assert "partly observed Normal 'x'" in repr(model["x"])


def test_what_is_not_supported_is_refused() -> None:
    def part(seed: int) -> svmp.Model:
        return declared(20, seed)

    with pytest.raises(svmp.ModelError, match=r"'x' is observed in part .* fit all rows as one"):
        svmp.fit(svmp.Parts(part, [1, 2]))

    def labelled(gap: int) -> svmp.Model:
        with svmp.Model(coords={"user": ["a", "b", "c"]}) as model:
            m = svmp.Normal("m", mu=0, tau=1)
            gaps = np.arange(3) == gap
            x = svmp.Normal("x", m, 1, dims="user", observed=X[:3], missing=gaps)
            svmp.Normal("y", mu=x[[0, 1, 2, 0]], tau=1, observed=Y[:4])
        return model

    with pytest.raises(svmp.ModelError, match="'x' is observed in part"):
        svmp.fit(labelled(0)).update(labelled(1))


def test_a_refused_child_leaves_the_parent_as_it_was() -> None:
    with svmp.Model() as model:
        x = svmp.Normal("x", 0, 1, dims="row", observed=X, missing=GAPS)
        with pytest.raises(svmp.ModelError):
            svmp.Normal("y", mu=x, tau=-1, dims="row", observed=Y)
    assert not model["x"].hidden
