"""Data frames of posteriors: labels in and out, in three libraries."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import svmp

from ..labelled import DAYS, GROUPS, WHO, Y, labelled


def test_labels_come_out_as_they_went_in(tmp_path) -> None:
    _, fit = labelled()
    fit.save(tmp_path / "fit.svmp")
    for each in (fit, svmp.load(tmp_path / "fit.svmp")):
        frame = each.to_frame("u", prob=0.5).set_index("who")
        assert list(frame.index) == WHO
        for who, values in Y.items():
            exact = stats.norm(sum(values) / (1 + len(values)), (1 + len(values)) ** -0.5)
            row = frame.loc[who]
            np.testing.assert_allclose(row[["mean", "sd"]].tolist(), [exact.mean(), exact.std()])
            np.testing.assert_allclose(row[["lower", "upper"]].tolist(), exact.interval(0.5))
        grid = each.to_frame("grid")
        assert grid["day"].tolist() == [pd.Timestamp(day) for day in DAYS for _ in WHO]
        assert grid["who"].tolist() == WHO * 2
        assert each.to_frame("group")["group"].tolist() == GROUPS
        matrix = each.to_frame("matrix").set_index(["part", "part_2"])["mean"].unstack()
        np.testing.assert_allclose(
            matrix.loc[["low", "high"], ["low", "high"]], 3 * np.eye(2), atol=1e-12
        )
        z = each.to_frame("z")
        assert z.columns.tolist() == ["row", "part", "mean", "sd"]
        assert z["part"].tolist() == ["low", "high"] * 4
        assert each.to_frame()["variable"].tolist() == ["p", "count"]


@pytest.mark.parametrize("name", ["u", "grid", "group", "matrix", "share", "z", "p", None])
def test_backends_agree(name: str | None) -> None:
    _, fit = labelled()
    ours = fit.to_frame(name)
    polars, arrow = (fit.to_frame(name, backend=b) for b in ("polars", "pyarrow"))
    assert isinstance(polars, pl.DataFrame)
    assert isinstance(arrow, pa.Table)
    if name == "group":  # Arrow has no tuples
        ours["group"] = ours["group"].astype(str)
    for other in (polars.to_pandas(), arrow.to_pandas()):
        pd.testing.assert_frame_equal(ours, other, check_dtype=False)


def test_a_frame_goes_back_into_a_model() -> None:
    """Posterior means by label are covariates of another network, in any order of the rows."""
    _, fit = labelled()
    frame = fit.to_frame("u", backend="polars").sort("mean")
    model = svmp.Model(data=frame, coords={"who": "who"})
    assert model.coords["who"] == sorted(WHO)
    at = [sorted(WHO).index(who) for who in frame["who"]]
    assert model.data.keys("who").tolist() == at


def test_wrong_arguments_are_refused() -> None:
    _, fit = labelled()
    with pytest.raises(svmp.ModelError, match="did you mean 'grid'"):
        fit.to_frame("gird")
    with pytest.raises(svmp.ModelError, match="needs the name of a variable, not 3"):
        fit.to_frame(3)  # type: ignore[arg-type]
    with pytest.raises(svmp.ModelError, match="not 'spark'"):
        fit.to_frame("u", backend="spark")
    with svmp.Model(coords={"mean": 2}) as model:
        svmp.Normal("x", mu=0, tau=1, dims="mean")
        svmp.Normal("y", mu=0, tau=1, observed=[1.0])
    with pytest.raises(svmp.ModelError, match="'mean' of 'x' has the name of a statistic"):
        svmp.fit(model).to_frame("x")


def test_predictions_have_the_labels_of_their_rows() -> None:
    model, fit = labelled()
    frame = fit.predict(model, "y").to_frame(prob=0.5)
    key = [who for who, values in Y.items() for _ in values]
    with svmp.Model(coords={"who": WHO, "word": ["no", "yes"]}) as other:
        u = svmp.Normal("u", mu=0, tau=1, dims="who")
        svmp.Normal("y", mu=u, tau=1, dims="who", observed=[1.0, 2.0, 3.0])
        p = svmp.Dirichlet("p", a=[1, 3], dims="word")
        svmp.Categorical("word", p=p, dims="who", observed=["no", "yes", "yes"])
    second = svmp.fit(other)
    exact = stats.norm([0.5, 1.0, 1.5], 1.5**0.5)
    by_label = second.predict(other, "y").to_frame(backend="polars")
    assert by_label["who"].to_list() == WHO
    np.testing.assert_allclose(by_label["upper"], exact.ppf(0.95))
    words = second.predict(other, "word").to_frame()
    assert words.columns.tolist() == ["who", "word", "mean", "sd"]
    np.testing.assert_allclose(words["mean"], [2 / 7, 5 / 7] * 3)
    for who, mean in zip(key, frame["mean"], strict=True):
        assert mean == pytest.approx(fit.mean("u")[WHO.index(who)])
