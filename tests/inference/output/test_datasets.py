"""xarray and ArviZ: dims, labels, moments and draws."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import xarray

import svmp

from .labelled import DAYS, GROUPS, WHO, labelled


def test_means_and_sds_have_dims_and_labels() -> None:
    _, fit = labelled()
    data = fit.to_xarray()
    assert data["u"].sel(who="Bo", statistic="mean") == fit.mean("u")[1]
    np.testing.assert_array_equal(
        data["grid"].sel(statistic="sd", day=np.datetime64(DAYS[1]), who="Cy"),
        fit["grid"].std[1, 2],
    )
    assert data["matrix"].dims == ("statistic", "part", "part_2")
    assert data["z"].dims == ("statistic", "row", "part")
    assert data["z"].sel(part="high", statistic="mean").shape == (4,)
    assert data["group"].dims == ("statistic", "group_dim")  # a variable has the name of its dim
    assert data["group_dim"].values.tolist() == GROUPS
    assert data.attrs["bound"] == fit.bound
    for name, q in fit.posteriors.items():
        np.testing.assert_array_equal(data[name].sel(statistic="mean"), q.mean)
    assert list(fit.to_xarray("p").data_vars) == ["p"]


def test_draws_are_those_of_the_fit() -> None:
    _, fit = labelled()
    data = fit.to_xarray(draws=7, seed=3)
    for name, draws in fit.draw(list(fit.posteriors), 7, 3).items():
        np.testing.assert_array_equal(data[name], draws)
        assert data[name].dims[0] == "draw"
    assert data["z"].dims == ("draw", "row")
    assert data["u"]["who"].values.tolist() == WHO


def test_arviz_reads_the_draws() -> None:
    arviz = pytest.importorskip("arviz")
    _, fit = labelled()
    found = fit.to_arviz(["u", "p"], draws=400, seed=0)
    assert set(found.children if isinstance(found, xarray.DataTree) else found.groups()) == {
        "posterior",
        "trace",
    }
    assert found.posterior["u"].dims == ("chain", "draw", "who")
    np.testing.assert_array_equal(found.trace["bound"], fit.trace["bound"])
    extracted = arviz.extract(found, var_names="u")
    np.testing.assert_allclose(extracted.sel(who="Ann").mean(), fit.mean("u")[0], atol=0.15)


def test_names_of_axes_are_refused_as_dims() -> None:
    with svmp.Model(coords={"draw": 2}) as model:
        svmp.Normal("x", mu=0, tau=1, dims="draw")
        svmp.Normal("y", mu=0, tau=1, observed=[1.0])
    with pytest.raises(svmp.ModelError, match="'draw' of 'x' has the name of an axis"):
        svmp.fit(model).to_xarray(draws=2)


@pytest.mark.parametrize(
    ("module", "call", "says"),
    [
        ("xarray", lambda fit: fit.to_xarray(), r"svmp\[xarray\]"),
        ("arviz", lambda fit: fit.to_arviz(), r"svmp\[arviz\]"),
        ("pandas", lambda fit: fit.to_frame("u"), "needs pandas: pip install pandas"),
        ("polars", lambda fit: fit.to_frame("u", backend="polars"), "needs polars"),
    ],
)
def test_absent_libraries_are_named(module, call, says, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    _, fit = labelled()
    with pytest.raises(svmp.SvmpError, match=says):
        call(fit)
