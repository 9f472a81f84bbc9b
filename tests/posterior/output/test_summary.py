"""`print(fit)`: how the run ended, and a line for each hidden variable."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import svmp
from tests.inference.models import every_family, ratings
from tests.posterior.labelled import labelled


def test_the_first_line_says_how_the_run_ended() -> None:
    fit = svmp.fit(ratings(), svmp.FullVB(), max_sweeps=3, tol=0)
    assert (fit.iterations, fit.accesses) == (3, 480)
    first = str(fit).splitlines()[0]
    for part in ("budget", f"{fit.bound:,.6g}", "3 iterations", "480 accesses", "seconds"):
        assert part in first
    assert str(fit) == str(fit.summary()) == repr(fit.summary())


def test_a_line_for_each_hidden_variable() -> None:
    fit = svmp.fit(every_family(), svmp.FullVB())
    text, note = str(fit.summary(corrected=False, entries=0)).rsplit("\n\n", 1)
    assert note.startswith("sds of q, too small where variables depend on each other")
    heads, _, *lines = text.splitlines()[2:]
    assert heads.split() == ["variable", "family", "dims", "mean", "sd", "90%", "interval"]
    by_name = {line.split()[0]: line for line in lines}
    assert list(by_name) == list(fit.posteriors)
    q = fit["normal"]
    lower, upper = stats.norm(q.mean, q.std).interval(0.9)
    ends = f"{lower.min():.4g} to {upper.max():.4g}"
    assert re.split(" {2,}", by_name["normal"])[3:] == ["0.5", f"{q.std.max():.4g}", ends]
    for name, q in fit.posteriors.items():
        assert type(q.family).__name__ in by_name[name]
    assert "a: 2, d: 2, d: 2" in by_name["wishart"]
    assert "a: 2  " in by_name["categorical"]  # its mean has an axis more
    assert "1 to 2" in by_name["vector"]


def test_small_arrays_have_a_row_for_each_entry_with_its_labels() -> None:
    _, fit = labelled()
    rows = {row[0]: row[1:] for row in fit.summary(corrected=False).rows}
    for name in ("u", "grid", "group", "matrix", "share", "z"):
        frame = fit.to_frame(name)
        texts = frame.loc[:, :"mean"].iloc[:, :-1].astype(str).agg(", ".join, axis=1)
        for text, mean, sd in zip(texts, frame["mean"], frame["sd"], strict=True):
            assert rows[f"{name}[{text}]"][2:4] == (f"{mean:.4g}", f"{sd:.4g}")
    ends = " to ".join(f"{end:.4g}" for end in fit["u"].interval()[:, 1])
    assert rows["u[Ann]"][:2] == ("Normal", "who: 3")
    assert rows["u[Bo]"] == ("", "", "2", f"{fit.std('u')[1]:.4g}", ends)
    assert rows["p"][:2] == ("Beta", "")
    assert {"u[Bo]", ends, "2"} <= set(Cells(fit["u"]._repr_html_()).cells)
    assert {"u[Bo]", ends} <= set(Cells(fit._repr_html_()).cells)
    assert f"u[Bo]   2     {fit.std('u')[1]:.4g}  {ends}" in str(fit["u"])
    for saved in (str(fit), repr(fit["u"])):
        assert "Bo" in saved


def test_large_arrays_have_one_row_with_their_range() -> None:
    with svmp.Model(coords={"a": 21}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims="a")
        svmp.Normal("y", mu=u, tau=1, dims="a", observed=np.arange(21.0))
    fit = svmp.fit(model, svmp.FullVB())
    (row,) = fit.summary().rows
    assert row[3] == "0 to 10"
    assert len(fit.summary(entries=21).rows) == 21
    assert repr(fit.posteriors["u"]) == "<q(u): Normal, dims ('a',)>"


def test_a_loaded_fit_has_the_same_table(tmp_path: Path) -> None:
    _, fit = labelled()
    fit.save(tmp_path / "fit.svmp")
    again = svmp.load(tmp_path / "fit.svmp")
    assert again.summary(corrected=False).rows == fit.summary(corrected=False).rows
    assert repr(again["grid"]) == repr(fit["grid"])


def test_small_networks_have_the_sds_of_linear_response() -> None:
    """Two coefficients of one row: q has variances of 1/2, the posterior of 2/3."""
    with svmp.Model() as model:
        a, b = svmp.Normal("a", mu=0, tau=1), svmp.Normal("b", mu=0, tau=1)
        svmp.Normal("y", mu=a + b, tau=1, observed=[3.0])
    fit = svmp.fit(model, svmp.FullVB(), tol=1e-12)
    text = str(fit)
    assert "sds by linear response" in text
    assert f"{np.sqrt(2 / 3):.4g}" in text
    frame = fit.summary(kind="frame")
    np.testing.assert_allclose(frame.sd, np.sqrt(2 / 3), rtol=1e-6)
    np.testing.assert_allclose(fit.summary(kind="frame", corrected=False).sd, np.sqrt(1 / 2))


def test_empty_plates_and_runs_without_a_sweep() -> None:
    with svmp.Model(coords={"none": 0}) as model:
        svmp.Normal("empty", mu=0, tau=1, dims="none")
        u = svmp.Normal("u", mu=0, tau=1)
        svmp.Normal("x", mu=u, tau=1, observed=[1.0])
    fit = svmp.fit(model, svmp.FullVB(), max_seconds=1e-12)
    assert str(fit).splitlines()[4].endswith("none")
    assert "no elements" not in fit._repr_html_()
    assert repr(fit).startswith("<Fit: budget after 0 iterations")


class Cells(HTMLParser):
    """Reads the cells of tables, and checks that tags are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.cells.append(data)


def test_a_notebook_shows_the_same_tables() -> None:
    model = every_family()
    fit = svmp.fit(model, svmp.FullVB())
    summary = fit.summary()
    for row in summary.rows:
        assert set(filter(None, row)) <= set(Cells(fit._repr_html_()).cells)
    assert set(model.variables) <= set(Cells(model._repr_html_()).cells)
    assert set(fit.trace.columns) <= set(Cells(fit.trace._repr_html_()).cells)
    for q in fit.posteriors.values():
        assert {f"q({q.name})", type(q.family).__name__} <= set(Cells(q._repr_html_()).cells)


def test_names_are_escaped_in_html() -> None:
    with svmp.Model() as model:
        mu = svmp.Normal("<b>&", mu=0, tau=1)
        svmp.Normal("y", mu=mu, tau=1, observed=[1.0])
    fit = svmp.fit(model)
    for shown in (fit, model, fit["<b>&"]):
        text = shown._repr_html_()
        assert html.escape("<b>&") in text
        assert "<b>" not in text


def test_a_frame_has_a_row_for_each_entry() -> None:
    fit = svmp.fit(every_family(), svmp.FullVB())
    frame = fit.summary(kind="frame", prob=0.5)
    assert list(frame.columns) == ["variable", "mean", "sd", "lower", "upper"]
    assert len(frame) == sum(np.size(q.mean) for q in fit.posteriors.values())
    rows = frame.set_index("variable")
    assert rows.loc["normal[1, 2]", "mean"] == fit.mean("normal")[1, 2]
    assert np.isnan(rows.loc["categorical[0, 0]", "lower"])
    some = fit.summary(["normal"], kind="frame")
    assert isinstance(some, pd.DataFrame)
    assert len(some) == 6


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"names": "normla"}, "no hidden variable 'normla'; .* did you mean 'normal'?"),
        ({"names": [3]}, "no hidden variable 3"),
        ({"names": 3}, "one or several, not 3"),
        ({"names": "x"}, r"'x' is observed, .* fit.predict\(model, 'x'\)"),
        ({"prob": 2}, "between 0 and 1"),
        ({"entries": -1}, "entries must be a whole number of at least 0, not -1"),
        ({"kind": "html"}, '"table" or "frame", not \'html\''),
        ({"kind": "frame", "backend": "excel"}, '"pandas", "polars" or "pyarrow", not'),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(options: dict[str, Any], says: str) -> None:
    fit = svmp.fit(every_family(), svmp.FullVB(), max_sweeps=1)
    with pytest.raises(svmp.ModelError, match=says):
        fit.summary(**options)
