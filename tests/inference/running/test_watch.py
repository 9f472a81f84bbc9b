"""`watch` is called with each new row of the trace."""

from __future__ import annotations

from typing import Any

import pytest

import svmp
from tests.inference.models import ratings

WAYS: dict[str, dict[str, Any]] = {
    "full": {"method": svmp.FullVB()},
    "default": {},
    "sampled": {"method": svmp.Children(2), "bound_every": 3},
    "diverged": {
        "method": svmp.Children(1),
        "steps": svmp.Constant(1.0),
        "bound_every": 1,
        "init": {"u": [[0.1, -0.1]] * 8, "v": [[0.1, -0.1]] * 6},
    },
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore::svmp.DivergenceWarning")
def test_watch_is_called_with_every_row(way: str) -> None:
    rows: list[dict[str, float]] = []
    fit = svmp.fit(ratings(), max_sweeps=20, watch=rows.append, **WAYS[way])
    assert (fit.status == "diverged") == (way == "diverged")
    assert {name: [row[name] for row in rows] for name in fit.trace.columns} == {
        name: fit.trace[name].tolist() for name in fit.trace.columns
    }


def test_watch_is_called_during_the_run() -> None:
    """It is called for the second sweep before the third."""

    def leave(row: dict[str, float]) -> None:
        if row["iteration"] == 2:
            raise LookupError("seen enough")

    with pytest.raises(LookupError, match="seen enough"):
        svmp.fit(ratings(), svmp.FullVB(), max_seconds=60, max_sweeps=None, tol=0, watch=leave)


def test_watch_does_not_change_the_run() -> None:
    alone = svmp.fit(ratings(), svmp.Children(2), max_sweeps=20)
    watched = svmp.fit(ratings(), svmp.Children(2), max_sweeps=20, watch=lambda row: row.clear())
    assert watched.bound == alone.bound
    assert watched.trace["bound"].tolist() == alone.trace["bound"].tolist()


def test_resumed_run_reports_only_new_rows(tmp_path: Any) -> None:
    path = tmp_path / "run.svmp"
    first = svmp.fit(ratings(), svmp.FullVB(), max_sweeps=3, tol=0, checkpoint=path)
    rows: list[dict[str, float]] = []
    second = svmp.fit(ratings(), resume=path, max_sweeps=5, watch=rows.append)
    assert len(first.trace) == 3
    assert [row["iteration"] for row in rows] == [4, 5]
    assert len(second.trace) == 5
