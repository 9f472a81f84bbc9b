"""Tables of columns: what a notebook shows, and what data frames read from the Arrow stream."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import svmp
from svmp.network.tables import Columns, first_and_last


class Places(Columns):
    """A table of some rows."""

    def __init__(self, count: int) -> None:
        self.count = count

    def columns_by_name(self) -> Mapping[str, NDArray]:
        names = np.array([f"<{i}>" for i in range(self.count)])
        return {"name": names, "half": np.arange(self.count) / 2}


def test_data_frames_read_the_arrow_stream() -> None:
    expected = {"name": ["<0>", "<1>", "<2>"], "half": [0.0, 0.5, 1.0]}
    assert pa.table(Places(3)).to_pydict() == expected
    assert pl.DataFrame(Places(3)).to_dict(as_series=False) == expected


def test_polars_makes_the_stream_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert pl.DataFrame(Places(2))["half"].to_list() == [0.0, 0.5]
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(svmp.SvmpError, match="needs PyArrow or Polars"):
        Places(2).__arrow_c_stream__()


def test_long_tables_are_shown_by_their_ends() -> None:
    rows = first_and_last(Places(1234).columns_by_name())
    assert rows[:5] == [["<0>", "0"], ["<1>", "0.5"], ["<2>", "1"], ["<3>", "1.5"], ["<4>", "2"]]
    assert rows[5] == ["... 1,224 more", ""]
    assert rows[-1] == ["<1233>", "616.5"]
    assert len(first_and_last(Places(10).columns_by_name())) == 10


def test_text_in_a_notebook_is_escaped() -> None:
    assert "<td>&lt;0&gt;</td><td>0</td>" in Places(1)._repr_html_()


def fits() -> tuple[svmp.Model, svmp.Fit]:
    with svmp.Model(coords={"who": ["Ann", "Bo"]}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims="who")
        svmp.Normal("y", mu=u, tau=1, dims="who", observed=[1.0, 3.0])
    return model, svmp.fit(model)


def test_predictions_comparisons_traces_and_programs_are_tables() -> None:
    model, fit = fits()
    prediction = pl.DataFrame(fit.predict(model, "y"))
    assert prediction.columns == ["who", "mean", "sd", "lower", "upper"]
    assert prediction["who"].to_list() == ["Ann", "Bo"]
    assert prediction["mean"].to_list() == pytest.approx([0.5, 1.5])
    assert prediction["sd"].to_list() == pytest.approx([1.5**0.5] * 2)  # 1/2 of u, 1 of the noise
    comparison = svmp.compare({"a": fit, "b": fit})
    assert dict(comparison) == dict(comparison.items()) == comparison.fits
    compared = pl.DataFrame(comparison)
    assert compared["bound"].to_list() == [fit.bound] * 2
    assert pl.DataFrame(fit.trace)["bound"].to_list() == list(fit.trace["bound"])
    for shown in (fit.predict(model, "y"), svmp.compare({"a": fit}), fit.trace, fit.program):
        assert shown._repr_html_().startswith("<table>")
    assert "Ann</td><td>0.5</td>" in fit.predict(model, "y")._repr_html_()


def test_a_large_prediction_is_not_computed_to_show_it() -> None:
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        svmp.Normal("y", mu=mu, tau=1, observed=np.zeros(20_000))
    prediction = svmp.fit(model).predict(model, "y")
    assert "<td>" not in prediction._repr_html_()
    assert "_moments" not in vars(prediction)
