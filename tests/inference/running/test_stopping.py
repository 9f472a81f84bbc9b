"""When a run stops: limits, tolerance, Ctrl-C; the trace."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import svmp
from tests.divergence import kl
from tests.inference.models import mixture, rates, ratings, regression

MODELS = [regression, ratings, mixture, rates]
every_model = pytest.mark.parametrize("build", MODELS, ids=lambda f: f.__name__)


def full(model: svmp.Model, **options: Any) -> svmp.Fit:
    return svmp.fit(model, svmp.FullVB(), **options)


# --- budgets --------------------------------------------------------------------------------


@every_model
@pytest.mark.parametrize("sweeps", [1, 2, 7])
def test_max_sweeps(build: Callable[[], svmp.Model], sweeps: int) -> None:
    fit = full(build(), max_sweeps=sweeps, tol=0)
    assert fit.status == "budget"
    assert fit.trace["iteration"].tolist() == list(range(1, sweeps + 1))


def test_access_is_one_row_read_for_one_element() -> None:
    """A sweep of the paper's model costs 2 K |R|."""
    fit = full(ratings(), max_sweeps=3, tol=0)
    assert fit.trace["accesses"].tolist() == [160, 320, 480]


@every_model
def test_max_accesses(build: Callable[[], svmp.Model]) -> None:
    """A run stops after the first sweep that reaches the limit."""
    cost = int(full(build(), max_sweeps=1).trace["accesses"][0])
    for limit, sweeps in [(1, 1), (cost, 1), (cost + 1, 2), (3 * cost, 3)]:
        fit = full(build(), max_accesses=limit, tol=0)
        assert fit.status == "budget"
        assert len(fit.trace) == sweeps


def test_max_seconds() -> None:
    began = time.perf_counter()
    fit = full(ratings(), max_seconds=0.2, max_sweeps=None, tol=0)
    assert 0.2 <= time.perf_counter() - began < 5
    assert fit.status == "budget"
    assert len(fit.trace) > 1


@pytest.mark.parametrize(
    "limit", [{"max_seconds": 1e-12}, {"max_accesses": 0.5}, {"max_sweeps": 0.1}]
)
def test_q_is_sound_with_the_smallest_budget(limit: dict[str, float]) -> None:
    fit = full(regression(), **limit)
    assert fit.status == "budget"
    assert np.isfinite(fit.bound)
    assert np.isfinite(fit.mean("w")).all()
    assert len(fit.trace) <= 1


def test_tightest_limit_applies() -> None:
    fit = full(ratings(), max_sweeps=5, max_accesses=320, max_seconds=60, tol=0)
    assert len(fit.trace) == 2


def test_run_without_limits_converges() -> None:
    limits = {"max_sweeps": None, "max_accesses": None, "max_seconds": None}
    assert full(regression(), **limits).status == "converged"


# --- convergence ----------------------------------------------------------------------------


def symmetrised_kl(one: svmp.Fit, other: svmp.Fit) -> float:
    """KL(q || q') + KL(q' || q), in nats per element, by the closed forms of the families."""
    total, count = 0.0, 0
    for name, a in one.posteriors.items():
        b = other.posteriors[name]
        total += float(
            (kl(a.family, a.natural, b.natural) + kl(a.family, b.natural, a.natural)).sum()
        )
        count += len(a.natural)
    return total / count


def has_converged(fits: tuple[svmp.Fit, svmp.Fit], tol: float) -> bool:
    before, now = fits
    still = abs(now.bound - before.bound) <= tol * max(1.0, abs(now.bound))
    return still and symmetrised_kl(before, now) <= tol


@pytest.mark.parametrize("build", [regression, ratings, rates], ids=lambda f: f.__name__)
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
def test_run_stops_at_the_first_sweep_within_tolerance(
    build: Callable[[], svmp.Model], tol: float
) -> None:
    model = build()
    fit = full(model, tol=tol)
    assert fit.status == "converged"
    last = len(fit.trace)
    runs = [full(model, max_sweeps=n, tol=0) for n in range(max(1, last - 3), last + 1)]
    pairs = list(pairwise(runs))
    assert runs[-1].bound == fit.bound
    assert has_converged(pairs[-1], tol)
    for pair in pairs[:-1]:
        assert not has_converged(pair, tol)


@every_model
def test_smaller_tolerance_takes_longer_and_ends_higher(build: Callable[[], svmp.Model]) -> None:
    model = build()
    fits = [full(model, tol=tol, max_sweeps=3000) for tol in (1e-1, 1e-4, 1e-8)]
    assert [f.status for f in fits] == ["converged"] * 3
    lengths = [len(f.trace) for f in fits]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]
    assert fits[0].bound <= fits[1].bound + 1e-9 <= fits[2].bound + 2e-9


def test_run_with_zero_tolerance_goes_on_until_nothing_moves() -> None:
    fit = full(rates(), tol=0, max_sweeps=500)
    if fit.status == "converged":
        assert fit.trace["bound"][-1] == fit.trace["bound"][-2]
    else:
        assert len(fit.trace) == 500


@pytest.mark.parametrize("kind", ["effect", "choice"])
def test_model_of_local_variables_converges(kind: str) -> None:
    """Rows share no hidden variable, so one sweep is exact."""
    with svmp.Model(coords={"row": 3, "k": 2}) as model:
        if kind == "effect":
            u = svmp.Normal("u", mu=0, tau=1, dims="row")
            svmp.Normal("x", mu=u, tau=1, dims="row", observed=[1.0, 2.0, 3.0])
        else:
            z = svmp.Categorical("z", p=svmp.data([0.5, 0.5], dims="k"), dims="row")
            component = svmp.Normal.dist(mu=svmp.data([-1.0, 1.0], dims="k"), tau=1)
            svmp.Mixture("x", z, component, dims="row", observed=[1.0, 2.0, 3.0])
    fit = full(model)
    assert fit.status == "converged"
    assert len(fit.trace) <= 3


def test_conjugate_model_converges_at_once() -> None:
    with svmp.Model() as model:
        g = svmp.Gamma("g", alpha=1, beta=1)
        svmp.Poisson("x", mu=g, observed=[3, 4, 5])
    fit = full(model)
    assert fit.status == "converged"
    assert len(fit.trace) <= 3
    assert fit["g"].alpha == 13


# --- the trace ------------------------------------------------------------------------------


@every_model
def test_trace(build: Callable[[], svmp.Model]) -> None:
    fit = full(build(), max_sweeps=6, tol=0)
    trace = fit.trace
    assert {"iteration", "accesses", "seconds", "bound"} <= set(trace.columns)
    assert all(len(trace[c]) == len(trace) == 6 for c in trace.columns)
    assert (np.diff(trace["accesses"]) == trace["accesses"][0]).all()
    assert (np.diff(trace["seconds"]) >= 0).all()
    assert (trace["seconds"] >= 0).all()
    assert trace["bound"][-1] == fit.bound
    assert all(np.isfinite(trace[c]).all() for c in trace.columns)
    assert trace.to_dict().keys() == set(trace.columns)
    head, *lines = repr(trace).splitlines()
    assert head.split() == trace.columns
    assert len(lines) == 6


def test_long_trace_is_abbreviated() -> None:
    fit = full(ratings(), max_sweeps=40, tol=0)
    lines = repr(fit.trace).splitlines()
    assert lines[6] == "... 30 more"
    assert len(lines) == 12


# --- Ctrl-C ---------------------------------------------------------------------------------


class Presses:
    """Steps of unit length, and Ctrl-C at some iterations."""

    def __init__(self, *iterations: int) -> None:
        self.iterations = list(iterations)

    def __call__(self, context: svmp.StepContext) -> float:
        while self.iterations and context.iteration == self.iterations[0]:
            self.iterations.pop(0)
            signal.raise_signal(signal.SIGINT)
        return 1.0


def test_ctrl_c_returns_the_q_of_a_whole_sweep() -> None:
    handler = signal.getsignal(signal.SIGINT)
    fit = full(rates(), steps=Presses(3), tol=0, max_sweeps=50)
    assert fit.status == "interrupted"
    assert len(fit.trace) == 3
    plain = full(rates(), max_sweeps=3, tol=0)
    assert fit.bound == plain.bound
    for name in fit.posteriors:
        np.testing.assert_array_equal(fit[name].natural, plain[name].natural)
    assert signal.getsignal(signal.SIGINT) is handler


def test_second_ctrl_c_ends_the_run_at_once() -> None:
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        full(rates(), steps=Presses(3, 3), tol=0, max_sweeps=50)
    assert signal.getsignal(signal.SIGINT) is handler


def test_signal_handler_is_restored_after_an_error() -> None:
    handler = signal.getsignal(signal.SIGINT)

    def fail(context: svmp.StepContext) -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        full(rates(), steps=fail)
    assert signal.getsignal(signal.SIGINT) is handler


def test_fit_in_a_thread() -> None:
    """Only the main thread can handle signals; in others Ctrl-C is not caught."""
    found: list[svmp.Fit] = []
    thread = threading.Thread(target=lambda: found.append(full(rates())))
    thread.start()
    thread.join()
    assert found[0].status == "converged"
    assert found[0].bound == full(rates()).bound


SCRIPT = """
import numpy as np, svmp
with svmp.Model(coords={"a": 3}) as model:
    b = svmp.Gamma("b", alpha=1, beta=1)
    g = svmp.Gamma("g", alpha=2, beta=b, dims="a")
    svmp.Poisson("x", mu=g[[0, 0, 1, 2, 2]], observed=[3, 5, 0, 9, 7])
svmp.fit(model, svmp.FullVB(), max_sweeps=1)

class Slow:
    said = False

    def __call__(self, context):
        if context.iteration == 2 and not self.said:
            self.said = True
            print("running", flush=True)
        return 0.5

fit = svmp.fit(
    model, svmp.FullVB(), steps=Slow(), max_sweeps=None, max_seconds=60, tol=0, progress=False
)
print(fit.status, np.isfinite(fit.bound), np.isfinite(fit.mean("g")).all())
"""


def test_real_ctrl_c() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out.split() == ["interrupted", "True", "True"], err
    assert process.returncode == 0


# --- progress -------------------------------------------------------------------------------


def test_progress_goes_to_stderr_and_does_not_change_the_run(
    capfd: pytest.CaptureFixture[str],
) -> None:
    shown = full(rates(), progress=True, max_sweeps=3, tol=0)
    out, _ = capfd.readouterr()
    assert out == ""
    silent = full(rates(), progress=False, max_sweeps=3, tol=0)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    assert shown.bound == silent.bound
