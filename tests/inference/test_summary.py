"""`print(fit)`: how the run ended, and a line for each hidden variable."""

from __future__ import annotations

import svmp
from tests.inference.models import every_family, ratings


def test_the_first_line_says_how_the_run_ended() -> None:
    fit = svmp.fit(ratings(), svmp.FullVB(), max_sweeps=3, tol=0)
    assert (fit.iterations, fit.accesses) == (3, 480)
    first = str(fit).splitlines()[0]
    for part in ("budget", f"{fit.bound:,.6g}", "3 iterations", "480 accesses", "seconds"):
        assert part in first
    assert str(fit) == fit.summary()


def test_a_line_for_each_hidden_variable() -> None:
    fit = svmp.fit(every_family(), svmp.FullVB())
    heads, _, *lines = str(fit).splitlines()[2:]
    assert heads.split() == ["variable", "family", "dims", "posterior", "means"]
    by_name = {line.split()[0]: line for line in lines}
    assert list(by_name) == list(fit.posteriors)
    assert by_name["normal"].split("  ")[-1].strip() == "0.5"
    for name, q in fit.posteriors.items():
        assert type(q.family).__name__ in by_name[name]
    assert "a: 2, d: 2, d: 2" in by_name["wishart"]
    assert "a: 2  " in by_name["categorical"]  # its mean has an axis more
    assert "1 to 2" in by_name["vector"]


def test_empty_plates_and_runs_without_a_sweep() -> None:
    with svmp.Model(coords={"none": 0}) as model:
        svmp.Normal("empty", mu=0, tau=1, dims="none")
        u = svmp.Normal("u", mu=0, tau=1)
        svmp.Normal("x", mu=u, tau=1, observed=[1.0])
    fit = svmp.fit(model, svmp.FullVB(), max_seconds=1e-12)
    assert str(fit).splitlines()[4].endswith("none")
    assert repr(fit).startswith("<Fit: budget after 0 iterations")
