"""Comparisons: leave-one-out in closed form, standard errors by hand, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import svmp

RNG = np.random.default_rng(5)
Y = RNG.normal(1.0, 1.0, 25)
pytestmark = pytest.mark.by_size


def normal(tau: float, y: Any = Y, missing: Any = False) -> svmp.Model:
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=0.5)
        svmp.Normal("y", mu=mu, tau=tau, observed=y, missing=missing)
    return model


def mixture(gap: Any) -> svmp.Model:
    with svmp.Model(coords={"k": 2, "row": 25}) as model:
        p = svmp.Dirichlet("p", a=np.ones(2), dims="k")
        mu = svmp.Normal("mu", mu=0, tau=0.1, dims="k")
        z = svmp.Categorical("z", p=p, dims="row")
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=1), dims="row", observed=Y, missing=gap)
    return model


def test_leave_one_out_is_that_of_the_closed_form() -> None:
    models = {"right": normal(1.0), "narrow": normal(9.0)}
    fits = {name: svmp.fit(model) for name, model in models.items()}
    found = svmp.compare(fits, models=models, draws=1000)
    exact = {}
    for name, tau in (("right", 1.0), ("narrow", 9.0)):
        precision = 0.5 + 24 * tau
        mean = tau * (Y.sum() - Y) / precision
        exact[name] = stats.norm.logpdf(Y, mean, np.sqrt(1 / precision + 1 / tau))
    assert list(found) == ["right", "narrow"]
    for name, scores in exact.items():
        loo = found[name].loo
        assert loo is not None
        assert loo.value == pytest.approx(scores.mean(), abs=0.02)
        assert loo.se == pytest.approx(scores.std(ddof=1) / 5, rel=0.1)
    narrow = found["narrow"].loo
    assert narrow is not None
    differences = exact["narrow"] - exact["right"]
    assert narrow.difference == pytest.approx(differences.mean(), abs=0.02)
    assert narrow.difference_se == pytest.approx(differences.std(ddof=1) / 5, rel=0.1)
    assert found["right"].khat == 0
    assert found["right"].unreliable == 0
    assert "leave-one-out" in repr(found)


def test_held_out_scores_are_those_of_the_fit() -> None:
    gap = np.arange(25) % 5 == 0
    values = np.where(gap, Y, np.nan)
    models = {"mixture": mixture(gap), "normal": normal(1.0, missing=gap)}
    fits = {name: svmp.fit(model) for name, model in models.items()}
    found = svmp.compare(fits, models=models, held_out={"y": values}, loo=False)
    for name, compared in found.items():
        assert compared.held_out is not None
        own = fits[name].held_out(models[name], {"y": values})
        assert compared.held_out.value == pytest.approx(own)
        assert compared.loo is None
    scores = [c.held_out.value for c in found.values() if c.held_out is not None]
    assert scores == sorted(scores, reverse=True)
    traced = svmp.fit(models["mixture"], held_out={"y": values})
    assert traced.trace.last("held_out") == pytest.approx(
        fits["mixture"].held_out(models["mixture"], {"y": values})
    )


def test_bounds_alone_need_no_model() -> None:
    fits = {"narrow": svmp.fit(normal(9.0)), "right": svmp.fit(normal(1.0))}
    found = svmp.compare(fits)
    assert list(found) == ["right", "narrow"]
    assert found["right"].bound == fits["right"].bound
    assert repr(found).splitlines()[0].split() == ["fit", "status", "bound"]


def test_bad_input_is_refused() -> None:
    model, other = normal(1.0), normal(1.0, Y[:20])
    fits = {"a": svmp.fit(model), "b": svmp.fit(other)}
    both = {"a": model, "b": other}
    for wrong in (3, {}, [fits["a"]], {"a": 3}):
        with pytest.raises(svmp.ModelError, match="compare needs fits by name"):
            svmp.compare(wrong)  # type: ignore[arg-type]
    with pytest.raises(svmp.ModelError, match="held_out needs models="):
        svmp.compare(fits, held_out={"y": Y})
    with pytest.raises(svmp.ModelError, match="one for each of"):
        svmp.compare(fits, models={"a": model})
    with pytest.raises(svmp.ModelError, match=r"'b' must be a svmp.Model"):
        svmp.compare(fits, models={"a": model, "b": 3})  # type: ignore[dict-item]
    with pytest.raises(svmp.ModelError, match="'a' and 'b' observe different data"):
        svmp.compare(fits, models=both)
    with pytest.raises(svmp.ModelError, match="the fit 'a': held_out"):
        svmp.compare(fits, models=both, held_out={"y": Y})
