"""Interrupted and killed runs resume to the same bits; damaged checkpoints are refused."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import svmp
from svmp.datasets import netflix_shaped
from svmp.inference.checkpoints.checkpoint import before
from svmp.study.netflix import beginning, matrix_factorization

WAYS = {
    "full VB": (svmp.FullVB(), None),
    "default": (None, None),
    "growing": (svmp.Growing(first=0.1), None),
    "algorithm 1a": (svmp.Children(3), svmp.Nodewise()),
    "algorithm 1b": (svmp.Children(2, "b", share_draw=True), svmp.RobbinsMonro(rho1=1 / 64)),
    "algorithm 2a": (svmp.Batch(100), svmp.Nodewise()),
    "grow": (svmp.Children(1), svmp.Grow()),
}


def ratings_model(seed: int = 0) -> svmp.Model:
    return matrix_factorization(netflix_shaped(0.003, seed=seed), factors=3)


def topics_model() -> svmp.Model:
    rng = np.random.default_rng(5)
    doc, word = rng.integers(0, 12, 400), rng.integers(0, 30, 400)
    with svmp.Model(coords={"doc": 12, "topic": 3, "word": 30, "token": 400}) as model:
        theta = svmp.Dirichlet("theta", a=0.5, dims=("doc", "topic"))
        phi = svmp.Dirichlet("phi", a=0.5, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[doc], dims="token")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=word)
    return model


def same_bits(a: svmp.Fit, b: svmp.Fit) -> bool:
    return a.bound == b.bound and all(
        np.array_equal(a[name].natural, b[name].natural) for name in a.posteriors
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", [ratings_model, topics_model], ids=["ratings", "topics"])
def test_resumed_run_gives_the_same_bits(model, way, tmp_path):
    method, steps = WAYS[way]
    network, path = model(), tmp_path / "run"
    whole = svmp.fit(network, method, steps=steps, max_sweeps=5, tol=0)
    svmp.fit(network, method, steps=steps, max_sweeps=2, tol=0, checkpoint=path, every=1)
    resumed = svmp.fit(network, resume=path, max_sweeps=5)
    assert same_bits(whole, resumed)
    assert resumed.iterations == whole.iterations
    assert resumed.accesses == whole.accesses
    for column in set(whole.trace.columns) - {"seconds"}:
        np.testing.assert_array_equal(resumed.trace[column], whole.trace[column])


RUN = """
import sys, svmp
sys.path.insert(0, {tests!r})
from tests.inference.checkpoints.test_checkpoint import ratings_model
again = {{"resume": sys.argv[1]}} if len(sys.argv) > 3 else {{}}
how = {{}} if again else {{"method": svmp.Children(2), "steps": svmp.Nodewise(), "tol": 0}}
fit = svmp.fit(ratings_model(), how.pop("method", None), max_sweeps=4, checkpoint=sys.argv[1],
               every=3, **how, **again)
fit.save(sys.argv[2])
"""


def killed_and_resumed(folder: Path, moment: float) -> svmp.Fit:
    """Kill and resume a run repeatedly until it ends."""
    script, path, end = folder / "run.py", folder / "run", folder / "end"
    script.write_text(RUN.format(tests=str(Path(__file__).parents[2])))
    for attempt in range(20):
        command = [sys.executable, str(script), str(path), str(end)]
        process = subprocess.Popen(command + (["again"] if path.exists() else []))
        try:
            # imports take a while, on a busy machine a long one: later attempts get longer
            assert process.wait(timeout=moment * 1.4**attempt) == 0
            return svmp.load(end)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    raise AssertionError("the run never ended")


@pytest.fixture(scope="module")
def never_killed() -> svmp.Fit:
    method, steps = svmp.Children(2), svmp.Nodewise()
    return svmp.fit(ratings_model(), method, steps=steps, max_sweeps=4, tol=0)


def test_killed_run_resumes_to_the_same_bits(never_killed, tmp_path):
    assert same_bits(never_killed, killed_and_resumed(tmp_path, 1.5))


@pytest.mark.slow
@pytest.mark.parametrize("trial", range(20))
def test_killed_at_twenty_moments(never_killed, trial, tmp_path):
    moment = float(np.random.default_rng(trial).uniform(0.8, 3.0))
    assert same_bits(never_killed, killed_and_resumed(tmp_path, moment))


def test_previous_checkpoint_is_read_if_the_last_is_damaged(tmp_path):
    model, path = ratings_model(), tmp_path / "run"
    whole = svmp.fit(model, svmp.FullVB(), max_sweeps=6, tol=0)
    svmp.fit(model, svmp.FullVB(), max_sweeps=3, tol=0, checkpoint=path, every=1)
    assert before(path).exists()
    path.write_bytes(path.read_bytes()[:1000])
    assert same_bits(whole, svmp.fit(model, resume=path, max_sweeps=6))


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"\x00" * 100])
def test_damaged_checkpoint_is_refused(content, tmp_path):
    path = tmp_path / "run"
    path.write_bytes(content)
    with pytest.raises(svmp.FileError, match="run: damaged"):
        svmp.fit(ratings_model(), resume=path)


def test_missing_checkpoint_is_refused(tmp_path):
    with pytest.raises(svmp.FileError, match="no such file"):
        svmp.fit(ratings_model(), resume=tmp_path / "none")


def test_saved_fit_is_refused_as_a_checkpoint(tmp_path):
    path = tmp_path / "fit"
    svmp.fit(ratings_model(), max_sweeps=1).save(path)
    with pytest.raises(svmp.FileError, match="not a checkpoint"):
        svmp.fit(ratings_model(), resume=path)


@pytest.mark.parametrize(
    ("other", "difference"),
    [(lambda: ratings_model(seed=1), "of 'r' differs"), (topics_model, "only the checkpoint has")],
    ids=["other data", "another model"],
)
def test_checkpoint_of_another_run_is_refused_with_the_difference(other, difference, tmp_path):
    path = tmp_path / "run"
    svmp.fit(ratings_model(), max_sweeps=1, checkpoint=path)
    with pytest.raises(svmp.FileError, match=difference):
        svmp.fit(other(), resume=path)


def test_user_defined_steps_must_be_given_again(tmp_path):
    def half(context):
        return 0.5

    model, path = ratings_model(), tmp_path / "run"
    whole = svmp.fit(model, svmp.Children(3), steps=half, max_sweeps=2, tol=0)
    svmp.fit(model, svmp.Children(3), steps=half, max_sweeps=1, tol=0, checkpoint=path, every=1)
    with pytest.raises(svmp.FileError, match="give the same again"):
        svmp.fit(model, resume=path)
    assert same_bits(whole, svmp.fit(model, steps=half, resume=path, max_sweeps=2))


@pytest.mark.parametrize("every", ["soon", "30", "-1s", 0, "1d"])
def test_every_must_be_a_time_or_a_number(every, tmp_path):
    with pytest.raises(svmp.ModelError, match="every must be like"):
        svmp.fit(ratings_model(), checkpoint=tmp_path / "run", every=every)


def test_checkpoints_by_time(tmp_path):
    path = tmp_path / "run"
    began = time.time()
    svmp.fit(ratings_model(), svmp.FullVB(), max_sweeps=30, tol=0, checkpoint=path, every="0.01s")
    assert path.stat().st_mtime >= began - 1


@pytest.mark.filterwarnings("ignore::svmp.DivergenceWarning")
def test_divergence_is_diagnosed():
    ratings = netflix_shaped(0.003)
    model, far = matrix_factorization(ratings, factors=3), beginning(ratings, 3)
    fit = svmp.fit(model, svmp.Children(1), steps=svmp.RobbinsMonro(kappa=0.6), init=far)
    assert fit.status == "diverged"
    seen = fit.diagnosis
    assert seen.variable in ("u", "v")
    assert len(seen.index) == 2
    assert seen.iteration == fit.iterations
    assert 0 < seen.step <= 1
    assert "safe_rho1" not in vars(seen)  # nothing is tried out before it is asked for
    elsewhere = pickle.loads(pickle.dumps(seen))
    assert elsewhere.safe_rho1 == seen.safe_rho1 is not None
    assert str(elsewhere) == str(seen) == f"{seen.event}; {seen.advice}"
    steps = svmp.RobbinsMonro(kappa=0.6, rho1=seen.safe_rho1)
    safe = svmp.fit(model, svmp.Children(1), steps=steps, init=far, max_sweeps=3, tol=0)
    assert safe.status == "budget"
    assert np.isfinite(fit.bound)
    assert all(np.isfinite(fit.trace[c]).all() for c in fit.trace.columns)


def test_run_without_divergence_has_no_diagnosis():
    assert svmp.fit(ratings_model(), max_sweeps=1).diagnosis is None
